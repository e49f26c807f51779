"""Promise: a function that Numba compiles is a native stage with the bytes of its Python form.

Its draws are those of `SampleRng`, its arithmetic is that of the written order, and a run notices
a function that changed.
"""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import assert_same_bytes, refused

from onemodel import ArrayDataset, Compose, DataLoader, ImageBatchCollator, Sample, SampleRng
from onemodel._builders.native import native_lane
from onemodel._random.rng import derive
from onemodel._random.streams import ROW_STREAM
from onemodel.augment import Blur, GainOffset, Noise
from onemodel.datasets import ImageTable
from onemodel.transforms import Normalize, RandomHorizontalFlip

pytest.importorskip("numba", reason="Numba is not installed")

from onemodel.numba import augmentation, row_transform

TENTH = np.float32(0.1)


LEVELS = np.linspace(0, 1, 5, dtype=np.float32)
LOW, SPAN = np.float32(0.8), np.float32(0.4)


@augmentation
def streak(rng, image, most=3, table=LEVELS):
    """Every draw, an array, integers and float32 arithmetic."""
    factor = np.float32(0.5 + rng.next_single() * 0.5)
    level = table[rng.next_int(5)]
    more = np.float32(rng.next_normal() * 0.25) + np.float32(rng.next_double())
    channels, height, width = image.shape
    for _ in range(rng.next_int(most) + 1):
        row = rng.next_int(height)
        for channel in range(channels):
            for column in range(width):
                value = image[channel, row, column] * factor + more
                image[channel, row, column] = level if value > np.float32(0.9) else value
    if rng.next_u64() & np.uint64(1):
        image[0, 0, 0] = TENTH


def gain_and_offset(rng, shape, low=LOW, span=SPAN):
    gain = low + span * np.float32(rng.next_single())
    return gain, np.float32(-0.1) + np.float32(0.2) * np.float32(rng.next_single())


@augmentation(draw=gain_and_offset)
def scaled(pixel, gain, offset):
    return pixel * gain + offset


def counts_of(rng, shape):
    return rng.next_int(shape[2]), rng.next_double(), np.float32(rng.next_single())


@augmentation(draw=counts_of)
def mixed(pixel, count, number, single, more=2):
    """Integers, float64 and float32 drawn; the branch and the setting are read for each pixel."""
    if pixel < single:
        return pixel + np.float32(count * more)
    return pixel * np.float32(number)


@row_transform
def damaged(rng, row, count=2):
    for _ in range(count):
        y, x = rng.next_int(row.shape[0]), rng.next_int(row.shape[1])
        row[y, x] = row[0, 0]


@row_transform(key="pictures")
def damaged_pictures(rng, row):
    row[rng.next_int(row.shape[0])] = 7


AUGMENTATIONS = [streak, scaled, mixed]


def python_form(stage):
    """A plain callable: no fast path sees that it is a stage."""
    return lambda rng, image: stage.__wrapped__(rng, image)


@given(state=st.integers(0, 2**64 - 1), n=st.integers(1, 2**63 - 1))
@settings(deadline=None)
def test_draws_are_those_of_the_generator(state, n):
    rng, values = SampleRng(state), np.zeros((1, 1, 5), np.int64)
    expected = SampleRng(state)
    drawn = draws(rng, n)
    values = [
        expected.next_u64(),
        expected.next_single(),
        expected.next_double(),
        expected.next_int(n),
        expected.next_int(3),
        expected.next_normal(),
    ]
    assert drawn == values
    assert rng.state == expected.state


def draws(rng, n):
    """All draws of a compiled function, by way of a float32 image that holds their bits."""

    @augmentation(exact=False)
    def bits(rng, image):
        words = image.view(np.uint64).reshape(-1)
        floats = image.view(np.float64).reshape(-1)
        bound = words[0]
        words[0] = rng.next_u64()
        floats[1] = rng.next_single()
        floats[2] = rng.next_double()
        words[3] = rng.next_int(np.int64(bound))
        words[4] = rng.next_int(3)
        floats[5] = rng.next_normal()

    image = np.zeros((1, 1, 12), np.float32)
    words, floats = image.view(np.uint64).reshape(-1), image.view(np.float64).reshape(-1)
    words[0] = n
    bits(rng, image)
    return [int(words[0]), floats[1], floats[2], int(words[3]), int(words[4]), floats[5]]


def lines(count=12, height=5):
    generator = np.random.default_rng(3)
    return [
        Sample(generator.random((1, height, 4 + 7 * k % 19), np.float32), [k], k)
        for k in range(count)
    ]


@pytest.mark.parametrize("stage", AUGMENTATIONS, ids=lambda stage: stage.function.__name__)
@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_those_of_the_python_form(stage, table, workers, request):
    if workers:
        request.getfixturevalue("needs_threads")
    dataset = ImageTable.from_samples(lines()) if table else lines()

    def loader(augment, workers):
        collate = ImageBatchCollator(width_multiple=4, augment=augment)
        return DataLoader(dataset, 5, shuffle=True, collate=collate, seed=8, workers=workers)

    with loader(stage, workers) as fast, loader(python_form(stage), 0) as plain:
        assert native_lane(fast._builder) is not None
        assert native_lane(plain._builder) is None
        for found, expected in zip(fast.steps(0, 6), plain.steps(0, 6), strict=True):
            assert_same_bytes(found.images, expected.images)


@pytest.mark.parametrize("before", [[], [Blur(0.5)], [GainOffset((0.5, 2), (-1, 1))], [Noise(0.1)]])
@pytest.mark.parametrize("stage", AUGMENTATIONS, ids=lambda stage: stage.function.__name__)
def test_chains_are_those_of_the_python_form(stage, before):
    chain = [*before, stage, GainOffset((0.5, 2), (-1, 1))]
    plain = [*before, python_form(stage), GainOffset((0.5, 2), (-1, 1))]
    for seed in range(5):
        image = SampleRng(seed).random((2, 9, 300), np.float32)
        found, expected = image.copy(), image.copy()
        Compose(chain)(SampleRng(seed + 10), found)
        Compose(plain)(SampleRng(seed + 10), expected)
        assert_same_bytes(found, expected)


def test_bytes_of_a_table_are_converted_as_without_the_stage():
    generator = np.random.default_rng(5)
    images = [generator.integers(0, 256, (4, 5 + k), np.uint8) for k in range(6)]
    table = ImageTable.from_arrays(images, mean=[0.4], std=[0.3])
    batches = []
    for augment in (scaled, python_form(scaled)):
        collate = ImageBatchCollator(augment=augment)
        with DataLoader(table, 6, collate=collate, seed=1) as loader:
            batches.append(loader[0].images)
    assert_same_bytes(*batches)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_rows_are_those_of_the_python_form(dtype, workers, request):
    if workers:
        request.getfixturevalue("needs_threads")
    generator = np.random.default_rng(2)
    pixels = generator.integers(0, 256, (23, 6, 5, 3), np.uint8)
    planes = np.ascontiguousarray(pixels.transpose(0, 3, 1, 2), np.float32)
    data = pixels if dtype == np.uint8 else planes

    with DataLoader(
        ArrayDataset(data), 7, shuffle=True, transform=Compose([damaged]), seed=4, workers=workers
    ) as loader:
        assert native_lane(loader._builder) is not None
        for step in range(6):
            found = loader[step]
            indices = loader.sampler.batch_indices(4, step // 4, step % 4)
            expected = data[indices].copy()
            for slot, row in enumerate(expected):
                rng = SampleRng(derive(4, step // 4, step % 4, slot, ROW_STREAM))
                damaged.__wrapped__(rng, row)
            assert_same_bytes(found, expected)


def test_a_chain_of_rows_stays_native():
    pixels = np.random.default_rng(2).integers(0, 256, (9, 6, 5, 3), np.uint8)
    parts = [RandomHorizontalFlip(), damaged, Normalize([0.5] * 3, [0.2] * 3)]
    with DataLoader(ArrayDataset(pixels), 9, transform=Compose(parts), seed=4) as loader:
        assert native_lane(loader._builder) is not None
        assert loader[0].dtype == np.float32


def test_a_key_names_the_array():
    data = {"pictures": np.zeros((4, 3, 3), np.uint8), "y": np.arange(4)}
    with DataLoader(ArrayDataset(data), 4, transform=damaged_pictures) as loader:
        assert (loader[0]["pictures"] == 7).any()
        assert loader[0]["y"].tolist() == [0, 1, 2, 3]


# What is refused


def test_what_differs_from_python_is_refused():
    with refused(ValueError, "same bytes compiled"):

        @augmentation
        def wide(rng, image):
            factor = rng.next_double()
            for k in range(image.shape[2]):
                image[0, 0, k] = image[0, 0, k] * factor * 0.3 + factor

    augmentation(wide_form, exact=False)


def wide_form(rng, image):
    image[0, 0, 0] = image[0, 0, 0] * rng.next_double()


@pytest.mark.parametrize(
    ("function", "word"),
    [
        (lambda image: None, "parameters"),
        (lambda rng, image, other: None, "parameters"),
        (lambda rng, image, *others: None, "parameters"),
        (lambda rng, image, *, other=1: None, "parameters"),
        (len, "function"),
        (3, "function"),
    ],
)
def test_other_functions_are_refused(function, word):
    with refused(TypeError, word):
        augmentation(function)


def test_what_may_raise_is_refused():
    def raising(rng, image):
        if image.shape[0] > 1:
            raise ValueError

    def asserting(rng, row):
        assert row.shape[0] > 0

    with refused(TypeError, "raising", "raise"):
        augmentation(raising)
    with refused(TypeError, "asserting", "assert"):
        row_transform(asserting)


def test_what_numba_cannot_compile_is_refused():
    def impossible(rng, image):
        image[:] = sorted({"a": image}, key=str)

    with refused(TypeError, "impossible", "Numba"):
        augmentation(impossible)


def test_settings():
    other = streak.with_settings(most=1)
    assert other.settings["most"] == 1
    assert streak.settings["most"] == 3
    assert not other.settings["table"].flags.writeable
    with refused(TypeError, "settings", "least"):
        streak.with_settings(least=1)
    with pytest.raises(AttributeError):
        streak.settings = {}


# Pickles and states


@pytest.mark.parametrize("stage", [*AUGMENTATIONS, damaged, damaged_pictures])
def test_stages_are_pickled_by_name(stage):
    for each in (stage, stage.with_settings()):
        copy = pickle.loads(pickle.dumps(each))
        assert type(copy) is type(stage)
        assert copy.function is stage.function
        assert repr(copy) == repr(stage)
    if "count" in stage.settings:
        changed = stage.with_settings(count=5)
        assert pickle.loads(pickle.dumps(changed)).settings["count"] == 5


def test_a_local_function_says_that_it_cannot_be_pickled():
    @augmentation
    def local(rng, image):
        image[0, 0, 0] = np.float32(0)

    with pytest.raises(pickle.PicklingError, match="top of its module"):
        pickle.dumps(local)


def test_a_state_notices_a_changed_function():
    def make(amount):
        @augmentation
        def shift(rng, image):
            image[0, 0, 0] = np.float32(amount)

        return DataLoader(lines(), 4, collate=ImageBatchCollator(augment=shift))

    make(1).load_state_dict(make(1).state_dict())
    with refused(ValueError, "augmentation"):
        make(1).load_state_dict(make(2).state_dict())


def test_numba_is_imported_by_nobody_else(needs_subprocess):
    code = "import sys, onemodel; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)

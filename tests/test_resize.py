"""Promise: StretchWidth and ResizeHeight give the bytes that docs/augmentations.md names.

They return a new sample and leave the old one as it is, whatever the layout of its image; a side
whose length stays keeps its bytes.
"""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from reference import augment as twins
from reference import collate as twin_collate
from reference.rng import SampleRng as TwinRng
from support import WORDS, assert_same_bytes, refused

from onemodel import Compose, DataLoader, ImageBatchCollator, Sample, SampleRng
from onemodel.augment import ResizeHeight, StretchWidth

SIDES = st.integers(1, 24)
IMAGES = st.tuples(st.integers(1, 3), SIDES, SIDES).flatmap(
    lambda shape: arrays.arrays(np.float32, shape, elements=st.floats(-4, 4, width=32))
)
FACTORS = st.tuples(st.floats(0.01, 4), st.floats(0.01, 4)).map(sorted)


def assert_same_sample(sample, expected):
    assert type(sample) is Sample
    assert_same_bytes(sample.image, expected.image)
    assert sample.image.flags.c_contiguous
    assert sample.target is expected.target
    assert sample.label is expected.label


@given(IMAGES, FACTORS, WORDS)
def test_stretch_width_is_its_twin(image, factors, seed):
    target, before = (1, 2), image.copy()
    rng, expected_rng = SampleRng(seed), TwinRng(seed)
    expected = twins.StretchWidth(*factors)(expected_rng, twin_collate.Sample(image, target, 9))
    assert_same_sample(StretchWidth(*factors)(rng, Sample(image, target, 9)), expected)
    assert rng.state == expected_rng.state
    assert_same_bytes(image, before)


@given(IMAGES, SIDES, st.booleans())
def test_resize_height_is_its_twin(image, height, keep_aspect):
    target, before = (), image.copy()
    rng = SampleRng(5)
    expected = twins.ResizeHeight(height, keep_aspect)(
        TwinRng(5), twin_collate.Sample(image, target, -1)
    )
    assert_same_sample(ResizeHeight(height, keep_aspect)(rng, Sample(image, target, -1)), expected)
    assert rng.state == 5
    assert_same_bytes(image, before)


@pytest.mark.parametrize("name", ["StretchWidth", "Compose"])
def test_defaults_are_the_documented_ones(name):
    image = np.random.default_rng(0).random((1, 6, 90), np.float32)
    ours, theirs = StretchWidth(), twins.StretchWidth()
    if name == "Compose":
        ours = Compose([ours, ResizeHeight(9)])
        theirs = Compose([theirs, twins.ResizeHeight(9)])
    for seed in range(20):
        expected = theirs(TwinRng(seed), twin_collate.Sample(image))
        assert_same_bytes(ours(SampleRng(seed), Sample(image)).image, expected.image)


@pytest.mark.parametrize("step", [2, -1])
def test_any_layout_of_the_image(step):
    image = np.random.default_rng(0).random((2, 9, 30), np.float32)[:, ::step, ::step]
    image.flags.writeable = False
    for transform in (StretchWidth(0.5, 2), ResizeHeight(4)):
        one = transform(SampleRng(3), Sample(image))
        other = transform(SampleRng(3), Sample(image.copy()))
        assert_same_bytes(one.image, other.image)


def test_an_image_at_an_odd_address_is_as_good():
    image = np.random.default_rng(0).random((2, 9, 30), np.float32)
    memory = np.zeros(image.nbytes + 1, np.uint8)
    odd = memory[1:].view(np.float32).reshape(image.shape)
    odd[...] = image
    assert not odd.flags.aligned
    for transform in (StretchWidth(0.5, 2), ResizeHeight(4), ResizeHeight(9)):
        one = transform(SampleRng(3), Sample(odd))
        assert_same_bytes(one.image, transform(SampleRng(3), Sample(image)).image)
        assert one.image.flags.aligned


class Liar(np.ndarray):
    """A subclass whose every description of itself is wrong."""

    ndim = property(lambda self: 2)
    dtype = property(lambda self: np.dtype(np.float64))
    shape = property(lambda self: (1000, 1000, 1000))
    strides = property(lambda self: (4, 4, 4))
    flags = property(lambda self: np.zeros((1,), np.float32).flags)

    def copy(self, order="C"):
        return np.zeros(1)


def test_what_a_subclass_says_of_itself_does_not_count():
    image = np.random.default_rng(0).random((2, 9, 30), np.float32)[:, :, ::-1]
    for transform in (StretchWidth(0.5, 2), ResizeHeight(4)):
        one = transform(SampleRng(3), Sample(image.view(Liar)))
        assert_same_bytes(one.image, transform(SampleRng(3), Sample(image)).image)
        with refused(TypeError, "image", "masked"):
            transform(SampleRng(3), Sample(np.ma.masked_equal(image, 0)))


def test_a_side_that_stays_keeps_every_byte():
    image = np.array([[[-0.0, np.inf, 1e-45], [np.nan, 0.1, -3e38]]], np.float32)
    for transform in (StretchWidth(1, 1), ResizeHeight(2), ResizeHeight(2, keep_aspect=False)):
        result = transform(SampleRng(1), Sample(image)).image
        assert_same_bytes(result, image)
        assert not np.shares_memory(result, image)


@pytest.mark.parametrize("factors", [(0.001, 0.001), (100, 100), (2, 2)])
def test_a_single_pixel_stays_one_value(factors):
    image = np.full((1, 1, 1), 0.3, np.float32)
    result = StretchWidth(*factors)(SampleRng(1), Sample(image)).image
    assert result.shape == (1, 1, max(1, int(factors[0])))
    assert (result == np.float32(0.3)).all()


def test_the_loader_takes_them_as_transforms():
    """Heights of any size share a batch, and the batch replays."""
    generator = np.random.default_rng(1)
    samples = [
        Sample(generator.random((1, height, 40), np.float32), label=height)
        for height in (20, 31, 32, 64)
    ]
    transform = Compose([ResizeHeight(32), StretchWidth(0.5, 1.5)])
    with DataLoader(
        samples, 4, transform=transform, collate=ImageBatchCollator(), seed=3
    ) as loader:
        first = loader[0]
        assert first.images.shape[:3] == (4, 1, 32)
        assert list(first.labels) == [20, 31, 32, 64]
        assert len(set(first.widths)) > 1
        assert loader.digest(0) == loader.digest(0)


@pytest.mark.parametrize(
    ("target", "label", "word"),
    [
        ([True], 1, "target"),
        ([2**31], 1, "target"),
        (np.zeros((1, 1), np.int32), 1, "target"),
        (np.ma.masked_equal([1, 2], 2), 1, "masked"),
        ([1], 2**31, "label"),
        ([1], "1", "label"),
    ],
)
def test_what_is_wrong_with_a_target_is_said_of_the_new_sample(target, label, word):
    image = np.ones((1, 4, 6), np.float32)
    samples = [Sample(image, [1]), Sample(image, target, label)]
    with (
        DataLoader(
            samples, 2, transform=StretchWidth(2, 2), collate=ImageBatchCollator()
        ) as loader,
        refused((TypeError, ValueError), word, "slot 1"),
    ):
        loader[0]


def test_targets_come_along_whatever_their_dtype():
    image = np.ones((1, 4, 6), np.float32)
    samples = [
        Sample(image, target, 7)
        for target in ([3, 1], (4,), np.array([5, 6], ">i8"), np.array([9, 9, 9], np.uint8), [])
    ]
    batches = []
    for transform in (None, StretchWidth(1, 1)):
        with DataLoader(samples, 5, transform=transform, collate=ImageBatchCollator()) as loader:
            batches += [loader[0], loader[0]]
    for batch in batches:
        assert batch.targets.tolist() == [3, 1, 4, 5, 6, 9, 9, 9]
        assert batch.target_lengths.tolist() == [2, 1, 2, 3, 0]
        assert set(batch.labels) == {7}


def test_settings_are_shown_exactly_and_pickled():
    shown = [
        (StretchWidth(np.float32(0.5), 2), "StretchWidth(low=0.5, high=2.0)"),
        (ResizeHeight(np.int64(32)), "ResizeHeight(height=32, keep_aspect=True)"),
        (ResizeHeight(8, keep_aspect=False), "ResizeHeight(height=8, keep_aspect=False)"),
    ]
    for transform, text in shown:
        assert repr(transform) == text
        assert repr(pickle.loads(pickle.dumps(transform))) == text
        assert repr(eval(text)) == text
    with pytest.raises(AttributeError):
        shown[0][0].low = 1
    with pytest.raises(AttributeError):
        shown[1][0].height = 1


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ((0, 1), ValueError, "low"),
        ((-1, 1), ValueError, "low"),
        ((2, 1), ValueError, "high"),
        ((1, 101), ValueError, "high"),
        ((float("nan"), 1), ValueError, "low"),
        (("1", 2), TypeError, "low"),
        ((1, None), TypeError, "high"),
    ],
    ids=repr,
)
def test_factors_are_checked(arguments, error, word):
    with refused(error, word):
        StretchWidth(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error", "word"),
    [
        ((0,), ValueError, "height"),
        ((65537,), ValueError, "height"),
        ((2.0,), TypeError, "height"),
        ((True,), TypeError, "height"),
        ((3, 1), TypeError, "keep_aspect"),
        ((3, None), TypeError, "keep_aspect"),
    ],
    ids=repr,
)
def test_heights_are_checked(arguments, error, word):
    with refused(error, word):
        ResizeHeight(*arguments)


@pytest.mark.parametrize(
    ("image", "error"),
    [
        (np.zeros((2, 3), np.float32), TypeError),
        (np.zeros((1, 2, 3), np.uint8), TypeError),
        (np.zeros((1, 0, 3), np.float32), ValueError),
        ([[[1.0]]], TypeError),
    ],
    ids=["2-D", "uint8", "empty", "list"],
)
def test_images_are_checked(image, error):
    rng = SampleRng(1)
    for transform in (StretchWidth(), ResizeHeight(4)):
        with refused(error, "image"):
            transform(rng, Sample(image))
        with pytest.raises(TypeError):
            transform(rng, image)
    assert rng.state == 1

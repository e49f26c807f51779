"""Promise: every native augmentation gives the bytes that docs/augmentations.md names.

In place, out of place row by row, and inside the collator's one pass, on every variant of the
loops: the pixels are the twin's and so is the generator's state afterwards. Settings are checked,
shown exactly and survive pickle. An image's memory stays where it is while a kernel runs.
"""

import contextlib
import doctest
import importlib
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from reference import augment as twins
from reference import collate as twin_collate
from reference.rng import SampleRng as TwinRng
from support import WORDS, assert_same_bytes, refused

import onemodel
from onemodel import Compose, SampleRng, augment
from onemodel._simd import dispatch
from onemodel.augment.protocol import Chain, NativeAugmentation

NUMBERS = st.floats(-1000, 1000, width=32)
PIXELS = st.floats(-4, 4, width=32)
PROBABILITIES = st.sampled_from([0, 0.0, 1, 1.0, 0.5]) | st.floats(0, 1)
SEEDS = WORDS


def ordered(values):
    return st.tuples(values, values).map(lambda pair: tuple(sorted(pair)))


ARGUMENTS = {
    "GainOffset": {"gain": ordered(NUMBERS), "offset": ordered(st.floats(-3, 3))},
    "Noise": {"sigma": st.floats(0, 5)},
    "Invert": {"p": PROBABILITIES},
    "Erase": {
        "count": st.integers(0, 4),
        "size": ordered(st.integers(1, 9) | st.integers(1, 2**31 - 1)),
        "fill": NUMBERS,
    },
    "HorizontalFlip": {"p": PROBABILITIES},
    "Shift": {
        "dx": ordered(st.integers(-9, 9) | st.integers(-(2**31), 2**31 - 1)),
        "dy": st.just((0, 0)) | ordered(st.integers(-5, 5) | st.integers(-(2**31), 2**31 - 1)),
        "fill": NUMBERS,
    },
    "Blur": {"p": PROBABILITIES},
}
SETTINGS = st.one_of(
    st.tuples(st.just(name), st.fixed_dictionaries({}, optional=arguments))
    for name, arguments in ARGUMENTS.items()
)
SHAPES = st.tuples(st.integers(1, 3), st.integers(1, 6), st.integers(1, 70))
IMAGES = SHAPES.flatmap(lambda shape: arrays.arrays(np.float32, shape, elements=PIXELS))


def native(setting):
    name, arguments = setting
    return getattr(augment, name)(**arguments)


def twin(setting):
    name, arguments = setting
    return getattr(twins, name)(**arguments)


@contextlib.contextmanager
def each_variant():
    """Yield a loop over the variants that leaves the one in use as it was."""

    def loop():
        for name in dispatch.variants():
            dispatch.select(name)
            yield name

    selected = dispatch.selected()
    try:
        yield loop()
    finally:
        dispatch.select(selected)


@given(SETTINGS, IMAGES, SEEDS)
def test_an_augmentation_is_its_twin(setting, image, seed):
    expected, expected_rng = image.copy(), TwinRng(seed)
    twin(setting)(expected_rng, expected)
    augmentation = native(setting)
    with each_variant() as variants:
        for _ in variants:
            rng, edited = SampleRng(seed), image.copy()
            assert augmentation(rng, edited) is None
            assert_same_bytes(edited, expected)
            assert rng.state == expected_rng.state

            rng, source, out = SampleRng(seed), image.copy(), np.full_like(image, np.nan)
            source.flags.writeable = False
            Chain([augmentation])(rng, source, out)
            assert_same_bytes(out, expected)
            assert rng.state == expected_rng.state


@given(st.lists(SETTINGS, max_size=4), IMAGES, SEEDS)
def test_a_chain_is_its_parts_one_after_another(settings, image, seed):
    expected, expected_rng = image.copy(), TwinRng(seed)
    for setting in settings:
        twin(setting)(expected_rng, expected)
    parts = [native(setting) for setting in settings]
    for chain in (Compose(parts), Chain(parts)):
        rng, edited = SampleRng(seed), image.copy()
        chain(rng, edited)
        assert_same_bytes(edited, expected)
        assert rng.state == expected_rng.state
    out = np.full_like(image, np.nan)
    Chain(parts)(SampleRng(seed), image, out)
    assert_same_bytes(out, expected)


def python_callable(rng, image):
    """A user's own augmentation, with draws of its own."""
    image *= np.float32(rng.next_single())
    image[:, 0, 0] = np.float32(rng.next_normal())


@given(st.lists(SETTINGS | st.none(), min_size=1, max_size=4), IMAGES, SEEDS)
def test_native_parts_mix_with_python(settings, image, seed):
    expected, expected_rng = image.copy(), TwinRng(seed)
    for setting in settings:
        (python_callable if setting is None else twin(setting))(expected_rng, expected)
    parts = [python_callable if setting is None else native(setting) for setting in settings]
    rng, edited = SampleRng(seed), image.copy()
    Compose(parts)(rng, edited)
    assert_same_bytes(edited, expected)
    assert rng.state == expected_rng.state


def assert_one_pass_is_plain(settings, seed, widths, height):
    """The collator's native path against the twin of the reference path."""
    generator = np.random.default_rng(seed)
    pictures = [generator.random((2, height, width), np.float32) for width in widths]
    parts = [twin(setting) for setting in settings]

    def augment_all(rng, image):
        for part in parts:
            part(rng, image)

    samples, indices = [twin_collate.Sample(picture) for picture in pictures], [3, 1, 2, 0]
    options = {"width_multiple": 4, "pad_value": 0.5}
    expected = twin_collate.collate_images(
        samples, indices, seed, 2, 5, 6, augment=augment_all, **options
    )
    collator = onemodel.ImageBatchCollator(augment=Compose(map(native, settings)), **options)
    key = onemodel.BatchKey(seed, 2, 5, 6, np.array(indices, np.int64))
    with each_variant() as variants:
        for _ in variants:
            batch = collator([onemodel.Sample(picture) for picture in pictures], key)
            assert_same_bytes(batch.images, expected["images"])


@given(st.lists(SETTINGS, min_size=1, max_size=3), SEEDS)
def test_the_one_pass_route_is_the_plain_route(settings, seed):
    assert_one_pass_is_plain(settings, seed, [17, 1, 8, 33], 3)


@pytest.mark.parametrize("last", [("HorizontalFlip", {"p": 0.5}), ("Blur", {"p": 0.5})])
def test_a_batch_above_the_size_of_non_temporal_stores(last):
    settings = [("GainOffset", {}), ("Invert", {}), last]
    assert_one_pass_is_plain(settings, 9, [401, 1, 80, 333], 100)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_defaults_are_the_documented_ones(name):
    image = np.linspace(-1, 2, 2 * 5 * 40, dtype=np.float32).reshape(2, 5, 40)
    expected = image.copy()
    getattr(twins, name)()(TwinRng(12), expected)
    getattr(augment, name)()(SampleRng(12), image)
    assert_same_bytes(image, expected)


def test_draws_stand_in_the_documented_order():
    """Spelt out with the generator itself, once, so that twin and kernel cannot err together."""
    rng = SampleRng(77)
    gain = np.float32(0.5) + np.float32(1.5) * np.float32(rng.next_single())
    offset = np.float32(-1) + np.float32(2) * np.float32(rng.next_single())
    height, width = 2 + rng.next_int(3), 2 + rng.next_int(3)
    row, column = rng.next_int(8), rng.next_int(9)
    dx, dy = -1 + rng.next_int(3), -1 + rng.next_int(3)
    flipped = rng.next_single() < 0.5
    normal = rng.standard_normal((1, 8, 9))
    blurred = rng.next_single() < 0.0

    expected = np.ones((1, 8, 9), np.float32) * gain + offset
    top, left = row - height // 2, column - width // 2
    expected[:, max(top, 0) : top + height, max(left, 0) : left + width] = 7
    padded = np.pad(expected, ((0, 0), (1, 1), (1, 1)), constant_values=9)
    expected = padded[:, 1 - dy : 9 - dy, 1 - dx : 10 - dx]
    expected = expected[:, :, ::-1] if flipped else expected
    expected = expected + np.float32(0.25) * normal
    assert not blurred

    actual_rng, image = SampleRng(77), np.ones((1, 8, 9), np.float32)
    parts = [
        augment.GainOffset((0.5, 2), (-1, 1)),
        augment.Erase(1, (2, 4), 7),
        augment.Shift((-1, 1), (-1, 1), 9),
        augment.HorizontalFlip(0.5),
        augment.Noise(0.25),
        augment.Blur(0),
    ]
    Compose(parts)(actual_rng, image)
    assert_same_bytes(image, np.ascontiguousarray(expected))
    assert actual_rng.state == rng.state


@pytest.mark.parametrize("name", ["Invert", "HorizontalFlip", "Blur"])
def test_the_number_of_draws_does_not_depend_on_p(name):
    states = set()
    for p in (0, 0.3, 1):
        rng = SampleRng(3)
        getattr(augment, name)(p)(rng, np.zeros((1, 2, 3), np.float32))
        states.add(rng.state)
    assert len(states) == 1


@given(IMAGES)
def test_blur_and_flip_change_places(image):
    flip, blur = augment.HorizontalFlip(1), augment.Blur(1)
    one, other = image.copy(), image.copy()
    Compose([flip, blur])(SampleRng(1), one)
    Compose([blur, flip])(SampleRng(1), other)
    np.testing.assert_array_equal(one, other)


def test_blur_keeps_a_flat_image_exactly():
    image = np.full((2, 3, 9), 0.7, np.float32)
    augment.Blur(1)(SampleRng(0), image)
    assert (image == np.float32(0.7)).all()


# Settings


@given(SETTINGS)
def test_settings_are_shown_exactly_and_pickled(setting):
    augmentation = native(setting)
    shown = repr(augmentation)
    assert repr(eval(shown, vars(augment))) == shown
    copy = pickle.loads(pickle.dumps(augmentation))
    assert type(copy) is type(augmentation)
    assert repr(copy) == shown
    for name, value in setting[1].items():
        assert getattr(copy, name) == value
        with pytest.raises(AttributeError):
            setattr(augmentation, name, value)


def test_numpy_numbers_are_shown_as_plain_ones():
    numbers = augment.GainOffset((np.float64(1), 2), np.array([0.5, 0.5]))
    assert repr(numbers) == "GainOffset(gain=(1.0, 2.0), offset=(0.5, 0.5))"
    assert repr(augment.Shift(np.array([1, 2]))) == "Shift(dx=(1, 2), dy=(0, 0), fill=0.0)"


NOT_A_PAIR = [3, (1,), (1, 2, 3), None]
NOT_A_NUMBER = ["1", None, (1, 2), b"1"]
REFUSED = [
    *((name, {"p": p}, ValueError) for name in ("Invert", "Blur") for p in (-0.1, 1.1)),
    *(("HorizontalFlip", {"p": p}, ValueError) for p in (float("nan"), 2, -1)),
    *((name, {"p": p}, TypeError) for name in ("Invert", "Blur") for p in (True, 1j, None)),
    *((name, {"p": "1"}, TypeError) for name in ("Invert", "Blur", "HorizontalFlip")),
    *(("Noise", {"sigma": sigma}, ValueError) for sigma in (-1, float("inf"), 1e39)),
    *(("Noise", {"sigma": sigma}, TypeError) for sigma in NOT_A_NUMBER),
    *(("GainOffset", {"gain": pair}, TypeError) for pair in [*NOT_A_PAIR, ("1", "2")]),
    *(("GainOffset", {"offset": pair}, ValueError) for pair in [(2, 1), (0, float("nan"))]),
    ("GainOffset", {"gain": (-3e38, 3e38)}, ValueError),
    *(("Erase", {"count": count}, ValueError) for count in (-1, 1025)),
    *(("Erase", {"count": count}, TypeError) for count in (1.0, True, "1")),
    *(("Erase", {"size": size}, ValueError) for size in [(0, 1), (3, 2), (1, 2**31)]),
    *(("Erase", {"size": size}, TypeError) for size in [*NOT_A_PAIR, (1.0, 2)]),
    *(("Erase", {"fill": fill}, ValueError) for fill in (float("inf"), 1e300)),
    *(("Shift", {"dx": pair}, ValueError) for pair in [(1, 0), (-(2**31) - 1, 0), (0, 2**31)]),
    *(("Shift", {"dy": pair}, TypeError) for pair in [*NOT_A_PAIR, (0.5, 1)]),
    *(("Shift", {"fill": fill}, TypeError) for fill in NOT_A_NUMBER),
]


@pytest.mark.parametrize(("name", "arguments", "error"), REFUSED, ids=repr)
def test_settings_are_checked(name, arguments, error):
    ((argument, value),) = arguments.items()
    shown = value if isinstance(value, (int, float)) else ""
    with refused(error, argument, shown):
        getattr(augment, name)(**arguments)


# Images


@pytest.mark.parametrize(
    "image",
    [
        np.zeros((2, 3), np.float32),
        np.zeros((1, 2, 3), np.float64),
        np.zeros((1, 2, 6), np.float32)[:, :, ::2],
        np.zeros((1, 2, 0), np.float32),
        [[[1.0]]],
        None,
    ],
    ids=lambda image: f"{getattr(image, 'dtype', '')}{getattr(image, 'shape', image)}",
)
def test_images_are_checked(image):
    rng = SampleRng(1)
    for edit in (augment.Blur(), Chain([augment.Invert()])):
        with refused((TypeError, ValueError), "image"):
            edit(rng, image)
    good = np.zeros((1, 2, 3), np.float32)
    with refused((TypeError, ValueError), "image"):
        Chain([augment.Invert()])(rng, image, out=good)
    with refused((TypeError, ValueError), "out"):
        Chain([augment.Invert()])(rng, good, out=[1] if image is None else image)
    assert rng.state == 1


def test_a_read_only_image_is_refused():
    image = np.zeros((1, 2, 3), np.float32)
    image.flags.writeable = False
    with refused(ValueError, "image", "read-only"):
        augment.Invert()(SampleRng(1), image)


def test_out_has_the_images_shape():
    image, out = np.zeros((1, 2, 3), np.float32), np.zeros((1, 3, 2), np.float32)
    with refused(ValueError, "out", (1, 2, 3), (1, 3, 2)):
        Chain([])(SampleRng(1), image, out)


def test_an_image_at_an_odd_address_is_refused():
    memory = np.zeros(4 * 6 + 1, np.uint8)
    image, good = memory[1:].view(np.float32).reshape(1, 2, 3), np.zeros((1, 2, 3), np.float32)
    with refused(ValueError, "image", "aligned"):
        augment.Invert(1)(SampleRng(1), image)
    with refused(ValueError, "image", "aligned"):
        Chain([augment.Invert(1)])(SampleRng(1), image, good)
    with refused(ValueError, "out", "aligned"):
        Chain([augment.Invert(1)])(SampleRng(1), good, image)
    assert not memory.any()


class Liar(np.ndarray):
    """A subclass whose every description of itself is wrong."""

    ndim = property(lambda self: 1)
    dtype = property(lambda self: np.dtype(np.float64))
    shape = property(lambda self: (1000, 1000, 1000))
    strides = property(lambda self: (4, 4, 4))
    size = property(lambda self: 10**9)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_a_subclass_says_of_itself_does_not_count(name):
    part, image = getattr(augment, name)(), np.random.default_rng(0).random((1, 5, 6), np.float32)
    expected, edited, out = image.copy(), image.copy(), np.empty_like(image)
    part(SampleRng(1), expected)
    part(SampleRng(1), edited.view(Liar))
    Chain([part])(SampleRng(1), image.view(Liar), out.view(Liar))
    assert_same_bytes(edited, expected)
    assert_same_bytes(out, expected)
    with refused(ValueError, "out", (1, 5, 6), (1, 6, 5)):
        Chain([part])(SampleRng(1), image.view(Liar), out.reshape(1, 6, 5).view(Liar))


def test_any_object_with_a_buffer_is_an_image():
    image = np.random.default_rng(0).random((1, 5, 6), np.float32)
    memory = bytearray(image.tobytes())
    augment.Invert(1)(SampleRng(1), memoryview(memory).cast("f", (1, 5, 6)))
    assert_same_bytes(np.frombuffer(memory, np.float32).reshape(image.shape), 1 - image)


@pytest.mark.parametrize("apart", [False, True])
def test_the_buffer_is_held_while_a_kernel_runs(needs_threads, apart):
    """Another thread that tries to release it, as soon as it gets the GIL, can't.

    It gets the GIL when the kernel releases it; where it comes too early or too late the call is
    refused or done, and the next try follows.
    """
    chain = Chain([augment.Blur(1), augment.Noise(1)])
    source = np.zeros((1, 64, 1024), np.float32)
    held = False
    for _ in range(1000):
        view = memoryview(bytearray(source.nbytes)).cast("f", source.shape)
        go = threading.Event()
        seen = []

        def release(view=view, go=go, seen=seen):
            go.wait()
            try:
                view.release()
            except BufferError as error:
                seen.append(error)

        thread = threading.Thread(target=release)
        thread.start()
        with contextlib.suppress(ValueError):
            go.set()
            chain(SampleRng(1), *([source, view] if apart else [view]))
        thread.join()
        held = bool(seen)
        if held:
            break
    assert held


def test_what_was_not_initialised_is_refused():
    """An operation without functions must not be called through."""

    class Forgetful(NativeAugmentation):
        def __init__(self):
            pass

    for part in (NativeAugmentation(), Forgetful(), augment.Blur.__new__(augment.Blur)):
        with refused(TypeError, "initialised"):
            part(SampleRng(1), np.zeros((1, 1, 1), np.float32))
        with refused(TypeError, "initialised"):
            Chain([part])
    with refused(TypeError, "parts"):
        Chain([python_callable])


def test_names_are_sorted_and_there():
    assert augment.__all__ == sorted(augment.__all__)
    for name in augment.__all__:
        assert getattr(augment, name).__doc__


@pytest.mark.parametrize("name", ["pointwise", "spatial", "resize", "protocol"])
def test_examples_of_the_docstrings(name):
    module = importlib.import_module(f"onemodel.augment.{name}")
    results = doctest.testmod(module)
    assert results.attempted
    assert not results.failed


def test_augmentations_and_chains_are_made_once():
    for made, arguments in (
        (augment.Erase(1), (1000,)),
        (augment.Shift(), ()),
        (Chain([augment.Erase(1)]), ([],)),
    ):
        with pytest.raises(TypeError, match="once"):
            made.__init__(*arguments)


def test_out_of_a_chain_shares_no_memory():
    memory = np.zeros((1, 5, 4), np.float32)
    with pytest.raises(ValueError, match="share no memory"):
        Chain([augment.GainOffset()])(SampleRng(0), memory[:, :4], memory[:, 1:])

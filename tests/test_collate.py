"""Promise: a collated batch holds six outputs, byte for byte those of the reference path.

Whatever the layout of the samples' images, the padding, or the augmentation, the package gives
what the twin gives. An augmentation edits a copy and never the dataset's own array. What cannot be
collated is refused, and the message says which sample and which dataset index.
"""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from reference import collate as twin
from reference import rng as twin_rng
from reference.digest import digest
from reference.lines import GoldenLines, gain_and_offset
from support import WORDS, assert_same_bytes, integers, refused

import onemodel
from onemodel import BatchKey, ImageBatchCollator, Sample

NAMES = ["images", "widths", "targets", "target_lengths", "labels", "indices"]
UNFIT = (TypeError, ValueError, OverflowError)
INT32 = st.integers(-(2**31), 2**31 - 1)
# NaNs are left out: their payload is not part of any promise.
PIXELS = st.floats(width=32, allow_nan=False)


@st.composite
def ragged_samples(draw):
    """Twin samples that share channels and height, with any width, target and label."""
    channels, height = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    widths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=6))
    samples = []
    for width in widths:
        shape = (channels, height, width)
        image = draw(arrays.arrays(np.float32, shape, elements=PIXELS, fill=PIXELS))
        target = tuple(draw(st.lists(INT32, max_size=4)))
        samples.append(twin.Sample(image, target, draw(INT32)))
    return samples


KEYS = st.tuples(WORDS, WORDS, WORDS, st.integers(0, 1000))


def key_for(samples, seed=0, epoch=0, step=0, first_slot=0, indices=None):
    if indices is None:
        indices = range(len(samples))
    return BatchKey(seed, epoch, step, first_slot, np.array(list(indices), dtype=np.int64))


def package_samples(samples):
    return [Sample(image, target, label) for image, target, label in samples]


def outputs(batch):
    return {name: np.array(getattr(batch, name)) for name in NAMES}


def assert_equal_batches(batch, expected):
    for name in NAMES:
        assert_same_bytes(getattr(batch, name), expected[name])


def lines(count=5, height=4):
    golden = GoldenLines(count, height)
    return [golden[index] for index in range(count)]


@given(
    ragged_samples(),
    KEYS,
    st.integers(1, 9),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.data(),
)
def test_a_batch_is_the_twins(samples, key, width_multiple, pad_value, augmented, data):
    indices = data.draw(
        st.lists(st.integers(0, 2**31 - 1), min_size=len(samples), max_size=len(samples))
    )
    options = {
        "width_multiple": width_multiple,
        "pad_value": pad_value,
        "augment": gain_and_offset if augmented else None,
    }
    seed, epoch, step, first_slot = key
    with np.errstate(over="ignore", invalid="ignore"):  # the largest float32 times a gain
        expected = twin.collate_images(samples, indices, seed, epoch, step, first_slot, **options)
        batch = ImageBatchCollator(**options)(
            package_samples(samples), key_for(samples, *key, indices)
        )
    assert_equal_batches(batch, expected)
    assert (batch.epoch, batch.step) == (epoch, step)
    assert onemodel.digest(batch) == digest(expected)


def test_every_output_has_its_dtype_and_shape():
    samples = lines()
    batch = ImageBatchCollator(width_multiple=8)(package_samples(samples), key_for(samples))
    widths = [sample.image.shape[2] for sample in samples]
    assert batch.images.shape == (5, 1, 4, -(-max(widths) // 8) * 8)
    assert batch.images.dtype == np.float32
    assert batch.images.flags.c_contiguous
    for name in NAMES[1:]:
        assert getattr(batch, name).dtype == np.int32
    assert batch.widths.tolist() == widths
    assert batch.targets.tolist() == [symbol for sample in samples for symbol in sample.target]
    assert batch.target_lengths.tolist() == [len(sample.target) for sample in samples]
    assert batch.labels.tolist() == [sample.label for sample in samples]


@pytest.mark.parametrize("pad_value", [0.1, -0.0, 3.4e38, -3, 1e-42], ids=repr)
def test_padding_is_the_float32_of_its_value(pad_value):
    """The padding is compared as bytes, so that -0.0 and subnormal values count."""
    samples = [twin.Sample(np.ones((1, 2, width), dtype=np.float32)) for width in (1, 3)]
    batch = ImageBatchCollator(width_multiple=4, pad_value=pad_value)(
        package_samples(samples), key_for(samples)
    )
    expected = np.full((2, 2), pad_value, dtype=np.float32)
    assert_same_bytes(batch.images[0, 0, :, 2:], expected)
    assert_same_bytes(batch.images[1, 0, :, 3:], expected[:, :1])


def packed_records(a):
    """Pixels five bytes apart, so that most of them stand on odd addresses."""
    records = np.zeros(a.shape, dtype=[("flag", "u1"), ("pixel", "<f4")])
    records["pixel"] = a
    return records["pixel"]


def odd_address(a):
    """The whole image one byte off."""
    memory = np.zeros(a.nbytes + 1, dtype=np.uint8)
    view = memory[1:].view(np.float32).reshape(a.shape)
    view[...] = a
    return view


# Views of an image [C, H, W]: each gives the same values in another layout.
LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "every second column": lambda a: np.repeat(a, 2, axis=2)[:, :, ::2],
    "columns backwards": lambda a: a[:, :, ::-1].copy()[:, :, ::-1],
    "rows backwards": lambda a: a[:, ::-1].copy()[:, ::-1],
    "channels last": lambda a: np.ascontiguousarray(a.transpose(1, 2, 0)).transpose(2, 0, 1),
    "transposed": lambda a: np.ascontiguousarray(a.transpose(0, 2, 1)).transpose(0, 2, 1),
    "inside a larger one": lambda a: np.pad(a, [(0, 0), (2, 1), (3, 2)])[
        :, 2 : 2 + a.shape[1], 3 : 3 + a.shape[2]
    ],
    "packed records": packed_records,
    "odd address": odd_address,
    "one row for all": lambda a: np.broadcast_to(a[:, :1], a.shape),
    "other byte order": lambda a: a.astype(">f4"),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("augment", [None, gain_and_offset], ids=["plain", "augmented"])
def test_layouts(layout, augment):
    samples = lines()
    views = [sample._replace(image=LAYOUTS[layout](sample.image)) for sample in samples]
    values = [view._replace(image=np.array(view.image, dtype=np.float32)) for view in views]
    expected = twin.collate_images(values, range(5), 7, 1, 2, augment=augment)
    collator = ImageBatchCollator(augment=augment)
    if layout == "other byte order":
        # Not the machine's float32: refused as any other dtype would be.
        with refused(UNFIT, "image", ">f4"):
            collator(package_samples(views), key_for(views, 7, 1, 2))
    else:
        batch = collator(package_samples(views), key_for(views, 7, 1, 2))
        assert_equal_batches(batch, expected)


@pytest.mark.parametrize(
    "target",
    [
        (),
        [],
        (3, 1),
        [3, 1],
        np.array([3, 1]),
        np.array([3, 1], dtype=np.int32),
        np.array([3, 1], dtype=np.uint8),
        np.array([3, 9, 1, 9], dtype=np.int64)[::2],
        np.array([], dtype=np.int32),
    ],
    ids=repr,
)
def test_targets_of_many_kinds(target):
    image = np.zeros((1, 1, 1), dtype=np.float32)
    samples = [Sample(image, target), Sample(image, (7,))]
    batch = ImageBatchCollator()(samples, key_for(samples))
    assert batch.targets.tolist() == [*integers(target), 7]
    assert batch.target_lengths.tolist() == [len(target), 1]


def test_sample_defaults():
    sample = Sample(np.zeros((1, 1, 1), dtype=np.float32))
    assert len(sample.target) == 0
    assert sample.label == 0
    batch = ImageBatchCollator()([sample], key_for([sample]))
    assert batch.targets.shape == (0,)
    assert batch.labels.tolist() == [0]


# The augmentation


def test_the_augmentation_gets_its_slots_generator_and_a_copy():
    samples = lines()
    for sample in samples:
        sample.image.flags.writeable = False
    before = [sample.image.copy() for sample in samples]
    seen = []

    def augment(rng, image):
        seen.append(rng.state)
        assert isinstance(rng, onemodel.SampleRng)
        assert image.dtype == np.float32
        assert image.flags.c_contiguous
        assert image.flags.writeable
        assert image.shape == samples[len(seen) - 1].image.shape
        image[:] = len(seen)

    batch = ImageBatchCollator(augment=augment, pad_value=-1)(
        package_samples(samples), key_for(samples, 3, 4, 5, first_slot=10)
    )
    assert seen == [twin_rng.derive(3, 4, 5, 10 + row, 1) for row in range(5)]
    for row, sample in enumerate(samples):
        width = sample.image.shape[2]
        assert (batch.images[row, :, :, :width] == row + 1).all()
        assert (batch.images[row, :, :, width:] == -1).all()
        assert_same_bytes(sample.image, before[row])


def test_a_copy_even_where_the_sample_fills_its_row():
    """No sample is padded here, so a copy would not be needed for the layout."""
    image = np.ones((1, 2, 4), dtype=np.float32)

    def augment(rng, scratch):
        assert not np.shares_memory(scratch, image)
        scratch += 1

    batch = ImageBatchCollator(augment=augment)([Sample(image)] * 2, key_for([0, 1]))
    assert (batch.images == 2).all()
    assert (image == 1).all()


def test_compose_shares_one_generator():
    def noise(rng, image):
        image += np.float32(rng.next_single())

    def composed(rng, image):
        gain_and_offset(rng, image)
        noise(rng, image)

    samples = lines()
    expected = twin.collate_images(samples, range(5), 1, 2, 3, augment=composed)
    collator = ImageBatchCollator(augment=onemodel.Compose([gain_and_offset, noise]))
    assert_equal_batches(collator(package_samples(samples), key_for(samples, 1, 2, 3)), expected)


def test_an_augmentation_may_return_its_own_image():
    """The in-place contract is kept when the very same array comes back."""
    samples = lines()

    def augment(rng, image):
        gain_and_offset(rng, image)
        return image

    expected = twin.collate_images(samples, range(5), 0, 0, 0, augment=gain_and_offset)
    batch = ImageBatchCollator(augment=augment)(package_samples(samples), key_for(samples))
    assert_equal_batches(batch, expected)


def test_one_collator_many_times():
    """Scratch and buffers are used again; nothing of an earlier batch may shine through."""
    collator = ImageBatchCollator(width_multiple=4, pad_value=0.5, augment=gain_and_offset)
    golden = GoldenLines(60, 3)
    for step in range(30):
        indices = [(step * 7 + slot * 11) % 60 for slot in range(1 + step % 6)]
        samples = [golden[index] for index in indices]
        expected = twin.collate_images(
            samples, indices, 9, 0, step, width_multiple=4, pad_value=0.5, augment=gain_and_offset
        )
        batch = collator(package_samples(samples), key_for(samples, 9, 0, step, 0, indices))
        assert_equal_batches(batch, expected)
        batch.release()


# Refusals


def image(shape=(1, 2, 3), dtype=np.float32):
    return np.zeros(shape, dtype=dtype)


def assert_refused_sample(bad, *words):
    """The third of four samples is bad: the message says slot 2 and dataset index 70."""
    samples = [Sample(image()), Sample(image()), bad, Sample(image())]
    with refused(UNFIT, *words, 70, 2):
        ImageBatchCollator()(samples, key_for(samples, indices=[50, 60, 70, 80]))


@pytest.mark.parametrize("shape", [(2, 3), (3,), (1, 1, 2, 3), ()], ids=str)
def test_rank(shape):
    assert_refused_sample(Sample(image(shape)), "image", list(shape))


@pytest.mark.parametrize("dtype", [np.float64, np.uint8, np.int32, np.float16, bool], ids=str)
def test_dtype(dtype):
    assert_refused_sample(Sample(image(dtype=dtype)), "image", np.dtype(dtype).name)


def test_image_that_is_no_array():
    assert_refused_sample(Sample([[[0.0]]]), "image")
    assert_refused_sample(Sample(None), "image")


@pytest.mark.parametrize("shape", [(2, 2, 3), (1, 3, 3), (1, 1, 3)], ids=str)
def test_channels_and_height_are_shared(shape):
    assert_refused_sample(Sample(image(shape)), "image", list(shape))


@pytest.mark.parametrize("shape", [(1, 2, 0), (1, 0, 3), (0, 2, 3)], ids=str)
def test_empty_images(shape):
    assert_refused_sample(Sample(image(shape)), "image", list(shape))


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**70], ids=str)
def test_targets_and_labels_fit_in_int32(value):
    assert_refused_sample(Sample(image(), (1, value)), "target", value)
    assert_refused_sample(Sample(image(), (), value), "label", value)


def test_targets_in_arrays_fit_in_int32():
    assert_refused_sample(Sample(image(), np.array([1, 2**31])), "target", 2**31)
    assert_refused_sample(Sample(image(), np.array([2**63], dtype=np.uint64)), "target", 2**63)


@pytest.mark.parametrize("value", [1.5, "a", None, True], ids=repr)
def test_targets_and_labels_are_integers(value):
    if value is not True:  # among integers NumPy takes it for one
        assert_refused_sample(Sample(image(), (1, value)), "target", value)
    assert_refused_sample(Sample(image(), (), value), "label", value)


def test_targets_in_arrays_are_integers():
    assert_refused_sample(Sample(image(), np.array([1.0, 2.0])), "target")
    assert_refused_sample(Sample(image(), np.array([True])), "target")
    assert_refused_sample(Sample(image(), np.zeros((1, 2), dtype=int)), "target")


def test_indices_fit_in_int32():
    with refused(ValueError, "index", 2**31):
        ImageBatchCollator()([Sample(image())], key_for([0], indices=[2**31]))


def test_what_is_no_sample():
    assert_refused_sample(image(), "Sample")
    assert_refused_sample(None, "Sample")


def test_an_augmentation_may_not_return_another_array():
    def augment(rng, scratch):
        return scratch.copy()

    samples = [Sample(image())] * 3
    with refused((TypeError, ValueError), "augment", 50):
        ImageBatchCollator(augment=augment)(samples, key_for(samples, indices=[50, 60, 70]))


def test_an_augmentation_may_not_change_the_shape():
    def augment(rng, scratch):
        # The setter is deprecated since NumPy 2.5; whoever calls it anyway must not get far.
        scratch.shape = (1, 3, 2)

    samples = [Sample(image())] * 3
    collator = ImageBatchCollator(augment=augment)
    with (
        warnings.catch_warnings(action="ignore"),
        refused((TypeError, ValueError), "augment", 50),
    ):
        collator(samples, key_for(samples, indices=[50, 60, 70]))


def test_an_augmentation_that_raises_leaves_the_collator_usable():
    calls = []

    def augment(rng, scratch):
        calls.append(rng.state)
        if len(calls) == 2:
            raise KeyError("on purpose")
        scratch += 1

    samples = [Sample(image())] * 3
    collator = ImageBatchCollator(augment=augment)
    with pytest.raises(KeyError, match="on purpose"):
        collator(samples, key_for(samples))
    batch = collator(samples, key_for(samples))
    assert (batch.images == 1).all()


@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-4, ValueError), (2.0, TypeError), (True, TypeError), (None, TypeError)],
    ids=repr,
)
def test_width_multiple(value, error):
    with refused(error, "width_multiple", value):
        ImageBatchCollator(width_multiple=value)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("zero", TypeError),
        (None, UNFIT),
        (1e60, ValueError),
        (float("nan"), ValueError),
        (float("inf"), ValueError),
    ],
    ids=repr,
)
def test_pad_value(value, error):
    with refused(error, "pad_value", value):
        ImageBatchCollator(pad_value=value)


def test_augment_must_be_callable():
    with refused(TypeError, "augment", 5):
        ImageBatchCollator(augment=5)


def test_a_list_that_changes_during_collation():
    samples = [Sample(np.full((1, 8, 64), k + 1, np.float32)) for k in range(4)]
    kept = []

    def augment(rng, image):
        samples.clear()
        kept.append(np.full((1, 8, 64), 99, np.float32))

    batch = ImageBatchCollator(augment=augment)(samples, BatchKey(0, 0, 0, 0, np.arange(4)))
    assert batch.images[:, 0, 0, 0].tolist() == [1, 2, 3, 4]


def test_slots_beyond_int64():
    samples = [Sample(np.ones((1, 1, 1), np.float32))]
    ImageBatchCollator()(samples, BatchKey(0, 0, 0, 2**63, np.zeros(1, np.int64)))
    with pytest.raises(TypeError, match=str(2**63)):
        ImageBatchCollator()([3], BatchKey(0, 0, 0, 2**63, np.zeros(1, np.int64)))


@pytest.mark.filterwarnings("ignore:Setting the dtype")
def test_an_augmentation_may_not_change_the_dtype():
    def reinterpret(rng, image):
        image.dtype = np.int32

    samples = [Sample(np.zeros((1, 2, 3), np.float32))]
    collate = ImageBatchCollator(augment=reinterpret)
    with pytest.raises(ValueError, match=r"float32 \[1, 2, 3\], got int32"):
        collate(samples, BatchKey(0, 0, 0, 0, np.array([0])))

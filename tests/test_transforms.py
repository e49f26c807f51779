"""Promise: every transform of the array face gives the bytes that docs/transforms.md names.

Called on a batch or run inside the gather, on every vector variant and in every layout of the
images: the rows are the twin's. What looks like another layout is refused, given arrays stay.
"""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import transforms as twin
from support import WORDS, assert_same_bytes, refused

import onemodel
from onemodel._batch.key import BatchKey
from onemodel._builders.array_builder import ArrayBatchBuilder
from onemodel._memory.pool import BufferPool
from onemodel._random.batch_rng import BatchRng
from onemodel._random.rng import SampleRng, derive
from onemodel._simd import dispatch
from onemodel.datasets import ArrayDataset
from onemodel.transforms import (
    Compose,
    CutMix,
    Cutout,
    Mixup,
    Normalize,
    OneHot,
    RandomCrop,
    RandomHorizontalFlip,
)
from onemodel.transforms._mixup import mix_rows
from onemodel.transforms.protocol import RowChain

SIDES = st.integers(1, 37)
ALPHAS = st.integers(1, 16).map(lambda k: 1.0 / k)


@st.composite
def image_batches(draw, max_rows=6, channels=(0, 1, 2, 3, 3, 4)):
    """uint8 [n, H, W, C], float32 [n, C, H, W], or either without the axis of the channel."""
    rows, height, width = draw(st.integers(0, max_rows)), draw(SIDES), draw(SIDES)
    channels = draw(st.sampled_from(channels))
    source = np.random.default_rng(draw(st.integers(0, 2**32)))
    if draw(st.booleans()):
        shape = (rows, height, width) + ((channels,) if channels else ())
        return source.integers(0, 256, shape, np.uint8)
    shape = (rows, *((channels,) if channels else ()), height, width)
    return source.standard_normal(shape, np.float32)


def stacked(function, images, *arguments):
    """The twin's rows; a batch of no rows has the shape that one row would give."""
    if len(images):
        return function(images, *arguments)
    return function(np.zeros((1, *images.shape[1:]), images.dtype), *arguments)[:0]


def sides_of(images):
    if images.ndim == 3 or images.dtype == np.uint8:
        return images.shape[1:3]
    return images.shape[2:]


def native_layout(images):
    return "HWC" if images.dtype == np.uint8 else "CHW"


def given_layout(images):
    """None where that is enough: two channels may look like another layout."""
    return native_layout(images) if images.ndim == 4 and channels_of(images) == 2 else None


def generators(images, seed, first_slot=0):
    return twin.row_generators(seed, 0, 0, first_slot, len(images))


@given(image_batches(), WORDS, st.floats(0, 1))
def test_flip(images, seed, p):
    expected = twin.flip(generators(images, seed), images, p)
    assert_same_bytes(
        RandomHorizontalFlip(p, layout=given_layout(images))(BatchRng(seed), images), expected
    )


@given(image_batches(), WORDS, st.integers(0, 9), st.data())
def test_crop(images, seed, padding, data):
    height, width = sides_of(images)
    size = None
    if data.draw(st.booleans()):
        size = (
            data.draw(st.integers(1, height + 2 * padding)),
            data.draw(st.integers(1, width + 2 * padding)),
        )
    result = RandomCrop(padding, size, layout=given_layout(images))(BatchRng(seed), images)
    rows = np.zeros((1, *images.shape[1:]), images.dtype) if len(images) == 0 else images
    expected = twin.crop(generators(rows, seed), rows, padding, size)[: len(images)]
    assert_same_bytes(result, expected)


@given(image_batches(), WORDS, st.integers(1, 40))
def test_cutout(images, seed, size):
    expected = twin.cutout(generators(images, seed), images, size)
    result = Cutout(size, layout=given_layout(images))(BatchRng(seed), images)
    assert_same_bytes(result, expected)


def channels_of(images):
    if images.ndim == 3:
        return 1
    return images.shape[3] if images.dtype == np.uint8 else images.shape[1]


@given(image_batches(), st.data())
def test_normalize(images, data):
    numbers = st.floats(-3, 3, width=32)
    deviations = st.floats(0.015625, 3, width=32)
    count = channels_of(images)
    mean = data.draw(numbers | st.lists(numbers, min_size=count, max_size=count))
    std = data.draw(deviations | st.lists(deviations, min_size=count, max_size=count))
    expected = stacked(twin.normalize, images, mean, std)
    for name in dispatch.variants():
        dispatch.select(name)
        result = Normalize(mean, std, layout=given_layout(images))(SampleRng(0), images)
        assert_same_bytes(result, expected)


def test_normalize_is_the_image_helper():
    images = np.random.default_rng(0).integers(0, 256, (2, 5, 7, 3), np.uint8)
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    result = Normalize(mean, std)(SampleRng(0), images)
    for image, planes in zip(images, result, strict=True):
        assert_same_bytes(planes, onemodel.image.rgb8_to_planar(image, mean, std))


@given(WORDS, ALPHAS, st.integers(1, 9), st.integers(0, 20), st.integers(0, 12))
def test_mixup(seed, alpha, block, first_slot, rows):
    source = np.random.default_rng(0)
    images = source.standard_normal((rows, 3, 4, 5), np.float32)
    labels = source.random((rows, 7), np.float32)
    rng = BatchRng(seed, first_slot=first_slot)
    result = Mixup(alpha, block)(rng, (images, labels))
    expected = twin.mixup(
        generators(images, seed, first_slot), images, labels, alpha, block, first_slot
    )
    for actual, wanted in zip(result, expected, strict=True):
        assert_same_bytes(actual, wanted)


@given(image_batches(), WORDS, ALPHAS, st.integers(1, 9), st.integers(0, 20))
def test_cutmix(images, seed, alpha, block, first_slot):
    labels = np.random.default_rng(0).random((len(images), 7), np.float32)
    rng = BatchRng(seed, first_slot=first_slot)
    result = CutMix(alpha, block, layout=given_layout(images))(rng, {"x": images, "y": labels})
    expected = twin.cutmix(
        generators(images, seed, first_slot), images, labels, alpha, block, first_slot
    )
    assert list(result) == ["x", "y"]
    for actual, wanted in zip(result.values(), expected, strict=True):
        assert_same_bytes(actual, wanted)


@given(st.lists(st.integers(0, 9), max_size=9), st.sampled_from(["u1", "i1", ">i4", "u8"]))
def test_one_hot(labels, dtype):
    labels = np.array(labels, dtype)
    _, rows = OneHot(10)(SampleRng(0), (labels, labels))
    assert_same_bytes(rows, twin.one_hot(labels, 10))


def test_beta_has_the_right_spread():
    for alpha in (1.0, 0.2):
        rng = SampleRng(1)
        weights = np.array([twin.beta(rng, alpha) for _ in range(4000)])
        variance = 1 / (4 * (2 * alpha + 1))
        assert abs(weights.mean() - 0.5) < 4 * np.sqrt(variance / 4000)
        assert abs(weights.var() - variance) < 0.01


def test_unaligned_and_strided_arrays_are_as_good():
    images = np.random.default_rng(0).standard_normal((4, 3, 5, 6), np.float32)
    labels = np.random.default_rng(1).random((4, 2), np.float32)
    memory = np.zeros(images.nbytes + 1, np.uint8)
    unaligned = memory[1:].view(np.float32).reshape(images.shape)
    unaligned[...] = images
    chain = Compose([RandomHorizontalFlip(), RandomCrop(1), Normalize(0.5, 0.5), Mixup()])
    wanted = chain(BatchRng(5), (images, labels))
    for other in (unaligned, np.asfortranarray(images), np.repeat(images, 2, axis=0)[::2]):
        result = chain(BatchRng(5), (other, labels))
        fused = ArrayBatchBuilder(ArrayDataset(other, labels), chain, BufferPool())
        built = fused.build(BatchKey(5, 0, 0, 0, np.arange(4)))
        for actual, again, expected in zip(result, built, wanted, strict=True):
            assert_same_bytes(actual, expected)
            assert_same_bytes(again, expected)


# One pass over memory gives the bytes of the reference path

PARTS = st.lists(
    st.sampled_from(
        [
            RandomHorizontalFlip(0.5),
            RandomCrop(2),
            Cutout(3),
            RandomCrop(1, size=4),
            Normalize(0.5, 0.25),
        ]
    ),
    min_size=1,
    max_size=5,
)


@given(image_batches(channels=(0, 1, 3, 4)), PARTS, WORDS, st.data())
def test_a_chain_is_its_parts(images, parts, seed, data):
    assume(min(sides_of(images)) >= 4)  # so that every window fits
    chain = RowChain(parts, images.dtype, images.shape[1:])
    places = st.lists(st.integers(0, max(len(images) - 1, 0)), max_size=9 if len(images) else 0)
    indices = np.array(data.draw(places), np.int64)
    expected = Compose(parts)(BatchRng(seed), images[indices])
    for name in dispatch.variants():
        dispatch.select(name)
        result = np.full((len(indices), *chain.shape), 77, chain.dtype)
        chain.run(BatchRng(seed), images, indices, result)
        assert_same_bytes(result, expected)


@pytest.mark.parametrize("last", [Normalize((0.5, 0.4, 0.3), 0.25), RandomCrop(1), Cutout(9)])
@pytest.mark.parametrize("width", [32, 31, 16, 5])
@pytest.mark.parametrize("offset", [0, 1, 64])
def test_large_batches_take_the_same_bytes_by_non_temporal_stores(last, width, offset):
    source = np.random.default_rng(0)
    images = source.integers(0, 256, (700, 32, width, 3), np.uint8)
    parts = [RandomHorizontalFlip(0.5), last]
    chain = RowChain(parts, images.dtype, images.shape[1:])
    expected = Compose(parts)(BatchRng(3), images[:9])
    size = 700 * int(np.prod(chain.shape))
    for name in dispatch.variants():
        dispatch.select(name)
        memory = np.zeros(size + offset, chain.dtype)
        result = memory[offset:].reshape(700, *chain.shape)
        chain.run(BatchRng(3), images, None, result)
        assert_same_bytes(result[:9], expected)
        if last.key is None and isinstance(last, Normalize):
            flipped = twin.flip(generators(images, 3), images, 0.5)
            assert_same_bytes(result[690:], twin.normalize(flipped[690:], last.mean, last.std))


def dataset_of(rows=40):
    source = np.random.default_rng(5)
    return ArrayDataset(
        {
            "name": source.integers(0, 9, rows),
            "x": source.integers(0, 256, (rows, 8, 9, 3), np.uint8),
            "mask": source.standard_normal((rows, 2, 8, 9), np.float32),
            "y": source.integers(0, 5, rows),
        }
    )


def bend(rng, batch):
    return {**batch, "x": batch["x"] + rng.random(batch["x"].shape, np.float32)}


CHAINS = [
    [RandomCrop(1), RandomHorizontalFlip(), Normalize(0.5, 0.25)],
    [OneHot(5), RandomHorizontalFlip(), Normalize(0.5, 0.25), Mixup(0.2)],
    [RandomHorizontalFlip(), OneHot(5), Cutout(3), CutMix(1.0), Normalize(0.5, 0.25), bend],
    [RandomHorizontalFlip(), RandomHorizontalFlip(key="mask"), RandomCrop(2)],
    [RandomHorizontalFlip(key="mask"), RandomCrop(2), Normalize(0.5, 0.25)],
    [Normalize(0.5, 0.25), bend, RandomHorizontalFlip()],
    [OneHot(9, key="name"), RandomCrop(2, size=(4, 5))],
]


class Plain:
    """The same arrays without anything that a builder could look through."""

    def __init__(self, dataset):
        self.dataset = dataset

    def __len__(self):
        return len(self.dataset)

    def __getitem__(self, indices):
        return self.dataset[indices]


def key_of(indices, first_slot=0):
    return BatchKey(11, 2, 3, first_slot, np.asarray(indices, np.int64))


@pytest.mark.parametrize("chain", CHAINS)
@pytest.mark.parametrize("indices", [[], [7], [3, 3, 39, 0, 12, 8, 1, 20, 21, 22, 30, 4]])
def test_a_fused_batch_is_the_plain_batch(chain, indices):
    dataset, pool = dataset_of(), BufferPool()
    fused = ArrayBatchBuilder(dataset, Compose(chain), pool).build(key_of(indices))
    plain = ArrayBatchBuilder(Plain(dataset), Compose(chain), pool).build(key_of(indices))
    assert list(fused) == list(plain)
    for name in fused:
        assert_same_bytes(fused[name], plain[name])


@pytest.mark.parametrize("chain", CHAINS[:2] + CHAINS[3:5] + CHAINS[6:])
def test_rows_do_not_change_when_the_batch_is_sharded(chain):
    dataset, pool = dataset_of(), BufferPool()
    indices = np.arange(32) * 7 % 40
    builder = ArrayBatchBuilder(dataset, Compose(chain), pool)
    whole = builder.build(key_of(indices))
    for world in (2, 4):
        size = 32 // world
        parts = [
            builder.build(key_of(indices[rank * size : (rank + 1) * size], rank * size))
            for rank in range(world)
        ]
        for name in whole:
            assert_same_bytes(np.concatenate([part[name] for part in parts]), whole[name])


@pytest.mark.parametrize("chain", CHAINS)
def test_the_dataset_is_never_written_to(chain):
    dataset = dataset_of()
    before = {name: array.copy() for name, array in dataset.arrays.items()}
    ArrayBatchBuilder(dataset, Compose(chain), BufferPool()).build(key_of(range(20)))
    for name, array in dataset.arrays.items():
        assert_same_bytes(array, before[name])


# The generator


@given(WORDS, WORDS, WORDS, st.integers(0, 2**63))
def test_the_generators_are_the_derived_ones(seed, epoch, step, first_slot):
    rng = BatchRng(seed, epoch, step, first_slot)
    assert rng.state == derive(seed, epoch, step, first_slot, 0)
    rows = rng.row_u64(3).tolist()
    assert rows == [
        SampleRng(derive(seed, epoch, step, first_slot + k, 2)).next_u64() for k in range(3)
    ]
    again = pickle.loads(pickle.dumps(rng))
    assert again.row_random(5).tolist() == rng.row_random(5).tolist()
    assert again.next_u64() == rng.next_u64()
    assert again.first_slot == first_slot


def test_a_plain_generator_seeds_the_rows():
    images = np.arange(24, dtype=np.uint8).reshape(8, 1, 3)
    rng = SampleRng(9)
    result = RandomHorizontalFlip()(rng, images)
    other = SampleRng(9)
    assert_same_bytes(result, RandomHorizontalFlip()(BatchRng(other.next_u64()), images))
    assert rng.state == other.state


# Layouts: the axes of a row


def other_layout(images):
    """The same images with their axes in the other order, and the name of that order."""
    if images.dtype == np.uint8:
        return np.ascontiguousarray(images.transpose(0, 3, 1, 2)), "CHW"
    return np.ascontiguousarray(images.transpose(0, 2, 3, 1)), "HWC"


def native_again(images, layout):
    axes = (0, 2, 3, 1) if layout == "CHW" else (0, 3, 1, 2)
    return np.ascontiguousarray(images.transpose(axes))


@given(image_batches(channels=(1, 2, 3, 4, 7)), WORDS, st.integers(0, 3))
def test_a_layout_that_is_given_is_read_so(images, seed, which):
    makers = [
        lambda layout: RandomHorizontalFlip(0.5, layout=layout),
        lambda layout: RandomCrop(2, layout=layout),
        lambda layout: Cutout(5, layout=layout),
        lambda layout: CutMix(layout=layout),
    ]
    other, layout = other_layout(images)
    labels = np.random.default_rng(0).random((len(images), 2), np.float32)
    make = makers[which]
    expected = make(native_layout(images))(BatchRng(seed), (images, labels))
    result = make(layout)(BatchRng(seed), (other, labels))
    assert_same_bytes(native_again(result[0], layout), expected[0])
    assert_same_bytes(result[1], expected[1])


@given(image_batches(channels=(1, 2, 3, 4, 7)), st.booleans())
def test_normalize_reads_the_layout_that_is_given(images, each):
    count = channels_of(images)
    mean, std = (np.linspace(0.1, 0.5, count), np.linspace(0.5, 2, count)) if each else (0.5, 0.25)
    other, layout = other_layout(images)
    expected = Normalize(mean, std, layout=native_layout(images))(SampleRng(0), images)
    for name in dispatch.variants():
        dispatch.select(name)
        result = Normalize(mean, std, layout=layout)(SampleRng(0), other)
        if layout == "HWC":
            result = native_again(result, layout)
        assert_same_bytes(result, expected)


LAYOUT_MAKERS = [
    RandomHorizontalFlip,
    RandomCrop,
    lambda **options: Cutout(2, **options),
    lambda **options: Normalize(0.5, 0.5, **options),
    CutMix,
]
LOOKS_LIKE = [
    (np.uint8, (3, 32, 32), "CHW"),
    (np.uint8, (1, 28, 28), "CHW"),
    (np.uint8, (4, 8, 9), "CHW"),
    (np.float32, (32, 32, 3), "HWC"),
    (np.float32, (28, 28, 1), "HWC"),
]


@pytest.mark.parametrize(("dtype", "shape", "looks"), LOOKS_LIKE)
@pytest.mark.parametrize("make", LAYOUT_MAKERS)
def test_what_looks_like_another_layout_is_refused(make, dtype, shape, looks):
    batch = np.ones((2, *shape), dtype), np.ones((2, 3), np.float32)
    with refused(ValueError, "images", "layout", "HWC", "CHW", shape):
        make()(SampleRng(0), batch)
    with refused(ValueError, "layout"):
        ArrayBatchBuilder(ArrayDataset(*batch), make(), BufferPool()).build(key_of([0, 1]))
    for layout in ("HWC", "CHW"):  # whoever says which is taken at their word
        make(layout=layout)(SampleRng(0), batch)


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [(np.uint8, (3, 32, 3)), (np.uint8, (3, 9, 1)), (np.uint8, (8, 9, 2)), (np.uint8, (3, 9)),
     (np.float32, (3, 32, 3)), (np.float32, (2, 8, 9)), (np.float32, (1, 9, 4))],
)  # fmt: skip
def test_what_reads_as_an_image_either_way_keeps_its_meaning(dtype, shape):
    images = np.arange(2 * np.prod(shape), dtype=dtype).reshape(2, *shape)
    flipped = RandomHorizontalFlip(1)(SampleRng(0), images)
    across = 2 if len(shape) == 2 or dtype == np.uint8 else 3
    assert_same_bytes(flipped, np.ascontiguousarray(np.flip(images, across)))


def test_each_part_of_a_fused_chain_reads_its_own_layout():
    images = np.random.default_rng(0).integers(0, 256, (6, 3, 8, 9), np.uint8)
    labels = np.zeros(6)
    parts = [
        RandomHorizontalFlip(layout="CHW"),
        RandomCrop(1, layout="CHW"),
        RandomHorizontalFlip(layout="CHW"),
        Normalize(0.5, (0.2, 0.3, 0.4), layout="CHW"),
        RandomHorizontalFlip(),
        Cutout(2, layout="CHW"),
    ]
    mixed = [RandomHorizontalFlip(layout="CHW"), Normalize((0.5,) * 9, 0.5, layout="HWC")]
    for chain in (parts, mixed):
        dataset, indices = ArrayDataset(images, labels), np.array([3, 0, 5])
        fused = ArrayBatchBuilder(dataset, Compose(chain), BufferPool()).build(key_of(indices))
        plain = ArrayBatchBuilder(Plain(dataset), Compose(chain), BufferPool()).build(
            key_of(indices)
        )
        assert_same_bytes(fused[0], plain[0])


# Arrays that are not what they say


class Liar(np.ndarray):
    """A subclass whose every description of itself is wrong."""

    ndim = property(lambda self: 4)
    dtype = property(lambda self: np.dtype(np.float64))
    shape = property(lambda self: (1000, 1000, 1000, 1000))
    strides = property(lambda self: (1 << 30, 1 << 30, 1 << 30, 1 << 30))
    size = property(lambda self: 10**12)
    nbytes = property(lambda self: 10**12)
    flags = property(lambda self: np.zeros((1,), np.float32).flags)

    def __len__(self):
        return 10**6

    def copy(self, order="C"):
        return np.zeros(1)

    def astype(self, *arguments, **options):
        return np.zeros(1)


def test_what_a_subclass_says_of_itself_does_not_count():
    source = np.random.default_rng(0)
    pixels = source.integers(0, 256, (4, 6, 7, 3), np.uint8)
    floats, labels = source.random((4, 3, 6, 7), np.float32), source.integers(0, 5, 4)
    soft = source.random((4, 5), np.float32)
    cases = [
        (RandomHorizontalFlip(), (pixels,)),
        (RandomCrop(2), (floats.transpose(0, 1, 3, 2),)),
        (Cutout(3), (pixels[:, :, ::-1],)),
        (Normalize(0.5, 0.5), (floats,)),
        (Mixup(), (floats, soft)),
        (CutMix(), (pixels, soft)),
        (OneHot(5), (pixels, labels)),
    ]
    for transform, batch in cases:
        expected = transform(BatchRng(1), batch)
        result = transform(BatchRng(1), tuple(each.view(Liar) for each in batch))
        for actual, wanted in zip(result, expected, strict=True):
            if type(actual) is np.ndarray:
                assert_same_bytes(actual, wanted)
    chain = RowChain([RandomHorizontalFlip()], np.uint8, pixels.shape[1:])
    expected, result = np.zeros_like(pixels), np.zeros_like(pixels)
    chain.run(BatchRng(1), pixels, None, expected)
    chain.run(BatchRng(1), pixels.view(Liar), None, result.view(Liar))
    assert_same_bytes(result, expected)


def test_masks_are_not_dropped_in_silence():
    pixels, soft = np.zeros((4, 6, 7, 3), np.uint8), np.zeros((4, 5), np.float32)
    masked = np.ma.masked_equal(pixels, 0)
    for transform in (RandomHorizontalFlip(), Normalize(0.5, 0.5), CutMix()):
        with refused(TypeError, "images", "mask"):
            transform(SampleRng(0), (masked, soft))
    with refused(TypeError, "labels", "mask"):
        CutMix()(SampleRng(0), (pixels, np.ma.masked_equal(soft, 0)))
    with refused(TypeError, "labels", "mask"):
        OneHot(3)(SampleRng(0), (pixels, np.ma.masked_equal(np.zeros(4, int), 0)))


# Structures, texts, errors

ALL = [
    RandomHorizontalFlip(0.25, key="x"),
    RandomCrop(4, size=(28, 30)),
    Cutout(8),
    Normalize((0.1, 0.2, 0.3), 0.5),
    Mixup(0.2, block=16),
    CutMix(1.0, label_key="z"),
    OneHot(10),
]


@pytest.mark.parametrize("transform", ALL, ids=lambda transform: type(transform).__name__)
def test_a_transform_shows_its_arguments_and_pickles(transform):
    names = {type(one).__name__: type(one) for one in ALL}
    assert repr(eval(repr(transform), names)) == repr(transform)
    assert repr(pickle.loads(pickle.dumps(transform))) == repr(transform)
    assert "key=" in repr(transform)


def test_the_structure_stays():
    images = np.zeros((2, 3, 3), np.uint8)
    flip = RandomHorizontalFlip()
    assert isinstance(flip(SampleRng(0), images), np.ndarray)
    pair = flip(SampleRng(0), (images, "left alone"))
    assert isinstance(pair, tuple)
    assert pair[1] == "left alone"
    assert list(flip(SampleRng(0), {"y": 1, "x": images})) == ["y", "x"]
    assert list(flip(SampleRng(0), {"pixels": images, "y": 1})) == ["pixels", "y"]


BAD = [
    (lambda: RandomHorizontalFlip(1.5), ValueError, ["p", 1.5]),
    (lambda: RandomHorizontalFlip("often"), TypeError, ["p", "often"]),
    (lambda: RandomCrop(-1), ValueError, ["padding", -1]),
    (lambda: RandomCrop(1, size=0), ValueError, ["size", 0]),
    (lambda: Cutout(0), ValueError, ["size", 0]),
    (lambda: Normalize(0, 0), ValueError, ["std", 0]),
    (lambda: Normalize("grey", 1), TypeError, ["mean", "grey"]),
    (lambda: Normalize((1, 2), (1, 2, 3)), ValueError, ["mean", "std", 2, 3]),
    (lambda: Normalize(float("nan"), 1), ValueError, ["mean", "nan"]),
    (lambda: Mixup(0.3), ValueError, ["alpha", 0.3]),
    (lambda: Mixup(block=0), ValueError, ["block", 0]),
    (lambda: OneHot(0), ValueError, ["classes", 0]),
]


@pytest.mark.parametrize(("make", "error", "words"), BAD)
def test_bad_arguments(make, error, words):
    with refused(error, *words):
        make()


IMAGES = np.zeros((2, 4, 4, 3), np.uint8)
BAD_CALLS = [
    (RandomHorizontalFlip(), IMAGES.astype(np.int64), TypeError, ["images", "int64"]),
    (RandomHorizontalFlip(), np.zeros((2, 3), np.uint8), ValueError, ["images", "rank"]),
    (RandomHorizontalFlip(), np.zeros((2, 0, 3), np.uint8), ValueError, ["images", "pixels"]),
    (RandomHorizontalFlip(key="z"), {"x": IMAGES}, KeyError, ["key", "z"]),
    (RandomHorizontalFlip(key=2), (IMAGES, IMAGES), IndexError, ["key", 2]),
    (RandomCrop(0, size=5), IMAGES, ValueError, ["size", (5, 5)]),
    (Normalize((1, 2), 1), IMAGES, ValueError, ["mean", 3, 2]),
    (OneHot(3), IMAGES, TypeError, ["labels"]),
    (OneHot(3), (IMAGES, np.array([0, 3])), ValueError, ["labels", 3, "row 1"]),
    (OneHot(3), (IMAGES, np.array([0.5, 1])), TypeError, ["labels", "float64"]),
    (Mixup(), (IMAGES, np.zeros((2, 3), np.float32)), TypeError, ["images", "Normalize"]),
    (CutMix(), (IMAGES, np.array([0, 1])), TypeError, ["labels", "OneHot"]),
    (CutMix(), (IMAGES, np.zeros((3, 2), np.float32)), ValueError, ["rows", 2, 3]),
]


@pytest.mark.parametrize(("transform", "batch", "error", "words"), BAD_CALLS)
def test_bad_batches(transform, batch, error, words):
    with refused(error, *words):
        transform(SampleRng(0), batch)


def test_row_chains_are_made_once():
    chain = RowChain([RandomHorizontalFlip()], np.uint8, (4, 4, 3))
    with pytest.raises(TypeError, match="once"):
        chain.__init__([RandomHorizontalFlip()], np.uint8, (4, 4, 3))
    x = np.zeros((1, 1, 1, 3), np.uint8)
    with pytest.raises(TypeError, match="initialised"):
        RowChain.__new__(RowChain).run(BatchRng(0), x, None, x)


def test_blending_checks_its_arrays():
    images, labels = np.zeros((4, 3), np.float32), np.zeros((4, 2), np.float32)
    for result, block in ((np.zeros((1, 3), np.float32), 8), (images.copy(), 0)):
        with pytest.raises(ValueError, match="must"):
            mix_rows(BatchRng(0), 1, block, images, result, labels, labels.copy())
    frozen = images.copy()
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        mix_rows(BatchRng(0), 1, 8, images, frozen, labels, labels.copy())


def test_the_result_of_a_row_chain_shares_no_memory():
    images = np.zeros((6, 1, 4, 4), np.float32)
    chain = RowChain([RandomHorizontalFlip(1)], images.dtype, images.shape[1:])
    with pytest.raises(ValueError, match="result must share no memory"):
        chain.run(BatchRng(1, 2, 3), images[1:5], None, images[:4], False)

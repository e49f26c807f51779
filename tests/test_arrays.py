"""Promise: a batch of arrays holds the rows that its indices name, of any layout and dtype."""

import copy
import pickle

import numpy as np
import pytest
from contract import check_single_steps, check_stream
from hypothesis import given
from hypothesis import strategies as st
from reference import transforms as twin
from reference.digest import digest
from reference.permutation import KeyedPermutation
from reference.rng import derive
from reference.samplers import ShuffledSampler
from support import assert_same_bytes, refused

import onemodel
from onemodel._batch.key import BatchKey
from onemodel._builders.array_builder import ArrayBatchBuilder
from onemodel._memory.pool import BufferPool
from onemodel._random.rng import SampleRng
from onemodel.datasets import ArrayDataset
from onemodel.datasets.gather import gather_rows
from onemodel.transforms import Compose, Normalize, OneHot, RandomCrop, RandomHorizontalFlip

DTYPES = ["u1", "i2", "f4", ">f4", "f8", "c16", "?", "M8[s]", "S5", "U3", "V7", "u1,f8"]


@st.composite
def laid_out(draw):
    """An array of any dtype and rank whose memory may be strided, reversed or read-only."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=5)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    steps = [draw(st.sampled_from([1, 1, 1, 2, -1])) for _ in shape]
    order = draw(st.permutations(range(len(shape))))
    reserved = tuple(side * abs(step) for side, step in zip(shape, steps, strict=True))
    raw = np.random.default_rng(0).integers(0, 255, np.prod(reserved) * dtype.itemsize, np.uint8)
    if dtype == "?":
        raw &= 1
    memory = raw.view(dtype).reshape([reserved[axis] for axis in order])
    array = memory.transpose(np.argsort(order))[tuple(slice(None, None, s) for s in steps)]
    array.flags.writeable = draw(st.booleans())
    return array


@given(laid_out(), st.data())
def test_gather_is_numpys(source, data):
    rows = data.draw(st.lists(st.integers(0, len(source) - 1), max_size=9))
    indices = np.array(rows, np.int64)
    expected = source[indices]
    for out in (None, np.empty(expected.shape, source.dtype)):
        result = gather_rows(source, indices, out)
        assert result.flags.c_contiguous
        assert result.flags.writeable
        assert result.dtype == expected.dtype
        assert result.tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", ["u1", "f4", "V12"])
@pytest.mark.parametrize("offset", [0, 1, 2])
def test_a_large_gather_takes_the_same_bytes_around_the_caches(dtype, offset):
    raw = np.random.default_rng(0).integers(0, 256, 2_400_000 + 12 * offset, np.uint8)
    source = raw.view(dtype)[offset:][: 2_400_000 // np.dtype(dtype).itemsize].reshape(100, -1)
    indices = np.arange(100) * 7 % 100
    assert gather_rows(source, indices).tobytes() == source[indices].tobytes()


def test_gather_of_rows_without_bytes():
    assert gather_rows(np.zeros((3, 0)), np.array([2, 2])).shape == (2, 0)
    assert gather_rows(np.zeros((0, 3)), np.array([], np.int64)).shape == (0, 3)
    assert gather_rows(np.zeros(3, "S0"), np.array([1])).shape == (1,)


def test_gather_refuses():
    rows = np.zeros((3, 2))
    with refused(IndexError, "indices", 3):
        gather_rows(rows, np.array([0, 3]))
    with refused(IndexError, "indices", -1):
        gather_rows(rows, np.array([-1]))
    with refused(TypeError, "source", "object"):
        gather_rows(np.array([None]), np.array([0]))
    with refused(ValueError, "out", [1, 2]):
        gather_rows(rows, np.array([0]), np.zeros((2, 2)))
    with refused(ValueError, "out", "writable"):
        gather_rows(rows, np.array([0]), np.broadcast_to(np.zeros(2), (1, 2)))


# The dataset

X = np.arange(24, dtype=np.float32).reshape(6, 4)
Y = np.arange(6, dtype=np.int64)


def test_each_structure_comes_back():
    for index in (2, -1, slice(1, 4), slice(None, None, -2), np.array([5, 0, 0]), [1, 2]):
        assert_same_bytes(ArrayDataset(X)[index], X[index])
        pair = ArrayDataset(X, Y)[index]
        assert isinstance(pair, tuple)
        assert_same_bytes(pair[0], X[index])
        assert_same_bytes(pair[1], Y[index])
        named = ArrayDataset({"y": Y, "x": X})[index]
        assert list(named) == ["y", "x"]
        assert_same_bytes(named["x"], X[index])


def test_slices_are_views_that_nobody_can_write():
    x = X.copy()
    dataset = ArrayDataset(x)
    for view in (dataset[1:3], dataset[0], dataset.arrays):
        assert np.shares_memory(view, x)
        with pytest.raises(ValueError, match="read-only"):
            view[...] = 0
    batch = dataset[np.array([1])]
    batch[...] = -1
    assert x[1, 0] == 4
    x[0] = 7  # the caller's own array stays as writable as it was
    assert x.flags.writeable


def test_a_memory_map_is_a_dataset(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    dataset = ArrayDataset(mapped)
    assert np.shares_memory(dataset[2:4], mapped)
    assert_same_bytes(dataset[np.array([3, 1])], X[[3, 1]])


def test_the_dataset_pickles():
    for dataset in (ArrayDataset(X), ArrayDataset(X, Y), ArrayDataset({"x": X})):
        again = pickle.loads(pickle.dumps(dataset))
        assert repr(again) == repr(dataset)
        assert onemodel.digest(again[:]) == onemodel.digest(dataset[:])


def test_mapped_arrays_are_pickled_by_path(tmp_path):
    x = np.arange(60_000, dtype=np.float32).reshape(-1, 4)
    np.save(tmp_path / "x.npy", x)
    x.astype(">i2").tofile(tmp_path / "raw")
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    raw = np.memmap(tmp_path / "raw", ">i2", "r", 6, (4, 2))
    for array, expected in (
        (mapped, x),
        (mapped[5::7, ::-1], x[5::7, ::-1]),
        (raw[1:].T, x.ravel()[3:11].reshape(4, 2)[1:].astype(">i2").T),
    ):
        dataset = ArrayDataset({"x": array})
        content = pickle.dumps(dataset)
        assert len(content) < 1_000
        again = pickle.loads(content)
        assert again[:]["x"].tobytes() == expected.tobytes()
        assert len(pickle.dumps(again)) < 1_000
    (tmp_path / "x.npy").write_bytes(b"short")
    with refused(ValueError, "x.npy", "float32", "5 bytes"):
        pickle.loads(pickle.dumps(ArrayDataset(mapped)))
    # what was written to private pages is not in the file
    private = np.memmap(tmp_path / "raw", ">i2", "c")
    private[0] = 77
    assert pickle.loads(pickle.dumps(ArrayDataset(private)))[0] == 77


class Named(ArrayDataset):
    """At module level, so that it can be pickled; with arguments of its own."""

    def __init__(self, name):
        super().__init__({"x": X})
        self.name = name


def test_a_subclass_keeps_class_and_attributes():
    for again in (pickle.loads(pickle.dumps(Named("a"))), copy.deepcopy(Named("a"))):
        assert type(again) is Named
        assert again.name == "a"
        assert_same_bytes(again.arrays["x"], X)


class Forgetful(ArrayDataset):
    def __init__(self):
        pass


def test_a_dataset_is_made_once_and_at_all():
    dataset = ArrayDataset(X)
    with refused(TypeError, "changed"):
        dataset.__init__(Y)
    with pytest.raises(AttributeError):
        dataset.arrays = Y
    for use in (len, repr, lambda d: d[0], lambda d: d.arrays, pickle.dumps):
        with refused(TypeError, "Forgetful.__init__ must call super"):
            use(Forgetful())


def test_its_text():
    text = repr(ArrayDataset({"x": X, "y": Y}))
    assert text == "ArrayDataset(6 rows of x: float32 [4], y: int64 [])"


def test_the_dataset_refuses():
    with refused(TypeError, "arrays"):
        ArrayDataset()
    with refused(TypeError, "arrays"):
        ArrayDataset({})
    with refused(ValueError, "rows", "array 1", 5, 6):
        ArrayDataset(X, Y[:5], Y)
    with refused(ValueError, "rows", "array 'x'", 4, 6):
        ArrayDataset({"x": X[:4], "y": Y, "z": Y})
    with refused(TypeError, "dtype", "array 1", "object"):
        ArrayDataset(X, np.array([None] * 6))
    with refused(TypeError, "rows", "rank"):
        ArrayDataset(np.float32(3))
    with refused(TypeError, "names", 3):
        ArrayDataset({3: X})
    with refused(TypeError, "the array", "mask"):
        ArrayDataset(np.ma.masked_array(X, X > 3))
    with refused(TypeError, "array 'y'", "mask"):
        ArrayDataset({"x": X, "y": np.ma.masked_array(Y)})
    with refused(ValueError, "array 1", "list"):
        ArrayDataset(X, [[1], [2, 3]])
    with refused(TypeError, "the array", "object"):
        ArrayDataset([10**400])
    with refused(TypeError, "the array", "'abc'"):
        ArrayDataset("abc")
    with refused(TypeError, "array 1", "rows"):
        ArrayDataset(X, 3)
    dataset = ArrayDataset(X)
    for index in (6, -7, np.array([0, 6]), np.array([-1]), [99]):
        with refused(IndexError, 6):
            dataset[index]
    for index in (
        "a",
        1.5,
        True,
        np.array([0.5]),
        np.array([True] * 6),
        np.zeros((2, 2), int),
        None,
        [10**400],
        np.ma.masked_array([0, 1], [True, False]),
        np.array(["2020"], "M8[s]"),
    ):
        with pytest.raises(TypeError, match=r"index|indices"):
            dataset[index]
    with refused(ValueError, "index"):
        dataset[[[1], [2, 3]]]


class Lying(np.ndarray):
    """Says that it is what it is not."""

    ndim = property(lambda self: 2)
    dtype = property(lambda self: np.dtype(np.float64))
    shape = property(lambda self: (1000, 1000))
    strides = property(lambda self: (8000, 8))

    def __len__(self):
        return 1000


def test_subclasses_that_lie_are_not_believed():
    dataset = ArrayDataset(X.view(Lying))
    assert len(dataset) == 6
    assert type(dataset.arrays) is np.ndarray
    assert_same_bytes(dataset[np.array([5]).view(Lying)], X[[5]])
    with refused(IndexError, 999):
        dataset[np.array([999]).view(Lying)]
    out = np.zeros((1, 4), np.float32).view(Lying)
    assert_same_bytes(gather_rows(X.view(Lying), np.array([5]), out), X[[5]])
    with refused(ValueError, "out"):
        gather_rows(np.zeros((1000, 1000)), np.array([5]), out)


# Parts


@pytest.mark.parametrize("arrays", [(X,), (X, Y), ({"y": Y, "x": X},)])
def test_parts_hold_their_rows(arrays):
    dataset = ArrayDataset(*arrays)
    assert_same_rows(dataset.take([5, 0, 0]), dataset[np.array([5, 0, 0])])
    parts = dataset.split(3, (0.5, 0.5))
    assert [len(part) for part in parts] == [3, 3]
    order = KeyedPermutation(6, derive(3, 0, 0, 0, 8))
    assert_same_rows(parts[0], dataset[np.array(sorted(order[k] for k in range(3)))])
    whole = ArrayDataset.concatenate([dataset, parts[1]])
    assert_same_rows(whole.take(np.arange(6)), dataset[:])
    assert_same_rows(whole.take(np.arange(6, 9)), parts[1][:])


def assert_same_rows(dataset, expected):
    assert repr(dataset) == repr(
        ArrayDataset(*expected) if type(expected) is tuple else ArrayDataset(expected)
    )
    assert onemodel.digest(dataset[:]) == onemodel.digest(expected)


def test_parts_refuse():
    dataset = ArrayDataset(X, Y)
    with refused(IndexError, "indices", 6):
        dataset.take([6])
    with refused(ValueError, "indices", "one dimension"):
        dataset.take([[1]])
    with refused(ValueError, "fractions"):
        dataset.split(0, (0.5, 0.6))
    with refused(ValueError, "datasets", "none"):
        ArrayDataset.concatenate([])
    with refused(TypeError, "datasets[1]", "ndarray"):
        ArrayDataset.concatenate([dataset, X])
    for other in (ArrayDataset(X), ArrayDataset(X, X), ArrayDataset(Y, X)):
        with refused(ValueError, "datasets[1]", "float32 [4]"):
            ArrayDataset.concatenate([dataset, other])


# Through the loader

SEED = 2**63 + 5


def augmenting(rng, batch):
    """A Python transform that draws from the batch's and from the rows' generators."""
    rows = len(batch["x"])
    shift = rng.row_random(rows).astype(np.float32)
    return {"x": batch["x"] + shift.reshape(-1, 1, 1, 1), "y": batch["y"]}


def images_and_labels(rows=23):
    source = np.random.default_rng(8)
    return {
        "x": source.integers(0, 256, (rows, 5, 6, 3), np.uint8),
        "y": source.integers(0, 4, rows),
    }


TRANSFORM = Compose(
    [RandomCrop(1), RandomHorizontalFlip(), Normalize((0.5, 0.4, 0.3), 0.25), OneHot(4), augmenting]
)


def expected_digests(data, batch_size, steps, shard=(0, 1)):
    """The first steps of the run, from the twins alone."""
    sampler = ShuffledSampler(len(data["y"]), batch_size, drop_last=False)
    rank, world = shard
    found = []
    for g in range(steps):
        epoch, step = divmod(g, sampler.steps_per_epoch)
        indices = np.array(sampler.batch_indices(SEED, epoch, step))
        first, stop = rank * len(indices) // world, (rank + 1) * len(indices) // world
        indices = indices[first:stop]
        rows = twin.row_generators(SEED, epoch, step, first, len(indices))
        x = twin.crop(rows, data["x"][indices], 1)
        x = twin.flip(rows, x, 0.5)
        x = twin.normalize(x, (0.5, 0.4, 0.3), 0.25)
        y = twin.one_hot(data["y"][indices], 4)
        shift = np.array([rng.next_double() for rng in rows]).astype(np.float32)
        found.append(digest({"x": x + shift.reshape(-1, 1, 1, 1), "y": y}))
    return found


@pytest.mark.parametrize("shard", [(0, 1), (1, 2)])
def test_the_contract(shard):
    data = images_and_labels()
    expected = expected_digests(data, 6, 9, shard)

    def make_loader(**options):
        return onemodel.DataLoader(
            ArrayDataset(data),
            6,
            shuffle=True,
            transform=TRANSFORM,
            seed=SEED,
            shard=shard,
            **options,
        )

    check_stream(make_loader, expected, starts=(0, 3, 5), workers=(0,), prefetch=(1,))
    check_single_steps(make_loader, expected, workers=(0,))


@pytest.mark.parametrize("workers", [1, 3])
def test_workers_change_no_byte(workers):
    data = images_and_labels()
    expected = expected_digests(data, 6, 9)
    with onemodel.DataLoader(
        ArrayDataset(data), 6, shuffle=True, transform=TRANSFORM, seed=SEED, workers=workers
    ) as loader:
        assert [onemodel.digest(batch) for batch in loader.steps(0, 9)] == expected


def test_the_augmentation_does_not_hang_on_shuffling():
    data = {"x": np.zeros((12, 1, 1, 1), np.float32), "y": np.zeros(12, np.int64)}
    batches = [
        onemodel.DataLoader(ArrayDataset(data), 4, shuffle=shuffle, transform=augmenting)[1]
        for shuffle in (False, True)
    ]
    assert_same_bytes(batches[0]["x"], batches[1]["x"])


def test_every_row_once_a_pass():
    dataset = ArrayDataset(np.arange(10))
    loader = onemodel.DataLoader(dataset, 4, shuffle=True)
    batches = list(loader)
    assert [len(batch) for batch in batches] == [4, 4, 2]
    assert sorted(np.concatenate(batches).tolist()) == list(range(10))


def test_batches_are_the_consumers_own():
    x = np.arange(12.0).reshape(6, 2)
    for transform in (None, lambda rng, batch: batch.__imul__(0)):
        loader = onemodel.DataLoader(ArrayDataset(x), 3, transform=transform)
        for batch in loader:
            batch[...] = -1
    assert x[0].tolist() == [0, 1]


def test_no_memory_is_allocated_after_the_first_batches():
    loader = onemodel.DataLoader(
        ArrayDataset(images_and_labels()), 6, drop_last=True, transform=TRANSFORM.parts[0]
    )
    for _ in loader.steps(0, 3):
        pass
    before = loader.stats.pool.allocated
    for _ in loader.steps(3, 40):
        pass
    assert loader.stats.pool.allocated == before


# Datasets of others


class Batched:
    """The least that a dataset has to be."""

    def __len__(self):
        return 6

    def __getitem__(self, indices):
        assert isinstance(indices, np.ndarray)
        assert indices.dtype == np.int64
        return X[indices], Y[indices]


class Fetching:
    """As PyTorch's: a list of samples for a list of indices."""

    def __init__(self, sample):
        self.sample = sample

    def __len__(self):
        return 6

    def __getitems__(self, indices):
        assert isinstance(indices, list)
        return [self.sample(index) for index in indices]


def test_datasets_of_others():
    x, y = onemodel.DataLoader(Batched(), 4)[1]
    assert_same_bytes(x, X[4:])
    assert_same_bytes(y, Y[4:])
    x, y = onemodel.DataLoader(Fetching(lambda index: (X[index], int(index))), 4)[0]
    assert_same_bytes(x, X[:4])
    assert y.tolist() == [0, 1, 2, 3]
    batch = onemodel.DataLoader(Fetching(lambda index: {"x": X[index]}), 4)[0]
    assert_same_bytes(batch["x"], X[:4])
    assert_same_bytes(onemodel.DataLoader(Fetching(lambda index: X[index]), 4)[0], X[:4])


class Negated(ArrayDataset):
    def __getitem__(self, index):
        return -super().__getitem__(index)


def test_a_subclass_that_overrides_indexing_is_asked():
    assert_same_bytes(onemodel.DataLoader(Negated(X), 4)[0], -X[:4])


def test_strided_rows_take_the_plain_route():
    images = images_and_labels()["x"]
    turned = np.asfortranarray(images)
    transform = Compose([RandomHorizontalFlip(), Normalize(0.5, 0.5)])
    batches = [
        onemodel.DataLoader(ArrayDataset(array), 7, shuffle=True, transform=transform)[2]
        for array in (images, turned, np.repeat(images, 2, axis=0)[::2])
    ]
    assert_same_bytes(batches[1], batches[0])
    assert_same_bytes(batches[2], batches[0])


def lose_a_row(rng, batch):
    return batch[1:]


def test_a_wrong_row_count_is_the_transforms_fault():
    loader = onemodel.DataLoader(
        ArrayDataset(X), 2, transform=Compose([lambda rng, batch: batch, lose_a_row])
    )
    with refused(ValueError, "transform", "lose_a_row", "must return 2 rows", "step 1", "got 1"):
        loader[4]
    uneven = onemodel.DataLoader(
        ArrayDataset(X, Y), 2, transform=lambda rng, batch: (batch[0], batch[1][:1])
    )
    with refused(ValueError, "transform", "array 1", "step 0"):
        uneven[0]
    strange = onemodel.DataLoader(ArrayDataset(X), 2, transform=lambda rng, batch: 3)
    with refused(TypeError, "transform", "rows", "int"):
        strange[0]


def test_a_wrong_row_count_is_the_datasets_fault():
    class Short(Batched):
        def __getitem__(self, indices):
            return X[indices][1:]

    with refused(ValueError, "dataset", "Short", "got 3"):
        onemodel.DataLoader(Short(), 4)[0]


def test_a_transform_that_does_not_fit_is_refused_at_once():
    with refused(TypeError, "images", "int64"):
        onemodel.DataLoader(ArrayDataset(Y.reshape(6, 1, 1)), 2, transform=RandomCrop(1))
    with refused(ValueError, "mean", 3, 2):
        onemodel.DataLoader(ArrayDataset(images_and_labels()), 2, transform=Normalize((1, 2), 1))


def test_the_batchs_generator_is_decision_8s():
    seen = []
    builder = ArrayBatchBuilder(ArrayDataset(X), lambda rng, batch: seen.append(rng), BufferPool())
    builder.build(BatchKey(1, 2, 3, 4, np.array([0, 5])))
    assert isinstance(seen[0], SampleRng)
    assert seen[0].state == derive(1, 2, 3, 4, 0)


def test_indices_are_integers():
    for indices in (np.array([0.9, 3.7]), np.array([False, True])):
        with pytest.raises(TypeError, match="integers"):
            gather_rows(np.arange(5), indices)


def test_out_of_a_gather_shares_no_memory():
    images = np.zeros((6, 1, 4, 4), np.float32)
    with pytest.raises(ValueError, match="out must share no memory"):
        gather_rows(images[1:], np.array([0, 1]), out=images[:2])

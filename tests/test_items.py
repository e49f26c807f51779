"""Promise: `Items` makes batches of any dataset of single items, on both faces, with a generator
for each slot; the same for any number of workers and threads, on any rank and after a resume. A
broken item is an error, or another one that its slot's own stream decides.
"""

import copy
import pickle
import threading

import contract
import numpy as np
import pytest
from reference import items as twin
from support import assert_same_bytes, refused

import onemodel as om
from onemodel.datasets import Items
from onemodel.datasets._items.items import Substitute

COUNT, BATCH, STEPS, SEED = 22, 4, 6, 5


class Pairs:
    """(x, label), as a map-style dataset of PyTorch's gives it."""

    def __init__(self, broken=(), count=COUNT):
        self.broken, self.count = set(broken), count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        if index in self.broken:
            raise OSError(f"item {index} cannot be read")
        return np.arange(3, dtype=np.float32) + 10 * index, index


class ManyPairs(Pairs):
    def __getitems__(self, indices):
        return [self[index] for index in indices]


def jitter(rng, item):
    x, label = item
    return x + np.float32(rng.next_single()), label


def to_sample(item):
    x, label = item
    return om.Sample(x.reshape(1, 1, 3), [label], label)


def make_loader(dataset=None, *, collate=None, shard=(0, 1), workers=0, prefetch=None, **options):
    given = Pairs() if dataset is None else dataset
    items = given if isinstance(given, Items) else Items(given, transform=jitter, **options)
    return om.DataLoader(
        items,
        BATCH,
        shuffle=True,
        seed=SEED,
        collate=collate,
        shard=shard,
        workers=workers,
        prefetch=prefetch,
    )


def coordinates(g, shard=(0, 1)):
    """(epoch, step, slot, index) of each slot, by the sampler."""
    epoch, step = divmod(g, STEPS)
    sampler = om.ShuffledSampler(COUNT, BATCH, drop_last=False)
    indices = sampler.batch_indices(SEED, epoch, step).tolist()
    rank, world = shard
    first, stop = rank * len(indices) // world, (rank + 1) * len(indices) // world
    return [(epoch, step, slot, indices[slot]) for slot in range(first, stop)]


def expected_batch(g, shard=(0, 1), broken=(), candidates=None):
    """The batch by the twin."""
    candidates = range(COUNT) if candidates is None else candidates
    x, labels = [], []
    for epoch, step, slot, index in coordinates(g, shard):
        used = twin.index_read(index, broken, candidates, SEED, epoch, step, slot)
        noise = np.float32(twin.item_rng(SEED, epoch, step, slot).next_single())
        x.append(np.arange(3, dtype=np.float32) + 10 * used + noise)
        labels.append(used)
    return np.array(x), np.array(labels, np.int64)


def digests(shard=(0, 1), **options):
    return [om.digest(expected_batch(g, shard, **options)) for g in range(2 * STEPS)]


@pytest.mark.parametrize("g", [0, 5, 6, 11])
@pytest.mark.parametrize("dataset", [Pairs(), ManyPairs(), [Pairs()[k] for k in range(COUNT)]])
def test_the_twin(g, dataset):
    x, labels = make_loader(dataset)[g]
    expected_x, expected_labels = expected_batch(g)
    assert_same_bytes(x, expected_x)
    assert_same_bytes(labels, expected_labels)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_contract(needs_threads, threads):
    def make(**options):
        return make_loader(
            Items(contract.Shaken(Pairs()), transform=jitter, threads=threads), **options
        )

    contract.check_stream(make, digests(), starts=(0, 5), prefetch=(2,))
    contract.check_single_steps(make, digests(), workers=(0, 2))
    contract.check_resume(make, digests(), cuts=(1, 7), workers=(0, 2))
    contract.check_shards(make, lambda rank, world: digests((rank, world)), ranks=2)


def test_the_contract_with_substitutes(needs_threads):
    broken = {1, 4, 7, 20}

    def make(**options):
        items = Items(
            contract.Shaken(Pairs(broken)), transform=jitter, on_error="substitute", threads=2
        )
        return make_loader(items, **options)

    expected = digests(broken=broken)
    assert expected != digests()
    contract.check_stream(make, expected, starts=(0, 5), prefetch=(2,))
    contract.check_resume(make, expected, cuts=(1, 7), workers=(0, 2))
    contract.check_shards(make, lambda rank, world: digests((rank, world), broken=broken), ranks=2)


def test_the_sample_face():
    loader = make_loader(sample=to_sample, collate=om.ImageBatchCollator())
    batch = loader[3]
    x, labels = expected_batch(3)
    assert_same_bytes(batch.images.reshape(-1, 3), x)
    assert batch.labels.tolist() == batch.targets.tolist() == labels.tolist()
    assert batch.indices.tolist() == [index for *_, index in coordinates(3)]
    assert batch.substitutes == ()


def test_a_collator_of_ones_own_gets_the_items():
    loader = make_loader(
        collate=lambda items, key: {"n": [label for _, label in items], "key": key}
    )
    batch = loader[2]
    assert batch["n"] == batch["key"].indices.tolist() == expected_batch(2)[1].tolist()


def test_the_loaders_transform_runs_after_it():
    def negative(rng, batch):
        return -batch[0], batch[1]

    loader = om.DataLoader(Items(Pairs()), BATCH, transform=negative)
    assert loader[0][0][2].tolist() == [-20, -21, -22]


# Structures


class Tensor:
    """As PyTorch's: an array by `__array__`."""

    def __init__(self, values, fails=False):
        self.values, self.fails = np.asarray(values), fails

    def __array__(self, dtype=None, copy=None):
        if self.fails:
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        return self.values


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([1, 2], np.array([1, 2], np.int64)),
        ([1.5, 2.0], np.array([1.5, 2.0])),
        ([True, False], np.array([True, False])),
        (["a", "bcd"], np.array(["a", "bcd"])),
        ([np.float32(1), np.float32(2)], np.array([1, 2], np.float32)),
        ([[1, 2], [3, 4]], (np.array([1, 3], np.int64), np.array([2, 4], np.int64))),
        ([Tensor([1, 2]), Tensor([3, 4])], np.array([[1, 2], [3, 4]])),
        (
            [{"x": Tensor([1.0]), "y": 3}, {"y": 4, "x": Tensor([2.0])}],
            {"x": np.array([[1.0], [2.0]]), "y": np.array([3, 4], np.int64)},
        ),
        ([([1, 2],), ([3, 4],)], (np.array([[1, 2], [3, 4]], np.int64),)),
        ([np.zeros((0, 2)), np.zeros((0, 2))], np.zeros((2, 0, 2))),
    ],
)
def test_what_is_stacked(items, expected):
    batch = om.DataLoader(Items(items), 2)[0]
    assert type(batch) is type(expected)
    assert om.digest(batch) == om.digest(expected)


def test_pictures_are_arrays():
    pillow = pytest.importorskip("PIL.Image")
    pixels = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    items = [(pillow.fromarray(each), number) for number, each in enumerate(pixels)]
    x, numbers = om.DataLoader(Items(items), 2)[0]
    assert_same_bytes(x, pixels)
    assert numbers.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("items", "error", "words"),
    [
        ([np.zeros(3), np.zeros(4)], ValueError, ("alike", "index 1", "[4]", "[3]")),
        ([1, 2.0], ValueError, ("alike", "index 1", "float64", "int64")),
        ([{"x": 1}, {"y": 1}], ValueError, ("alike", "index 1", "['y']")),
        ([(1, 2), (1,)], ValueError, ("alike", "index 1", "1 values")),
        ([(1, 2), 3], ValueError, ("alike", "index 1", "a int")),
        ([{"x": b"12"}, {"x": b"1"}], TypeError, ("bytes in 'x'", "index 0")),
        ([{"x": {"y": 1}}] * 2, TypeError, ("dict in 'x'", "index 0")),
        ([None, None], TypeError, ("NoneType", "index 0")),
        ([2**64, 1], ValueError, ("int64", "index 0")),
        ([object(), object()], TypeError, ("numbers and arrays", "index 0")),
        ([([[1], [2, 3]],)] * 2, TypeError, ("at 0", "index 0")),
        ([Tensor([1], fails=True)] * 2, TypeError, ("cuda:0", "index 0")),
        ([np.ma.array([1])] * 2, TypeError, ("masked", "index 0")),
        ([{}, {}], ValueError, ("at least one array",)),
    ],
)
def test_what_is_no_batch(items, error, words):
    with refused(error, *words):
        om.DataLoader(Items(items), 2)[0]


def test_batches_own_their_memory_and_give_it_back():
    loader = om.DataLoader(Items(Pairs()), BATCH)
    first = loader[0]
    kept = first[0].copy()
    loader[1]
    assert first[0].tolist() == kept.tolist()
    del first
    rented = loader.stats.pool
    assert rented.rented == rented.returned == 4


# Errors and substitutes


def test_a_broken_item_is_an_error_by_default():
    index = coordinates(2)[1][-1]
    for dataset in (Pairs([index]), ManyPairs([index])):
        with refused(OSError, f"item {index}", "global step 2") as caught:
            make_loader(dataset)[2]
        if type(dataset) is Pairs:
            assert f"slot 1, dataset index {index}" in "".join(caught.value.__notes__)


@pytest.mark.parametrize("kind", [Pairs, ManyPairs])
def test_a_substitute_is_the_twins_and_is_noted(kind):
    broken = {index for *_, index in coordinates(0)[1:3]}
    loader = make_loader(kind(broken), on_error="substitute")
    x, labels = loader[0]
    expected_x, expected_labels = expected_batch(0, broken=broken)
    assert_same_bytes(x, expected_x)
    assert_same_bytes(labels, expected_labels)
    assert not broken & set(labels.tolist())
    assert loader.stats.substitutes == 2
    assert "2 substitutes" in str(loader.stats)


def test_substitutes_on_the_sample_face():
    broken = {coordinates(0)[2][-1]}
    loader = make_loader(
        Pairs(broken), on_error="substitute", sample=to_sample, collate=om.ImageBatchCollator()
    )
    batch = loader[0]
    used = int(expected_batch(0, broken=broken)[1][2])
    assert batch.substitutes == (Substitute(2, *broken, used),)
    assert batch.indices[2] == batch.labels[2] == used
    assert batch.map(lambda array: array).substitutes == batch.substitutes
    assert [slot["index"] for slot in loader.explain(0)["slots"]][2] in broken


def test_substitutes_of_a_part():
    broken = set(range(5, COUNT))
    loader = make_loader(Pairs(broken), on_error="substitute", substitutes=[4, 2])
    labels = np.concatenate([loader[g][1] for g in range(STEPS)])
    assert set(labels.tolist()) == {0, 1, 2, 3, 4}
    for g in range(STEPS):
        expected = expected_batch(g, broken=broken, candidates=[4, 2])
        assert om.digest(loader[g]) == om.digest(expected)


def test_where_nothing_can_be_read_the_first_error_is_raised():
    loader = make_loader(Pairs(range(COUNT)), on_error="substitute")
    index = coordinates(0)[0][-1]
    with refused(OSError, f"item {index}", "16 substitutes", f"dataset index {index}"):
        loader[0]


def test_errors_of_callables_are_raised():
    def fail(rng, item):
        raise ValueError("a mistake")

    for options in ({"transform": fail}, {"sample": lambda item: fail(None, item)}):
        with refused(ValueError, "a mistake", "slot 0"):
            om.DataLoader(Items(Pairs(), on_error="substitute", **options), BATCH)[0]


def test_a_ctrl_c_is_no_broken_item():
    class Interrupted(Pairs):
        def __getitem__(self, index):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        om.DataLoader(Items(Interrupted(), on_error="substitute"), BATCH)[0]


def test_the_index_field():
    rows = [{"x": np.float32(k)} for k in range(COUNT)]

    class Rows(Pairs):
        def __getitem__(self, index):
            super().__getitem__(index)
            return rows[index]

    items = Items(Rows([3]), on_error="substitute", index_field="index")
    batch = om.DataLoader(items, BATCH)[0]
    assert batch["index"].tolist() == batch["x"].tolist()
    assert batch["index"].dtype == np.int64
    assert batch["index"][3] != 3
    assert "index" not in rows[0]
    with refused(ValueError, "index_field", "x"):
        om.DataLoader(Items(Rows(), index_field="x"), BATCH)[0]
    with refused(TypeError, "index_field", "tuple"):
        om.DataLoader(Items(Pairs(), index_field="x"), BATCH)[0]


# Threads


@pytest.mark.parametrize("face", ["arrays", "samples"])
def test_the_items_of_one_batch_are_read_at_once(needs_threads, face):
    """Four reads wait for one another: they return only if all four are under way."""
    meeting = threading.Barrier(BATCH, timeout=60)

    class Meeting(Pairs):
        def __getitem__(self, index):
            meeting.wait()
            return super().__getitem__(index)

    options = {"collate": om.ImageBatchCollator(), "sample": to_sample} if face == "samples" else {}
    loader = make_loader(Meeting(count=20), threads=BATCH, **options)
    sampler = loader.sampler
    batch = loader[1]
    labels = batch.labels if face == "samples" else batch[1]
    assert labels.tolist() == sampler.batch_indices(SEED, 0, 1).tolist()


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
def test_the_first_slots_error_is_raised(needs_threads, threads):
    broken = [index for *_, index in coordinates(0)[1:]]
    with refused(OSError, f"item {broken[0]}", "slot 1"):
        make_loader(Pairs(broken), threads=threads)[0]


def test_explain_knows_the_items_generators():
    slot = make_loader().explain(7)["slots"][2]
    assert slot["item"] == om.derive(SEED, 1, 1, 2, 3)
    assert "item" not in om.DataLoader(np.zeros(3), 1).explain(0)["slots"][0]


def test_an_error_on_a_thread_is_the_same_object(needs_threads):
    raised = {}

    class Failing(Pairs):
        def __getitem__(self, index):
            return raised.setdefault(index, OSError(f"item {index}")).add_note("") or self.fail(
                index
            )

        def fail(self, index):
            raise raised[index]

    with pytest.raises(OSError, match="item") as caught:
        make_loader(Failing(), threads=3)[0]
    assert caught.value is raised[coordinates(0)[0][-1]]
    assert "slot 0" in "".join(caught.value.__notes__)


# What it is made of


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"transform": 3}, TypeError, ("transform", 3)),
        ({"sample": 3}, TypeError, ("sample", 3)),
        ({"threads": 0}, ValueError, ("threads", 0)),
        ({"threads": 1.5}, TypeError, ("threads",)),
        ({"threads": 257}, ValueError, ("threads", 257)),
        ({"on_error": "skip"}, ValueError, ("on_error", "skip")),
        ({"on_error": None}, ValueError, ("on_error", "None")),
        ({"on_error": np.array(["raise"])}, ValueError, ("on_error",)),
        ({"substitutes": [0]}, ValueError, ("substitutes", "on_error")),
        ({"substitutes": [], "on_error": "substitute"}, ValueError, ("substitutes", "none")),
        ({"substitutes": [COUNT], "on_error": "substitute"}, IndexError, ("substitutes", COUNT)),
        ({"substitutes": [0.5], "on_error": "substitute"}, TypeError, ("substitutes",)),
        ({"index_field": 3}, TypeError, ("index_field", 3)),
    ],
)
def test_arguments(options, error, words):
    with refused(error, *words):
        Items(Pairs(), **options)


def test_what_is_no_dataset():
    for dataset in (3, {"x": np.zeros(3)}, "text", iter([1]), {1, 2}, Items(Pairs())):
        with refused(TypeError, "dataset"):
            Items(dataset)


def test_it_is_made_once():
    items = Items(Pairs(), on_error="substitute", substitutes=[1, 2])
    with refused(TypeError, "Items"):
        items.__init__(Pairs())
    with pytest.raises(AttributeError):
        items.transform = None
    assert not items.substitutes.flags.writeable
    with pytest.raises(AttributeError):
        items.nothing  # noqa: B018


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_makes_the_same_batches(again):
    items = Items(
        Pairs([3]), transform=jitter, on_error="substitute", substitutes=[1, 2], threads=2
    )
    made = again(items)
    assert (made.threads, made.on_error, made.transform) == (2, "substitute", jitter)
    assert [om.digest(make_loader(made)[g]) for g in range(STEPS)] == [
        om.digest(make_loader(items)[g]) for g in range(STEPS)
    ]


def test_it_shows_its_arguments():
    text = repr(Items(Pairs(), transform=jitter, on_error="substitute"))
    assert text == (
        "Items(dataset=<22 of Pairs>, transform=test_items.jitter, threads=1, "
        "on_error='substitute')"
    )
    assert Items(Pairs())[3][1] == 3
    assert Items(Pairs(), sample=to_sample)[3].label == 3


def test_a_subclass_that_reads_otherwise_is_no_reader():
    """An override wins: what it gives for an array of indices is asked, as of any dataset."""

    class Rows(Items):
        def read(self, key, run=None):
            raise AssertionError

        def __getitem__(self, indices):
            return np.asarray(indices) * 2

    assert om.DataLoader(Rows(Pairs()), BATCH)[0].tolist() == [0, 2, 4, 6]


def test_a_length_that_changes_is_an_error():
    dataset = Pairs()
    loader = make_loader(dataset)
    dataset.count = 5
    with refused(ValueError, "dataset", "length", 5):
        loader[0]

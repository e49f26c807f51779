"""Promise: what is public is pickled and copied by what it was made of, and goes on where it was.

A copy keeps class and attributes and gives the same batches. What lies in a file goes by its path.
So processes of every kind need no help: spawn, forkserver, joblib, cloudpickle.
"""

import copy
import functools
import inspect
import pickle
import subprocess
import sys
import textwrap

import numpy as np
import pytest
from support import refused

import onemodel as om
from onemodel import augment, datasets, transforms
from onemodel._batch.digest import digest
from onemodel._state.values import Describer

IMAGES = np.arange(20 * 48, dtype=np.uint8).reshape(20, 4, 4, 3)
LINES = datasets.DigitLines(20, height=8, digits=(1, 3))


def named(rng, batch):
    return {name: array[::-1].copy() for name, array in batch.items()}


def shifted(rng, image):
    image += rng.next_single()


def arrays_loader(**options):
    data = om.ArrayDataset({"x": IMAGES, "y": np.arange(20)})
    parts = {"transform": om.Compose([transforms.RandomCrop(1), named]), "seed": 5, "shuffle": True}
    return om.DataLoader(data, batch_size=4, **(parts | options))


def samples_loader(**options):
    parts = {
        "sampler": om.BucketedSampler(LINES.widths, 4, pool_batches=2),
        "collate": om.ImageBatchCollator(width_multiple=4, augment=om.Compose([shifted])),
    }
    return om.DataLoader(LINES, **(parts | options))


#: One object of every public class, or several, by the class.
MADE = {
    om.ArrayDataset: [om.ArrayDataset(np.arange(4)), om.ArrayDataset(IMAGES, np.arange(20))],
    om.BatchKey: [om.BatchKey(1, 2, 3, 0, np.arange(3))],
    om.BudgetSampler: [om.BudgetSampler([3, 1, 2], 6)],
    om.BucketedSampler: [om.BucketedSampler([3, 1, 2], 2, pool_batches=1, shuffle_slots=True)],
    om.BufferPool: [om.BufferPool()],
    om.Compose: [om.Compose([named, augment.Invert()])],
    om.DataLoader: [arrays_loader(), samples_loader(seed=3, shard=(1, 2), workers="auto")],
    om.ImageBatch: [samples_loader()[1]],
    om.ImageBatchCollator: [om.ImageBatchCollator(augment=augment.Blur(), pad_value=0.5)],
    om.KeyedPermutation: [om.KeyedPermutation(5, 3)],
    om.MixingSampler: [om.MixingSampler([3, 4], [0.5, 0.5], 2)],
    om.Sample: [om.Sample(np.ones((1, 2, 3), np.float32), [1, 2], 3)],
    om.SampleRng: [om.SampleRng(5)],
    om.SequentialSampler: [om.SequentialSampler(5, 2)],
    om.ShuffledSampler: [om.ShuffledSampler(5, 2, drop_last=False)],
    om.WeightedSampler: [om.WeightedSampler([3, 1], 2)],
    augment.Blur: [augment.Blur()],
    augment.Erase: [augment.Erase()],
    augment.GainOffset: [augment.GainOffset((1, 2))],
    augment.HorizontalFlip: [augment.HorizontalFlip()],
    augment.Invert: [augment.Invert()],
    augment.Noise: [augment.Noise()],
    augment.ResizeHeight: [augment.ResizeHeight(5)],
    augment.Shift: [augment.Shift()],
    augment.StretchWidth: [augment.StretchWidth()],
    datasets.Columns: [datasets.ImageTable.from_samples(LINES).columns],
    datasets.DigitLines: [LINES],
    datasets.Items: [datasets.Items(range(4)), datasets.Items(range(4), on_error="substitute")],
    datasets.ImageTable: [
        datasets.ImageTable.from_samples(LINES),
        datasets.ImageTable.from_samples(LINES)[3:7],
    ],
    transforms.CutMix: [transforms.CutMix(0.5)],
    transforms.Cutout: [transforms.Cutout(2)],
    transforms.Mixup: [transforms.Mixup(0.5)],
    transforms.Normalize: [transforms.Normalize([0.5] * 3, [0.5] * 3)],
    transforms.OneHot: [transforms.OneHot(3)],
    transforms.RandomCrop: [transforms.RandomCrop(1)],
    transforms.RandomHorizontalFlip: [transforms.RandomHorizontalFlip()],
}
# tar files are made where they are tested
NOT_MADE = {augment.NativeAugmentation, datasets.TarItems, om.Sampler}

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)
WAYS = {
    **{
        f"pickle {protocol}": lambda made, protocol=protocol: pickle.loads(
            pickle.dumps(made, protocol)
        )
        for protocol in PROTOCOLS
    },
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
every_way = pytest.mark.parametrize("again", WAYS.values(), ids=WAYS)


def public_classes():
    modules = (om, augment, datasets, transforms)
    named = (getattr(module, name) for module in modules for name in module.__all__)
    return {each for each in named if inspect.isclass(each)}


def test_every_public_class_is_here():
    assert public_classes() - NOT_MADE == MADE.keys() - NOT_MADE


@every_way
@pytest.mark.parametrize("kind", MADE, ids=lambda kind: kind.__name__)
def test_a_copy_is_made_of_the_same(kind, again):
    """The text of a value holds its class and all that a pickle of it holds, arrays by digest."""
    for made in MADE[kind]:
        other = again(made)
        assert type(other) is kind
        assert Describer().text(other) == Describer().text(made)
        assert repr(other) == repr(made) or kind is om.ImageBatch
        if kind is om.DataLoader:
            assert [other.digest(g) for g in (0, 7)] == [made.digest(g) for g in (0, 7)]
            assert other.state_dict() == made.state_dict()


def test_a_pickle_of_a_loader_holds_every_argument():
    """So a new argument of ``DataLoader`` cannot be forgotten."""
    arguments = arrays_loader().__reduce__()[1][2]
    assert list(arguments) == list(inspect.signature(om.DataLoader).parameters)
    given = {
        "dataset": om.ArrayDataset(IMAGES),
        "batch_size": 4,
        "shuffle": True,
        "drop_last": True,
        "transform": named,
        "seed": 3,
        "workers": "auto",
        "prefetch": 3,
        "shard": (1, 2),
        "device": named,
    }
    arguments = om.DataLoader(**given).__reduce__()[1][2]
    assert {name: arguments[name] for name in given} == given


def test_a_pickle_of_a_collator_holds_every_argument():
    arguments = om.ImageBatchCollator().__reduce__()[1][2]
    assert list(arguments) == list(inspect.signature(om.ImageBatchCollator).parameters)


# Where a copy goes on


def rest(batches):
    return [digest(batch) for batch in batches]


@every_way
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("make", [arrays_loader, samples_loader])
def test_a_copy_of_a_loader_goes_on_where_the_run_stands(make, workers, again):
    """As if it had loaded the loader's state."""
    with make(workers=workers) as loader:
        expected = rest(loader.steps(0, 10))
        for taken in (0, 2, 5, 7):
            list(loader.steps(0, taken))
            with again(loader) as other:
                assert other.state_dict() == loader.state_dict()
                assert other.epoch == taken // 5
                assert rest(other) == expected[taken : (taken // 5 + 1) * 5]
                assert rest(other.steps(stop=10)) == expected[(taken // 5 + 1) * 5 :]


@every_way
def test_a_copy_knows_the_epoch_and_a_loaded_state(again):
    loader = arrays_loader()
    loader.set_epoch(3)
    other = again(loader)
    assert other.epoch == 3
    other.set_epoch(4)  # nothing was loaded
    list(loader)
    other = again(loader)
    assert other.epoch == 4
    other.set_epoch(2)  # the pass has ended
    loader.load_state_dict(loader.state_dict(step=6))
    other = again(loader)
    with refused(ValueError, "epoch", 1, 7):
        other.set_epoch(2)
    assert rest(other) == rest(loader)


@every_way
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 4])
def test_an_iterator_goes_on_with_the_remaining_steps(workers, taken, again):
    with arrays_loader(workers=workers) as loader:
        whole = rest(loader)
        run = loader.steps(5, 9)  # of the next epoch
        steps = rest(loader.steps(5, 9))
        for _ in range(taken):
            next(run)
        other = again(run)
        assert type(other) is type(run)
        assert rest(other) == steps[taken:] == rest(run)
        assert rest(other) == []

        loader.set_epoch(0)
        run = iter(loader)
        for _ in range(taken):
            next(run)
        other = again(run)
        assert rest(other) == whole[taken:]
        if taken or again is not copy.copy:  # a shallow copy has the same loader
            assert rest(run) == whole[taken:]


@every_way
def test_an_iterator_that_nobody_used_is_decided_late(again):
    loader = arrays_loader()
    run, endless = again(iter(loader)), again(loader.steps())
    assert loader.epoch == 0
    assert rest(run) == rest(arrays_loader())
    for _ in range(7):
        next(endless)
    assert digest(next(endless)) == loader.digest(12 if again is copy.copy else 7)


@every_way
def test_an_iterator_that_ended_has_ended(again):
    loader = arrays_loader()
    run = iter(loader)
    list(run)
    assert list(again(run)) == []
    run = loader.steps(0, 3)
    run.close()
    assert list(again(run)) == []


def failing(batch):
    raise OSError("gone")


@every_way
def test_an_iterator_that_failed_says_so(again):
    run = iter(arrays_loader(device=failing))
    with pytest.raises(OSError, match="gone"):
        next(run)
    with refused(RuntimeError, "OSError", "loader.steps(0)"):
        next(again(run))


@every_way
def test_two_iterators_of_one_loader_are_copied_each(again):
    loader = arrays_loader()
    first, second = iter(loader), loader.steps(5, 9)
    for run in (first, second, second):
        next(run)
    copies = again([first, second]) if again is not copy.copy else [again(first), again(second)]
    assert rest(copies[0]) == rest(first)
    assert rest(copies[1]) == rest(second)


def test_a_copy_shares_no_threads(needs_threads):
    with arrays_loader(workers=2) as loader:
        next(iter(loader))
        other = copy.copy(loader)
        assert other._prefetchers.all == []
        assert other.dataset is loader.dataset
        other.close()
        assert len(rest(loader)) == 5


# Subclasses


class Lines(om.DataLoader):
    """With a constructor of its own; at module level, so that it can be pickled."""

    def __init__(self, count, note):
        self.note = note
        super().__init__(datasets.DigitLines(count), 4, collate=om.ImageBatchCollator())
        self.after = [note]


class Slotted(om.DataLoader):
    __slots__ = ("extra",)


class Padded(om.ImageBatchCollator):
    def __init__(self, name):
        super().__init__(width_multiple=16)
        self.name = name


@every_way
def test_a_subclass_keeps_its_class_and_attributes(again):
    loader = Lines(9, "kept")
    next(iter(loader))
    other = again(loader)
    assert type(other) is Lines
    assert (other.note, other.after) == ("kept", ["kept"])
    assert other.state_dict() == loader.state_dict()
    slotted = Slotted(om.ArrayDataset(IMAGES), 4)
    slotted.extra, slotted.more = 3, 4
    other = again(slotted)
    assert (type(other), other.extra, other.more) == (Slotted, 3, 4)
    other = again(Padded("wide"))
    assert (type(other), other.name, other.width_multiple) == (Padded, "wide", 16)


# By path and never by value


def test_what_lies_in_a_file_goes_by_its_path(tmp_path):
    datasets.ImageTable.from_samples(LINES).save(tmp_path / "lines")
    np.save(tmp_path / "x.npy", np.tile(IMAGES, (50, 1, 1, 1)))
    table = datasets.ImageTable.open(tmp_path / "lines")
    mapped = om.ArrayDataset({"x": np.load(tmp_path / "x.npy", mmap_mode="r")[10:500:2]})
    with (
        om.DataLoader(table, batch_size=4, collate=om.ImageBatchCollator()) as lines,
        om.DataLoader(mapped, batch_size=4, transform=transforms.RandomCrop(1)) as arrays,
    ):
        for loader in (lines, arrays):
            next(run := iter(loader))
            for made in (loader, run):
                content = pickle.dumps(made)
                assert len(content) < 2_000
                assert str(tmp_path).encode() in content
            assert rest(pickle.loads(content)) == rest(run)
        part = om.DataLoader(table[2:9], batch_size=4, collate=om.ImageBatchCollator())
        assert len(pickle.dumps(part)) < 4_000
        assert part.digest(0) == pickle.loads(pickle.dumps(part)).digest(0)


def test_what_was_rented_or_built_is_not_in_a_pickle(needs_threads):
    with samples_loader(workers=2, prefetch=8) as loader:
        before = len(pickle.dumps(loader))
        run = iter(loader)
        batch = next(run)
        assert len(pickle.dumps(loader)) <= before + 20
        assert len(pickle.dumps(run)) <= before + 100
        assert batch.images.nbytes > before


# Other processes

MAKERS = {"arrays": arrays_loader, "samples": samples_loader}


def digests_of(run):
    """What a process answers: the digests of the batches that remain, and the state."""
    return rest(run)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_give_the_batches_of_one(method, needs_subprocess):
    """A loader, and iterators at several places, each finished by another process."""
    import multiprocessing  # not everywhere

    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this platform has no {method}")
    made, expected = [], []
    for make in MAKERS.values():
        for taken in (0, 3):
            with make(workers=2) as loader:
                run = loader.steps(0, 7)
                for _ in range(taken):
                    next(run)
                made += [run, loader]
                expected += [rest(make().steps(taken, 7)), rest(make().steps(taken, 5))]
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(digests_of, made, chunksize=1) == expected


def test_joblib_gives_the_batches_of_one_process(needs_subprocess):
    joblib = pytest.importorskip("joblib", reason="joblib comes with scikit-learn")
    large = np.arange(4 * 10**5, dtype=np.float64).reshape(4000, 100)  # joblib maps it
    loaders = [arrays_loader(), samples_loader(), om.DataLoader(om.ArrayDataset(large), 800)]
    expected = [rest(loader.steps(1, 6)) for loader in loaders]
    runs = [loader.steps(1, 6) for loader in loaders]
    assert joblib.Parallel(n_jobs=2)(map(joblib.delayed(digests_of), runs)) == expected


CLOUD = """
import sys, pickle
import cloudpickle
import numpy as np
import onemodel as om

TABLE = np.arange(256, dtype=np.uint8)[::-1].copy()

def remapped(rng, batch, table=TABLE):
    return TABLE[batch] + rng.next_int(9)

class Data:
    fingerprint = "of the script"
    def __len__(self):
        return 12
    def __getitem__(self, indices):
        return np.arange(12, dtype=np.uint8)[indices]

loader = om.DataLoader(Data(), batch_size=4, transform=om.Compose([remapped, lambda r, b: b + 1]))
run = loader.steps(0, 6)
next(run)
with open(sys.argv[1], "wb") as file:
    cloudpickle.dump((run, loader.state_dict(), [loader.digest(g) for g in range(1, 6)]), file)
"""


def test_cloudpickle_takes_what_a_script_defines(tmp_path, needs_subprocess):
    """Functions and classes of ``__main__`` by value, as Ray and notebooks send them."""
    pytest.importorskip("cloudpickle")
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CLOUD), tmp_path / "run"], check=True, timeout=120
    )
    run, state, expected = pickle.loads((tmp_path / "run").read_bytes())
    loader = run._again(None)[0].__self__
    loader.load_state_dict(state)  # the same functions, though their module is not here
    assert rest(run) == expected


def test_a_partial_and_a_method_of_a_loader_are_pickled():
    loader = arrays_loader()
    take = pickle.loads(pickle.dumps(functools.partial(loader.digest, 3)))
    assert take() == loader.digest(3)

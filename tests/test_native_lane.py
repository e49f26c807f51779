"""Promise: where all parts are the library's own, batches are built without Python, byte for byte
those of the reference path; one part that is not is asked, and its bytes arrive.

The reference path is `loader.digest(g)`, which never uses the lane. Where a lane must build a step,
the path that could stand in for it is taken away.
"""

import itertools

import numpy as np
import pytest
from reference import collate as twin
from reference import samplers as twin_samplers
from reference.lines import GoldenLines, gain_and_offset
from support import load_twin, refused

import onemodel as om
from onemodel import ArrayDataset, Compose, DataLoader, ImageBatchCollator, Sample, digest
from onemodel.augment import GainOffset, Invert, Noise
from onemodel.datasets import ImageTable
from onemodel.transforms import Cutout, Mixup, Normalize, OneHot, RandomCrop, RandomHorizontalFlip

COUNT, BATCH, SEED = 22, 4, 7
LINES = GoldenLines(COUNT, 2)
SAMPLES = [Sample(*LINES[index]) for index in range(COUNT)]
FLOATS = ImageTable.from_samples(SAMPLES)
BYTES = ImageTable.from_samples(
    [Sample(np.floor(np.asarray(s.image) * 256) / 256, s.target, s.label) for s in SAMPLES],
    dtype=np.uint8,
    std=256 / 255,
)
RNG = np.random.default_rng(5)
IMAGES = RNG.integers(0, 256, (COUNT, 6, 8, 3), dtype=np.uint8)
LABELS = RNG.integers(0, 5, COUNT)

SAMPLERS = {
    "sequential": lambda last: om.SequentialSampler(COUNT, BATCH, drop_last=last),
    "shuffled": lambda last: om.ShuffledSampler(COUNT, BATCH, drop_last=last),
    "mixing": lambda last: om.MixingSampler([10, 12], [0.25, 0.75], BATCH),
    "bucketed": lambda last: om.BucketedSampler(
        [len(s.target) for s in SAMPLES], BATCH, pool_batches=2, drop_last=last
    ),
    "weighted": lambda last: om.WeightedSampler(range(1, COUNT + 1), BATCH, drop_last=last),
    "weighted order": lambda last: om.WeightedSampler(
        range(1, COUNT + 1), BATCH, replacement=False, drop_last=last
    ),
    "budget": lambda last: om.BudgetSampler(
        [len(s.target) for s in SAMPLES], 10 + 5 * last, multiple_of=2
    ),
}


def images(dataset, augment=None):
    return lambda: {
        "dataset": dataset,
        "collate": ImageBatchCollator(width_multiple=4, augment=augment),
    }


def arrays(dataset, transform=None):
    return lambda: {"dataset": dataset, "transform": transform}


KINDS = {
    "table float32": images(FLOATS, GainOffset()),
    "table uint8": images(BYTES, Compose([Noise(), Invert(0.5)])),
    "list": images(SAMPLES, GainOffset()),
    "list plain": images(SAMPLES),
    "bare": arrays(ArrayDataset(IMAGES)),
    "tuple": arrays(ArrayDataset(IMAGES, LABELS)),
    "dict": arrays(ArrayDataset({"y": LABELS, "x": IMAGES})),
    "one row transform": arrays(ArrayDataset(IMAGES), Normalize(0.5, 0.25)),
    "row transforms of a field": arrays(
        ArrayDataset(IMAGES, LABELS),
        Compose([RandomCrop(1), RandomHorizontalFlip(), Cutout(2), Normalize(0.5, 0.25)]),
    ),
    "row transforms of a name": arrays(
        ArrayDataset({"y": LABELS, "x": IMAGES}),
        Compose([RandomHorizontalFlip(key="x"), Normalize(0.5, 0.25, key="x")]),
    ),
}


def make(kind, sampler, last=False, **options):
    return DataLoader(sampler=SAMPLERS[sampler](last), seed=SEED, **KINDS[kind](), **options)


def without_reference_path(loader):
    """The loader, of which only the lane can build a batch."""

    def entry(g):
        raise AssertionError(f"the lane left global step {g} to Python")

    assert loader._lane is not None
    loader._builder.entry = entry
    return loader


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shard", [(0, 1), (1, 2)], ids=["whole", "half"])
@pytest.mark.parametrize("last", [False, True], ids=["short last", "drop last"])
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_lane_gives_the_reference_path_s_bytes(kind, sampler, last, shard, workers):
    with make(kind, sampler, last, shard=shard) as reference:
        steps = range(2 * reference.steps_per_epoch + 2)
        expected = [reference.digest(g) for g in steps]
    with make(kind, sampler, last, shard=shard, workers=workers, prefetch=3) as loader:
        without_reference_path(loader)
        assert [digest(batch) for batch in loader.steps(0, len(expected))] == expected


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["list", "table"])
@pytest.mark.parametrize("sampler", ["sequential", "shuffled"])
def test_the_lane_gives_the_twin_s_bytes(kind, sampler, workers):
    dataset = SAMPLES if kind == "list" else FLOATS
    theirs = {
        "sequential": twin_samplers.SequentialSampler,
        "shuffled": twin_samplers.ShuffledSampler,
    }[sampler](COUNT, BATCH, drop_last=False)
    expected = [
        load_twin().digest_at(g, seed=SEED, samples=LINES, sampler=theirs, width_multiple=4)
        for g in range(9)
    ]
    with DataLoader(
        sampler=SAMPLERS[sampler](False), seed=SEED, workers=workers, **images(dataset)()
    ) as loader:
        without_reference_path(loader)
        assert [digest(batch) for batch in loader.steps(0, 9)] == expected


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_says_where_it_is(workers):
    """What no digest holds: the place in the run, and the columns before padding."""
    with make("list", "shuffled", workers=workers, shard=(1, 2)) as loader:
        without_reference_path(loader)
        for g, batch in enumerate(loader.steps(0, 9)):
            assert (batch.epoch, batch.step, batch.global_step) == (*divmod(g, 6), g)
            assert batch.global_rows == (2 if batch.step == 5 else 4)
            assert batch.real_columns == batch.widths.sum()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_without_rows_leaves_its_step_to_the_reference_path(kind, workers):
    """22 items in batches of 4: the last one has 2 rows for 4 ranks."""
    for rank in range(4):
        with make(kind, "sequential", shard=(rank, 4), workers=workers) as loader:
            expected = [loader.digest(g) for g in range(7)]
            assert [digest(batch) for batch in loader.steps(0, 7)] == expected


# Where there is a lane, and where not


class OwnCollator(ImageBatchCollator):
    def __call__(self, samples, key):
        batch = super().__call__(samples, key)
        batch.labels[:] = 77
        return batch


class OwnTable(ImageTable):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return Sample(sample.image, sample.target, 77)


class OwnSampler(om.ShuffledSampler):
    def batch_indices(self, seed, epoch, step):
        return super().batch_indices(seed, epoch, step)[::-1].copy()


class OwnBuckets(om.BucketedSampler):
    def plan(self, seed, epoch):
        return super().plan(seed, epoch)[::-1].copy()


class OwnArrays(ArrayDataset):
    def __getitem__(self, index):
        found = super().__getitem__(index)
        return found if np.ndim(index) != 1 else found // 2


class OwnFlip(RandomHorizontalFlip):
    def __call__(self, rng, batch):
        return 255 - batch


class OwnCompose(Compose):
    def __call__(self, rng, batch):
        return 255 - batch


class OwnList(list):
    def __getitem__(self, index):
        sample = super().__getitem__(index)
        return Sample(sample.image, sample.target, 77)


class Wrapper:
    """It delegates all that it does not say itself."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def __len__(self):
        return len(self.inner)

    def __getitem__(self, index):
        sample = self.inner[index]
        return Sample(sample.image, sample.target, 77)


def table_of_its_own():
    table = OwnTable.from_samples(SAMPLES)
    assert type(table) is OwnTable
    return table


def sevens(batch):
    return bool((batch.labels == 77).all())


def sampler():
    return om.ShuffledSampler(COUNT, BATCH, drop_last=False)


def collator_with_an_attribute():
    collate = ImageBatchCollator()
    original = ImageBatchCollator()

    def call(samples, key):
        batch = original(samples, key)
        batch.labels[:] = 77
        return batch

    collate.__call__ = call
    return collate


PLAIN_ORDER = sampler().batch_indices(SEED, 0, 0)
BUCKETS = om.BucketedSampler(range(COUNT), BATCH, drop_last=False)

OVERRIDES = {
    "collator": (
        lambda: DataLoader(SAMPLES, sampler=sampler(), collate=OwnCollator(), seed=SEED),
        sevens,
    ),
    "collator over a table": (
        lambda: DataLoader(FLOATS, sampler=sampler(), collate=OwnCollator(), seed=SEED),
        sevens,
    ),
    "table": (
        lambda: DataLoader(
            table_of_its_own(), sampler=sampler(), collate=ImageBatchCollator(), seed=SEED
        ),
        sevens,
    ),
    "list": (
        lambda: DataLoader(
            OwnList(SAMPLES), sampler=sampler(), collate=ImageBatchCollator(), seed=SEED
        ),
        sevens,
    ),
    "wrapped table": (
        lambda: DataLoader(
            Wrapper(FLOATS), sampler=sampler(), collate=ImageBatchCollator(), seed=SEED
        ),
        sevens,
    ),
    "sampler": (
        lambda: DataLoader(
            SAMPLES,
            sampler=OwnSampler(COUNT, BATCH, drop_last=False),
            collate=ImageBatchCollator(),
            seed=SEED,
        ),
        lambda batch: batch.indices.tolist() == PLAIN_ORDER[::-1].tolist(),
    ),
    "bucketed plan": (
        lambda: DataLoader(
            SAMPLES,
            sampler=OwnBuckets(range(COUNT), BATCH, drop_last=False),
            collate=ImageBatchCollator(),
            seed=SEED,
        ),
        lambda batch: batch.indices.tolist() != BUCKETS.batch_indices(SEED, 0, 0).tolist(),
    ),
    "arrays": (
        lambda: DataLoader(OwnArrays(IMAGES), sampler=sampler(), seed=SEED),
        lambda batch: batch.tolist() == (IMAGES[PLAIN_ORDER] // 2).tolist(),
    ),
    "row transform": (
        lambda: DataLoader(ArrayDataset(IMAGES), sampler=sampler(), transform=OwnFlip(), seed=SEED),
        lambda batch: batch.tolist() == (255 - IMAGES[PLAIN_ORDER]).tolist(),
    ),
    "compose": (
        lambda: DataLoader(
            ArrayDataset(IMAGES),
            sampler=sampler(),
            transform=OwnCompose([RandomHorizontalFlip()]),
            seed=SEED,
        ),
        lambda batch: batch.tolist() == (255 - IMAGES[PLAIN_ORDER]).tolist(),
    ),
    "compose in a compose": (
        lambda: DataLoader(
            ArrayDataset(IMAGES),
            sampler=sampler(),
            transform=Compose([OwnCompose([RandomHorizontalFlip()])]),
            seed=SEED,
        ),
        lambda batch: batch.tolist() == (255 - IMAGES[PLAIN_ORDER]).tolist(),
    ),
}


@pytest.mark.parametrize("part", OVERRIDES)
def test_an_override_wins(part):
    make_loader, is_its = OVERRIDES[part]
    with make_loader() as loader:
        assert loader._lane is None
        assert is_its(loader[0])
        assert is_its(next(iter(loader)))


def test_an_attribute_of_the_instance_wins():
    dataset = ArrayDataset(IMAGES)
    dataset.map_fields = lambda function: np.zeros((BATCH, 2))
    with DataLoader(dataset, BATCH) as loader:
        assert loader._lane is None


@pytest.mark.parametrize(
    "options",
    [
        {"dataset": SAMPLES, "collate": lambda samples, key: len(samples)},
        {
            "dataset": SAMPLES,
            "collate": ImageBatchCollator(),
            "transform": lambda rng, sample: sample,
        },
        {"dataset": SAMPLES, "collate": ImageBatchCollator(augment=gain_and_offset)},
        {"dataset": ArrayDataset(IMAGES), "transform": lambda rng, batch: batch},
        {
            "dataset": ArrayDataset(IMAGES, LABELS),
            "transform": Compose([Normalize(0.5, 0.25), OneHot(5), Mixup(1.0)]),
        },
        {"dataset": IMAGES},
        {"dataset": ArrayDataset(*[LABELS] * 17)},
    ],
    ids=["collate", "transform", "augment", "batch", "whole batch", "foreign", "many arrays"],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_where_python_takes_part_there_is_no_lane(options, workers):
    with DataLoader(sampler=sampler(), seed=SEED, workers=workers, **options) as loader:
        assert loader._lane is None
        if "collate" not in options or isinstance(options["collate"], ImageBatchCollator):
            expected = [loader.digest(g) for g in range(8)]
            assert [digest(batch) for batch in loader.steps(0, 8)] == expected


# A list of samples is the user's own: it may change


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("odd", "error", "words"),
    [
        (None, TypeError, ["Sample", "NoneType"]),
        (Sample(np.zeros((1, 2, 3))), (TypeError, ValueError), ["float64"]),
        (Sample(np.zeros((1, 9, 3), np.float32)), ValueError, ["image", "H"]),
        (Sample(np.zeros((1, 2, 0), np.float32)), ValueError, ["image"]),
        (Sample(np.zeros((1, 2, 3), np.float32), (2**40,)), ValueError, ["target", 2**40]),
    ],
    ids=["none", "dtype", "height", "empty", "target"],
)
def test_what_does_not_fit_raises_the_reference_path_s_error(odd, error, words, workers):
    dataset = list(SAMPLES)
    dataset[9] = odd
    with DataLoader(dataset, BATCH, collate=ImageBatchCollator(), workers=workers) as loader:
        assert loader._lane is not None
        stream = loader.steps(0)
        assert [next(stream).step, next(stream).step] == [0, 1]
        with refused(error, *words, 9) as caught:
            next(stream)
        with pytest.raises(type(caught.value)) as alone:
            loader[2]
        assert str(alone.value) == str(caught.value)
        assert alone.value.__notes__ == caught.value.__notes__


@pytest.mark.parametrize("workers", [0, 2])
def test_a_subclass_of_sample_is_built_by_the_reference_path(workers):
    class Own(Sample):
        pass

    dataset = [Own(*LINES[index]) for index in range(COUNT)]
    with DataLoader(dataset, BATCH, collate=ImageBatchCollator(), workers=workers) as loader:
        expected = [loader.digest(g) for g in range(6)]
        assert [digest(batch) for batch in loader] == expected


@pytest.mark.parametrize("workers", [0, 1])
def test_a_list_that_changes_its_length(workers):
    dataset = list(SAMPLES)
    with DataLoader(
        dataset, BATCH, collate=ImageBatchCollator(), workers=workers, prefetch=1
    ) as loader:
        stream = loader.steps(0)
        next(stream)
        dataset.pop()
        with refused(ValueError, "dataset", 22, 21):
            for _ in itertools.islice(stream, 3):
                pass


@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_keeps_its_bytes_when_the_list_s_samples_go(workers):
    """A worker reads the images of a batch while nobody but it may hold them."""
    dataset = [Sample(*LINES[index]) for index in range(COUNT)]
    with DataLoader(dataset, BATCH, collate=ImageBatchCollator(), workers=workers) as loader:
        expected = [loader.digest(g) for g in range(200)]
        for g, batch in enumerate(loader.steps(0, 200)):
            assert digest(batch) == expected[g]
            place = g % COUNT
            dataset[place] = Sample(*LINES[place])  # the same bytes in other memory


def test_the_twin_s_sample_is_none_of_ours():
    loader = DataLoader([twin.Sample(*LINES[0])] * 4, 2, collate=ImageBatchCollator())
    with loader, refused(TypeError, "Sample"):
        next(iter(loader))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_list_that_shrinks_while_a_batch_is_made_of_it(workers):
    """What resolves a sample is the user's code, and may do anything."""

    class Emptying:
        def __iter__(self):
            return iter([1])

        def __array__(self, dtype=None, copy=None):
            listed.clear()
            return np.array([1], np.int32)

    listed = [*SAMPLES]
    listed[0] = Sample(SAMPLES[0].image, Emptying())
    options = {"batch_size": COUNT, "collate": ImageBatchCollator(), "workers": workers}
    with DataLoader(listed, **options) as loader, refused(ValueError, "dataset", COUNT):
        next(iter(loader))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_interrupt_while_an_epoch_is_planned(workers, monkeypatch):
    """The lane asks for the plan where no error can be raised: it comes a moment later."""
    planned = []
    build = om.BucketedSampler._build

    def interrupted(sampler, seed, epoch):
        if not planned:
            planned.append(epoch)
            raise KeyboardInterrupt
        return build(sampler, seed, epoch)

    monkeypatch.setattr(om.BucketedSampler, "_build", interrupted)
    sampler = SAMPLERS["bucketed"](True)
    dataset = ArrayDataset(np.arange(COUNT))
    with DataLoader(dataset, sampler=sampler, workers=workers) as loader:
        with pytest.raises(KeyboardInterrupt):
            next(iter(loader))
        assert planned
        assert len(next(loader.steps(0))) == BATCH

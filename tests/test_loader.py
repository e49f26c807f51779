"""Promise: the loader is a run of numbered steps that can be entered anywhere, saved and taken up.

Passes, epochs, single steps, state, explanations and digests agree with each other; batches come
in order and are built no further ahead than `prefetch`; an error of anyone's code arrives at its
own step, whole, and ends the stream.
"""

import contextlib
import gc
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import traceback
import weakref

import numpy as np
import pytest
from reference import rng as twin_rng
from reference.digest import digest
from reference.lines import GoldenLines, gain_and_offset
from support import PackageSamples, integers, refused

import onemodel
from onemodel import BatchKey, DataLoader, ImageBatchCollator, Sample, ShuffledSampler

COUNT, BATCH = 22, 4
STEPS = 6  # the last batch of an epoch has two rows
SAMPLES = PackageSamples(GoldenLines(COUNT, 2))

workers_0_and_2 = pytest.mark.parametrize("workers", [0, 2])
every_count = pytest.mark.parametrize("workers", [0, 1, 2, 4])


def make(dataset=SAMPLES, *, sampler=None, collate=None, seed=7, **options):
    if sampler is None:
        sampler = ShuffledSampler(len(dataset), BATCH, drop_last=False)
    return DataLoader(
        dataset,
        sampler=sampler,
        collate=collate or ImageBatchCollator(width_multiple=4),
        seed=seed,
        **options,
    )


def rows(batches):
    return [integers(batch.indices) for batch in batches]


def expected_rows(steps, seed=7):
    sampler = ShuffledSampler(COUNT, BATCH, drop_last=False)
    return [integers(sampler.batch_indices(seed, *divmod(g, STEPS))) for g in steps]


def flat(lists):
    return list(itertools.chain(*lists))


# Passes and epochs


@workers_0_and_2
def test_passes_advance_the_epoch(workers):
    with make(workers=workers) as loader:
        assert len(loader) == loader.steps_per_epoch == STEPS
        assert loader.epoch == 0
        for epoch in range(3):
            stream = iter(loader)
            assert loader.epoch == epoch + 1
            assert rows(stream) == expected_rows(range(epoch * STEPS, (epoch + 1) * STEPS))
        assert loader.epoch == 3


def test_a_pass_is_of_the_epoch_at_which_it_started():
    with make() as loader:
        first = iter(loader)
        second = iter(loader)
        assert rows(second) == expected_rows(range(STEPS, 2 * STEPS))
        assert rows(first) == expected_rows(range(STEPS))


def test_set_epoch():
    with make() as loader:
        loader.set_epoch(5)
        assert loader.epoch == 5
        assert rows(loader) == expected_rows(range(5 * STEPS, 6 * STEPS))
        assert loader.epoch == 6
        loader.set_epoch(0)
        assert rows(loader) == expected_rows(range(STEPS))


def test_set_epoch_changes_nothing_under_way():
    with make() as loader:
        stream = iter(loader)
        next(stream)
        loader.set_epoch(9)
        assert rows(stream) == expected_rows(range(1, STEPS))


@workers_0_and_2
def test_steps_run_across_epochs(workers):
    with make(workers=workers) as loader:
        assert rows(loader.steps(4, 15)) == expected_rows(range(4, 15))
        assert rows(loader.steps(stop=3)) == expected_rows(range(3))
        assert rows(loader.steps(5, 5)) == []


def test_steps_leave_the_epoch_alone():
    with make() as loader:
        assert len(rows(loader.steps(0, 9))) == 9
        assert loader.epoch == 0


def test_steps_without_end_go_on():
    with make() as loader:
        stream = loader.steps(100 * STEPS)
        for g in range(100 * STEPS, 100 * STEPS + 20):
            batch = next(stream)
            assert (batch.epoch, batch.step) == divmod(g, STEPS)


def test_single_steps():
    with make() as loader:
        for g in (17, 0, 5, 6, 0):
            batch = loader[g]
            assert [integers(batch.indices)] == expected_rows([g])
            assert (batch.epoch, batch.step) == divmod(g, STEPS)
        assert loader.epoch == 0


def test_an_iterator_is_its_own_iterator():
    with make() as loader:
        stream = iter(loader)
        assert iter(stream) is stream
        assert len(list(stream)) == STEPS
        with pytest.raises(StopIteration):
            next(stream)
        with pytest.raises(StopIteration):
            next(stream)


def test_repr_is_readable():
    with make(workers=0, prefetch=3) as loader:
        text = repr(loader)
    assert text.startswith("DataLoader(")
    for word in ("ShuffledSampler", "seed=7", "prefetch=3"):
        assert word in text
    assert " at 0x" not in text


# Digest, explanation, statistics


def test_digests_agree():
    with make() as loader:
        for g in (0, 5, 11):
            batch = loader[g]
            names = ("images", "widths", "targets", "target_lengths", "labels", "indices")
            expected = digest({name: np.array(getattr(batch, name)) for name in names})
            assert onemodel.digest(batch) == loader.digest(g) == expected


@pytest.mark.parametrize(
    "items",
    [
        {"x": np.arange(6, dtype=np.uint8).reshape(2, 3), "y": np.array([1.5, 2.5])},
        {"y": np.array([1.5, 2.5]), "x": np.arange(6, dtype=np.uint8).reshape(2, 3)},
        {"strided": np.arange(12, dtype=np.int64).reshape(3, 4).T},
        {"swapped": np.arange(3, dtype=">i4")},
        {"empty": np.zeros((0, 3), dtype=np.float32)},
        {"scalar": np.array(5, dtype=np.int16)},
    ],
    ids=lambda items: "-".join(items),
)
def test_digest_of_arrays_by_name(items):
    assert onemodel.digest(items) == digest(items)


def test_digest_of_a_tuple_numbers_its_items():
    arrays = (np.arange(3), np.arange(4, dtype=np.float32))
    assert onemodel.digest(arrays) == digest({"0": arrays[0], "1": arrays[1]})


@pytest.mark.parametrize(
    "thing", [None, object(), {"x": [object()]}, (np.zeros(3), None)], ids=type
)
def test_digest_of_something_else(thing):
    with pytest.raises(TypeError):
        onemodel.digest(thing)


@pytest.mark.parametrize("shard", [(0, 1), (1, 2)], ids=str)
def test_explain(shard):
    with make(shard=shard) as loader:
        for g in (0, 5, 2 * STEPS + 3):
            epoch, step = divmod(g, STEPS)
            explanation = loader.explain(g)
            batch = loader[g]
            assert explanation["epoch"] == epoch
            assert explanation["step"] == step
            whole = expected_rows([g])[0]
            first = shard[0] * len(whole) // shard[1]
            stop = (shard[0] + 1) * len(whole) // shard[1]
            slots = explanation["slots"]
            assert [slot["index"] for slot in slots] == integers(batch.indices)
            assert [slot["slot"] for slot in slots] == list(range(first, stop))
            for slot in slots:
                for name, stream in (("transform", 0), ("augment", 1)):
                    key = twin_rng.derive(7, epoch, step, slot["slot"], stream)
                    assert slot[name] == key


def test_explain_reads_no_sample():
    class Untouchable(list):
        def __getitem__(self, index):
            raise AssertionError("explain needs no sample")

    with make(Untouchable([None] * COUNT)) as loader:
        assert len(loader.explain(3)["slots"]) == BATCH


@workers_0_and_2
def test_statistics_count(workers):
    with make(workers=workers) as loader:
        assert loader.stats.batches == 0
        for taken, _ in enumerate(loader.steps(0, 9), start=1):
            assert loader.stats.batches >= taken
        assert loader.stats.batches == 9


# State


def take(loader, count):
    stream = iter(loader)
    return stream, [integers(next(stream).indices) for _ in range(count)]


@every_count
@pytest.mark.parametrize("taken", [0, 1, 4, STEPS])
def test_state_counts_what_was_taken(workers, taken):
    """Not what was built ahead: with workers the ring holds up to eight batches more."""
    with make(workers=workers) as loader:
        stream, _ = take(loader, taken)
        assert loader.state_dict()["next_step"] == taken
        del stream


def test_state_is_plain_and_names_the_run():
    with make() as loader:
        take(loader, 2)
        state = loader.state_dict()
        assert set(state) == {
            "version",
            "next_step",
            "seed",
            "dataset_length",
            "sampler",
            "collator",
        }
        assert state["seed"] == 7
        assert state["dataset_length"] == COUNT
        assert json.loads(json.dumps(state)) == state


def test_state_is_a_copy():
    with make() as loader:
        stream, _ = take(loader, 2)
        state = loader.state_dict()
        next(stream)
        assert state["next_step"] == 2
        state["seed"] = 99
        assert loader.state_dict()["seed"] == 7


@every_count
@pytest.mark.parametrize("taken", [0, 1, 5, STEPS, STEPS + 2, 3 * STEPS])
def test_a_pass_is_resumed_in_its_middle(workers, taken):
    """The next pass gives the rest of the epoch, the one after it the next epoch."""
    with make(workers=workers) as loader:
        for _ in range(taken // STEPS):
            assert len(list(loader)) == STEPS
        if taken % STEPS:
            take(loader, taken % STEPS)
        state = json.loads(json.dumps(loader.state_dict()))
    with make(workers=workers) as fresh:
        fresh.load_state_dict(state)
        end = (taken // STEPS + 1) * STEPS
        assert rows(fresh) == expected_rows(range(taken, end))
        assert rows(fresh) == expected_rows(range(end, end + STEPS))


STATE_SCRIPT = """
import json
from reference.lines import gain_and_offset
from test_loader import make_with_augmentation
print(json.dumps(make_with_augmentation().state_dict()))
"""


def make_with_augmentation():
    lengths = list(range(COUNT))
    return make(
        sampler=onemodel.BucketedSampler(lengths, BATCH, drop_last=False),
        collate=ImageBatchCollator(augment=onemodel.Compose([gain_and_offset])),
    )


def test_the_state_is_the_same_in_another_process(needs_subprocess):
    """A run goes on in a new process: nothing in the state may be an address or a salted hash."""
    printed = subprocess.run(
        [sys.executable, "-c", STATE_SCRIPT],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path if path)),
    ).stdout
    with make_with_augmentation() as loader:
        assert json.loads(printed) == loader.state_dict()
        loader.load_state_dict(json.loads(printed))


def test_a_state_is_applied_once():
    with make() as loader:
        take(loader, 4)
        state = loader.state_dict()
    with make() as fresh:
        fresh.load_state_dict(state)
        assert rows(fresh.steps(stop=6)) == expected_rows(range(4, 6))
        assert rows(fresh.steps(0, 2)) == expected_rows(range(2))
    with make() as fresh:
        fresh.load_state_dict(state)
        fresh.load_state_dict(state)
        assert rows(fresh) == expected_rows(range(4, 6))


def test_an_explicit_start_or_epoch_wins_over_a_loaded_state():
    with make() as loader:
        take(loader, 4)
        state = loader.state_dict()
    with make() as fresh:
        fresh.load_state_dict(state)
        assert rows(fresh.steps(1, 3)) == expected_rows(range(1, 3))
    with make() as fresh:
        fresh.load_state_dict(state)
        fresh.set_epoch(2)
        assert rows(fresh) == expected_rows(range(2 * STEPS, 3 * STEPS))


def test_state_straight_after_loading():
    with make() as loader:
        take(loader, 4)
        state = loader.state_dict()
    with make() as fresh:
        fresh.load_state_dict(state)
        assert fresh.state_dict() == state


def test_steps_without_start_begin_at_the_beginning():
    with make() as loader:
        assert rows(loader.steps(stop=2)) == expected_rows(range(2))


def saved(loader):
    with loader:
        return loader.state_dict()


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("seed", lambda: make(seed=8)),
        ("dataset_length", lambda: make(PackageSamples(GoldenLines(23, 2)))),
        ("sampler", lambda: make(sampler=ShuffledSampler(COUNT, BATCH))),
        ("sampler", lambda: make(sampler=ShuffledSampler(COUNT, 5, drop_last=False))),
        ("sampler", lambda: make(sampler=onemodel.SequentialSampler(COUNT, BATCH))),
        ("collator", lambda: make(collate=ImageBatchCollator(width_multiple=8))),
        ("collator", lambda: make(collate=ImageBatchCollator(width_multiple=4, pad_value=1.0))),
    ],
    ids=["seed", "length", "drop_last", "batch_size", "kind", "width_multiple", "pad_value"],
)
def test_a_state_of_another_run_is_refused(field, other):
    state = saved(make())
    theirs = saved(other())
    with make() as loader:
        if field == "dataset_length":  # the sampler of the longer dataset differs as well
            theirs["sampler"] = state["sampler"]
        with refused(ValueError, field, state[field], theirs[field]):
            loader.load_state_dict(theirs)
        assert rows(loader) == expected_rows(range(STEPS))


def test_the_sampler_is_recognised_by_its_contents():
    """Same type, same sizes, other lengths or shares: another run."""

    def bucketed(lengths):
        return make(sampler=onemodel.BucketedSampler(lengths, BATCH))

    def mixing(shares):
        return make(sampler=onemodel.MixingSampler([10, 12], shares, BATCH))

    lengths = list(range(COUNT))
    assert saved(bucketed(lengths)) == saved(bucketed(np.array(lengths)))
    assert saved(mixing([0.5, 0.5])) == saved(mixing(np.array([0.5, 0.5])))
    for mine, theirs in (
        (bucketed(lengths), bucketed(lengths[::-1])),
        (mixing([0.5, 0.5]), mixing([0.5, 0.25])),
    ):
        with theirs, mine, refused(ValueError, "sampler"):
            mine.load_state_dict(theirs.state_dict())


@pytest.mark.parametrize("version", [0, 99, "1", None], ids=repr)
def test_a_state_of_another_version_is_refused(version):
    state = saved(make()) | {"version": version}
    with make() as loader, refused((ValueError, TypeError), "version", repr(version)):
        loader.load_state_dict(state)


@pytest.mark.parametrize(
    "field", ["version", "next_step", "seed", "dataset_length", "sampler", "collator"]
)
def test_a_state_with_a_field_missing_is_refused(field):
    state = saved(make())
    del state[field]
    with make() as loader, refused((ValueError, KeyError), field):
        loader.load_state_dict(state)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (-1, ValueError),
        (2**64 + 1, ValueError),
        (1.5, TypeError),
        (True, TypeError),
        ("3", TypeError),
    ],
    ids=repr,
)
def test_next_step_is_checked(value, error):
    state = saved(make()) | {"next_step": value}
    with make() as loader, refused(error, "next_step", value):
        loader.load_state_dict(state)


@pytest.mark.parametrize("state", [None, 5, "state", []], ids=repr)
def test_a_state_is_a_dict(state):
    with make() as loader, pytest.raises(TypeError):
        loader.load_state_dict(state)


# Who is called, with what, when


class Recording:
    """A dataset that writes down every read."""

    def __init__(self, samples=SAMPLES):
        self.samples = samples
        self.read = []

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        self.read.append(index)
        return self.samples[index]


def test_without_workers_nothing_is_built_ahead_or_elsewhere():
    dataset = Recording()
    main = threading.get_ident()
    threads = set()

    def collate(samples, key):
        threads.add(threading.get_ident())
        return key

    with make(dataset, collate=collate, workers=0) as loader:
        stream = loader.steps(0)
        assert dataset.read == []
        for g in range(8):
            key = next(stream)
            assert dataset.read == flat(expected_rows(range(g + 1)))
            assert (key.epoch, key.step) == divmod(g, STEPS)
    assert threads == {main}


@pytest.mark.parametrize("prefetch", [1, 2, 5])
def test_workers_build_exactly_prefetch_steps_ahead(prefetch, needs_threads):
    """A step is claimed only if step < next step to take + prefetch, and that far it is claimed."""
    reached, too_far = threading.Condition(), []
    furthest, asked = -1, 0

    class Watching(Recording):
        def __getitem__(self, index):
            nonlocal furthest
            step = index // BATCH
            with reached:
                furthest = max(furthest, step)
                if step >= asked + prefetch:
                    too_far.append((step, asked))
                reached.notify_all()
            return self.samples[index]

    dataset = Watching(PackageSamples(GoldenLines(80, 2)))
    sampler = onemodel.SequentialSampler(80, BATCH)
    with make(dataset, sampler=sampler, workers=3, prefetch=prefetch) as loader:
        stream = loader.steps(0, 20)
        for taken in range(1, 16):
            with reached:
                asked = taken
            next(stream)
            with reached:
                assert reached.wait_for(lambda: furthest >= taken + prefetch - 1, timeout=60)  # noqa: B023
    assert too_far == []


def test_custom_collate_gets_samples_and_key():
    with make(collate=lambda samples, key: (samples, key), shard=(1, 2), seed=9) as loader:
        samples, key = loader[STEPS + 2]
        whole = expected_rows([STEPS + 2], seed=9)[0]
        assert isinstance(key, BatchKey)
        assert (key.seed, key.epoch, key.step, key.first_slot) == (9, 1, 2, 2)
        assert key.indices.dtype == np.int64
        assert key.indices.tolist() == whole[2:]
        assert all(isinstance(sample, Sample) for sample in samples)
        golden = GoldenLines(COUNT, 2)
        for sample, index in zip(samples, whole[2:], strict=True):
            assert np.array_equal(sample.image, golden[index].image)


@workers_0_and_2
@pytest.mark.parametrize("result", [None, 0, "text", [], StopIteration], ids=repr)
def test_custom_collate_may_return_anything(workers, result):
    """None and the like are batches too, not the end of the stream."""
    with make(collate=lambda samples, key: result, workers=workers) as loader:
        assert list(loader.steps(0, 5)) == [result] * 5


def test_custom_sampler():
    """Anything with the three members of a sampler is one."""

    class Countdown:
        steps_per_epoch = 3
        batch_size = 2

        def batch_indices(self, seed, epoch, step):
            return np.array([5 - step, epoch], dtype=np.int64)

    with make(sampler=Countdown()) as loader:
        assert rows(loader.steps(0, 5)) == [[5, 0], [4, 0], [3, 0], [5, 1], [4, 1]]


def test_transform_gets_its_slots_generator():
    seen = []

    def transform(rng, sample):
        seen.append(rng.state)
        assert isinstance(rng, onemodel.SampleRng)
        return sample

    with make(transform=transform, shard=(1, 2)) as loader:
        assert len(loader[STEPS + 1].indices) == 2
    assert seen == [twin_rng.derive(7, 1, 1, slot, 0) for slot in (2, 3)]


def test_transform_may_be_composed():
    def double(rng, sample):
        return Sample(sample.image * np.float32(2), sample.target, sample.label)

    def relabel(rng, sample):
        return Sample(sample.image, sample.target, rng.next_int(100))

    with make(transform=onemodel.Compose([double, relabel])) as composed, make() as plain:
        batch, original = composed[0], plain[0]
        expected = [
            twin_rng.SampleRng(twin_rng.derive(7, 0, 0, slot, 0)).next_int(100) for slot in range(4)
        ]
        assert batch.labels.tolist() == expected
        assert np.array_equal(batch.images, original.images * 2)


@every_count
def test_no_reference_to_a_sample_outlives_its_batch(workers):
    """When a batch is delivered, nobody holds its samples' images any more."""
    born = {}
    lock = threading.Lock()

    class Fresh(Recording):
        def __getitem__(self, index):
            image = np.ones((1, 2, 5), dtype=np.float32)
            with lock:
                born[index] = weakref.ref(image)
            return Sample(image)

    sampler = onemodel.SequentialSampler(40, BATCH)
    dataset = Fresh(range(40))
    with make(dataset, sampler=sampler, workers=workers, prefetch=2) as loader:
        for batch in loader.steps(0, 10):
            gc.collect()
            assert [index for index in integers(batch.indices) if born[index]() is not None] == []


def test_a_dataset_may_be_read_a_batch_at_a_time():
    """PyTorch's `__getitems__` is used where a dataset has it."""
    asked = []

    class Batched(Recording):
        def __getitems__(self, indices):
            asked.append(indices)
            return [self.samples[index] for index in indices]

    dataset = Batched()
    with make(dataset) as loader, make() as plain:
        assert loader.digest(8) == plain.digest(8)
    assert asked == expected_rows([8])
    assert dataset.read == []


def test_a_dataset_that_reads_too_little_is_found_out():
    class Batched(Recording):
        def __getitems__(self, indices):
            return [self.samples[index] for index in indices[1:]]

    with make(Batched()) as loader, refused(ValueError, "__getitems__", 4, 3):
        loader[0]


def drive(coroutine):
    """Run a coroutine that only ever yields to its event loop, without one."""
    try:
        while True:
            coroutine.send(None)
    except StopIteration as stop:
        return stop.value


@workers_0_and_2
def test_async_for(workers):
    async def consume(loader):
        passed = [integers(batch.indices) async for batch in loader.aiter()]
        return passed, [integers(batch.indices) async for batch in loader.steps(3, 5)]

    with make(workers=workers) as loader:
        passed, some = drive(consume(loader))
        assert loader.epoch == 1
    assert passed == expected_rows(range(STEPS))
    assert some == expected_rows([3, 4])


def test_async_for_lets_others_run_between_batches():
    async def consume(stream, taken):
        async for batch in stream:
            taken.append(batch.step)

    with make() as loader:
        taken, seen = [], []
        coroutine = consume(loader.steps(0, 5), taken)
        with contextlib.suppress(StopIteration):
            while True:
                coroutine.send(None)
                seen.append(len(taken))
    assert taken == list(range(5))
    assert seen == list(range(6))


def test_a_platform_without_threads_runs_without_workers(monkeypatch):
    """As in a browser: no error, no warning, no thread, the same batches."""
    monkeypatch.setattr("onemodel._common.threads.can_start_threads", lambda: False)

    def no_start(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_start)
    with make(workers=4) as loader:
        assert loader.workers == 0
        assert rows(loader) == expected_rows(range(STEPS))


def test_epoch_and_step_of_a_batch():
    with make() as loader:
        for g, batch in enumerate(loader.steps(0, 2 * STEPS)):
            assert (batch.epoch, batch.step) == divmod(g, STEPS)


# Errors


class Broken(Recording):
    """Reading one index raises one given exception object."""

    def __init__(self, index, error):
        super().__init__()
        self.index = index
        self.error = error

    def __getitem__(self, index):
        if index == self.index:
            raise self.error
        return self.samples[index]


class OwnError(Exception):
    """An exception with arguments that a copy would not survive."""

    def __init__(self, first, *, second):
        super().__init__(first)
        self.second = second


class OwnBaseError(BaseException):
    """An exception that `except Exception` does not see."""


BAD_STEP = STEPS + 3  # in the second epoch
BAD_SLOT = 2


def bad_index():
    return expected_rows([BAD_STEP])[0][BAD_SLOT]


def assert_note(error, **facts):
    """The notes hold each name with its value."""
    notes = "\n".join(error.__notes__)
    for name, value in facts.items():
        assert re.search(rf"\b{name.replace('_', ' ')}\b\D{{0,3}}{value}\b", notes), notes


@every_count
@pytest.mark.parametrize(
    "make_error",
    [
        lambda: OwnError("text", second=object()),
        lambda: OwnBaseError("not an Exception"),
        lambda: KeyError("missing"),
        lambda: IndexError("a dataset's own"),
        lambda: KeyboardInterrupt("raised by the dataset"),
    ],
    ids=["own", "base", "key", "index", "interrupt"],
)
def test_an_error_arrives_at_its_step_and_ends_the_stream(workers, make_error):
    """The same object, with the traceback that leads into the dataset, and a note."""
    error = make_error()
    start = BAD_STEP - 2  # the bad index is read by no earlier step of this run
    assert bad_index() not in flat(expected_rows(range(start, BAD_STEP)))
    with make(Broken(bad_index(), error), workers=workers) as loader:
        # To the end of the epoch: in the next one the same object would be raised once more.
        stream = loader.steps(start, 2 * STEPS)
        assert rows([next(stream), next(stream)]) == expected_rows([start, start + 1])
        with pytest.raises(type(error)) as caught:
            next(stream)
        assert caught.value is error
        frames = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
        assert frames.count("__getitem__") == 1
        assert_note(
            error,
            global_step=BAD_STEP,
            epoch=1,
            step=BAD_STEP - STEPS,
            slot=BAD_SLOT,
            index=bad_index(),
        )
        for _ in range(2):
            with pytest.raises(StopIteration):
                next(stream)


@workers_0_and_2
@pytest.mark.parametrize("collate", [None, lambda samples, key: samples], ids=["images", "custom"])
def test_stop_iteration_of_a_dataset_is_an_error(workers, collate):
    """Let through as it is, it would end the loop in silence, or shorten the batch."""
    dataset = Broken(bad_index(), StopIteration("oops"))
    with make(dataset, workers=workers, collate=collate) as loader:
        with pytest.raises(RuntimeError) as caught:
            list(loader.steps(BAD_STEP, BAD_STEP + 5))
        assert isinstance(caught.value.__cause__, StopIteration)


@workers_0_and_2
@pytest.mark.parametrize("where", ["sampler", "transform", "collate", "augment"])
def test_errors_of_every_part_arrive(workers, where):
    error = OwnError("text", second=2)
    state = twin_rng.derive(7, 1, 3, BAD_SLOT, 1)

    def transform(rng, sample):
        if rng.state == twin_rng.derive(7, 1, 3, BAD_SLOT, 0):
            raise error
        return sample

    def augment(rng, image):
        if rng.state == state:
            raise error

    def collate(samples, key):
        if (key.epoch, key.step) == (1, 3):
            raise error
        return key

    class Sampler(ShuffledSampler):
        def batch_indices(self, seed, epoch, step):
            if (epoch, step) == (1, 3):
                raise error
            return super().batch_indices(seed, epoch, step)

    options = {
        "sampler": {"sampler": Sampler(COUNT, BATCH, drop_last=False)},
        "transform": {"transform": transform},
        "collate": {"collate": collate},
        "augment": {"collate": ImageBatchCollator(augment=augment)},
    }[where]
    with make(workers=workers, **options) as loader:
        stream = loader.steps(0)
        assert rows(next(stream) for _ in range(BAD_STEP)) == expected_rows(range(BAD_STEP))
        with pytest.raises(OwnError) as caught:
            next(stream)
        assert caught.value is error
        facts = {"global_step": BAD_STEP, "epoch": 1, "step": 3}
        if where in ("transform", "augment"):
            facts |= {"slot": BAD_SLOT, "index": bad_index()}
        assert_note(error, **facts)
        with pytest.raises(StopIteration):
            next(stream)


@workers_0_and_2
def test_an_error_far_ahead_waits_for_its_turn(workers):
    """The error of step 5 is built early and delivered late; an unread error is nobody's."""
    index = expected_rows([5])[0][0]
    with make(Broken(index, OwnError("text", second=3)), workers=workers, prefetch=8) as loader:
        assert rows(loader.steps(0, 5)) == expected_rows(range(5))
        stream = loader.steps(0, 9)
        assert rows([next(stream) for _ in range(5)]) == expected_rows(range(5))
        with pytest.raises(OwnError):
            next(stream)


def test_an_error_of_a_single_step_has_its_note():
    error = OwnError("text", second=4)
    with make(Broken(bad_index(), error)) as loader:
        with pytest.raises(OwnError) as caught:
            loader[BAD_STEP]
        assert caught.value is error
        assert_note(error, global_step=BAD_STEP, epoch=1, step=3, slot=BAD_SLOT)
        assert rows([loader[BAD_STEP - 1]]) == expected_rows([BAD_STEP - 1])


@workers_0_and_2
def test_after_an_error_the_loader_still_works(workers):
    dataset = Broken(bad_index(), OwnError("text", second=5))
    with make(dataset, workers=workers) as loader:
        with pytest.raises(OwnError):
            list(loader.steps(0, 100))
        dataset.index = None
        assert rows(loader.steps(0, 9)) == expected_rows(range(9))


@workers_0_and_2
def test_a_bad_sample_says_which(workers):
    class Bad(Recording):
        def __getitem__(self, index):
            if index == bad_index():
                return Sample(np.zeros((1, 2, 3)))
            return self.samples[index]

    with (
        make(Bad(), workers=workers) as loader,
        refused((TypeError, ValueError), "float64", bad_index(), BAD_SLOT, BAD_STEP),
    ):
        list(loader.steps(BAD_STEP, BAD_STEP + 1))


# Closing


@workers_0_and_2
def test_close_may_be_called_again(workers):
    loader = make(workers=workers)
    stream = iter(loader)
    next(stream)
    loader.close()
    loader.close()


@workers_0_and_2
def test_closing_a_stream_ends_it(workers):
    with make(workers=workers) as loader:
        stream = loader.steps(0)
        next(stream)
        stream.close()
        stream.close()
        with pytest.raises(StopIteration):
            next(stream)
        assert rows(loader.steps(0, 2)) == expected_rows(range(2))


@workers_0_and_2
def test_with_returns_the_loader(workers):
    loader = make(workers=workers)
    with loader as same:
        assert same is loader
        assert rows(loader.steps(0, 2)) == expected_rows(range(2))


def test_a_batch_can_be_released_by_with():
    with make() as loader, loader[0] as batch:
        assert len(batch.indices) == BATCH


# Refusals

NOT_A_WORD = [(-1, ValueError), (2**64, ValueError), (1.0, TypeError), (True, TypeError)]
words = pytest.mark.parametrize(("value", "error"), NOT_A_WORD, ids=repr)


@words
def test_seed_and_steps_are_words(value, error):
    with refused(error, "seed", value):
        make(seed=value)
    with make() as loader:
        with refused(error, "epoch", value):
            loader.set_epoch(value)
        with refused(error, "start", value):
            loader.steps(value)
        if value != 2**64:  # the end is not part of the run, so it may be one past the last step
            with refused(error, "stop", value):
                loader.steps(0, value)
        with refused((error, IndexError), value):
            loader[value]
        with refused((error, IndexError), value):
            loader.explain(value)
        with refused((error, IndexError), value):
            loader.digest(value)


def test_stop_stands_after_start():
    with make() as loader, refused(ValueError, "stop", 2, 7):
        loader.steps(7, 2)


def test_numpy_integers_are_taken():
    with make(seed=np.uint64(7), workers=np.int64(0), prefetch=np.int32(2)) as loader:
        loader.set_epoch(np.int64(1))
        assert rows(loader.steps(np.int64(2), np.uint8(4))) == expected_rows([2, 3])
        assert rows([loader[np.int32(5)]]) == expected_rows([5])
        assert json.dumps(loader.state_dict())


@pytest.mark.parametrize(("value", "error"), [(-1, ValueError), (1.5, TypeError)], ids=repr)
def test_workers(value, error):
    with refused(error, "workers", value):
        make(workers=value)


@pytest.mark.parametrize(
    ("value", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError)], ids=repr
)
def test_prefetch(value, error):
    with refused(error, "prefetch", value):
        make(prefetch=value)


@pytest.mark.parametrize(
    ("shard", "value"),
    [
        ((2, 2), 2),
        ((-1, 2), -1),
        ((0, 0), 0),
        ((0, -1), -1),
        ((0, 1.0), 1.0),
        ((False, 2), False),
        ((0,), (0,)),
        ((0, 1, 2), (0, 1, 2)),
        (5, 5),
    ],
    ids=repr,
)
def test_shard(shard, value):
    with refused((TypeError, ValueError), "shard", value):
        make(shard=shard)


def test_shards_divide_the_batch():
    with refused(ValueError, "world", 3, BATCH):
        make(shard=(0, 3))


def test_an_empty_dataset():
    with refused(ValueError, "dataset"):
        DataLoader([], 4)


def test_a_batch_larger_than_the_dataset():
    with refused(ValueError, "batch_size", 23, COUNT):
        DataLoader(SAMPLES, 23, drop_last=True)


@pytest.mark.parametrize(
    ("value", "error"), [(0, ValueError), (-2, ValueError), (2.0, TypeError)], ids=repr
)
def test_batch_size(value, error):
    with refused(error, "batch_size", value):
        DataLoader(SAMPLES, value)


def test_batch_size_or_sampler():
    with refused((TypeError, ValueError), "batch_size", "sampler"):
        DataLoader(SAMPLES)
    with refused((TypeError, ValueError), "batch_size", "sampler"):
        DataLoader(SAMPLES, 4, sampler=ShuffledSampler(COUNT, BATCH))
    with refused((TypeError, ValueError), "shuffle", "sampler"):
        DataLoader(SAMPLES, shuffle=True, sampler=ShuffledSampler(COUNT, BATCH))


@pytest.mark.parametrize("name", ["transform", "collate", "sampler", "dataset"])
def test_what_cannot_serve(name):
    arguments = {"dataset": SAMPLES, "sampler": ShuffledSampler(COUNT, BATCH)} | {name: 5}
    with refused(TypeError, name, "int" if name == "dataset" else 5):
        DataLoader(**arguments)


@workers_0_and_2
def test_an_index_outside_the_dataset(workers):
    """A sampler made for a longer dataset: refused at once or at the step, never wrapped."""
    with (
        refused((IndexError, ValueError), COUNT),
        make(sampler=onemodel.SequentialSampler(30, 5), workers=workers) as loader,
    ):
        list(loader)


@workers_0_and_2
def test_a_dataset_that_changes_its_length(workers):
    dataset = Recording([SAMPLES[index] for index in range(COUNT)])
    with make(dataset, workers=workers, prefetch=1) as loader:
        stream = loader.steps(0)
        next(stream)
        del dataset.samples[10:]
        with pytest.raises((ValueError, RuntimeError)) as caught:
            rows(itertools.islice(stream, 2 * STEPS))
        assert re.search(r"\b22\b", str(caught.value))
        assert re.search(r"\b10\b", str(caught.value))

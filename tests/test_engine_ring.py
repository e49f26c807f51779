"""Promise: a pass gives each of its batches once, in order, and ends as it must: never early, never
in silence, never in a wait for a thread that is not there.

What the threads do is decided by events and not by time.
"""

import contextlib
import ctypes
import gc
import itertools
import threading
import time
import weakref

import numpy as np
import pytest
from support import (
    BATCH,
    COUNT,
    SAMPLES,
    STEPS,
    Recording,
    expected_indices,
    indices_of,
    integers,
    make_loader,
    refused,
    workers_0_and_2,
)

import onemodel
from onemodel import ArrayDataset, DataLoader, ImageBatchCollator, ShuffledSampler
from onemodel._engine import prefetch
from onemodel._engine.consumer import take
from onemodel._engine.ring import Ring

LISTED = [SAMPLES[index] for index in range(COUNT)]
KINDS = {"native": LISTED, "python": SAMPLES}
every_kind = pytest.mark.parametrize("kind", KINDS)


def until(condition):
    """Let the other threads run until something is so."""
    limit = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < limit, "it never came to be"
        time.sleep(0)


def ring_of(loader):
    return loader._prefetchers.all[0].ring


# Passes without a seam


@every_kind
def test_the_next_pass_is_built_ahead(kind, needs_threads):
    """When a pass is over the workers build the first batches of the next one, up to `prefetch`."""
    with make_loader(KINDS[kind], workers=1, prefetch=3) as loader:
        assert indices_of(loader) == expected_indices(range(STEPS))
        ring = ring_of(loader)
        for epoch in range(1, 4):
            until(lambda: ring.built_ahead == 3)
            assert loader.epoch == epoch  # it moves with the first batch that is taken
            assert loader.state_dict()["next_step"] == epoch * STEPS
            steps = range(epoch * STEPS, (epoch + 1) * STEPS)
            assert indices_of(loader) == expected_indices(steps)
            assert ring_of(loader) is ring


def test_what_was_built_ahead_is_not_built_again(needs_threads):
    dataset = Recording()
    with make_loader(dataset, workers=1, prefetch=3) as loader:
        for _ in range(3):
            list(loader)
            until(lambda: ring_of(loader).built_ahead == 3)
    expected = list(itertools.chain(*expected_indices(range(3 * STEPS + 3))))
    assert dataset.read == expected


ELSEWHERE = {
    "set_epoch": (lambda loader: loader.set_epoch(5), 5 * STEPS),
    "load_state_dict": (
        lambda loader: loader.load_state_dict(loader.state_dict() | {"next_step": 2 * STEPS + 1}),
        2 * STEPS + 1,
    ),
    "steps": (lambda loader: next(loader.steps(40)), STEPS),
    "the same epoch": (lambda loader: loader.set_epoch(1), STEPS),
}


@every_kind
@pytest.mark.parametrize("change", ELSEWHERE)
def test_what_was_built_ahead_of_another_pass_is_dropped(kind, change, needs_threads):
    go, start = ELSEWHERE[change]
    with make_loader(KINDS[kind], workers=2, prefetch=3) as loader:
        list(loader)
        until(lambda: ring_of(loader).built_ahead == 3)
        go(loader)
        end = (start // STEPS + 1) * STEPS
        if change == "steps":
            loader.set_epoch(1)
        assert indices_of(loader) == expected_indices(range(start, end))


def test_steps_build_nothing_past_their_stop(needs_threads):
    dataset = Recording()
    with make_loader(dataset, workers=1, prefetch=8) as loader:
        list(loader.steps(2, 5))
    assert dataset.read == list(itertools.chain(*expected_indices([2, 3, 4])))


def test_a_step_of_the_next_pass_that_fails_is_tried_again(needs_threads):
    """What nobody took is nobody's error."""

    class Broken(Recording):
        broken = True
        hit = 0

        def __getitem__(self, index):
            if self.broken and len(self.read) >= COUNT:
                self.hit += 1
                raise ValueError("on purpose")
            return super().__getitem__(index)

    dataset = Broken()
    with make_loader(dataset, workers=1, prefetch=2) as loader:
        assert indices_of(loader) == expected_indices(range(STEPS))
        until(lambda: ring_of(loader).built_ahead)  # an error, delivered before the pass begins
        assert dataset.hit
        dataset.broken = False
        assert indices_of(loader) == expected_indices(range(STEPS, 2 * STEPS))


@every_kind
def test_no_thread_keeps_a_loader(kind, needs_threads):
    loader = make_loader(KINDS[kind], workers=2, prefetch=3)
    list(loader)
    threads = ring_of(loader).threads
    assert threads
    gone = weakref.ref(loader)
    del loader
    gc.collect()
    assert gone() is None
    for thread in list(threads):
        thread.join(30)
        assert not thread.is_alive()


@every_kind
def test_idle_threads_end_and_the_next_pass_starts_others(kind, needs_threads):
    with make_loader(KINDS[kind], workers=2, prefetch=3) as loader:
        assert indices_of(loader) == expected_indices(range(STEPS))
        ring = ring_of(loader)
        until(lambda: ring.workers_alive == 0)
        assert indices_of(loader) == expected_indices(range(STEPS, 2 * STEPS))
        assert ring_of(loader) is ring


# Threads that are not there


@every_kind
@pytest.mark.parametrize("granted", [0, 1, 2])
def test_a_platform_that_refuses_threads(kind, granted, monkeypatch, needs_threads):
    """The loader runs with the threads that it got; the epoch is not used up."""
    start, started = threading.Thread.start, []

    def refuse(thread):
        if len(started) >= granted:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with make_loader(KINDS[kind], workers=4, prefetch=4) as loader:
        if granted == 0 or kind == "native":
            first = next(iter(loader))
            assert loader.stats.refused_threads == 1
            assert loader.epoch == 1
            assert indices_of([first]) == expected_indices([0])
            loader.set_epoch(0)
        for epoch in range(2):
            steps = range(epoch * STEPS, (epoch + 1) * STEPS)
            assert indices_of(loader) == expected_indices(steps)
        assert len(started) <= granted
        assert loader.stats.batches >= 2 * STEPS


def test_a_pass_that_cannot_begin_is_not_used_up(monkeypatch, needs_threads):
    def fail(thread):
        raise MemoryError("no stack")

    with make_loader(workers=2) as loader:
        loader.load_state_dict(loader.state_dict() | {"next_step": 4})
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fail)
            with pytest.raises(MemoryError):
                next(iter(loader))
        assert loader.epoch == 0
        assert loader.state_dict()["next_step"] == 4
        assert indices_of(loader) == expected_indices(range(4, STEPS))


def test_a_thread_that_ends_before_it_works(monkeypatch, needs_threads):
    """An asynchronous exception may hit it in the interpreter's own code."""
    monkeypatch.setattr(prefetch.Worker, "run", lambda thread: None)
    with make_loader(workers=2) as loader:
        assert indices_of(loader) == expected_indices(range(STEPS))


def test_a_worker_hit_by_an_asynchronous_exception(needs_threads):
    """It arrives as the error of the step that the worker was building."""

    class StruckError(Exception):
        pass

    inside = threading.Event()
    caught = []

    class Slow(Recording):
        struck = False

        def __getitem__(self, index):
            if not self.struck and index in expected_indices([2])[0]:
                self.struck = True
                caught.append(threading.get_ident())
                inside.set()
                while True:
                    pass
            return super().__getitem__(index)

    with make_loader(Slow(), workers=1, prefetch=4) as loader:
        stream = loader.steps(0)
        assert indices_of([next(stream), next(stream)]) == expected_indices([0, 1])
        assert inside.wait(60)
        assert caught != [threading.get_ident()]
        strike = ctypes.pythonapi.PyThreadState_SetAsyncExc
        assert strike(ctypes.c_ulong(caught[0]), ctypes.py_object(StruckError)) == 1
        with pytest.raises(StruckError):
            next(stream)
        with refused(RuntimeError, "StruckError", "loader.steps(2)", "loader.steps(3)"):
            next(stream)
        assert indices_of(loader.steps(2, 5)) == expected_indices([2, 3, 4])


# Several threads


@every_kind
@pytest.mark.parametrize("workers", [0, 1, 3])
def test_one_iterator_for_four_threads(kind, workers, needs_threads):
    """Each batch goes to one of them, and each of them is told that the pass is over."""
    with make_loader(KINDS[kind], workers=workers, prefetch=4) as loader:
        stream = loader.steps(0, 400)
        taken, barrier = [[] for _ in range(4)], threading.Barrier(4)

        def consume(mine):
            barrier.wait(60)
            for batch in stream:
                mine.append((batch.global_step, integers(batch.indices)))

        threads = [threading.Thread(target=consume, args=(mine,)) for mine in taken]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
        for mine in taken:
            assert mine == sorted(mine)
        everything = sorted(itertools.chain(*taken))
        assert [g for g, _ in everything] == list(range(400))
        assert [indices for _, indices in everything] == expected_indices(range(400))


@every_kind
def test_who_comes_late_takes_nothing_of_the_next_pass(kind, needs_threads):
    """Two threads share passes: the one that finds the end starts the next one at once."""
    with make_loader(KINDS[kind], workers=1, prefetch=2) as loader:
        for turn in range(60):
            stream = loader.steps(turn, turn + 3)
            barrier, taken = threading.Barrier(2), []

            def consume():
                barrier.wait(60)  # noqa: B023
                taken.extend(batch.global_step for batch in stream)  # noqa: B023
                following = loader.steps(turn, turn + 2)  # noqa: B023
                assert [b.global_step for b in following] == [turn, turn + 1]  # noqa: B023
                taken.append(-1)  # noqa: B023

            threads = [threading.Thread(target=consume) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
                assert not thread.is_alive()
            assert sorted(taken) == [-1, -1, turn, turn + 1, turn + 2]


def test_who_goes_on_after_a_failed_step_builds_for_himself(needs_threads):
    """The pass has ended then; but where a second Ctrl-C came before that, nobody may wait."""

    def build(step):
        return (step, None) if step != 2 else (None, ValueError("of step 2"))

    ring = Ring(build, None, 4, 1)
    ring.add_worker()
    thread = threading.Thread(target=ring.work)
    thread.start()
    ring.started(thread)
    number = ring.attach(0, 6, 0)
    taken = [take(ring, number) for _ in range(6)]
    ring.close()
    thread.join()
    assert [step for step, _, _ in taken] == list(range(6))
    assert [batch for _, batch, _ in taken] == [0, 1, None, 3, 4, 5]
    assert isinstance(taken[2][2], ValueError)
    assert ring.workers_alive == 0


def test_a_thread_that_starts_is_not_counted_out(needs_threads):
    """While it starts it is not alive yet; a consumer that waits counts the threads again."""
    ring = Ring(lambda step: (step, None), None, 4, 1)
    ring.add_worker()
    ring.recount_workers()
    assert ring.workers_alive == 1
    thread = threading.Thread(target=ring.work)
    thread.start()
    ring.started(thread)
    ring.close()
    thread.join()
    assert ring.workers_alive == 0


@every_kind
def test_two_passes_at_once(kind, needs_threads):
    with make_loader(KINDS[kind], workers=2, prefetch=3) as loader:
        pairs = zip(loader.steps(0, 30), loader.steps(10, 40), strict=True)
        for g, (left, right) in enumerate(pairs):
            assert (left.global_step, right.global_step) == (g, g + 10)
        assert loader.stats.batches == 60


@every_kind
def test_close_while_others_start_passes(kind, needs_threads):
    """Whatever was closed ends; nothing is raised, nothing hangs, and the loader goes on."""
    loader = make_loader(KINDS[kind], workers=2, prefetch=3)
    over, wrong = threading.Event(), []

    def start_passes():
        try:
            while not over.is_set():
                for batch in itertools.islice(loader.steps(3), 2):
                    assert batch.global_step in (3, 4)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=start_passes) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        loader.close()
    over.set()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert wrong == []
    assert indices_of(loader.steps(0, 2)) == expected_indices(range(2))
    loader.close()


def test_two_workers_that_close_their_own_loader(needs_threads):
    """A worker waits for no other one."""
    barrier = threading.Barrier(2)
    earlier = set(threading.enumerate())  # loaders of other tests may still be somebody's

    class Closing(Recording):
        def __getitem__(self, index):
            if threading.current_thread() is not threading.main_thread():
                if not barrier.broken and barrier.n_waiting < 2:
                    with contextlib.suppress(threading.BrokenBarrierError):
                        barrier.wait(2)
                loader.close()
            return super().__getitem__(index)

    loader = make_loader(Closing(), workers=2, prefetch=4)
    list(loader.steps(0, 8))
    started = set(threading.enumerate()) - earlier
    for thread in started:
        thread.join(60)
        assert not thread.is_alive()


def test_leaving_with_by_an_exception_does_not_wait(needs_threads):
    """A dataset that never returns must not keep the error."""
    inside, released = threading.Event(), threading.Event()

    class Stuck(Recording):
        def __getitem__(self, index):
            if threading.current_thread() is not threading.main_thread() and len(self.read) >= 4:
                inside.set()
                released.wait(100)
            return super().__getitem__(index)

    loader = make_loader(Stuck(), workers=1, prefetch=2)

    def leave():
        with loader:
            stream = loader.steps(0)
            next(stream)
            assert inside.wait(60)
            raise KeyError("on purpose")

    with pytest.raises(KeyError, match="on purpose"):
        leave()
    assert not released.is_set()
    released.set()


# Nothing that a user's code raises looks like the end of the run

ENDS = [StopIteration, StopAsyncIteration]


def raising(error):
    def call(*arguments):
        raise error("on purpose")

    return call


class RaisingDataset(Recording):
    def __init__(self, error):
        super().__init__()
        self.error = error

    def __getitem__(self, index):
        raise self.error("on purpose")


def raising_sampler(error):
    class Raising(ShuffledSampler):
        batch_indices = raising(error)

    return Raising(COUNT, BATCH, drop_last=False)


PARTS = {
    "dataset": lambda error: {"dataset": RaisingDataset(error)},
    "transform": lambda error: {"transform": raising(error)},
    "collate": lambda error: {"collate": raising(error)},
    "augment": lambda error: {"collate": ImageBatchCollator(augment=raising(error))},
    "sampler": lambda error: {"sampler": raising_sampler(error)},
    "device": lambda error: {"device": raising(error)},
}


@workers_0_and_2
@pytest.mark.parametrize("error", ENDS)
@pytest.mark.parametrize("part", PARTS)
def test_an_end_of_iteration_is_an_error_of_its_step(part, error, workers):
    with make_loader(workers=workers, **PARTS[part](error)) as loader:
        with refused(RuntimeError, error.__name__, "global step 3") as caught:
            list(loader.steps(3, 9))
        assert type(caught.value.__cause__) is error
        with refused(RuntimeError, error.__name__, "global step 3"):
            list(map(loader.__getitem__, [3]))

        async def consume():
            return [batch async for batch in loader.steps(3, 9)]

        with refused(RuntimeError, error.__name__, "global step 3"):
            while True:
                pending = consume()
                while True:
                    pending.send(None)


# Errors arrive as they are


class FrozenError(Exception):
    """It takes no attributes, as a frozen dataclass."""

    def __setattr__(self, name, value):
        if name != "__traceback__":
            raise AttributeError(f"{name} is frozen")
        super().__setattr__(name, value)


class OwnNotesError(Exception):
    def add_note(self, first, second):
        raise TypeError("another meaning")


class NoNotesError(Exception):
    __notes__ = property(lambda self: 1 / 0)


@workers_0_and_2
@pytest.mark.parametrize("kind", [FrozenError, OwnNotesError, NoNotesError])
def test_an_exception_that_refuses_notes(kind, workers):
    error = kind("text")

    class Broken(Recording):
        def __getitem__(self, index):
            raise error

    with make_loader(Broken(), workers=workers) as loader:
        with pytest.raises(kind) as caught:
            next(iter(loader))
        assert caught.value is error


class Attributes(dict):
    """A batch that raises KeyError where others raise AttributeError."""

    __getattr__ = dict.__getitem__


@workers_0_and_2
def test_a_batch_class_with_attributes_of_its_own(workers):
    def collate(samples, key):
        return Attributes(x=np.asarray(key.indices))

    with make_loader(workers=workers, collate=collate) as loader:
        assert [integers(batch.x) for batch in loader] == expected_indices(range(STEPS))
        assert loader.stats.padded_columns == 0


# A rank without rows


class Stacking:
    """A dataset of the array face that can't give a batch of nothing."""

    rows = np.arange(110).reshape(22, 5)

    def __len__(self):
        return 22

    def __getitem__(self, indices):
        return {"x": np.stack([self.rows[index] for index in indices])}


def mean_of_rows(rng, batch):
    assert len(batch)
    return batch - batch.mean(axis=0, keepdims=True).astype(batch.dtype)


RAGGED = {
    "list": lambda: {"dataset": LISTED, "collate": ImageBatchCollator()},
    "samples": lambda: {"dataset": SAMPLES, "collate": ImageBatchCollator()},
    "table": lambda: {
        "dataset": onemodel.datasets.ImageTable.from_samples(LISTED),
        "collate": ImageBatchCollator(),
    },
    "array": lambda: {"dataset": ArrayDataset(Stacking.rows)},
    "tuple": lambda: {"dataset": ArrayDataset(Stacking.rows, np.arange(22))},
    "dict": lambda: {"dataset": ArrayDataset({"x": Stacking.rows})},
    "stacking": lambda: {"dataset": Stacking()},
    "transform": lambda: {"dataset": ArrayDataset(Stacking.rows), "transform": mean_of_rows},
}


def shapes(batch):
    """The dtype and the shape of a row of each array, without the padded width of images."""
    if isinstance(batch, np.ndarray):
        return batch.dtype, batch.shape[1:]
    if isinstance(batch, dict):
        return {name: shapes(array) for name, array in batch.items()}
    if isinstance(batch, tuple):
        return tuple(map(shapes, batch))
    return batch.images.dtype, batch.images.shape[1:3], batch.labels.dtype


def rows_of(batch):
    if isinstance(batch, dict):
        batch = next(iter(batch.values()))
    elif isinstance(batch, tuple):
        batch = batch[0]
    return len(getattr(batch, "images", batch))


@workers_0_and_2
@pytest.mark.parametrize("kind", RAGGED)
def test_a_rank_without_rows_gets_zero_rows_of_the_usual_shape(kind, workers):
    """22 rows in batches of 8 for 8 ranks: the last batch has 6, and two ranks have none of it."""
    counts = []
    for rank in range(8):
        with DataLoader(batch_size=8, shard=(rank, 8), workers=workers, **RAGGED[kind]()) as loader:
            batches = list(loader)
            assert len(batches) == 3
            assert shapes(batches[2]) == shapes(batches[0])
            counts.append(rows_of(batches[2]))
            if hasattr(batches[2], "images") and counts[-1] == 0:
                assert batches[2].images.shape[3] > 0
                assert len(batches[2].targets) == len(batches[2].indices) == 0
    assert sorted(counts) == [0, 0, 1, 1, 1, 1, 1, 1]


# Without a loop


def test_async_for_under_asyncio_does_not_block_the_loop(needs_threads):
    """While a worker builds, other tasks run: one of them lets the worker go on."""
    import asyncio

    released = threading.Event()

    class Gated(Recording):
        def __getitem__(self, index):
            if threading.current_thread() is not threading.main_thread() and len(self.read) >= 8:
                assert released.wait(60)
            return super().__getitem__(index)

    async def release(ring):
        while not ring.waiting:  # the consumer's place in the queue
            await asyncio.sleep(0)
        released.set()

    async def consume():
        with make_loader(Gated(), workers=1, prefetch=2) as loader:
            stream = loader.steps(0, 8)
            taken = [await anext(stream)]
            task = asyncio.create_task(release(ring_of(loader)))
            taken += [batch async for batch in stream]
            await task
        return taken

    assert indices_of(asyncio.run(consume())) == expected_indices(range(8))


def test_a_pass_that_ends_takes_its_threads_from_nobody(needs_threads):
    """A ring that is not kept is closed by the pass that had it, before another one may use it."""
    with DataLoader(ArrayDataset(np.arange(8)), batch_size=4, workers=1) as loader:
        first, second = loader.steps(0, 2), loader.steps(0, 2)
        next(first), next(second)
        other = loader._prefetchers.all[1]
        begun = []
        close = other.close

        def begin_meanwhile():
            first.close()  # what another thread does here
            other_pass = loader.steps(0, 4)
            begun.append((other_pass, next(other_pass)))
            held = loader.steps(0, 4)
            begun.append((held, next(held)))
            close()

        other.close = begin_meanwhile
        second.close()
        for stream, batch in begun:
            assert [batch.tolist(), *(each.tolist() for each in stream)] == [
                [0, 1, 2, 3], [4, 5, 6, 7]
            ] * 2  # fmt: skip


class Gated:
    """A target that refuses to be read by the thread "gated", once that may go on."""

    def __init__(self):
        self.entered, self.leave = threading.Event(), threading.Event()

    def __iter__(self):
        return iter([1])

    def __array__(self, dtype=None, copy=None):
        if threading.current_thread().name == "gated":
            self.entered.set()
            self.leave.wait(60)
            raise ValueError("not here")
        return np.array([1], np.int32)


def test_an_error_of_a_pass_that_is_over_stops_no_other(needs_threads):
    """One of two threads still builds the last step when the other one begins the next pass."""
    target = Gated()
    listed = [*LISTED[:3], onemodel.Sample(LISTED[0].image, target)]
    with DataLoader(
        listed, batch_size=2, collate=ImageBatchCollator(), workers=1, prefetch=1
    ) as loader:
        stream = loader.steps(1, 2)
        errors = []

        def build():
            try:
                next(stream)
            except TypeError as error:
                errors.append(error)

        thread = threading.Thread(target=build, name="gated")
        thread.start()
        until(lambda: target.entered.is_set() or not thread.is_alive())
        assert next(stream, None) is None
        following = loader.steps(0, 400)
        next(following)
        target.leave.set()
        thread.join()
        assert len(list(following)) == 399
    # it has none where a worker was faster, here or with the same sample in the next pass
    assert target.entered.is_set() or not errors


class Counted(tuple):
    """A batch of the user's, with a method that has the name of one of the library's."""

    def count_columns(self, of):
        raise AssertionError("the loader asks its own batches only")


class CountedCollator:
    def __call__(self, samples, *rest, **keywords):
        return Counted(samples)


@workers_0_and_2
def test_a_method_of_the_user_s_batch_is_not_called(workers):
    with DataLoader(
        LISTED[:12], batch_size=4, collate=CountedCollator(), workers=workers
    ) as loader:
        assert [type(batch) for batch in loader.steps(0, 3)] == [Counted] * 3

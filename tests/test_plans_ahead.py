"""Promise: while an epoch runs with workers, a thread of its own makes the next epoch's plan.

Each plan is made once, and no more than two are held. Without workers, and where no next epoch
will come, nothing is made ahead. What building a plan raises arrives at the step that needs it.
"""

import functools
import gc
import signal
import threading
import weakref

import numpy as np
import pytest
from support import integers, refused

import onemodel
from onemodel import ArrayDataset, BucketedSampler, DataLoader, Sample, WeightedSampler
from onemodel._builders.native import MANY_ITEMS, native_lane

MANY = MANY_ITEMS
BATCH = MANY // 8
DATA = ArrayDataset(np.arange(MANY))
LENGTHS = np.arange(MANY) * 37 % 1009


class Noting:
    """Notes which plans are made, on which thread; mixed into a sampler."""

    def _build(self, seed, epoch):
        self.__dict__.setdefault("made", []).append((epoch, threading.current_thread().name))
        return super()._build(seed, epoch)


class Bucketed(Noting, BucketedSampler):
    pass


class Weighted(Noting, WeightedSampler):
    pass


class Unplanned(Noting, BucketedSampler):
    def batch_indices(self, seed, epoch, step):
        return super().batch_indices(seed, epoch, step)


def bucketed(kind=Bucketed):
    return kind(LENGTHS, BATCH)


def weighted():
    return Weighted(1 + LENGTHS, BATCH, replacement=False)


every_sampler = pytest.mark.parametrize("make", [bucketed, weighted])


def wait_for_plan(loader):
    """Wait until the thread that plans has ended, as it does by itself."""
    (prefetcher,) = loader._prefetchers.all
    if prefetcher.planning is not None:
        prefetcher.planning.join(60)
        assert not prefetcher.planning.is_alive()


def made_by(sampler):
    return [(epoch, name.partition("-")[2]) for epoch, name in getattr(sampler, "made", [])]


@every_sampler
@pytest.mark.parametrize("workers", [1, 2])
def test_the_next_epochs_plan_is_made_while_this_one_runs(make, workers):
    sampler = make()
    with DataLoader(DATA, sampler=sampler, workers=workers, prefetch=1) as loader:
        for epoch in range(3):
            batches = iter(loader)
            next(batches)
            wait_for_plan(loader)
            assert [each for each, _ in sampler.made] == list(range(epoch + 2))
            assert sampler.made[-1] == (epoch + 1, "onemodel-plan")
            assert len(list(batches)) == 7
    assert len(sampler.made) == 4
    assert all(name.startswith("onemodel-") for _, name in sampler.made)


@every_sampler
def test_an_endless_run_plans_at_each_epochs_first_step(make, needs_threads):
    sampler = make()
    with DataLoader(DATA, sampler=sampler, workers=1, prefetch=1) as loader:
        steps = loader.steps(13)  # in the middle of epoch 1
        next(steps)
        wait_for_plan(loader)
        assert [epoch for epoch, _ in sampler.made] == [1, 2]
        for _ in range(2):
            next(steps)
        wait_for_plan(loader)
        assert [epoch for epoch, _ in sampler.made] == [1, 2]
        next(steps)
        wait_for_plan(loader)
        assert [epoch for epoch, _ in sampler.made] == [1, 2, 3]


@every_sampler
def test_where_no_next_epoch_comes_none_is_planned(make, needs_threads):
    sampler = make()
    with DataLoader(DATA, sampler=sampler, workers=1) as loader:
        assert len(list(loader.steps(0, 8))) == 8
        assert loader._prefetchers.all[0].planning is None
        assert [epoch for epoch, _ in sampler.made] == [0]
        assert len(list(loader.steps(8, 17))) == 9
        wait_for_plan(loader)
        assert [epoch for epoch, _ in sampler.made] == [0, 1, 2]


@every_sampler
def test_without_workers_nothing_is_planned_ahead(make):
    sampler = make()
    with DataLoader(DATA, sampler=sampler) as loader:
        assert len(list(loader)) == 8
    assert [epoch for epoch, _ in sampler.made] == [0]
    assert sampler.made[0][1] == threading.current_thread().name


def test_a_sampler_that_may_need_no_plan_is_not_asked(needs_threads):
    for sampler in (bucketed(Unplanned), Weighted(1 + LENGTHS, BATCH), Bucketed([1] * 64, 8)):
        with DataLoader(DATA, sampler=sampler, workers=1) as loader:
            next(iter(loader))
            assert loader._prefetchers.all[0].planning is None


@pytest.mark.parametrize("kind", [BucketedSampler, WeightedSampler])
@pytest.mark.parametrize("workers", [0, 1, 2])
def test_the_native_lane_holds_two_plans(kind, workers, monkeypatch):
    """Counted as arrays that live: the sampler's and the lane's are the same two."""
    build, made = kind._build, []

    def noted(sampler, seed, epoch):
        gc.collect()
        alive = sum(1 for plan in made if plan() is not None)
        assert alive <= 1, "a third plan would be in memory"
        plan = build(sampler, seed, epoch)
        made.append(weakref.ref(plan))
        names.append((epoch, threading.current_thread().name))
        return plan

    names = []
    monkeypatch.setattr(kind, "_build", noted)
    options = {} if kind is BucketedSampler else {"replacement": False}
    sampler = kind(1 + LENGTHS, BATCH, **options)
    reference = kind(1 + LENGTHS, BATCH, **options)
    with DataLoader(DATA, sampler=sampler, seed=4, workers=workers, prefetch=1) as loader:
        assert native_lane(loader._builder) is not None
        given_out = []
        for _ in range(4):
            for batch in loader:
                given_out.append(integers(batch))
                wait_for_plan(loader)
        epochs = [epoch for epoch, _ in names]
        assert epochs == sorted(set(epochs))
        assert epochs == list(range(5 if workers else 4))
        if workers:
            assert all(name == "onemodel-plan" for _, name in names[1:])
    monkeypatch.setattr(kind, "_build", build)
    assert given_out == [
        integers(reference.batch_indices(4, epoch, step)) for epoch in range(4) for step in range(8)
    ]


# What is raised where no error can be


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_while_an_epoch_is_planned_arrives(workers, monkeypatch):
    """Raised once, as a timeout is; the plan itself could be made again."""
    build, raised = BucketedSampler._build, []

    def late(sampler, seed, epoch):
        if epoch == 1 and not raised:
            raised.append(threading.current_thread().name)
            raise TimeoutError("too late, 17")
        return build(sampler, seed, epoch)

    monkeypatch.setattr(BucketedSampler, "_build", late)
    sampler = BucketedSampler(range(40), 4)  # too small to be planned ahead
    with DataLoader(ArrayDataset(np.arange(40)), sampler=sampler, workers=workers) as loader:
        steps, taken = loader.steps(0), []
        with pytest.raises(TimeoutError, match="17") as caught:
            taken.extend(map(integers, steps))
        failed = len(taken)  # beside a worker the consumer may be the first who asks for the plan
        assert failed == 10 if workers == 0 else 10 <= failed < 20
        assert any(f"global step {failed}" in note for note in caught.value.__notes__)
        assert raised
        steps = loader.steps(failed)
        taken += [integers(next(steps)) for _ in range(20 - failed)]
    expected = BucketedSampler(range(40), 4)
    assert taken == [integers(expected.batch_indices(0, *divmod(g, 10))) for g in range(20)]


def test_an_error_while_the_next_epoch_is_planned_ahead_is_tried_again(needs_threads, monkeypatch):
    build, raised = BucketedSampler._build, []

    def failing(sampler, seed, epoch):
        if threading.current_thread().name == "onemodel-plan" and not raised:
            raised.append(epoch)
            raise MemoryError("on purpose")
        return build(sampler, seed, epoch)

    monkeypatch.setattr(BucketedSampler, "_build", failing)
    with DataLoader(DATA, sampler=BucketedSampler(LENGTHS, BATCH), workers=1, prefetch=1) as loader:
        steps = loader.steps(0)
        next(steps)
        wait_for_plan(loader)
        assert raised == [1]
        assert len([next(steps) for _ in range(15)]) == 15


class Once:
    """A target that raises a timeout the first time it is read."""

    def __init__(self):
        self.raised = False

    def __iter__(self):
        return iter([1])

    def __len__(self):
        return 1

    def __array__(self, dtype=None, copy=None):
        if not self.raised:
            self.raised = True
            raise TimeoutError("too late, 17")
        return np.array([1], np.int32)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_error_while_a_sample_is_looked_at_arrives(workers):
    samples = [Sample(np.zeros((1, 2, 3), np.float32), [1]) for _ in range(8)]
    samples[5] = Sample(samples[0].image, Once())
    with DataLoader(samples, 4, collate=onemodel.ImageBatchCollator(), workers=workers) as loader:
        assert native_lane(loader._builder) is not None
        steps = loader.steps(0, 2)
        assert len(next(steps).images) == 4
        with refused(TimeoutError, 17, "global step 1"):
            next(steps)
        assert len(next(loader.steps(1)).images) == 4


@pytest.mark.parametrize("error", [TimeoutError, KeyboardInterrupt])
def test_a_signals_handler_may_raise(error, needs_threads, monkeypatch):
    """The handler runs in the consumer's thread, wherever that runs Python."""
    build = BucketedSampler._build

    def signalled(sampler, seed, epoch):
        if epoch == 1 and signals:
            signal.raise_signal(signals.pop())
        return build(sampler, seed, epoch)

    def handler(number, frame):
        raise error("too late, 17")

    monkeypatch.setattr(BucketedSampler, "_build", signalled)
    signals = [signal.SIGTERM]
    before = signal.signal(signal.SIGTERM, handler)
    try:
        loader = DataLoader(ArrayDataset(np.arange(40)), sampler=BucketedSampler(range(40), 4))
        steps = loader.steps(9)
        next(steps)
        with refused(error, 17):
            next(steps)
        assert len(next(loader.steps(10))) == 4
    finally:
        signal.signal(signal.SIGTERM, before)


HANDLERS = {
    "a function": lambda raising: lambda number, frame: raising(),
    "a partial": lambda raising: functools.partial(lambda again, *_: again(), raising),
    "a method": lambda raising: type("H", (), {"on": lambda self, number, frame: raising()})().on,
    "an object": lambda raising: type("H", (), {"__call__": lambda self, *_: raising()})(),
}


@pytest.mark.parametrize("kind", HANDLERS)
@pytest.mark.parametrize("error", [TimeoutError, KeyboardInterrupt])
def test_a_signals_handler_raises_at_once_where_the_consumer_helps(error, kind, needs_threads):
    """The step that it builds ahead is not the one that it waits for, and did not fail."""
    entered, go_on, times = threading.Event(), threading.Event(), []

    class Target:
        def __len__(self):
            return 1

        def __array__(self, dtype=None, copy=None):
            if threading.current_thread() is not threading.main_thread():
                entered.set()
                go_on.wait(10)
            elif not times:
                times.append(len(taken))
                signal.raise_signal(signal.SIGTERM)
            return np.array([1], np.int32)

    def raising():
        raise error("too late, 17")

    image = np.zeros((1, 2, 3), np.float32)
    samples = [Sample(image, [1] if k < 2 else Target(), k) for k in range(40)]
    taken = []
    before = signal.signal(signal.SIGTERM, HANDLERS[kind](raising))
    try:
        loader = DataLoader(samples, 2, collate=onemodel.ImageBatchCollator(), workers=1)
        assert native_lane(loader._builder) is not None
        steps = loader.steps(0)
        with refused(error, 17):
            taken.append(next(steps))
            assert entered.wait(60)  # the worker is inside of step 1
            taken.append(next(steps))
        assert times == [len(taken)]  # in the very call in which it was raised
        go_on.set()
        labels = [batch.labels.tolist() for batch in loader.steps(0, 20)]
        assert labels == [[2 * k, 2 * k + 1] for k in range(20)]
        loader.close()
    finally:
        go_on.set()
        signal.signal(signal.SIGTERM, before)

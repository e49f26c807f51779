"""Promise: workers that shorten nothing are parked, workers that do are given, and the number of
them changes no batch.

The choice is tried against made-up loads with a clock of its own: nothing here depends on time.
"""

import numpy as np
import pytest
from reference.lines import GoldenLines, gain_and_offset
from support import PackageSamples, make_loader

import onemodel
from onemodel import ArrayDataset, DataLoader, ImageBatchCollator, digest
from onemodel._engine import concurrency
from onemodel._engine.concurrency import WorkerLimit


class Load:
    """A loader and its consumer as far as a WorkerLimit sees them.

    Args:
        period: from a number of workers to the seconds from one batch to the next.
        consumer: the seconds of them in which the consumer works; it waits for the rest.
        computing: the part of a build with Python that computes.
    """

    def __init__(self, monkeypatch, period, consumer=0.0, computing=1.0):
        self.now = 100.0
        monkeypatch.setattr(concurrency, "perf_counter", lambda: self.now)
        self.period, self.consumer, self.computing = period, consumer, computing
        self.counted = dict.fromkeys(
            (
                "wait_seconds",
                "consumer_seconds",
                "python_builds",
                "python_seconds",
                "python_cpu_seconds",
            ),
            0.0,
        )

    def run(self, limit, batches):
        """Take batches; return the number of workers that each was built with."""
        levels = []
        for _ in range(batches):
            level = limit.level
            levels.append(level)
            seconds = max(self.period(level), self.consumer)
            self.now += seconds
            self.counted["consumer_seconds"] += self.consumer
            self.counted["wait_seconds"] += seconds - self.consumer
            # while the consumer works the workers are idle: a build takes its share of the period
            building = self.period(level) * level
            self.counted["python_builds"] += level > 0
            self.counted["python_seconds"] += building
            self.counted["python_cpu_seconds"] += building * self.computing
            if limit.due():
                assert limit.choose(dict(self.counted)) == limit.level
        return levels


def test_workers_that_only_take_turns_are_parked(monkeypatch):
    """Python that computes: a second worker makes each batch a tenth slower."""
    load = Load(monkeypatch, lambda level: 0.010 * (1 + 0.1 * max(0, level - 1)), computing=0.9)
    limit = WorkerLimit(1, 4, 1)
    levels = load.run(limit, 4000)
    assert np.mean(np.array(levels[2000:]) == 1) > 0.9


def test_a_late_start_with_too_many_goes_down(monkeypatch):
    """The consumer never waits, with one worker as with four: three of them bring nothing."""
    load = Load(monkeypatch, lambda level: 0.004, consumer=0.010)
    limit = WorkerLimit(1, 4, 4)
    levels = load.run(limit, 4000)
    assert np.mean(np.array(levels[2000:]) == 1) > 0.9


def test_builds_that_wait_get_all_workers_at_once(monkeypatch):
    """A dataset that sleeps: the time from batch to batch is the sleep shared by the workers."""
    load = Load(monkeypatch, lambda level: 0.100 / max(1, level), computing=0.01)
    limit = WorkerLimit(1, 16, 1)
    levels = load.run(limit, 40)
    assert set(levels[: levels.index(16)]) == {1}
    levels = load.run(limit, 8000)
    assert np.mean(np.array(levels[4000:]) == 16) > 0.9


def test_builds_that_wait_for_nothing_keep_their_workers(monkeypatch):
    """A consumer that waits while all workers compute: no trial with fewer slows the run."""
    load = Load(monkeypatch, lambda level: 0.010 / max(1, level), computing=0.95)
    limit = WorkerLimit(1, 2, 1)
    levels = load.run(limit, 1000)
    assert set(levels[levels.index(2) :]) == {2}
    load.computing = 0.5  # now they take turns, and one builds as fast as two
    load.period = lambda level: 0.010
    levels = load.run(limit, 4000)
    assert np.mean(np.array(levels[2000:]) == 1) > 0.9


def test_an_idle_consumer_builds_what_workers_would_only_hand_over(monkeypatch):
    """Python that takes turns: each batch of a worker costs a hand-over more."""
    load = Load(monkeypatch, lambda level: 0.002 if level == 0 else 0.0023, computing=0.95)
    for highest in (1, 2, 4):
        levels = load.run(WorkerLimit(0, highest, 1), 4000)
        assert np.mean(np.array(levels[1000:]) == 0) > 0.9


def test_a_consumer_with_work_of_its_own_keeps_a_worker(monkeypatch):
    """Builds a little longer than a step: without a worker both would add up."""
    load = Load(monkeypatch, lambda level: 0.010, consumer=0.006, computing=0.95)
    for highest in (1, 2):
        assert 0 not in load.run(WorkerLimit(0, highest, 1), 2000)


def test_workers_that_release_the_gil_are_found_from_none(monkeypatch):
    """One worker brings a tenth, two bring half of the time."""
    load = Load(monkeypatch, lambda level: (0.010, 0.0095, 0.0055)[level], computing=0.95)
    limit = WorkerLimit(0, 2, 1)
    limit.level = 0
    levels = load.run(limit, 2000)
    assert np.mean(np.array(levels[1000:]) == 2) > 0.9


def test_an_event_loop_keeps_a_worker(monkeypatch):
    load = Load(monkeypatch, lambda level: 0.002 if level == 0 else 0.0023, computing=0.95)
    limit = WorkerLimit(0, 2, 1)
    load.run(limit, 1000)
    assert limit.keep_one()
    assert not limit.keep_one()
    assert 0 not in load.run(limit, 2000)


def test_cores_are_found_one_after_another(monkeypatch):
    """Work that scales over four cores and no further."""
    load = Load(monkeypatch, lambda level: 0.010 / min(max(1, level), 4))
    limit = WorkerLimit(0, 32, 1)
    levels = load.run(limit, 8000)
    assert np.mean(np.array(levels[4000:]) == 4) > 0.8


def test_no_worker_at_all_where_the_consumer_builds_as_fast(monkeypatch):
    load = Load(monkeypatch, lambda level: 0.001 if level == 0 else 0.0013)
    limit = WorkerLimit(0, 32, 1)
    levels = load.run(limit, 8000)
    assert np.mean(np.array(levels[4000:]) == 0) > 0.8


def test_a_load_that_changes_is_followed(monkeypatch):
    load = Load(monkeypatch, lambda level: 0.004, consumer=0.010)
    limit = WorkerLimit(1, 4, 4)
    load.run(limit, 3000)
    load.period, load.consumer = (lambda level: 0.040 / level), 0.001
    levels = load.run(limit, 12000)
    assert np.mean(np.array(levels[8000:]) == 4) > 0.8


def test_it_stays_between_its_bounds(monkeypatch):
    rng = np.random.default_rng(3)
    for lowest, highest in ((0, 1), (1, 1), (0, 5), (1, 7), (2, 100)):
        load = Load(monkeypatch, lambda level: rng.random() / 50, computing=rng.random())
        levels = load.run(WorkerLimit(lowest, highest, max(1, lowest)), 3000)
        assert min(levels) >= lowest
        assert max(levels) <= highest


def test_time_between_two_passes_is_nobody_s(monkeypatch):
    load = Load(monkeypatch, lambda level: 0.010)
    limit = WorkerLimit(0, 4, 1)
    load.run(limit, 100)
    load.now += 3600.0
    limit.restart(dict(load.counted))
    assert not limit.due()


# In a loader

DATASET = PackageSamples(GoldenLines(40, 2))


@pytest.mark.parametrize("workers", [1, 2, 3, 4, "auto"])
@pytest.mark.parametrize("prefetch", [None, 1, 3])
def test_python_callables_give_the_same_bytes_with_any_number(workers, prefetch, needs_threads):
    def transform(rng, sample):
        return onemodel.Sample(sample.image, sample.target, rng.next_int(1000))

    options = {
        "transform": transform,
        "collate": ImageBatchCollator(width_multiple=4, augment=gain_and_offset),
    }
    with make_loader(DATASET, **options) as loader:
        expected = [loader.digest(g) for g in range(25)]
    with make_loader(DATASET, workers=workers, prefetch=prefetch, **options) as loader:
        assert [digest(batch) for batch in loader.steps(0, 25)] == expected
        assert [digest(batch) for _ in range(2) for batch in loader][:15] == expected[:15]


@pytest.mark.parametrize("native", [True, False])
def test_auto_gives_the_same_batches_and_says_what_it_chose(native, needs_threads):
    arrays = np.arange(240).reshape(60, 4)
    dataset = ArrayDataset(arrays) if native else arrays
    with DataLoader(dataset, 4, shuffle=True, seed=1) as loader:
        expected = [loader.digest(g) for g in range(600)]
    with DataLoader(dataset, 4, shuffle=True, seed=1, workers="auto") as loader:
        assert loader.workers == "auto"
        assert "workers=auto" in repr(loader)
        stream = loader.steps(0, 600)
        taken = [digest(next(stream)) for _ in range(500)]
        assert 0 <= loader.stats.workers <= 32
        assert f"workers=auto ({loader.stats.workers} now)" in repr(loader)
        taken += [digest(batch) for batch in stream]
        assert taken == expected


def test_where_no_thread_can_start_auto_builds_on_the_consumer_s(monkeypatch):
    from onemodel._common import threads

    monkeypatch.setattr(threads, "can_start_threads", lambda: False)
    loader = DataLoader(ArrayDataset(np.arange(8)), 4, workers="auto")
    assert loader.workers == 0
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("wrong", ["Auto", "", "2"])
def test_another_word_than_auto_is_refused(wrong):
    with pytest.raises(ValueError, match="workers must be"):
        DataLoader(ArrayDataset(np.arange(8)), 4, workers=wrong)


def test_the_depth_follows_the_workers(needs_threads):
    data = ArrayDataset(np.arange(8))
    assert DataLoader(data, 4).prefetch == 8
    assert DataLoader(data, 4, workers=3).prefetch == 8
    assert DataLoader(data, 4, workers=16).prefetch == 32
    few = DataLoader(data, 4, workers=16, prefetch=8)
    assert (few.workers, few.prefetch) == (8, 8)
    assert "workers=8" in repr(few)

"""Promise: `loader.stats` tells apart the processor time of the workers, of the loader on the
consumer's thread, and of the consumer itself; none counts what another thread did.

The work of these tests is a loop until the thread's own clock has moved on, so that what is
compared is processor time with processor time, whatever else the machine does.
"""

import sys
import threading
import time

import numpy as np
import pytest
from support import SAMPLES, make_loader

import onemodel as om
from onemodel._engine.stats import LoaderStats

pytestmark = pytest.mark.skipif(
    sys.platform in ("emscripten", "wasi") or not hasattr(time, "thread_time"),
    reason="this platform has no clock of a thread",
)

WORK = 0.004  # seconds of processor time


def work(seconds=WORK):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


class Working:
    """A dataset that computes for each item."""

    def __len__(self):
        return len(SAMPLES)

    def __getitem__(self, index):
        work()
        return SAMPLES[index]


def test_without_workers_building_is_on_the_consumers_thread():
    with make_loader(Working()) as loader:
        items = sum(len(batch) for batch in loader)
        stats = loader.stats
    assert stats.consumer_build_cpu_seconds >= items * WORK
    assert stats.worker_cpu_seconds == 0
    assert stats.build_cpu_seconds == stats.consumer_build_cpu_seconds


def test_workers_count_for_themselves(needs_threads):
    before = time.thread_time()
    with make_loader(Working(), workers=2) as loader:
        items = sum(len(batch) for batch in loader)
    own = time.thread_time() - before
    stats = loader.stats
    assert stats.worker_cpu_seconds >= items * WORK
    assert stats.consumer_build_cpu_seconds + stats.consumer_cpu_seconds <= own


@pytest.mark.parametrize("workers", [0, 2])
def test_the_consumers_own_time(workers):
    before = time.thread_time()
    with make_loader(workers=workers, transform=lambda rng, sample: sample) as loader:
        batches = 0
        for _ in loader:
            work()
            batches += 1
    own = time.thread_time() - before
    stats = loader.stats
    assert batches * WORK <= stats.consumer_cpu_seconds <= own
    assert stats.consumer_build_cpu_seconds + stats.consumer_cpu_seconds <= own


@pytest.mark.parametrize("workers", [0, 1])
def test_native_batches_are_measured_by_samples(workers):
    """Of 160 batches every 16th: the sum is scaled, and still the consumer's."""
    x = np.zeros((640, 3), np.float32)
    with om.DataLoader(om.ArrayDataset(x), 4, workers=workers) as loader:
        for number, _ in enumerate(loader):
            if number % 16 == 0:  # those that are measured
                work()
    stats = loader.stats
    assert stats.batches == 160
    assert stats.consumer_cpu_seconds >= 160 * WORK
    assert (stats.worker_cpu_seconds > 0) == (workers > 0)


def test_waiting_is_no_processor_time(needs_threads):
    """A worker inside of `Event.wait` computes nothing, whatever other threads do meanwhile."""
    begun, gate = threading.Event(), threading.Event()

    def wait(rng, sample):
        begun.set()
        gate.wait(60)
        return sample

    with make_loader(transform=wait, workers=1) as loader:
        stream = iter(loader)
        taker = []
        helper = threading.Thread(target=lambda: taker.append(next(stream)))
        helper.start()
        begun.wait(60)
        work(0.3)
        gate.set()
        helper.join()
        stream.close()
    assert len(taker) == 1
    assert loader.stats.worker_cpu_seconds < 0.3
    assert loader.stats.wait_seconds >= loader.stats.consumer_build_cpu_seconds


def test_an_iterator_that_changes_threads_counts_each_thread_alone(needs_threads):
    """The clocks of two threads have nothing to do with one another."""
    work(0.05)  # the main thread's clock is ahead of a new one's
    with make_loader(transform=lambda rng, sample: sample) as loader:
        stream = iter(loader)
        next(stream)
        helper = threading.Thread(target=next, args=(stream,))
        helper.start()
        helper.join()
        next(stream)
    assert 0 <= loader.stats.consumer_cpu_seconds < 0.05


def test_python_that_takes_turns_with_the_trainer_is_named():
    stats = LoaderStats(
        batches=9, wait_seconds=0.01, consumer_seconds=1.99, python_cpu_seconds=0.96
    )
    assert "only 0.5% of its time, but the workers ran Python for 48% of it" in stats.bottleneck
    stats = LoaderStats(
        batches=9, wait_seconds=0.01, consumer_seconds=1.99, worker_cpu_seconds=0.96
    )
    assert stats.bottleneck.endswith("only 0.5% of its time")


def test_builds_with_python_count_apart(needs_threads):
    with make_loader(Working(), workers=1) as loader:
        for _ in loader:
            pass
    assert 0 < loader.stats.python_cpu_seconds <= loader.stats.worker_cpu_seconds
    with om.DataLoader(om.ArrayDataset(np.zeros(64)), 4, workers=1) as loader:
        for _ in loader:
            pass
    assert loader.stats.python_cpu_seconds == 0


def test_stats_print_them():
    with make_loader() as loader:
        next(iter(loader)).release()
        text = str(loader.stats)
    assert "processor time: workers 0.000 s, loader on the consumer's thread" in text

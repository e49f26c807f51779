"""Promise: batches are built no further ahead than `prefetch`, and nothing is kept of them.

Without workers nothing is built ahead at all. The statistics count what was delivered.
"""

import gc
import threading
import weakref

import numpy as np
import pytest
from reference.lines import GoldenLines
from support import (
    BATCH,
    STEPS,
    PackageSamples,
    Recording,
    every_count,
    expected_indices,
    flat,
    integers,
    make_loader,
    workers_0_and_2,
)

import onemodel
from onemodel import Sample


@workers_0_and_2
def test_statistics_count(workers):
    with make_loader(workers=workers) as loader:
        assert loader.stats.batches == 0
        for taken, _ in enumerate(loader.steps(0, 9), start=1):
            assert loader.stats.batches >= taken
        assert loader.stats.batches == 9


def test_without_workers_nothing_is_built_ahead_or_elsewhere():
    dataset = Recording()
    main = threading.get_ident()
    threads = set()

    def collate(samples, key):
        threads.add(threading.get_ident())
        return key

    with make_loader(dataset, collate=collate, workers=0) as loader:
        stream = loader.steps(0)
        assert dataset.read == []
        for g in range(8):
            key = next(stream)
            assert dataset.read == flat(expected_indices(range(g + 1)))
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
    with make_loader(dataset, sampler=sampler, workers=3, prefetch=prefetch) as loader:
        stream = loader.steps(0, 20)
        for taken in range(1, 16):
            with reached:
                asked = taken
            next(stream)
            with reached:
                assert reached.wait_for(lambda: furthest >= taken + prefetch - 1, timeout=60)  # noqa: B023
    assert too_far == []


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
    with make_loader(dataset, sampler=sampler, workers=workers, prefetch=2) as loader:
        for batch in loader.steps(0, 10):
            gc.collect()
            assert [index for index in integers(batch.indices) if born[index]() is not None] == []

"""Eight threads on the same objects: python tools/stress_threads.py [BATCHES].

They share one iterator, or one loader, or loaders' samplers, samples, tables and pools; batches are
released on another thread than the one that took them. Every batch must have the digest that one
thread found before, and of one iterator each batch comes once. Meant for CPython without the GIL;
it says which interpreter ran and how many batches were compared.
"""

from __future__ import annotations

import itertools
import queue
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

import onemodel as om
from onemodel.augment import GainOffset, Noise
from onemodel.datasets import ImageTable
from onemodel.transforms import Normalize, RandomCrop

THREADS = 8
STEPS = 60
WORKERS = (0, 1, 3)
COUNT = 300

generator = np.random.default_rng(1)
WIDTHS = generator.integers(4, 60, COUNT)
IMAGES = [generator.random((1, 8, int(width)), np.float32) for width in WIDTHS]
POOL = om.BufferPool()
COLLATE = om.ImageBatchCollator(
    width_multiple=4, augment=om.Compose([GainOffset(), Noise()]), pool=POOL
)
BUCKETED = om.BucketedSampler(WIDTHS, 16)
WEIGHTED = om.WeightedSampler(1.0 + WIDTHS, 16, replacement=False)
BUDGET = om.BudgetSampler(WIDTHS, 600)
PICTURES = om.ArrayDataset(
    generator.integers(0, 256, (COUNT, 8, 8, 3), np.uint8), generator.integers(0, 9, COUNT)
)


def samples() -> list[om.Sample]:
    """Return samples that no batch has used yet."""
    return [om.Sample(image, [k % 9], k) for k, image in enumerate(IMAGES)]


TABLE = ImageTable.from_samples(samples())


class OneByOne:
    """A dataset of Python code."""

    def __init__(self) -> None:
        self._samples = samples()

    def __len__(self) -> int:
        return COUNT

    def __getitem__(self, index: int) -> om.Sample:
        return self._samples[index]


def images(dataset: Any, sampler: om.Sampler, workers: int) -> om.DataLoader:
    """Make a loader of images."""
    return om.DataLoader(dataset, sampler=sampler, collate=COLLATE, seed=1, workers=workers)


MAKERS: dict[str, Callable[[int], om.DataLoader]] = {
    "table": lambda workers: images(TABLE, BUCKETED, workers),
    "samples": lambda workers: images(samples(), WEIGHTED, workers),
    "python": lambda workers: images(OneByOne(), BUDGET, workers),
    "arrays": lambda workers: om.DataLoader(
        PICTURES, 32, shuffle=True, transform=om.Compose([RandomCrop(2), Normalize(0.5, 0.2)]),
        workers=workers, pool=POOL,
    ),
}  # fmt: skip


def any_step(loader: om.DataLoader, place: int) -> Iterator[Any]:
    """Each step by its number, every thread from another one on; the state and counters as well."""
    for number in range(STEPS):
        yield loader[(number + place * STEPS // THREADS) % STEPS]
        loader.state_dict()
        _ = loader.stats


#: What the threads share, each with the batches that one of them gets.
SHARED: dict[str, Callable[[om.DataLoader], list[Iterable[Any]]]] = {
    "one iterator": lambda loader: [loader.steps(0, STEPS)] * THREADS,
    "one loader": lambda loader: [loader.steps(0, STEPS) for _ in range(THREADS)],
    "any step": lambda loader: [any_step(loader, place) for place in range(THREADS)],
}


def on_threads(use: Callable[[int], None]) -> None:
    """Call a function on all threads at once; end the process with what any of them raised."""
    start = threading.Barrier(THREADS)
    wrong: list[str] = []

    def call(place: int) -> None:
        start.wait()
        try:
            use(place)
        except Exception as error:
            wrong.append(f"thread {place}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=call, args=(place,)) for place in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        sys.exit("\n".join(wrong))


def run_loaders(kind: str, shared: str, workers: int) -> int:
    """Let all threads use one loader; return how many batches were compared."""
    with MAKERS[kind](0) as alone:
        wanted = Counter(om.digest(batch) for batch in alone.steps(0, STEPS))
        counted = (STEPS, alone.stats.real_columns, alone.stats.padded_columns)
    taken: queue.SimpleQueue[Any] = queue.SimpleQueue()
    found: list[Counter[str]] = [Counter() for _ in range(THREADS)]

    def release() -> None:
        while taken.get() is not None:
            pass

    releasing = threading.Thread(target=release)
    releasing.start()
    with MAKERS[kind](workers) as loader:
        streams = SHARED[shared](loader)

        def use(place: int) -> None:
            for batch in streams[place]:
                found[place][om.digest(batch)] += 1
                taken.put(batch)

        on_threads(use)
        stats = loader.stats
    taken.put(None)
    releasing.join()
    groups = [sum(found, Counter())] if shared == "one iterator" else found
    if any(group != wanted for group in groups):
        sys.exit(f"{kind}, {shared}, {workers} workers: other batches than one thread makes")
    if shared != "any step":
        times = len(groups)
        found_stats = (stats.batches, stats.real_columns, stats.padded_columns)
        if found_stats != tuple(times * number for number in counted):
            sys.exit(
                f"{kind}, {shared}, {workers} workers: {found_stats} is not {times} * {counted}"
            )
    return sum(group.total() for group in groups)


def run_samplers() -> None:
    """Let all threads ask the same samplers for the batches of several epochs."""
    for sampler in (BUCKETED, WEIGHTED, BUDGET):
        asked = list(itertools.product(range(4), range(sampler.steps_per_epoch)))
        alone = [list(sampler.batch_indices(7, *each)) for each in asked]

        def use(place: int, sampler: Any = sampler, asked: Any = asked, alone: Any = alone) -> None:
            for number in range(len(asked)):
                at = (number + place * len(asked) // THREADS) % len(asked)
                if list(sampler.batch_indices(7, *asked[at])) != alone[at]:
                    raise ValueError(f"{sampler}: other indices at {asked[at]}")

        on_threads(use)


def run_pool() -> None:
    """Let threads write into one pool's arrays and pass them on: nobody else may write there."""
    rings: list[queue.SimpleQueue[Any]] = [queue.SimpleQueue() for _ in range(THREADS)]

    def use(place: int) -> None:
        for number in range(200):
            value = place * 200 + number
            array = POOL.rent((number % 7 + 1, 1000), np.int32)
            array[...] = value
            rings[(place + 1) % THREADS].put((array, value))
            del array
            given, value = rings[place].get()
            if not (given == value).all():
                raise ValueError("an array of the pool was written to by two")
            del given
            if number % 50 == 49:
                POOL.clear()

    on_threads(use)


def main() -> None:
    """Run as the command line says."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 25_000
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    total = 0
    while total < wanted:
        for kind, shared, workers in itertools.product(MAKERS, SHARED, WORKERS):
            total += run_loaders(kind, shared, workers)
        run_samplers()
        run_pool()
    print(f"{total:,} batches, all as one thread makes them; the GIL is {'on' if gil else 'off'}")


if __name__ == "__main__":
    main()

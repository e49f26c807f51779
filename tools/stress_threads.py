"""Eight threads on the same objects: python tools/stress_threads.py [BATCHES].

They share loaders, iterators, samplers, tables and pools; batches are released on another thread
than the one that took them. Every batch must have the digest that one thread found before. Meant
for CPython without the GIL; it says which interpreter ran and how many batches were compared.
"""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

import onemodel as om
from onemodel.augment import GainOffset, Noise
from onemodel.datasets import ImageTable
from onemodel.transforms import Normalize, RandomCrop

THREADS = 8
STEPS = 60  # of one iterator that all threads share

generator = np.random.default_rng(1)
SAMPLES = [
    om.Sample(generator.random((1, 8, int(width)), np.float32), [k % 9], k)
    for k, width in enumerate(generator.integers(4, 60, 300))
]
TABLE = ImageTable.from_samples(SAMPLES)
PICTURES = om.ArrayDataset(
    generator.integers(0, 256, (300, 8, 8, 3), np.uint8), generator.integers(0, 9, 300)
)
BUCKETED = om.BucketedSampler(TABLE.widths, 16)  # shared by loaders
COLLATE = om.ImageBatchCollator(width_multiple=4, augment=om.Compose([GainOffset(), Noise()]))


class OneByOne:
    """A dataset of Python code."""

    def __len__(self) -> int:
        return len(SAMPLES)

    def __getitem__(self, index: int) -> om.Sample:
        return SAMPLES[index]


MAKERS: dict[str, Callable[[int], om.DataLoader]] = {
    "table": lambda w: om.DataLoader(TABLE, sampler=BUCKETED, collate=COLLATE, seed=1, workers=w),
    "samples": lambda w: om.DataLoader(SAMPLES, sampler=BUCKETED, collate=COLLATE, workers=w),
    "python": lambda w: om.DataLoader(OneByOne(), sampler=BUCKETED, collate=COLLATE, workers=w),
    "arrays": lambda w: om.DataLoader(
        PICTURES, 32, shuffle=True, transform=om.Compose([RandomCrop(2), Normalize(0.5, 0.2)]),
        workers=w,
    ),
}  # fmt: skip


def expected(make: Callable[[int], om.DataLoader]) -> list[str]:
    """Return the digests of the steps, as one thread makes them."""
    with make(0) as loader:
        return [om.digest(batch) for batch in loader.steps(0, STEPS)]


def run(name: str, turns: int) -> int:
    """Let all threads use one kind of loader; return how many batches were compared."""
    make = MAKERS[name]
    wanted = expected(make)
    taken: queue.SimpleQueue[Any] = queue.SimpleQueue()
    wrong: list[str] = []
    counts = [0] * THREADS

    def use(place: int, shared: Any) -> None:
        try:
            for step, batch in shared:
                counts[place] += 1
                if om.digest(batch) != wanted[step]:
                    wrong.append(f"{name}: step {step} on thread {place}")
                taken.put(batch)
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")

    def release() -> None:
        while (batch := taken.get()) is not None:
            if hasattr(batch, "release"):
                batch.release()
            del batch

    releasing = threading.Thread(target=release)
    releasing.start()
    for turn in range(turns):
        loader = make((0, 1, 3)[turn % 3])
        steps = loader.steps(0, STEPS)
        if name == "arrays":  # whose batches do not say their step: one iterator a thread
            streams = [enumerate(make(turn % 3).steps(0, STEPS)) for _ in range(THREADS)]
        else:
            streams = [((batch.global_step, batch) for batch in steps) for _ in range(THREADS)]
        threads = [
            threading.Thread(target=use, args=(place, stream))
            for place, stream in enumerate(streams)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        loader.close()
    taken.put(None)
    releasing.join()
    if wrong:
        sys.exit("\n".join(wrong[:20]))
    return sum(counts)


def main() -> None:
    """Run as the command line says."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 25_000
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    total = 0
    while total < wanted:
        for name in MAKERS:
            total += run(name, 6)
    print(f"{total:,} batches, all as one thread makes them; the GIL is {'on' if gil else 'off'}")


if __name__ == "__main__":
    main()

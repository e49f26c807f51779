"""A trainer that keeps the GIL: how long it waits for batches, and for the first of a pass.

Its step takes 1.2 times as long as a build, which is timed anew before each measure. The share
is taken from outside: the loop's time less its steps', over the loop's. Beside it stands what
`loader.stats` says of the same batches.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import arrays
from benchmarks import workloads as work
from benchmarks.harness import Contender, Measure, compare
from benchmarks.report import Table
from benchmarks.steps import STEPS, Step, build_seconds, exact_sleeps, timed
from benchmarks.workers import PASS

STEP_BUILDS = 1.2
WORKERS: tuple[Any, ...] = (0, 1, 2, "auto")
WARM_SECONDS = 1.0
"""For "auto" to choose in; the others need less."""


def arrays_loader(pixels: np.ndarray, batch: int, workers: Any) -> Any:
    """Return the loader that crops, flips and normalises, without Python."""
    import onemodel as om

    labels = np.zeros(len(pixels), np.int64)
    transform = om.Compose([
        om.transforms.RandomCrop(padding=4),
        om.transforms.RandomHorizontalFlip(),
        om.transforms.Normalize(work.MEANS, work.STDS),
    ])  # fmt: skip
    return om.DataLoader(
        om.ArrayDataset(pixels, labels), batch, shuffle=True, drop_last=True, transform=transform,
        seed=work.SEED, workers=workers,
    )  # fmt: skip


class Waiting:
    """Measures the share of its time that a trainer waits, and keeps what the loader says."""

    def __init__(self, make: Callable[[Any], Any], step: Step, workers: Any, warm: float) -> None:
        self.make, self.step, self.workers, self.warm = make, step, workers, warm
        self.told = self.step_seconds = self.builds = self.chosen = float("nan")

    def __call__(self, seconds: float) -> float:
        """Return the share of time waited."""
        build = build_seconds(self.make)
        length = STEP_BUILDS * build
        loader = self.make(self.workers)
        stream = iter(loader.steps(0))
        warm = self.warm if self.workers == "auto" else self.warm / 4
        try:
            with exact_sleeps():
                self.train(stream, length, warm, 24)
                before = loader.stats
                total, own, count = self.train(stream, length, seconds, 24)
                after = loader.stats
        finally:
            stream.close()
            loader.close()
        waited = after.wait_seconds - before.wait_seconds
        rest = after.consumer_seconds - before.consumer_seconds
        self.told = waited / (waited + rest)
        self.step_seconds = own / count
        self.builds = self.step_seconds / build
        self.chosen = after.workers
        return (total - own) / total

    def train(
        self, stream: Any, length: float, seconds: float, least: int
    ) -> tuple[float, float, int]:
        """Take batches for so long, at least so many; return the time, the steps', the count."""
        clock, step = time.perf_counter, self.step
        own, count, start = 0.0, 0, clock()
        while count < least or clock() - start < seconds:
            batch = next(stream)
            began = clock()
            step(length)
            own += clock() - began
            count += 1
        del batch
        return clock() - start, own, count


def shares(pixels: np.ndarray, batch: int, warm: float) -> list[Contender]:
    """Return one contender a kind of step and number of workers."""

    def start(kind: str, workers: Any) -> Contender:
        waiting: list[Waiting] = []

        def begin() -> Measure:
            arrays.check_onemodel(arrays_loader(pixels, batch, 0), pixels, batch, native=False)

            def make(count: Any) -> Any:
                return arrays_loader(pixels, batch, count)

            waiting.append(Waiting(make, STEPS[kind](), workers, warm))
            return waiting[0]

        also = {
            "by loader.stats": lambda: waiting[0].told,
            "step": lambda: waiting[0].step_seconds,
            "builds": lambda: waiting[0].builds,
            "workers": lambda: waiting[0].chosen,
        }
        return Contender(f"batch {batch}, {kind}", "onemodel", begin, workers, also=also)

    return [start(kind, workers) for kind in STEPS for workers in WORKERS]


def first_batches(pixels: np.ndarray, batch: int) -> list[Contender]:
    """Return who takes the first batch of a pass, one build after the last one of the pass before.

    Within the pass the trainer takes batches as fast as they come, or makes a step that keeps the
    GIL. A pass has 16 batches.
    """
    rows = pixels[: PASS * batch]

    def start(kind: str, workers: int) -> Callable[[], Measure]:
        def begin() -> Measure:
            def make(count: Any) -> Any:
                return arrays_loader(rows, batch, count)

            step = STEPS[kind]() if kind in STEPS else None
            return lambda seconds: first_batch(make, step, workers, seconds)

        return begin

    return [
        Contender(f"batch {batch}, {kind}", "onemodel", start(kind, workers), workers)
        for kind in ("no step", next(iter(STEPS)))
        for workers in (0, 1, 2)
    ]


def first_batch(
    make: Callable[[Any], Any], step: Step | None, workers: int, seconds: float
) -> float:
    """Return the median time to the first batch of a pass after a pause of one build."""
    build = build_seconds(make)
    loader = make(workers)
    taken: list[float] = []
    try:
        with exact_sleeps():
            begin = time.perf_counter()
            while len(taken) < 5 or time.perf_counter() - begin < seconds:
                stream: Any = None

                def first() -> Any:
                    nonlocal stream
                    stream = iter(loader)
                    return next(stream)

                taken.append(timed(first))
                for _ in stream:
                    if step is not None:
                        step(STEP_BUILDS * build)
                time.sleep(build)
    finally:
        loader.close()
    return statistics.median(taken[2:])


def run(*, rounds: int, seconds: float, quick: bool, only: list[str]) -> list[Table]:
    """Time both batch sizes; return the shares waited and the first batches of a pass."""
    pixels = work.pictures()
    warm = WARM_SECONDS / 2 if quick else WARM_SECONDS
    waits = [each for batch in (512, 64) for each in shares(pixels, batch, warm)]
    firsts = [each for batch in (512, 64) for each in first_batches(pixels, batch)]
    return [
        Table(
            "trainer",
            "Trainer: share of its time waited, a step of 1.2 builds that keeps the GIL; arrays, "
            "cropped, flipped, normalised",
            compare(waits, rounds=rounds, seconds=seconds, only=only),
            unit="share",
            columns={},
            units={"step": "time", "builds": "ratio", "workers": "count"},
        ),
        Table(
            "trainer-passes",
            f"Trainer: first batch of the next pass of {PASS}, after a pause of one build",
            compare(firsts, rounds=rounds, seconds=seconds, only=only),
            unit="time",
            columns={},
        ),
    ]

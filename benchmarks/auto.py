"""`workers="auto"` beside fixed numbers, where other numbers of workers are the best.

Each measure starts with closed workers and warms up for a second, in which "auto" chooses. Its
ratio is to the fixed number with the highest median.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import lines, trainer
from benchmarks import workloads as work
from benchmarks.harness import Contender, Measure, compare, streamed
from benchmarks.report import Table, best_fixed, no_workers
from benchmarks.steps import build_seconds, exact_sleeps, held_sleep

WORKERS: tuple[Any, ...] = (0, 1, 2, 4, 8, 16, "auto")


@dataclass
class Case:
    """What is loaded, and what is done with each batch."""

    make: Callable[[Any], Any]
    """Returns the loader for so many workers."""
    consume: Callable[[Any], None] = lambda batch: None
    warm: int = 24
    """Batches that do not count, beside the warm-up's time."""
    longer: float = 1.0
    """How many times longer it is timed: batches of slow items come several at once."""


def native_lines() -> Case:
    data = work.lines(np.float32)
    return Case(
        lambda count: lines.onemodel_loader(data, "table", True, count, prefetch=None),
        lambda batch: batch.release(),
    )


def python_augmentation() -> Case:
    data = work.lines(np.float32)
    return Case(
        lambda count: lines.onemodel_loader(data, "samples", False, count, prefetch=None),
        lambda batch: batch.release(),
    )


class Asleep:
    """Samples from a slow disk: each takes 10 ms, in which the GIL is free."""

    def __init__(self, sample: Any) -> None:
        self.sample = sample

    def __len__(self) -> int:
        return 1000

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.01)
        return self.sample


class Encoded:
    """JPEG files in memory, decoded by Pillow, which releases the GIL for most of that."""

    def __init__(self, files: list[bytes]) -> None:
        self.files = files

    def __len__(self) -> int:
        return len(self.files)

    def __getitem__(self, index: int) -> Any:
        from PIL import Image

        import onemodel as om

        with Image.open(io.BytesIO(self.files[index])) as picture:
            pixels = np.asarray(picture)
        return om.Sample(om.image.gray8_to_planar(pixels), np.int32([1]))


def samples(dataset: Any, batch: int) -> Case:
    """Return the case of a dataset of samples, batched as they are."""
    import onemodel as om

    def make(count: Any) -> Any:
        return om.DataLoader(
            dataset, batch, shuffle=True, drop_last=True, collate=om.ImageBatchCollator(),
            seed=work.SEED, workers=count,
        )  # fmt: skip

    return Case(make, lambda batch: batch.release(), warm=4, longer=3.0)


def sleeping() -> Case:
    import onemodel as om

    return samples(Asleep(om.Sample(np.zeros((1, 32, 32), np.float32), np.int32([1]))), 4)


def decoding() -> Case:
    from PIL import Image

    rng = np.random.default_rng(work.SEED)
    files = []
    for _ in range(256):
        small = Image.fromarray(rng.integers(0, 256, (16, 32), np.uint8))
        file = io.BytesIO()
        small.resize((256, 128)).save(file, "jpeg", quality=90)
        files.append(file.getvalue())
    return samples(Encoded(files), 32)


def held_trainer() -> Case:
    pixels, batch = work.pictures(), 512

    def make(count: Any) -> Any:
        return trainer.arrays_loader(pixels, batch, count)

    step, length = held_sleep(), trainer.STEP_BUILDS * build_seconds(make)
    return Case(make, lambda batch: step(length))


def tiny_rows() -> Case:
    import onemodel as om

    rows = np.random.default_rng(work.SEED).random((10_000, 4), np.float32)

    def make(count: Any) -> Any:
        return om.DataLoader(
            om.ArrayDataset(rows), 8, shuffle=True, seed=work.SEED, workers=count
        )  # fmt: skip

    return Case(make)


CASES: dict[str, Callable[[], Case]] = {
    "native lines": native_lines,
    "Python augmentation": python_augmentation,
    "10 ms of sleep a sample, batch 4": sleeping,
    "JPEG decoded by Pillow, batch 32": decoding,
    "a trainer that sleeps with the GIL, arrays, batch 512": held_trainer,
    "8 rows of 4 float32": tiny_rows,
}


def contenders(name: str, build: Callable[[], Case], warm_seconds: float) -> list[Contender]:
    """Return one contender a number of workers, over the same data."""
    built: list[Case] = []

    def start(workers: Any) -> Contender:
        chosen = [float("nan")]

        def measure(seconds: float) -> float:
            case = built[0]
            loader = case.make(workers)

            def stream() -> Iterator[Any]:
                return iter(loader.steps(0))

            def close() -> None:
                chosen[0] = loader.stats.workers
                loader.close()

            timed = streamed(
                stream, case.consume, case.warm, warm_seconds=warm_seconds, close_loader=close
            )
            with exact_sleeps():
                return timed(seconds * case.longer)

        def begin() -> Measure:
            if not built:
                built.append(build())
            return measure

        return Contender(name, "onemodel", begin, workers, also={"at the end": lambda: chosen[0]})

    return [start(workers) for workers in WORKERS]


def run(*, rounds: int, seconds: float, quick: bool, only: list[str]) -> list[Table]:
    """Time each case in rounds of its own; return one table."""
    results = []
    for name, build in CASES.items():
        found = contenders(name, build, 0.5 if quick else 1.0)
        results += compare(found, rounds=rounds, seconds=seconds, only=only)
    return [
        Table(
            "auto",
            'Workers chosen by the loader, "auto", beside fixed numbers',
            results,
            columns={"of best fixed": best_fixed, "of 0 workers": no_workers},
            units={"at the end": "count"},
        )
    ]

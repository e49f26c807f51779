"""Workers: what each brings, in an endless stream and in passes of 16 batches.

An endless stream is `steps()`; passes are `for epoch in ...: for batch in loader`, as users write
them, with all that lies between two of them. The C loops beside them read the same data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks import arrays, lines
from benchmarks import workloads as work
from benchmarks.harness import Contender, Measure, compare, passes, streamed
from benchmarks.report import Table, ceiling, no_workers

PASS = 16
"""Batches in a pass: all 2,048 lines, or so many rows of the arrays."""

COLUMNS = {"of C": ceiling, "of 0 workers": no_workers}


def fast(ceilings: list[Contender], baseline: str = "") -> list[Contender]:
    """Return the C loops that can be the fastest: those with a cache hint, where there are any."""
    bounds = [each for each in ceilings if each.group == "ceiling"]
    hinted = [each for each in bounds if "prefetch" in each.name]
    where = f", {baseline}" if baseline else ""
    return [replace(each, name=each.name + where, baseline=baseline) for each in hinted or bounds]


def ways(
    name: str,
    make: Callable[[int], Any],
    check: Callable[[Any], None],
    consume: Callable[[Any], None],
    *,
    counts: tuple[int, ...] = (0, 1, 2),
    baseline: str = "",
    kinds: tuple[str, ...] = ("endless", "passes"),
) -> list[Contender]:
    """Return one contender a kind of iteration and number of workers."""

    def start(kind: str, workers: int) -> Callable[[], Measure]:
        def begin() -> Measure:
            loader = make(workers)
            check(loader)
            if kind == "passes":
                if len(loader) != PASS:
                    raise AssertionError(f"a pass has {len(loader)} batches, not {PASS}")
                return passes(loader, consume)

            def stream() -> Iterator[Any]:
                return iter(loader.steps(0))

            return streamed(stream, consume, close_loader=loader.close)

        return begin

    return [
        Contender(f"onemodel, {name}, {kind}", "onemodel", start(kind, count), count, baseline)
        for kind in kinds
        for count in counts
    ]


def line_ways(
    data: work.Lines, kind: str, native: bool, counts: tuple[int, ...] = (0, 1, 2)
) -> list[Contender]:
    """Return the contenders over the lines, a list of "samples" or a "table"."""
    name = "ImageTable" if kind == "table" else "list of samples"
    return ways(
        name if native else f"{name}, Python augmentation",
        lambda count: lines.onemodel_loader(data, kind, native, count),
        lambda loader: lines.check_onemodel(loader, data, native),
        lambda batch: batch.release(),
        counts=counts,
    )


def array_ways(pixels: np.ndarray, batch: int) -> list[Contender]:
    """Return the contenders over all rows, endless, and over 16 batches of them, in passes."""
    found: list[Contender] = []
    rows = {"endless": pixels, "passes": pixels[: PASS * batch]}
    for kind, part in rows.items():
        found += ways(
            f"batch {batch}",
            lambda count, part=part: arrays.onemodel_loader(part, batch, True, count),
            lambda loader, part=part: arrays.check_onemodel(loader, part, batch, True),
            lambda batch: None,
            baseline=kind,
            kinds=(kind,),
        )
    return found


def run(*, rounds: int, seconds: float, quick: bool, only: list[str]) -> list[Table]:
    """Time lines, arrays and Python augmentation; return a table each."""

    def table(name: str, title: str, contenders: list[Contender]) -> Table:
        results = compare(contenders, rounds=rounds, seconds=seconds, only=only)
        return Table(name, title, results, columns=COLUMNS)

    tables = []
    for dtype in (np.float32, np.uint8):
        name = np.dtype(dtype).name
        data = work.lines(dtype)
        contenders = fast(lines.ceilings(data))
        for kind in ("table", "samples"):
            contenders += line_ways(data, kind, True)
        title = f"Workers: lines, {name}, batch {work.BATCH}, endless and in passes of {PASS}"
        tables.append(table(f"workers-lines-{name}", title, contenders))
    contenders = line_ways(work.lines(np.float32), "samples", False, (0, 1, 2, 3, 4))
    title = f"Workers: lines, Python augmentation, batch {work.BATCH}"
    tables.append(table("workers-python", title, contenders))
    pixels = work.pictures()
    for batch in (512, 64):
        contenders = [
            *fast(arrays.ceilings(pixels, batch), "endless"),
            *fast(arrays.ceilings(pixels[: PASS * batch], batch), "passes"),
            *array_ways(pixels, batch),
        ]
        title = f"Workers: arrays, batch {batch}, endless over all rows and in passes of {PASS}"
        tables.append(table(f"workers-arrays-{batch}", title, contenders))
    return tables

"""Interleaved timing: every contender in turn in each round, medians, ratios.

A shared machine changes its speed from minute to minute. So nobody is timed in one stretch: a
round times each contender once for a fraction of a second, the next round starts one further down
the list. A figure is the median over rounds, a ratio the median over rounds of two figures of one
round. Ratios inside one run mean something; figures of two runs do not compare.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Measure = Callable[[float], float]
"""Works for about so many seconds and returns units a second (or, for a latency, seconds)."""


@dataclass
class Contender:
    """One line of a table: how to start it, and what it is.

    `start` does all that is not timed (imports, datasets, compiling, checking the bytes) and
    returns the measure; what it raises becomes the reason for which the line is skipped.
    """

    name: str
    group: str
    """One of "ceiling", "onemodel", "numpy", "peer"."""
    start: Callable[[], Measure]
    threads: int | str = 0
    """Workers or threads beside the caller's; 0 where it all happens on the caller's thread.
    "auto" where the loader chooses."""
    baseline: str = ""
    """Key of the ceilings that it is measured against, for tables with several."""
    also: dict[str, Callable[[], float]] = field(default_factory=dict)
    """What else each round says: read after its measure, shown in a column of that name."""


@dataclass
class Result:
    """What one contender did: one figure a round."""

    name: str
    group: str
    threads: int | str
    baseline: str
    figures: list[float] = field(default_factory=list)
    also: dict[str, list[float]] = field(default_factory=dict)
    skipped: str = ""

    @property
    def median(self) -> float:
        """The median of the rounds, NaN where there are none."""
        return statistics.median(self.figures) if self.figures else float("nan")

    def ratio(self, other: Result) -> float:
        """Return the median over rounds of this figure by the other's of the same round.

        A shared machine is now fast and now slow for minutes; both figures of one round saw it
        alike, medians of all rounds may each come from another time.
        """
        pairs = zip(self.figures, other.figures, strict=True)
        return statistics.median(own / theirs for own, theirs in pairs)

    @property
    def spread(self) -> float:
        """Half of the distance between the quartiles, relative to the median."""
        if len(self.figures) < 3:
            return float("nan")
        low, _, high = statistics.quantiles(self.figures, n=4)
        return (high - low) / 2 / self.median if self.median else float("nan")


def counted(run: Callable[[int], None], chunk: int) -> Measure:
    """Return the measure of a call that builds so many batches at once, as the C loops do."""

    def measure(seconds: float) -> float:
        run(chunk)  # warm caches, clocks and branch predictors, as a stream's first batches do
        done, start = 0, time.perf_counter()
        while True:
            run(chunk)
            done += chunk
            elapsed = time.perf_counter() - start
            if elapsed >= seconds:
                return done / elapsed

    return measure


def streamed(
    open_stream: Callable[[], Iterator[Any]],
    consume: Callable[[Any], None],
    warm: int = 24,
    *,
    warm_seconds: float = 0.0,
    close_loader: Callable[[], None] | None = None,
) -> Measure:
    """Return the measure of an iterator of batches.

    It is opened anew in each round, because a ring that fills up while others are timed would be
    a gift, and the first `warm` batches do not count, nor what comes within `warm_seconds`: they
    pay for starting the workers. The clock then runs over batches taken one right after the
    other, as fast as they come. `close_loader` ends threads that outlive their iterator.
    """

    def measure(seconds: float) -> float:
        stream = open_stream()
        try:
            begin = time.perf_counter()
            taken = 0
            while taken < warm or time.perf_counter() - begin < warm_seconds:
                consume(next(stream))
                taken += 1
            done, start = 0, time.perf_counter()
            while True:
                consume(next(stream))
                done += 1
                elapsed = time.perf_counter() - start
                if elapsed >= seconds and done >= 3:
                    return done / elapsed
        finally:
            close = getattr(stream, "close", None)
            if close is not None:
                close()
            if close_loader is not None:
                close_loader()

    return measure


def passes(loader: Any, consume: Callable[[Any], None], warm: int = 2) -> Measure:
    """Return the measure of whole passes over a loader, as users write them.

    What lies between two passes counts. Each round begins with closed workers and `warm` passes
    that do not count.
    """

    def measure(seconds: float) -> float:
        try:
            for _ in range(warm):
                for batch in loader:
                    consume(batch)
            done, start = 0, time.perf_counter()
            while True:
                for batch in loader:
                    consume(batch)
                    done += 1
                elapsed = time.perf_counter() - start
                if elapsed >= seconds:
                    return done / elapsed
        finally:
            loader.close()

    return measure


def latency(action: Callable[[], Any], most: int = 50) -> Measure:
    """Return the measure of one call's median latency, in seconds."""

    def measure(seconds: float) -> float:
        taken: list[float] = []
        begin = time.perf_counter()
        while not taken or (len(taken) < most and time.perf_counter() - begin < seconds):
            start = time.perf_counter()
            kept = action()
            taken.append(time.perf_counter() - start)
            del kept  # taking down workers and tables is not part of the wait for a batch
        return statistics.median(taken)

    return measure


def compare(
    contenders: list[Contender], *, rounds: int, seconds: float, only: Sequence[str] = ()
) -> list[Result]:
    """Time all contenders in interleaved rounds; skip those that cannot start, with the reason."""
    results: list[Result] = []
    measures: list[tuple[Contender, Result, Measure]] = []
    for each in contenders:
        name = f"{each.group} {each.name}".lower()
        if only and not any(part.lower() in name for part in only):
            continue
        result = Result(each.name, each.group, each.threads, each.baseline)
        results.append(result)
        try:
            measures.append((each, result, each.start()))
        except Exception as error:
            result.skipped = reason(error)
            progress(f"skipped {each.name}: {result.skipped}\n")
    for number in range(rounds):
        shift = number % max(len(measures), 1)
        for place, (each, result, measure) in enumerate(measures[shift:] + measures[:shift]):
            if result.skipped:
                continue
            at = f"round {number + 1}/{rounds}, {place + 1}/{len(measures)}"
            progress(f"\r\033[K{at}: {result.name}" if sys.stderr.isatty() else "")
            gc.collect()
            try:
                result.figures.append(measure(seconds))
                for name, read in each.also.items():
                    result.also.setdefault(name, []).append(read())
            except Exception as error:
                result.figures.clear()
                result.skipped = reason(error)
                progress(f"skipped {result.name}: {result.skipped}\n")
    progress("\r\033[K" if sys.stderr.isatty() else "")
    return results


def reason(error: Exception) -> str:
    """Return why a contender is skipped, in one line."""
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed"
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:160]


def progress(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()


def fastest(results: list[Result], **fields: Any) -> Result | None:
    """Return the timed result with these field values and the highest median."""
    fitting = [
        each
        for each in results
        if each.figures and all(getattr(each, key) == value for key, value in fields.items())
    ]
    return max(fitting, key=lambda each: each.median, default=None)

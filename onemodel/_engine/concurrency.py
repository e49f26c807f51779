"""How many workers may build at once, measured while the loader runs.

A batch does not depend on the number of workers, so it may change at any time. What counts is
the time that a batch costs: workers that do not shorten it are parked. That is the case where
building runs Python, whose threads take turns, and where the cores or the memory are busy already;
a dataset that waits for a disk or a network is given all workers.

Where workers build with Python, a batch costs the time of its build over the number of workers:
threads that take turns show in it at once, whatever the consumer does meanwhile. Else it costs the
time that passes between one batch and the next.
"""

from __future__ import annotations

from time import perf_counter
from typing import Any

__all__ = ["WorkerLimit"]

#: The numbers of workers that are tried, one after another.
LEVELS = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)

WINDOW_SECONDS = 0.02  # of one measurement, and
WINDOW_BATCHES = 8  # at least so many batches, or
LONG_WINDOW_SECONDS = 0.25  # so long with fewer
MOST_WINDOWS = 64  # between two trials
BETTER = 0.9  # a further worker must lower the cost of a batch to this part of it
AS_GOOD = 1.05  # a worker less may raise it to this
WAITING = 0.5  # a build that computes for less than this part of its time waits for something
COMPUTING = 0.8  # one that computes for more waits for no other build


class WorkerLimit:
    """Chooses the number of workers by trial, between ``lowest`` and ``highest``.

    The consumer calls ``due`` for each batch and, where that is true, ``choose`` with what the
    ring has counted. A trial is one window, after a few batches that are not measured: they were
    begun before. Trials that bring nothing become rarer.
    """

    def __init__(self, lowest: int, highest: int, start: int) -> None:
        self._levels = [level for level in LEVELS if lowest <= level < highest] + [highest]
        self.level = start
        self._before: tuple[int, float] | None = None  # the level and cost that a trial must beat
        self._settling = False
        self._may_jump = True
        self._way = 1  # up or down, of the next trial
        self._windows = 0
        self._pause = 1
        self._batches = 0
        self._since = perf_counter()
        self._counted: dict[str, Any] = {}

    def restart(self, counted: dict[str, Any]) -> None:
        """Begin a window: time that passed outside of a pass is nobody's."""
        self._batches = 0
        self._since = perf_counter()
        self._counted = counted

    def due(self) -> bool:
        """Count one batch; whether a window is over."""
        self._batches += 1
        if self._settling:
            return self._batches > self.level + 1  # those that were begun before
        if self._batches >= WINDOW_BATCHES:
            return perf_counter() - self._since >= WINDOW_SECONDS
        return perf_counter() - self._since >= LONG_WINDOW_SECONDS

    def choose(self, counted: dict[str, Any]) -> int:
        """Return the number of workers from now on."""
        # several threads may take batches: another one may just have begun a window
        cost = (perf_counter() - self._since) / max(1, self._batches)
        change = {name: counted[name] - self._counted.get(name, 0) for name in counted}
        if self.level > 0 and change["python_builds"] > 0:
            cost = change["python_seconds"] / change["python_builds"] / self.level
        self._batches = 0
        self._since = perf_counter()
        self._counted = counted
        waited = change["wait_seconds"] > 0.05 * (
            change["wait_seconds"] + change["consumer_seconds"]
        )
        if (
            self._may_jump
            and self.level <= 1  # several that take turns wait for each other
            and waited
            and self.level < self._levels[-1]
            and change["python_cpu_seconds"] < WAITING * change["python_seconds"]
            and change["wait_seconds"] > WAITING * change["consumer_seconds"]
        ):
            self._before = (self.level, cost)
            self._may_jump = False
            return self._move(self._levels[-1])
        if self._settling:
            self._settling = False
            return self.level
        before, self._before = self._before, None  # at once: several threads may come here
        if before is not None:
            return self._judge(cost, *before)
        self._windows += 1
        if self._windows >= self._pause:
            self._windows = 0
            levels = range(len(self._levels))
            place = self._place()
            # Where the consumer waits, both ways are tried by turns: fewer may be faster as well,
            # but not where builds never wait for each other.
            way = self._way if waited else -1
            alone = change["python_cpu_seconds"] > COMPUTING * change["python_seconds"]
            if waited and alone and self.level > 1:
                way = 1
            elif waited and place + way not in levels:
                way = -way
            if place + way in levels:
                self._before = (self.level, cost)
                return self._move(self._levels[place + way])
        return self.level

    def _judge(self, cost: float, level: int, before: float) -> int:
        limit = BETTER if self.level > level else AS_GOOD
        if cost <= limit * before:
            self._pause = 1
            return self.level
        self._pause = min(2 * self._pause, MOST_WINDOWS)
        self._way = -1 if self.level > level else 1
        return self._move(level)

    def _move(self, level: int) -> int:
        self.level = level
        self._settling = True
        return level

    def _place(self) -> int:
        return next(k for k, level in enumerate(self._levels) if level >= self.level)

"""How many workers may build at once, measured while the loader runs.

A batch does not depend on the number of workers, so it may change at any time. What counts is
the time that a batch costs: workers that do not shorten it are parked. That is the case where
building runs Python, whose threads take turns, and where the cores or the memory are busy already;
a dataset that waits for a disk or a network is given all workers.

Where workers build with Python, a batch costs the time of its build over the number of workers:
threads that take turns show in it at once, whatever the consumer does meanwhile. Else, and where
no worker is compared with one, it costs the time that passes between one batch and the next.
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
BETTER_ALONE = 0.95  # no worker at all must lower it to this: nothing is built ahead then
HARDLY_WORKING = 0.25  # a consumer that works for less of its time than this may build itself
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
        self._before: tuple[int, float, float] | None = None  # a level and what it cost: see choose
        self._settling = False
        self._may_jump = True
        self._way = -1  # up or down, of the next trial
        self._windows = 0
        self._pause = 1
        self._trials = 0
        self._batches = self._next_look = 0
        self._since = perf_counter()
        self._counted: dict[str, Any] = {}

    def restart(self, counted: dict[str, Any]) -> None:
        """Begin a window: time that passed outside of a pass is nobody's."""
        self._batches = self._next_look = 0
        self._since = perf_counter()
        self._counted = counted

    def due(self) -> bool:
        """Count one batch; whether a window is over."""
        self._batches += 1
        if self._batches < self._next_look:
            return False
        if self._settling:
            return self._batches > self.level + 1  # those that were begun before
        # with no worker, or against none, the time between batches counts, which is less even
        longer = 2 if self.level == 0 or (self._before is not None and self._before[0] == 0) else 1
        if self._batches < longer * WINDOW_BATCHES:
            return perf_counter() - self._since >= LONG_WINDOW_SECONDS
        # a clock asked for each of many short batches would cost as much as they do
        self._next_look = self._batches + self._batches // 8
        return perf_counter() - self._since >= longer * WINDOW_SECONDS

    def choose(self, counted: dict[str, Any]) -> int:
        """Return the number of workers from now on."""
        # several threads may take batches: another one may just have begun a window
        period = cost = (perf_counter() - self._since) / max(1, self._batches)
        change = {name: counted[name] - self._counted.get(name, 0) for name in counted}
        if self.level > 0 and change["python_builds"] > 0:
            # not by the batches that were taken: some were built before, some stay
            period *= self._batches / change["python_builds"]
            cost = change["python_seconds"] / change["python_builds"] / self.level
        self.restart(counted)
        passed = change["wait_seconds"] + change["consumer_seconds"]
        waited = change["wait_seconds"] > 0.05 * passed
        if (
            self._may_jump
            and self.level <= 1  # several that take turns wait for each other
            and waited
            and self.level < self._levels[-1]
            and change["python_cpu_seconds"] < WAITING * change["python_seconds"]
            and change["wait_seconds"] > WAITING * change["consumer_seconds"]
        ):
            self._before = (self.level, period, cost)
            self._may_jump = False
            return self._move(self._levels[-1])
        if self._settling:
            self._settling = False
            return self.level
        before, self._before = self._before, None  # at once: several threads may come here
        took_turns = change["python_cpu_seconds"] < COMPUTING * change["python_seconds"]
        if before is not None:
            return self._judge(period, cost, took_turns, *before)
        self._windows += 1
        if self._windows >= self._pause:
            self._windows = 0
            # a lane's consumer builds as well: a trial without workers costs little there
            busy = change["python_builds"] > 0 and (
                change["consumer_seconds"] > HARDLY_WORKING * passed
            )
            tried = self._next_trial(waited, busy, took_turns)
            if tried is not None:
                self._before = (self.level, period, cost)
                return self._move(tried)
        return self.level

    def _next_trial(self, waited: bool, busy: bool, took_turns: bool) -> int | None:
        levels = self._levels
        place = next(k for k, level in enumerate(levels) if level >= self.level)
        above = levels[place + 1] if place + 1 < len(levels) else None
        below = levels[place - 1] if place > 0 else None
        if self.level == 0:
            # One worker may bring little where two that release the GIL bring much.
            self._trials += 1
            return levels[2] if self._trials % 2 and len(levels) > 2 else above
        if not waited:
            return below if self.level > 1 else None
        # Fewer may be faster as well: but not where builds never wait for each other, and none at
        # all only where the consumer has hardly anything else to do.
        if busy if below == 0 else not took_turns:
            below = None
        first, second = (above, below) if self._way > 0 else (below, above)
        return second if first is None else first

    def keep_one(self) -> bool:
        """Never choose 0 from now on; whether that was the choice."""
        if self._levels[0] > 0:
            return False
        del self._levels[0]
        if self.level > 0:
            return False
        self._before = None
        self._move(self._levels[0])
        return True

    def _judge(
        self,
        period: float,
        cost: float,
        took_turns: bool,
        level: int,
        period_before: float,
        cost_before: float,
    ) -> int:
        if 0 in (self.level, level):
            cost, cost_before = period, period_before
        limit = BETTER if self.level > level else BETTER_ALONE if self.level == 0 else AS_GOOD
        if cost <= limit * cost_before:
            self._pause = 1
            return self.level
        self._pause = min((8 if took_turns else 2) * self._pause, MOST_WINDOWS)
        self._way = -1 if self.level > level else 1
        return self._move(level)

    def _move(self, level: int) -> int:
        self.level = level
        self._settling = True
        return level

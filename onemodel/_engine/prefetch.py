"""The worker threads that build ahead of a pass over global steps.

Source: docs/specification.md, section "Delivery". This is the only file that starts a thread. The
threads belong to a ``Prefetcher``, which a loader keeps from pass to pass: between two passes
they build the first batches of the next one.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from onemodel._builders.lane import Lane
from onemodel._common.integers import TWO_64
from onemodel._common.threads import processors
from onemodel._engine.concurrency import WorkerLimit
from onemodel._engine.ring import Ring

__all__ = ["Cursor", "Pass", "Prefetcher", "call_on_threads"]

T = TypeVar("T")


class Cursor:
    """The next global step that a consumer will take: what a checkpoint has to hold."""

    __slots__ = ("next_step",)

    def __init__(self, next_step: int) -> None:
        self.next_step = next_step


class Pass(NamedTuple):
    """What an iterator runs over, decided at its first ``next``.

    Attributes:
        start, stop: global steps.
        goes_on: whether what comes after ``stop`` may be built ahead.
        cursor: moved on as batches are taken.
    """

    start: int
    stop: int
    goes_on: bool
    cursor: Cursor


class Worker(threading.Thread):
    """A thread that builds batches."""


def call_on_threads(functions: Sequence[Callable[[], T]]) -> list[T]:
    """Call each function on a thread of its own, all at once; return what they gave, in order.

    Raises:
        BaseException: what the first of them in order raised, when all have ended.
    """
    results: dict[int, T] = {}
    errors: dict[int, BaseException] = {}

    def call(number: int, function: Callable[[], T]) -> None:
        try:
            results[number] = function()
        except BaseException as error:
            errors[number] = error

    running = [
        Worker(target=call, args=(number, function), name=f"onemodel-call-{number}", daemon=True)
        for number, function in enumerate(functions)
    ]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    if errors:
        raise errors[min(errors)]
    return [results[number] for number in range(len(functions))]


class Prefetcher:
    """A ring and the threads that build into it.

    The threads hold the ring and never this object: when nobody holds it any more, its finaliser
    closes the ring and they end. A thread that finds nothing to do between passes ends after a
    second; the next pass starts another.

    Args:
        entry: from a global step to (batch, error); it holds no loader.
        lane: builds without the GIL, or None.
        workers: the most threads; 0 builds on the consumer's thread.
        depth: how many steps may be built or waiting ahead of the consumer, at most.
        window: how many where one worker builds; twice the workers where that is more.
        automatic: whether the number of threads is chosen by measuring.
        planner: makes what an epoch's batches need, which takes long, and keeps it; or None. With
            workers a thread of its own asks it for the next epoch while one runs.
        steps_per_epoch: of the steps that ``entry`` takes.
    """

    def __init__(
        self,
        entry: Callable[[int], tuple[Any, BaseException | None]],
        lane: Lane | None,
        *,
        workers: int,
        depth: int,
        window: int,
        automatic: bool,
        planner: Callable[[int], Any] | None = None,
        steps_per_epoch: int = 1,
    ) -> None:
        self._planner = planner if workers else None
        self._steps_per_epoch = steps_per_epoch
        self._end = 0  # no epoch from this step on is planned
        self.plan_at = TWO_64  # once this step is taken, the next epoch is
        self._planned = 0
        self.planning: Worker | None = None
        self.workers = workers
        self.refused = 0
        self._in_use = threading.Lock()  # by a pass
        self._window = window
        self.limit: WorkerLimit | None = None
        start = workers
        if automatic and lane is not None:
            # more than one for each processor cannot bring anything: nothing in a lane waits
            workers = self.workers = min(workers, processors())
            start = min(1, workers)
        elif lane is None:
            start = min(1, workers)
        if workers and (automatic or lane is None):
            self.limit = WorkerLimit(0, workers, start)
        self.ring = Ring(entry, lane, depth, start)
        self._set_limit(start)
        _prefetchers[id(self)] = weakref.ref(self, _forget(id(self)))

    def claim(self) -> bool:
        """Take it for a pass, unless another has it; of several threads at once one gets it."""
        return self._in_use.acquire(blocking=False)

    def free(self) -> None:
        """Let another pass take it."""
        self._in_use.release()

    @property
    def busy(self) -> bool:
        """Whether a pass uses it."""
        return self._in_use.locked()

    @property
    def level(self) -> int:
        """How many workers may build at once now."""
        return self.workers if self.limit is None else self.limit.level

    def begin(self, run: Pass) -> int:
        """Let the threads build the steps of a pass; return its number."""
        steps = run.stop - run.start
        ahead = TWO_64 - run.stop if run.goes_on else 0
        most = TWO_64 - 1
        number = self.ring.attach(
            run.start % TWO_64, min(steps, most), min(ahead, most - min(steps, most))
        )
        if self.limit is not None:
            self.limit.restart(self.ring.count())
        if self._planner is not None:
            self._end = TWO_64 if run.goes_on else run.stop
            self.plan_at = run.start
        self._start_threads()
        return number

    def plan_ahead(self, step: int) -> None:
        """Let a thread plan the epoch after that of ``step``, if it will come."""
        epoch = step // self._steps_per_epoch + 1
        self.plan_at = epoch * self._steps_per_epoch
        if self.plan_at >= self._end or self._planner is None or epoch == self._planned:
            return
        self._planned = epoch
        self.planning = Worker(
            target=_plan, args=(self._planner, epoch), name="onemodel-plan", daemon=True
        )
        try:
            self.planning.start()
        except RuntimeError:  # the platform refuses: whoever builds the epoch's first step plans it
            self.planning = None

    def measure(self) -> None:
        """Change the number of workers where that shortens the run."""
        assert self.limit is not None
        before = self.limit.level
        level = self.limit.choose(self.ring.count())
        if level != before:
            self._set_limit(level)
            self._start_threads()

    def keep_one_worker(self) -> None:
        """Let there be one worker at least from now on: an event loop does not build."""
        if self.limit is not None and self.limit.keep_one():
            self._set_limit(self.limit.level)
            self._start_threads()

    def _set_limit(self, level: int) -> None:
        self.ring.set_limit(level, max(self._window, 2 * level))

    def _start_threads(self) -> None:
        """Start what is missing. A platform that refuses a thread is not asked again."""
        missing = self.level - self.ring.workers_alive
        if missing <= 0 or self.refused:
            return
        running = self.ring.threads
        running[:] = [thread for thread in running if thread.is_alive()]
        for _ in range(missing):
            thread = Worker(target=self.ring.work, name=f"onemodel-{len(running)}", daemon=True)
            self.ring.add_worker()
            try:
                thread.start()
            except RuntimeError:
                self.ring.started(None)
                self.refused += 1
                return
            except BaseException:  # a Ctrl-C; the thread runs all the same
                self.ring.started(thread)
                raise
            self.ring.started(thread)

    def close(self) -> None:
        """End the threads without waiting for them."""
        self.ring.close()

    def join(self, deadline: float | None = None) -> None:
        """Wait for the threads, until ``time.monotonic()`` says ``deadline``.

        A worker waits for none: two that close their own loader would wait for each other.
        """
        if isinstance(threading.current_thread(), Worker):
            return
        planning = [] if self.planning is None else [self.planning]
        for thread in [*self.ring.threads, *planning]:
            if thread.is_alive():
                thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))

    def __del__(self) -> None:
        # not close(): at exit the modules that it uses may be gone
        ring = getattr(self, "ring", None)
        if ring is not None:
            ring.close()


def _plan(planner: Callable[[int], Any], epoch: int) -> None:
    # what it raises is raised again for whoever builds a step of that epoch
    with contextlib.suppress(Exception):
        planner(epoch)


# By identity and not in a WeakSet: a list of a dict's values is made in one step, whichever
# threads add to it meanwhile.
_prefetchers: dict[int, weakref.ref[Prefetcher]] = {}


def _forget(number: int) -> Callable[[Any], None]:
    def forget(_: Any) -> None:
        _prefetchers.pop(number, None)

    return forget


@atexit.register
def _close_all() -> None:
    """End the workers before the interpreter takes their memory away.

    Those that are inside a dataset's own code are not waited for longer than a second: they hold
    the GIL or wait for it, and so cannot touch freed memory.
    """
    prefetchers = [found for each in list(_prefetchers.values()) if (found := each()) is not None]
    for prefetcher in prefetchers:
        prefetcher.close()
    deadline = time.monotonic() + 1.0
    for prefetcher in prefetchers:
        prefetcher.join(deadline)

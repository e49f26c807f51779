"""The engine: global steps in order, built ahead by worker threads.

Source: docs/specification.md, section "Delivery". This is the only file that starts a thread.
Nothing that is computed depends on which thread ran it: a worker calls ``build(step)``, a pure
function, and puts what comes into the ring.

The ring has ``prefetch`` slots; step s waits in slot ``s mod prefetch``. A step may be claimed
only while it is below next-to-take + prefetch, so no two steps meet in a slot.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, NamedTuple, Self

from onemodel._engine.stats import LoaderStats

__all__ = ["BatchSequence", "Cursor"]


class Cursor:
    """The next global step that a consumer will take: what a checkpoint has to hold."""

    __slots__ = ("next_step",)

    def __init__(self, next_step: int) -> None:
        self.next_step = next_step


class _Entry(NamedTuple):
    batch: Any
    error: BaseException | None
    seconds: float


def _build_entry(build: Callable[[int], Any], step: int) -> _Entry:
    """Build one step; what it raises is kept for the consumer."""
    began = time.perf_counter()
    try:
        batch = build(step)
    except StopIteration as error:
        # Raised from __next__ it would end the loop as if the run were over.
        wrapped = RuntimeError(f"StopIteration was raised while building global step {step}")
        wrapped.__cause__ = error
        return _Entry(None, wrapped, time.perf_counter() - began)
    except BaseException as error:
        return _Entry(None, error, time.perf_counter() - began)
    return _Entry(batch, None, time.perf_counter() - began)


class _Bell:
    """Wakes threads that sleep until there is something to look at.

    A queue implemented in C and not a Condition, which takes microseconds of Python for each
    sleep. ``sleepers`` is read and written under the ring's lock; the sleep is outside of it. It
    never counts more threads than sleep, or are about to, without a token for each. Who wakes
    looks again: the token may have been for another one.
    """

    def __init__(self) -> None:
        self.sleepers = 0
        self.tokens: SimpleQueue[None] = SimpleQueue()

    def ring(self) -> None:
        """Wake one thread, if any sleeps."""
        if self.sleepers > 0:
            self.tokens.put(None)  # first: a token too many does no harm, one too few hangs
            self.sleepers -= 1

    def ring_all(self) -> None:
        while self.sleepers > 0:
            self.ring()

    def sleep(self) -> None:
        self.tokens.get()


class _Ring:
    """What workers and consumer share; the workers hold it and never the sequence itself.

    So a sequence that nobody holds is collected, and its end ends the workers.
    """

    def __init__(
        self, build: Callable[[int], Any], start: int, stop: int, workers: int, prefetch: int
    ) -> None:
        self.build = build
        self.next_claim = start
        self.next_take = start
        self.stop = stop
        self.prefetch = prefetch
        self.slots: list[_Entry | None] = [None] * prefetch
        self.ready = 0
        self.closed = False
        self.process = os.getpid()
        # A re-entrant lock: garbage collection may close a ring while its thread holds it. It is
        # one in C, entered itself: a Ctrl-C in the midst of Python code would leave it taken.
        self.lock = threading.RLock()
        self.room = _Bell()  # for workers: a step may be claimed, or none will be any more
        self.arrival = _Bell()  # for the consumer: the next step has come, or none will
        self.threads = [
            threading.Thread(target=_work, args=(self,), name=f"onemodel-{k}", daemon=True)
            for k in range(workers)
        ]

    def start_threads(self) -> None:
        try:
            for thread in self.threads:
                thread.start()
        except BaseException:
            self.close()
            raise

    def claim(self) -> int | None:
        """Wait for a step to build; None when there is none any more."""
        while True:
            with self.lock:
                if self.closed or self.next_claim >= self.stop:
                    return None
                if self.next_claim < self.next_take + self.prefetch:
                    self.next_claim += 1
                    return self.next_claim - 1
                self.room.sleepers += 1
            self.room.sleep()

    def deliver(self, step: int, entry: _Entry) -> None:
        with self.lock:
            if self.closed:
                return
            self.slots[step % self.prefetch] = entry
            self.ready += 1
            if entry.error is not None:
                self.stop = min(self.stop, step + 1)  # nobody will get past it
                self.room.ring_all()
            if step == self.next_take:
                self.arrival.ring()

    def take(self) -> tuple[_Entry, int] | None:
        """Wait for the next step; None after ``close``. Also say about how many were ready."""
        ready = self.ready
        while True:
            with self.lock:
                place = self.next_take % self.prefetch
                entry = self.slots[place]
                if entry is not None:
                    self.slots[place] = None
                    self.ready -= 1
                    self.next_take += 1
                    self.room.ring()
                    if self.slots[self.next_take % self.prefetch] is not None:
                        self.arrival.ring()  # for another consumer
                    return entry, ready
                if self.closed:
                    return None
                self.arrival.sleepers += 1
            self.arrival.sleep()

    def close(self) -> None:
        """Tell the workers to end, and drop what waits; safe at any moment."""
        if os.getpid() != self.process:
            return  # a forked child has none of the threads, and the lock may be taken for ever
        with self.lock:
            self.closed = True
            self.room.ring_all()
            self.arrival.ring_all()
            for place in range(self.prefetch):
                self.slots[place] = None

    def join(self, deadline: float | None = None) -> None:
        """Wait for the workers, until ``time.monotonic()`` says ``deadline``."""
        if os.getpid() != self.process:
            return
        for thread in self.threads:
            if thread is not threading.current_thread() and thread.ident is not None:
                thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))


def _work(ring: _Ring) -> None:
    while (step := ring.claim()) is not None:
        ring.deliver(step, _build_entry(ring.build, step))


_rings: weakref.WeakSet[_Ring] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """End the workers before the interpreter takes their memory away.

    Those that are inside a dataset's own code are not waited for longer than a second: they hold
    Python's lock or wait for it, and so cannot touch freed memory.
    """
    rings = list(_rings)
    for ring in rings:
        ring.close()
    deadline = time.monotonic() + 1.0
    for ring in rings:
        ring.join(deadline)


class BatchSequence:
    """The batches of global steps start, start + 1, ..., stop - 1, in order.

    An iterator, also an asynchronous one. It ends its workers when it is exhausted, when a step
    raised, on ``close()``, on leaving ``with``, and when nobody holds it any more. Use it from
    one thread at a time.

    Args:
        build: a pure function from a global step to its batch.
        start, stop: global steps, start <= stop.
        workers: threads that build ahead; 0 builds on the caller's thread.
        prefetch: how many steps may be built or waiting ahead of the consumer, at least 1.
        finish: applied to each batch on the consumer's thread.
        stats: counters to add to.
        cursor: moved on as batches are taken.
    """

    def __init__(
        self,
        build: Callable[[int], Any],
        start: int,
        stop: int,
        *,
        workers: int,
        prefetch: int,
        finish: Callable[[Any], Any] | None,
        stats: LoaderStats,
        cursor: Cursor,
    ) -> None:
        self._build = build
        self._next = start
        self._stop = stop
        self._finish = finish
        self._stats = stats
        self._cursor = cursor
        self._closed = False
        self._left: float | None = None  # when the consumer went away with a batch
        self._ring: _Ring | None = None
        if workers > 0 and start < stop:
            prefetch = min(prefetch, stop - start)
            self._ring = _Ring(build, start, stop, min(workers, prefetch), prefetch)
            _rings.add(self._ring)
            self._ring.start_threads()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        came = time.perf_counter()
        if self._closed or self._next >= self._stop:
            self.close()
            raise StopIteration
        step = self._next
        try:
            entry, ready = self._take(step)
            if entry.error is not None:
                raise entry.error
            batch = entry.batch
            waited = time.perf_counter() - came
            away = came - self._left if self._left is not None else 0.0
            columns = _columns(batch)
            if self._finish is not None:
                batch = self._finish(batch)
            self._stats.record(entry.seconds, waited, away, ready, *columns)
            self._left = time.perf_counter()
        except StopIteration:
            raise
        except BaseException:
            # Without waiting for the workers: Ctrl-C must not hang on a slow dataset.
            self._closed = True
            if self._ring is not None:
                self._ring.close()
            raise
        # Last, with no call behind it in which a Ctrl-C could lose the batch.
        self._next = self._cursor.next_step = step + 1
        return batch

    def _take(self, step: int) -> tuple[_Entry, int]:
        if self._ring is None:
            return _build_entry(self._build, step), 0
        if os.getpid() != self._ring.process:
            raise RuntimeError(
                f"this iterator's worker threads live in process {self._ring.process} and did "
                f"not come along when it forked into {os.getpid()}; start a new pass here"
            )
        taken = self._ring.take()
        if taken is None:
            raise StopIteration
        return taken

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        """Let the event loop run, then return the next batch."""
        await asyncio.sleep(0)
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    def close(self) -> None:
        """End the workers and wait for them; a further ``next`` raises StopIteration."""
        self._closed = True
        if self._ring is not None:
            self._ring.close()
            self._ring.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        # not close(): a finaliser may run on any thread, also on a worker, and must not wait
        with contextlib.suppress(AttributeError):
            if self._ring is not None:
                self._ring.close()


def _columns(batch: Any) -> tuple[int, int]:
    """Image columns before and after padding."""
    try:
        return batch.real_columns, len(batch.widths) * batch.images.shape[3]
    except AttributeError:
        return 0, 0

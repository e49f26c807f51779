"""``BatchSequence``: the iterator over a pass, and every way in which it ends.

Source: docs/specification.md, section "Delivery".
"""

from __future__ import annotations

import asyncio
import operator
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, NoReturn, Self

from onemodel._common.integers import TWO_64
from onemodel._engine.consumer import take, wait_ready
from onemodel._engine.prefetch import Cursor, Pass, Prefetcher

__all__ = ["BatchSequence"]


class BatchSequence:
    """The batches of a pass in order: an iterator, also an asynchronous one.

    Nothing is decided or started before the first ``next``: an iterator that nobody uses changes
    nothing. The pass ends when it is exhausted, when a step raised, on ``close()``, on leaving
    ``with``, and when nobody holds the iterator any more. Threads that share it get each batch
    once.

    Args:
        decide: called at the first ``next``: the pass to run, who builds it, and its number there.
        finish: applied to each batch on the consumer's thread.
        again: from the next global step, or None before the first ``next``, to a tuple of the
            loader's method and the arguments that make a sequence of what remains.
    """

    def __init__(
        self,
        decide: Callable[[], tuple[Pass, Prefetcher, int]],
        release: Callable[[Prefetcher], None],
        finish: Callable[[Any, int], Any] | None,
        again: Callable[[int | None], tuple[Any, ...]],
    ) -> None:
        self._again = again
        self._decide: Callable[[], tuple[Pass, Prefetcher, int]] | None = decide
        self._release = release
        self._finish = finish
        self._begun = threading.Lock()
        self._prefetcher: Prefetcher | None = None
        self._cursor = Cursor(0)
        self._goes_on = False
        self._number = 0
        self._closed = False
        self._failed: str | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        prefetcher = self._prefetcher or self._begin()
        if prefetcher is None:
            self._raise_end()
        step = None
        try:
            taken = take(prefetcher.ring, self._number)
            if taken is not None:
                step, batch, error = taken
                if step >= prefetcher.plan_at:
                    prefetcher.plan_ahead(step)
                if error is not None:
                    raise error
                if self._finish is not None:
                    batch = self._finish(batch, step)
                limit = prefetcher.limit
                if limit is not None and limit.due():
                    prefetcher.measure()
        except BaseException as error:
            # Without waiting for the workers: Ctrl-C must not hang on a slow dataset.
            self._fail(step, error)
            raise
        if taken is None:
            self._end(keep=self._goes_on)
            self._raise_end()
        # Last, with no call after it in which a Ctrl-C could lose the batch.
        self._cursor.next_step = taken[0] + 1
        return batch

    def _begin(self) -> Prefetcher | None:
        with self._begun:  # by one of the threads that share the iterator
            if self._prefetcher is None and self._decide is not None and not self._closed:
                run, prefetcher, self._number = self._decide()
                self._decide = None
                self._goes_on = run.goes_on
                self._cursor = run.cursor
                self._prefetcher = prefetcher
            return self._prefetcher

    def _raise_end(self) -> NoReturn:
        if self._failed is not None:
            raise RuntimeError(self._failed)
        raise StopIteration

    def _fail(self, step: int | None, error: BaseException) -> None:
        """End the pass after ``step``, or where it stands, because of ``error``."""
        at = self._cursor.next_step if step is None else step
        self._failed = (
            f"this pass ended at global step {at} with {type(error).__name__}; "
            f"loader.steps({at}) tries that step again"
        )
        if at + 1 < TWO_64:
            self._failed += f", loader.steps({at + 1}) goes on after it"
        self._end(keep=False)

    def _end(self, keep: bool) -> None:
        """Give the threads back to the loader."""
        self._closed = True
        prefetcher = self._prefetcher
        # of several threads that find the end one gives the ring back: then it is another pass's
        if prefetcher is not None and prefetcher.ring.detach(self._number, keep):
            self._release(prefetcher)
        self._prefetcher = None  # last: after a Ctrl-C before it this is done again

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how the remaining steps are made again, by another copy of the loader."""
        begun = None if self._decide is not None else self._cursor.next_step
        ended = {"_closed": True, "_failed": self._failed} if self._closed else None
        # a deep copy copies arguments only, and so the loader of a method that is one of them
        return operator.call, self._again(begun), ended

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        """Return the next batch; the event loop runs while a worker builds it."""
        prefetcher = self._prefetcher if self._prefetcher is not None else self._begin()
        if prefetcher is not None:
            prefetcher.keep_one_worker()
        if (
            prefetcher is not None
            and prefetcher.ring.workers_alive
            and not prefetcher.ring.is_ready
        ):
            await _in_a_thread(partial(wait_ready, prefetcher.ring, self._number))
        else:
            await asyncio.sleep(0)
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None

    def close(self) -> None:
        """End the pass and drop what was built ahead; a further ``next`` raises StopIteration."""
        self._end(keep=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        # a finaliser may run on any thread, also on a worker, and must not wait
        if getattr(self, "_prefetcher", None) is not None:
            self._end(keep=False)


async def _in_a_thread(wait: Callable[[], None]) -> None:
    """Call ``wait`` beside the event loop; where that cannot be, let others run once."""
    try:
        loop = asyncio.get_running_loop()
        waiting = loop.run_in_executor(None, wait)
    except RuntimeError:  # no asyncio loop, one that ends, or no further thread
        await asyncio.sleep(0)
    else:
        await waiting

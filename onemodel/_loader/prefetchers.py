"""The prefetchers of one loader: one that is kept from pass to pass, more while several run."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from dataclasses import replace

from onemodel._engine.prefetch import Prefetcher
from onemodel._engine.stats import LoaderStats

__all__ = ["Prefetchers"]


class Prefetchers:
    """Hands a prefetcher to each pass, takes it back, and keeps what they all counted.

    Args:
        make: makes another one.
        depth: of their rings, as the statistics show it.
    """

    def __init__(self, make: Callable[[], Prefetcher], depth: int) -> None:
        self._make = make
        self.all: list[Prefetcher] = []
        self._gone: list[Prefetcher] = []  # not counted yet
        self._stats = LoaderStats(prefetch=depth)  # of those that are gone
        self._counting = threading.Lock()

    def acquire(self) -> Prefetcher:
        """Return the ring and threads of the last pass, or others while another pass has them."""
        for prefetcher in list(self.all):
            if not prefetcher.ring.is_usable:  # closed, or of the process that this one comes from
                self._drop(prefetcher)
            elif prefetcher.claim():
                return prefetcher
        prefetcher = self._make()
        prefetcher.claim()
        self.all.append(prefetcher)
        return prefetcher

    def release(self, prefetcher: Prefetcher) -> None:
        """Take the threads of a pass that has ended; one set of them is kept."""
        if prefetcher in self.all[1:]:
            # never freed: another thread may be about to begin a pass there
            prefetcher.close()
            self._drop(prefetcher)
        else:
            prefetcher.free()

    def _drop(self, prefetcher: Prefetcher) -> None:
        """Forget a ring; what it counted stays."""
        with contextlib.suppress(ValueError):  # another thread was first
            self.all.remove(prefetcher)
            self._count(prefetcher)

    def _count(self, prefetcher: Prefetcher) -> None:
        """Add what a ring counted."""
        # a finaliser may come here anywhere and must not wait: who counts already counts this too
        self._gone.append(prefetcher)
        if self._counting.acquire(blocking=False):
            try:
                while self._gone:
                    self._stats = self._stats.with_counts([self._gone.pop()])
            finally:
                self._counting.release()

    @property
    def running_levels(self) -> list[int]:
        """Of each pass that runs, how many workers may build at once now."""
        return [prefetcher.level for prefetcher in self.all if prefetcher.busy]

    @property
    def stats(self) -> LoaderStats:
        """What all of them counted so far."""
        kept = list(self.all)
        stats = self._stats.with_counts([*kept, *self._gone])
        return replace(stats, workers=kept[0].level) if kept else stats

    def close(self, wait: bool) -> None:
        """End every pass that runs; ``wait`` for the threads or not."""
        closed, self.all = self.all, []
        for prefetcher in closed:
            prefetcher.close()
        for prefetcher in closed:
            if wait:
                prefetcher.join()
            self._count(prefetcher)

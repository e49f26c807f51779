"""What a loader measured of itself, always on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from onemodel._engine.prefetch import Prefetcher
from onemodel._memory.pool import PoolStats

__all__ = ["LoaderStats"]


@dataclass(frozen=True)
class LoaderStats:
    """Sums over all batches that the consumer took, in every pass of the loader.

    Attributes:
        batches: how many were taken.
        build_seconds: time spent building them, over all threads.
        wait_seconds: time the consumer waited for them (without workers: for their building).
        consumer_seconds: time the consumer spent between one batch and its asking for the next.
        ready_batches: batches found finished, summed over the takes.
        prefetch: depth of the ring, 0 without workers.
        workers: threads that may build at once now.
        substitutes: items that could not be read and that others stand for, in all batches that
            were built, also in those that nobody took.
        refused_threads: how often the platform would start no further thread.
        real_columns, padded_columns: pixel columns before and after padding; 0 for arrays.
        pool: the counters of the pool behind the batches.
    """

    batches: int = 0
    build_seconds: float = 0.0
    wait_seconds: float = 0.0
    consumer_seconds: float = 0.0
    ready_batches: int = 0
    prefetch: int = 0
    workers: int = 0
    substitutes: int = 0
    refused_threads: int = 0
    real_columns: int = 0
    padded_columns: int = 0
    pool: PoolStats = field(default_factory=lambda: PoolStats(0, 0, 0, 0))

    @property
    def occupancy(self) -> float:
        """The mean part of the ring that was ready when the consumer came, in [0, 1]."""
        takes = self.batches * self.prefetch
        return min(1.0, self.ready_batches / takes) if takes else 0.0

    @property
    def padding_waste(self) -> float:
        """The part of all image columns that was padding, in [0, 1)."""
        return 1.0 - self.real_columns / self.padded_columns if self.padded_columns else 0.0

    @property
    def bottleneck(self) -> str:
        """One line that says what the run waited for."""
        total = self.wait_seconds + self.consumer_seconds
        if self.batches == 0 or total <= 0:
            return "no batch was taken yet"
        share = self.wait_seconds / total
        if share > 0.1:
            return (
                f"the loader is the bottleneck: the trainer waited for batches "
                f"{share:.0%} of its time"
            )
        return f"the trainer is the bottleneck: it waited for batches only {share:.1%} of its time"

    def with_counts(self, prefetchers: Iterable[Prefetcher]) -> LoaderStats:
        """Return these sums with those of rings added."""
        total = self
        for prefetcher in prefetchers:
            counted: dict[str, Any] = prefetcher.ring.count()
            total = replace(
                total,
                batches=total.batches + counted["batches"],
                build_seconds=total.build_seconds + counted["build_seconds"],
                wait_seconds=total.wait_seconds + counted["wait_seconds"],
                consumer_seconds=total.consumer_seconds + counted["consumer_seconds"],
                ready_batches=total.ready_batches + counted["ready"],
                refused_threads=total.refused_threads + prefetcher.refused,
                real_columns=total.real_columns + counted["real_columns"],
                padded_columns=total.padded_columns + counted["padded_columns"],
            )
        return total

    def __str__(self) -> str:
        return (
            f"{self.batches} batches, built in {self.build_seconds:.3f} s, "
            f"waited {self.wait_seconds:.3f} s, ring {self.occupancy:.0%} full, "
            f"padding {self.padding_waste:.1%}; {self.bottleneck}"
        )

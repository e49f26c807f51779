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
        worker_cpu_seconds: processor time of the worker threads. A clock of the thread, so waiting
            does not count, and two threads count for two. Read after every 16th native batch, and
            before each sleep.
        python_cpu_seconds: of worker_cpu_seconds that of builds in which Python takes part. While
            one runs Python it holds the GIL, and the trainer's Python waits inside its own step.
        consumer_build_cpu_seconds: processor time that the consumer's thread spent inside the
            loader, for batches that it builds itself and for taking those of others.
        consumer_cpu_seconds: processor time of the consumer's thread between two batches: the
            trainer's own. With a native lane both are measured at every 16th batch and scaled.
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
    worker_cpu_seconds: float = 0.0
    python_cpu_seconds: float = 0.0
    consumer_build_cpu_seconds: float = 0.0
    consumer_cpu_seconds: float = 0.0
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
    def build_cpu_seconds(self) -> float:
        """Processor time of building, on worker threads and on the consumer's."""
        return self.worker_cpu_seconds + self.consumer_build_cpu_seconds

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
        text = f"the trainer is the bottleneck: it waited for batches only {share:.1%} of its time"
        python = self.python_cpu_seconds / total
        if python > 0.2:
            text += (
                f", but the workers ran Python for {python:.0%} of it, and take turns with the "
                f"trainer's"
            )
        return text

    def with_counts(self, prefetchers: Iterable[Prefetcher]) -> LoaderStats:
        """Return these sums with those of rings added."""
        total = self
        for prefetcher in prefetchers:
            counted: dict[str, Any] = prefetcher.ring.count()
            scale = counted["batches"] / max(1, counted["cpu_takes"])
            total = replace(
                total,
                batches=total.batches + counted["batches"],
                build_seconds=total.build_seconds + counted["build_seconds"],
                wait_seconds=total.wait_seconds + counted["wait_seconds"],
                consumer_seconds=total.consumer_seconds + counted["consumer_seconds"],
                worker_cpu_seconds=total.worker_cpu_seconds + counted["worker_cpu_seconds"],
                python_cpu_seconds=total.python_cpu_seconds + counted["python_cpu_seconds"],
                consumer_build_cpu_seconds=total.consumer_build_cpu_seconds
                + scale * counted["consumer_build_cpu_seconds"],
                consumer_cpu_seconds=total.consumer_cpu_seconds
                + scale * counted["consumer_cpu_seconds"],
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
            f"padding {self.padding_waste:.1%}; processor time: workers "
            f"{self.worker_cpu_seconds:.3f} s, loader on the consumer's thread "
            f"{self.consumer_build_cpu_seconds:.3f} s, consumer {self.consumer_cpu_seconds:.3f} s"
            f"{self._substitutes_text()}; {self.bottleneck}"
        )

    def _substitutes_text(self) -> str:
        return f"; {self.substitutes} substitutes" if self.substitutes else ""

"""What the arguments of a ``DataLoader`` make: checked values, a sampler, a batch builder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onemodel._builders.array_builder import ArrayBatchBuilder
from onemodel._builders.sample_builder import SampleBatchBuilder
from onemodel._builders.step_builder import BatchBuilder
from onemodel._common import threads
from onemodel._common.describe import describe, shown
from onemodel._common.integers import TWO_63, check_integer
from onemodel._engine.prefetch import call_on_threads
from onemodel._engine.ranks import rank_and_world
from onemodel._memory.pool import BufferPool
from onemodel._samplers.samplers import Sampler, SequentialSampler, ShuffledSampler

__all__ = ["DEPTH", "check_shard", "check_workers", "make_builder", "make_sampler"]

DEPTH = 8  # batches built ahead, where workers do not ask for more
LARGEST_DEPTH = 2**16
AUTOMATIC_WORKERS = 32  # the most that "auto" tries


def check_workers(workers: Any, prefetch: Any) -> tuple[int, int]:
    """Return how many threads may run, and how many batches ahead."""
    if isinstance(workers, str):
        if workers != "auto":
            raise ValueError(f"workers must be an integer or 'auto', got {shown(workers)}")
        wanted = AUTOMATIC_WORKERS
    else:
        wanted = check_integer("workers", workers, 0, 2**16)
    if prefetch is None:
        depth = min(max(DEPTH, 2 * wanted), LARGEST_DEPTH)
    else:
        depth = check_integer("prefetch", prefetch, 1, LARGEST_DEPTH + 1)
    # no two of them build the same step
    return min(wanted, depth) if threads.can_start_threads() else 0, depth


def make_sampler(
    length: int, batch_size: int | None, shuffle: bool, drop_last: bool, sampler: Sampler | None
) -> Sampler:
    """Return the sampler given, or that of the other arguments; it fits a dataset of ``length``."""
    if sampler is None:
        if batch_size is None:
            raise TypeError("batch_size must be given where no sampler is")
        kind = ShuffledSampler if shuffle else SequentialSampler
        return kind(length, batch_size, drop_last=drop_last)
    if batch_size is not None or shuffle or drop_last:
        raise TypeError(
            f"batch_size, shuffle and drop_last must not be given with a sampler, got "
            f"{batch_size}, {shuffle} and {drop_last} beside {describe(sampler)}"
        )
    if not isinstance(sampler, Sampler):
        raise TypeError(
            f"sampler must have steps_per_epoch, batch_size and batch_indices, got {shown(sampler)}"
        )
    reach = getattr(sampler, "n", 0)
    if isinstance(reach, int) and reach > length:
        raise ValueError(
            f"sampler must be for at most the dataset's {length} items, got n = {reach}"
        )
    return sampler


def check_shard(shard: Any, sampler: Sampler) -> tuple[int, int]:
    """Return (rank, world), in which every batch of the sampler can be cut."""
    if isinstance(shard, str) and shard == "env":
        shard = rank_and_world()
    try:
        if isinstance(shard, str):  # one of two characters is no pair
            raise TypeError
        rank, world = shard
    except (TypeError, ValueError):
        raise TypeError(
            f"shard must be a pair (rank, world) or 'env', got {shown(shard)}"
        ) from None
    if not (type(world) is type(rank) is int and 0 <= rank < world < 2**31):
        world = check_integer(f"world of shard {shown(shard)}", world, 1, 2**31)
        rank = check_integer(f"rank of shard {shown(shard)}", rank, 0, world)
    # of batches of several sizes, what they all divide by
    name = "multiple_of" if hasattr(sampler, "multiple_of") else "batch_size"
    size = check_integer(f"{name} of the sampler", getattr(sampler, name), 1, TWO_63)
    if size % world:
        raise ValueError(
            f"{name} must be divisible by the world of shard {shown(shard)}, got {size}"
        )
    return rank, world


def make_builder(
    dataset: Any,
    transform: Callable[..., Any] | None,
    collate: Callable[..., Any] | None,
    pool: BufferPool | None,
) -> tuple[BatchBuilder, Any]:
    """Return the batch builder of the face that the arguments ask for, and its pool."""
    for name, function in (("transform", transform), ("collate", collate)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be callable or None, got {shown(function)}")
    if pool is not None and not isinstance(pool, BufferPool):
        raise TypeError(f"pool must be a BufferPool or None, got {shown(pool)}")
    at_once = call_on_threads if threads.can_start_threads() else None
    if collate is not None:
        if pool is not None:
            raise TypeError("pool must be given to the collator where there is one")
        builder = SampleBatchBuilder(dataset, transform, collate, at_once)
        return builder, getattr(collate, "pool", None)
    if isinstance(dataset, list | tuple):
        raise TypeError(
            f"collate must be given for a dataset of samples such as a "
            f"{type(dataset).__name__}, for example ImageBatchCollator(); wrap arrays "
            f"in an ArrayDataset"
        )
    pool = BufferPool() if pool is None else pool
    return ArrayBatchBuilder(dataset, transform, pool, at_once), pool

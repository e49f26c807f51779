"""Samplers: which dataset indices make the batch of (seed, epoch, step).

Each is a pure function of its constructor's arguments and (seed, epoch, step); it holds no
seed, may be called from several threads at once, and builds nothing per epoch. (Bucketing, the
exception, stands in bucketing.py.) Source: docs/specification.md, section "Samplers".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onemodel._common.integers import TWO_63, TWO_64, check_integer, check_uint64
from onemodel._random.permutation import KeyedPermutation
from onemodel._random.rng import derive
from onemodel._random.streams import ORDER_STREAM
from onemodel._samplers import mixing

__all__ = ["MixingSampler", "Sampler", "SequentialSampler", "ShuffledSampler"]


@runtime_checkable
class Sampler(Protocol):
    """What a loader needs of a sampler; any object with these three serves."""

    @property
    def steps_per_epoch(self) -> int:
        """How many batches an epoch has, at least 1."""

    @property
    def batch_size(self) -> int:
        """How many slots a full batch has; the last of an epoch may have fewer."""

    def batch_indices(self, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the dataset indices of the batch, int64; a pure function of its arguments."""


def count_steps(n: int, batch_size: int, drop_last: bool) -> int:
    """Return the batches of an epoch; an epoch of none is an error, not an endless loop."""
    steps = n // batch_size if drop_last else -(-n // batch_size)
    if steps == 0:
        raise ValueError(
            f"batch_size must be at most n = {n} where drop_last is true, got {batch_size}: "
            "an epoch would have no step"
        )
    return steps


def check_coordinates(sampler: Sampler, seed: Any, epoch: Any, step: Any) -> tuple[int, int, int]:
    """Check the arguments of ``batch_indices``; step must be in [0, steps_per_epoch)."""
    if type(seed) is type(epoch) is type(step) is int and (
        0 <= seed < TWO_64 and 0 <= epoch < TWO_64 and 0 <= step < sampler.steps_per_epoch
    ):
        return seed, epoch, step  # the loader's own, as every batch asks with them
    return (
        check_uint64("seed", seed),
        check_uint64("epoch", epoch),
        check_integer("step", step, 0, sampler.steps_per_epoch),
    )


@lru_cache(maxsize=16, typed=True)
def keyed_order(n: int, seed: int, epoch: int, step: int, stream: int) -> KeyedPermutation:
    """Return the permutation of [0, n) with the key ``derive(seed, epoch, step, 0, stream)``.

    Batches of one epoch ask for the same few again and again.
    """
    return KeyedPermutation(n, derive(seed, epoch, step, 0, stream))


class SequentialSampler:
    """Indices 0, 1, 2, ... in order, the same in every epoch.

    Args:
        n: length of the dataset, in [1, 2**63).
        batch_size: slots of a batch, in [1, 2**31).
        drop_last: leave out the rows that fill no whole batch; else the last batch is short.

    Raises:
        ValueError: also where drop_last leaves an epoch without a step.

    >>> SequentialSampler(5, 2, drop_last=False).batch_indices(seed=0, epoch=0, step=2).tolist()
    [4]
    """

    def __init__(self, n: int, batch_size: int, *, drop_last: bool = True) -> None:
        self.n = check_integer("n", n, 1, TWO_63)
        self.batch_size = check_integer("batch_size", batch_size, 1, 2**31)
        self.drop_last = bool(drop_last)
        self.steps_per_epoch = count_steps(self.n, self.batch_size, self.drop_last)

    def batch_indices(self, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the indices of one batch, int64."""
        _, _, step = check_coordinates(self, seed, epoch, step)
        first = step * self.batch_size
        return np.arange(first, min(first + self.batch_size, self.n), dtype=np.int64)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(n={self.n}, batch_size={self.batch_size}, "
            f"drop_last={self.drop_last})"
        )


class ShuffledSampler(SequentialSampler):
    """Every index once an epoch, in the order of the epoch's keyed permutation.

    Arguments and errors as ``SequentialSampler``. There is no table: the first batch of an epoch
    and one in its middle cost the same for any n.

    >>> ShuffledSampler(10, 4).batch_indices(seed=42, epoch=0, step=0).tolist()
    [9, 2, 8, 4]
    """

    def batch_indices(self, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the indices of one batch, int64."""
        seed, epoch, step = check_coordinates(self, seed, epoch, step)
        first = step * self.batch_size
        return keyed_order(self.n, seed, epoch, 0, ORDER_STREAM)[first : first + self.batch_size]


class MixingSampler:
    """Items of several sources, one after another in the dataset, drawn with given shares.

    Each slot draws its source by the shares, then an item of it uniformly, with replacement: the
    shares hold in expectation.

    Args:
        sizes: number of items of each source, integers >= 0; source i's indices follow those of
            source i - 1.
        shares: one finite number >= 0 for each source; those with items are normalised.
        batch_size: slots of a batch, in [1, 2**31).
        steps_per_epoch: at least 1; None for floor(sum(sizes) / batch_size).

    Raises:
        ValueError: also where no source with items has a share.

    >>> MixingSampler([100, 10], [0.5, 0.5], 4).batch_indices(seed=1, epoch=0, step=0).tolist()
    [51, 58, 45, 54]
    """

    def __init__(
        self,
        sizes: Sequence[int],
        shares: Sequence[float],
        batch_size: int,
        *,
        steps_per_epoch: int | None = None,
    ) -> None:
        self.sizes = tuple(check_integer(f"sizes[{k}]", s, 0, TWO_63) for k, s in enumerate(sizes))
        self.shares = tuple(_share(k, share) for k, share in enumerate(shares))
        self.batch_size = check_integer("batch_size", batch_size, 1, 2**31)
        if len(self.sizes) != len(self.shares):
            raise ValueError(
                f"shares must be one for each of {len(self.sizes)} sizes, got {len(self.shares)}"
            )
        self.n = check_integer("sum(sizes)", sum(self.sizes), 0, TWO_63)
        if steps_per_epoch is None:
            self.steps_per_epoch = count_steps(self.n, self.batch_size, drop_last=True)
        else:
            self.steps_per_epoch = check_integer("steps_per_epoch", steps_per_epoch, 1, TWO_63)
        part = [k for k, size in enumerate(self.sizes) if size > 0 and self.shares[k] > 0]
        if not part:
            raise ValueError(
                f"shares must be above 0 for a source with items, got shares {self.shares} "
                f"for sizes {self.sizes}"
            )
        starts = [0, *accumulate(self.sizes)]
        self._starts = np.array([starts[k] for k in part], np.int64)
        self._sizes = np.array([self.sizes[k] for k in part], np.int64)
        self._cumulative = _cumulative([self.shares[k] for k in part])

    def batch_indices(self, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the indices of one batch, int64."""
        seed, epoch, step = check_coordinates(self, seed, epoch, step)
        out = np.empty(self.batch_size, np.int64)
        mixing.draw_indices(self._cumulative, self._starts, self._sizes, seed, epoch, step, out)
        return out

    def __repr__(self) -> str:
        return (
            f"MixingSampler(sizes={self.sizes}, shares={self.shares}, "
            f"batch_size={self.batch_size}, steps_per_epoch={self.steps_per_epoch})"
        )


def _share(position: int, value: Any) -> float:
    try:
        share = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"shares[{position}] must be a number, got {value!r}") from None
    if not (math.isfinite(share) and share >= 0):
        raise ValueError(f"shares[{position}] must be finite and at least 0, got {share}")
    return share


def _cumulative(shares: list[float]) -> NDArray[np.float64]:
    """Return running sums over their total, in float64 and in order: no pairwise summation."""
    running = [shares[0]]
    for share in shares[1:]:
        running.append(running[-1] + share)
    if not math.isfinite(running[-1]):
        raise ValueError(f"shares must have a finite sum, got {shares}")
    return np.array([each / running[-1] for each in running], np.float64)

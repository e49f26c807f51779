"""Samplers: which dataset indices make the batch of (seed, epoch, step).

Each is a pure function of its constructor's arguments and (seed, epoch, step); it holds no
seed, may be called from several threads at once, and builds nothing per epoch. (Those that make
a plan for each are built on planned.py.) Source: docs/specification.md, section "Samplers".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from operator import attrgetter
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onemodel._common.arguments import check_flag, items
from onemodel._common.configured import Argument, Configured, configure, mark_made_by_init
from onemodel._common.describe import shown
from onemodel._common.integers import TWO_63, check_integer
from onemodel._random.permutation import keyed_order
from onemodel._random.rng import check_coordinates
from onemodel._random.streams import ORDER_STREAM
from onemodel._samplers import draws
from onemodel._simd.float_mode import DefaultFloatMode

__all__ = ["MixingSampler", "Sampler", "SequentialSampler", "ShuffledSampler"]

INT64 = np.dtype(np.int64)


@runtime_checkable
class Sampler(Protocol):
    """What a loader needs of a sampler; any object with these three serves.

    A loader's state compares its attributes, or its ``repr`` if it has one of its own, which then
    shows every argument. An attribute ``n`` tells how many items it samples from, its indices
    being in [0, n); a loader refuses one that samples from more items than its dataset has, and
    shows one that samples from fewer. Where batches have several sizes, an attribute
    ``multiple_of`` tells what they all divide by, for shards.
    """

    @property
    def steps_per_epoch(self) -> int:
        """How many batches an epoch has, at least 1."""

    @property
    def batch_size(self) -> int:
        """How many slots a full batch, or the largest, has; no batch has more."""

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


class OrderSampler(Configured):
    """What the library's samplers share; repr, pickle and refusals are those of ``Configured``.

    A subclass's ``__init__`` checks its arguments and hands them on.

    Args:
        owner: the class whose ``__init__`` it is.
        arguments: the checked arguments by name.
        n: how many items it samples from.
        steps: batches of an epoch.
        size: slots of a full batch, where it is none of the arguments.
    """

    # What __init__ makes of the arguments: a pickle leaves it out.
    _made = frozenset({"_n", "_steps", "_size"})

    batch_size: Argument[int] = Argument("batch_size", "How many slots a full batch has.")

    def __init__(
        self, owner: type, arguments: dict[str, Any], n: int, steps: int, size: int | None = None
    ) -> None:
        configure(self, owner, arguments)
        self._n = n
        self._steps = steps
        self._size: int = arguments["batch_size"] if size is None else size

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        mark_made_by_init(cls, cls._made)

    def __getstate__(self) -> dict[str, Any] | None:
        return {k: value for k, value in self.__dict__.items() if k not in self._made} or None

    @property
    def n(self) -> int:
        """How many items it samples from: its indices are in [0, n)."""
        return self._n

    # Every batch reads it: a property without a call to Python.
    steps_per_epoch: int = property(  # type: ignore[assignment]
        attrgetter("_steps"), doc="How many batches an epoch has."
    )


class SequentialSampler(OrderSampler):
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

    drop_last: Argument[bool] = Argument(
        "drop_last", "Whether the rows that fill no whole batch are left out."
    )

    def __init__(self, n: int, batch_size: int, *, drop_last: bool = True) -> None:
        n = check_integer("n", n, 1, TWO_63)
        batch_size = check_integer("batch_size", batch_size, 1, 2**31)
        drop_last = check_flag("drop_last", drop_last)
        steps = count_steps(n, batch_size, drop_last)
        arguments = {"n": n, "batch_size": batch_size, "drop_last": drop_last}
        super().__init__(SequentialSampler, arguments, n, steps)

    def batch_indices(self, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the indices of one batch, int64."""
        _, _, step = check_coordinates(self.steps_per_epoch, seed, epoch, step)
        first = step * self._size
        return np.arange(first, min(first + self._size, self._n), dtype=np.int64)


class ShuffledSampler(SequentialSampler):
    """Every index once an epoch, in the order of the epoch's keyed permutation.

    Arguments and errors as ``SequentialSampler``. There is no table: the first batch of an epoch
    and one in its middle cost the same for any n.

    >>> ShuffledSampler(10, 4).batch_indices(seed=42, epoch=0, step=0).tolist()
    [9, 2, 8, 4]
    """

    def batch_indices(self, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the indices of one batch, int64."""
        seed, epoch, step = check_coordinates(self.steps_per_epoch, seed, epoch, step)
        first = step * self._size
        return keyed_order(self._n, seed, epoch, 0, ORDER_STREAM)[first : first + self._size]


class MixingSampler(OrderSampler):
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

    _made = OrderSampler._made | {"_sources"}

    sizes: Argument[tuple[int, ...]] = Argument("sizes", "The number of items of each source.")
    shares: Argument[tuple[float, ...]] = Argument("shares", "The share of each source, as given.")

    def __init__(
        self,
        sizes: Sequence[int],
        shares: Sequence[float],
        batch_size: int,
        *,
        steps_per_epoch: int | None = None,
    ) -> None:
        checked = tuple(
            check_integer(f"sizes[{k}]", size, 0, TWO_63)
            for k, size in enumerate(_items("sizes", sizes))
        )
        parts = tuple(_share(k, share) for k, share in enumerate(_items("shares", shares)))
        batch_size = check_integer("batch_size", batch_size, 1, 2**31)
        if len(checked) != len(parts):
            raise ValueError(
                f"shares must be one for each of {len(checked)} sizes, got {len(parts)}"
            )
        n = check_integer("sum(sizes)", sum(checked), 0, TWO_63)
        if steps_per_epoch is None:
            steps = count_steps(n, batch_size, drop_last=True)
        else:
            steps = check_integer("steps_per_epoch", steps_per_epoch, 1, TWO_63)
        takes_part = [k for k, size in enumerate(checked) if size > 0 and parts[k] > 0]
        if not takes_part:
            raise ValueError(
                f"shares must be above 0 for a source with items, got shares {parts} "
                f"for sizes {checked}"
            )
        starts = [0, *accumulate(checked)]
        sources = (
            _cumulative([parts[k] for k in takes_part]),
            np.array([starts[k] for k in takes_part], np.int64),
            np.array([checked[k] for k in takes_part], np.int64),
        )
        for array in sources:
            array.flags.writeable = False
        arguments = {
            "sizes": checked,
            "shares": parts,
            "batch_size": batch_size,
            "steps_per_epoch": steps,
        }
        super().__init__(MixingSampler, arguments, n, steps)
        self._sources = sources

    @property
    def sources(self) -> tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]]:
        """Of the sources that take part: cumulative shares, first indices, sizes; read-only."""
        return self._sources

    def batch_indices(self, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the indices of one batch, int64."""
        seed, epoch, step = check_coordinates(self.steps_per_epoch, seed, epoch, step)
        out = np.empty(self._size, INT64)
        draws.draw_indices(*self._sources, seed, epoch, step, out)
        return out


def _items(name: str, values: Any) -> list[Any]:
    """Return what stands in a sequence of numbers."""
    found = items(values)
    if found is None:
        raise TypeError(f"{name} must be a sequence of numbers, got {shown(values)}")
    return found


def _share(position: int, value: Any) -> float:
    name = f"shares[{position}]"
    if isinstance(value, bool | np.bool_ | str | bytes | bytearray | np.ndarray):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    try:
        share = float(value)
    except OverflowError:
        share = math.inf
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {shown(value)}") from None
    if not (math.isfinite(share) and share >= 0):
        raise ValueError(f"{name} must be finite and at least 0, got {share}")
    return share


def _cumulative(shares: list[float]) -> NDArray[np.float64]:
    """Return running sums over their total, in float64 and in order: no pairwise summation."""
    with DefaultFloatMode():  # whatever the thread that makes the sampler was set to
        running = [shares[0]]
        for share in shares[1:]:
            running.append(running[-1] + share)
        if not math.isfinite(running[-1]):
            raise ValueError(f"shares must have a finite sum, got {shares}")
        return np.array([each / running[-1] for each in running], np.float64)

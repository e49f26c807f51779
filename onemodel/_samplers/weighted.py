"""The weighted sampler: items drawn by weights, with or without replacement.

Source: docs/specification.md, section "Samplers", weighted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onemodel._common.arguments import check_flag
from onemodel._common.configured import Argument
from onemodel._common.integers import TWO_63, check_integer
from onemodel._random.rng import SampleRng, check_coordinates, derive
from onemodel._random.streams import WEIGHTED_ORDER_STREAM
from onemodel._samplers import draws
from onemodel._samplers.per_item import check_weights
from onemodel._samplers.planned import PlannedSampler
from onemodel._samplers.samplers import count_steps
from onemodel._simd.float_mode import DefaultFloatMode

__all__ = ["WeightedSampler"]

LN_2 = float.fromhex("0x1.62e42fefa39efp-1")
LAST_ODD = 25  # of the series of the logarithm


class WeightedSampler(PlannedSampler):
    """Items drawn with given weights.

    With replacement each slot draws an item by itself, from a table made once: a batch costs the
    same for any n. Without replacement an epoch has each item at most once, in the order in which
    they would be drawn one after another, each by its weight among those that are left. So items
    of large weight come early in an epoch. That order is a plan, made once an epoch in O(n log n).

    The weights need not sum to 1. They are rounded to integers of about 62 bits less those of n,
    and an item of weight 0 is never drawn.

    Args:
        weights: finite numbers [n] >= 0, n in [1, 2**32), one of them above 0.
        batch_size: slots of a batch, in [1, 2**31).
        replacement: whether an item can be drawn more than once in an epoch.
        steps_per_epoch: None for as many batches as there are items to draw: all n, or without
            replacement those of weight above 0. A number, at least 1, of whole batches; without
            replacement at most as many as None gives, and an epoch then leaves some items out.
        drop_last: where an epoch draws all items, leave out what fills no whole batch; else the
            last batch is short.

    Raises:
        ValueError: also where an epoch would have no step.

    >>> sampler = WeightedSampler([1, 0, 9], 6, steps_per_epoch=2)
    >>> [sampler.batch_indices(seed=1, epoch=0, step=step).tolist() for step in range(2)]
    [[2, 2, 2, 2, 2, 2], [0, 2, 0, 2, 2, 2]]
    >>> WeightedSampler([1, 0, 9, 5], 3, replacement=False).batch_indices(1, 0, 0).tolist()
    [2, 3, 0]
    """

    _made = PlannedSampler._made | {"_table", "_total"}

    weights: Argument[NDArray[np.float64]] = Argument(
        "weights", "The weight of each item: a copy of what was given, in float64, read-only."
    )
    replacement: Argument[bool] = Argument(
        "replacement", "Whether an item can be drawn more than once in an epoch."
    )
    drop_last: Argument[bool] = Argument(
        "drop_last", "Whether the items that fill no whole batch are left out."
    )

    def __init__(
        self,
        weights: ArrayLike,
        batch_size: int,
        *,
        replacement: bool = True,
        steps_per_epoch: int | None = None,
        drop_last: bool = True,
    ) -> None:
        checked = check_weights(weights)
        n = check_integer("len(weights)", len(checked), 1, 2**32)
        batch_size = check_integer("batch_size", batch_size, 1, 2**31)
        replacement = check_flag("replacement", replacement)
        drop_last = check_flag("drop_last", drop_last)
        amounts = integer_weights(checked)
        drawable = n if replacement else int(np.count_nonzero(amounts))
        if steps_per_epoch is None:
            steps = count_steps(drawable, batch_size, drop_last)
            rows = min(steps * batch_size, drawable)
        elif replacement:
            steps = check_integer("steps_per_epoch", steps_per_epoch, 1, TWO_63)
            rows = steps * batch_size
        else:
            most = count_steps(drawable, batch_size, drop_last)
            steps = check_integer("steps_per_epoch", steps_per_epoch, 1, most + 1)
            rows = min(steps * batch_size, drawable)
        arguments = {
            "weights": checked,
            "batch_size": batch_size,
            "replacement": replacement,
            "steps_per_epoch": None if steps_per_epoch is None else steps,
            "drop_last": drop_last,
        }
        super().__init__(WeightedSampler, arguments, n, steps, rows)
        self._table = np.empty((n if replacement else 0, 2), np.uint64)
        self._total = draws.fill_alias_table(amounts, self._table) if replacement else 0
        self._table.flags.writeable = False

    @property
    def alias_table(self) -> tuple[NDArray[np.uint64], int]:
        """The thresholds and aliases, uint64 [n, 2], and the thresholds' range; read-only.

        Without replacement the table is empty.
        """
        return self._table, self._total

    def batch_indices(self, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the indices of one batch, int64."""
        seed, epoch, step = check_coordinates(self.steps_per_epoch, seed, epoch, step)
        first = step * self._size
        if not self.replacement:
            return self.plan(seed, epoch)[first : first + self._size].copy()
        out = np.empty(max(0, min(self._size, self._rows - first)), np.int64)
        draws.draw_weighted(self._table, self._total, seed, epoch, step, out)
        return out

    def plan(self, seed: int, epoch: int) -> NDArray[np.int64]:
        """Return the epoch's indices in the order in which they are drawn; read-only.

        Raises:
            ValueError: with replacement, where there is no plan.
        """
        if self.replacement:
            raise ValueError("replacement must be False where a plan is asked for, got True")
        return super().plan(seed, epoch)

    def _build(self, seed: int, epoch: int) -> NDArray[np.int64]:
        uniform = SampleRng(derive(seed, epoch, 0, 0, WEIGHTED_ORDER_STREAM)).random(self.n)
        amounts = integer_weights(self.weights)
        drawn = np.flatnonzero(amounts)
        with DefaultFloatMode():
            times = exponentials(uniform[drawn]) / amounts[drawn].astype(np.float64)
        return drawn[np.argsort(times, kind="stable")[: self._rows]].astype(np.int64)


def integer_weights(weights: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return the weights as integers: a power of two times each, to nearest, ties to even.

    The largest has 63 bits less those of n, so that n times it is below 2**63. A weight above 0
    stays above 0.
    """
    with DefaultFloatMode(), np.errstate(all="ignore"):
        exponent = int(np.frexp(weights.max())[1])
        scaled = np.rint(np.ldexp(weights, 63 - len(weights).bit_length() - exponent))
        return np.where(weights > 0, np.maximum(scaled, 1), 0).astype(np.uint64)


def exponentials(uniform: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return -ln(1 - u), good to 13 digits and the same bits on every platform.

    It is made of + - * / in one order. 1 - u is m * 2**x with m in [1/2, 1); ln(m) is
    2 artanh((m - 1) / (m + 1)), by its series.
    """
    fraction, exponent = np.frexp(1.0 - uniform)
    ratio = (fraction - 1.0) / (fraction + 1.0)
    square = ratio * ratio
    series = np.full(len(uniform), 1.0 / LAST_ODD)
    for odd in range(LAST_ODD - 2, 0, -2):
        product = series * square
        series = product + 1.0 / odd
    logarithm = 2.0 * ratio * series
    times: NDArray[np.float64] = exponent * -LN_2 - logarithm
    return times

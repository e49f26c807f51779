"""The budget sampler: batches of as many items as a budget of columns holds.

Source: docs/specification.md, section "Samplers", budget.
"""

from __future__ import annotations

import bisect

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onemodel._common.configured import Argument
from onemodel._common.integers import TWO_63, check_integer
from onemodel._random.permutation import keyed_order
from onemodel._random.rng import check_coordinates
from onemodel._random.streams import BUDGET_PLACE_STREAM, GROUP_STREAM
from onemodel._samplers.per_item import PerItemSampler, check_lengths

__all__ = ["BudgetSampler"]


class BudgetSampler(PerItemSampler):
    """Batches of like lengths whose items times their longest length stay within a budget.

    Short items come in large batches, long ones in small batches. The items, longest first, are
    cut once into groups of about ``pool_batches`` batches; an epoch shuffles the items inside each
    group, and the batches. A larger group shuffles more and pads more. Steps and sizes are the
    same in every epoch, and there is no plan: a batch anywhere costs the same.

    Every item comes once an epoch, but for fewer than ``multiple_of``, other ones each time.

    Args:
        lengths: integers [n] in [0, 2**32), n in [1, 2**32): the length of each item. A length of
            0 counts as 1.
        budget: the most that a batch's items times its longest length may be, in [1, 2**63).
        multiple_of: each batch's items are divisible by it: the number of ranks.
        largest_batch: the most items of a batch, in [1, 2**31); None for what the budget allows.
        pool_batches: batches whose items are shuffled together, at least 1.

    Raises:
        ValueError: also where the budget does not hold ``multiple_of`` of the longest items.

    >>> sampler = BudgetSampler([9, 2, 3, 8, 2, 3, 2], 12, pool_batches=1)
    >>> [sampler.batch_indices(seed=0, epoch=0, step=step).tolist() for step in range(4)]
    [[3], [4, 1], [5, 2, 6], [0]]
    """

    _made = PerItemSampler._made | {"_order", "_groups", "_first_batches"}

    lengths: Argument[NDArray[np.int64]] = Argument(
        "lengths", "The length of each item: a copy of what was given, read-only."
    )
    budget: Argument[int] = Argument("budget", "The most of a batch's items times their length.")
    multiple_of: Argument[int] = Argument("multiple_of", "What each batch's items divide by.")
    largest_batch: Argument[int | None] = Argument(
        "largest_batch", "The most items of a batch, as given."
    )
    pool_batches: Argument[int] = Argument(
        "pool_batches", "How many batches' items are shuffled together."
    )

    def __init__(
        self,
        lengths: ArrayLike,
        budget: int,
        *,
        multiple_of: int = 1,
        largest_batch: int | None = None,
        pool_batches: int = 8,
    ) -> None:
        checked = check_lengths(lengths)
        n = check_integer("len(lengths)", len(checked), 1, 2**32)
        multiple_of = check_integer("multiple_of", multiple_of, 1, 2**31)
        budget = check_integer("budget", budget, 1, TWO_63)
        most = 2**31 - 1
        if largest_batch is not None:
            most = check_integer("largest_batch", largest_batch, multiple_of, 2**31)
        pool_batches = check_integer("pool_batches", pool_batches, 1, 2**31)
        if n < multiple_of:
            raise ValueError(f"multiple_of must be at most n = {n}, got {multiple_of}")
        needed = multiple_of * max(int(checked.max()), 1)
        if budget < needed:
            raise ValueError(
                f"budget must be at least {needed}, multiple_of times the longest length, "
                f"got {budget}"
            )
        # unique keys, the longest first: the order does not depend on the sort algorithm
        keys = (np.uint64(2**32 - 1) - checked.astype(np.uint64)) << np.uint64(32)
        keys |= np.arange(n, dtype=np.uint64)
        keys.sort()
        order = (keys & np.uint64(2**32 - 1)).astype(np.int64)
        groups = _groups(checked[order], budget, multiple_of, most, pool_batches)
        _, items, first_batch, batches = groups
        steps = int(first_batch[-1] + batches[-1])
        units = items // multiple_of
        size = int((-(-units // batches)).max()) * multiple_of
        arguments = {
            "lengths": checked,
            "budget": budget,
            "multiple_of": multiple_of,
            "largest_batch": largest_batch if largest_batch is None else most,
            "pool_batches": pool_batches,
        }
        super().__init__(BudgetSampler, arguments, n, steps, size)
        self._order, self._groups = order, groups
        self._first_batches = first_batch.tolist()
        for array in (order, groups):
            array.flags.writeable = False

    @property
    def batch_size(self) -> int:  # type: ignore[override]
        """How many slots the largest batch has."""
        return self._size

    @property
    def groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """All indices, the longest items first, and the groups they are cut into; read-only.

        Of each group, int64 [4, groups]: first position, items, first batch, batches.
        """
        return self._order, self._groups

    def batch_indices(self, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the indices of one batch, int64."""
        seed, epoch, step = check_coordinates(self.steps_per_epoch, seed, epoch, step)
        place = keyed_order(self.steps_per_epoch, seed, epoch, 0, BUDGET_PLACE_STREAM)
        batch = place.inverse(step)
        group = bisect.bisect_right(self._first_batches, batch) - 1
        first, items, first_batch, batches = self._groups[:, group].tolist()
        units, number = items // self.multiple_of, batch - first_batch
        begin = number * units // batches * self.multiple_of
        end = (number + 1) * units // batches * self.multiple_of
        shuffled = keyed_order(items, seed, epoch, group, GROUP_STREAM)
        indices: NDArray[np.int64] = self._order[first + shuffled[begin:end]]
        return indices


def _groups(
    lengths: NDArray[np.int64], budget: int, multiple_of: int, most: int, pool_batches: int
) -> NDArray[np.int64]:
    """Cut lengths in descending order into groups, as ``BudgetSampler.groups`` shows them."""
    groups = []
    n, first, batch = len(lengths), 0, 0
    while first < n:
        held = min(budget // max(int(lengths[first]), 1), most) // multiple_of
        items = min(pool_batches * held * multiple_of, n - first)
        if n - first - items < held * multiple_of:  # too few for a batch of their own
            items = n - first
        batches = -(-(items // multiple_of) // held)
        groups.append((first, items, batch, batches))
        first, batch = first + items, batch + batches
    return np.array(groups, np.int64).T.copy()

"""The bucketed sampler: batches of like lengths, in an order that is still shuffled.

Source: docs/specification.md, section "Samplers", bucketed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onemodel._common.arguments import check_flag
from onemodel._common.configured import Argument
from onemodel._common.integers import check_integer
from onemodel._random.permutation import keyed_order
from onemodel._random.rng import check_coordinates
from onemodel._random.streams import PLACE_STREAM, POOL_STREAM, SLOT_STREAM
from onemodel._samplers.per_item import check_lengths
from onemodel._samplers.planned import PlannedSampler
from onemodel._samplers.samplers import count_steps

__all__ = ["BucketedSampler"]


class BucketedSampler(PlannedSampler):
    """Shuffle, cut into pools, sort each pool by length, shuffle the batches.

    A larger pool pads less and shuffles less. The plan of an epoch takes O(n log n); those of
    the last two epochs asked for are kept, and each is built once even when several threads ask
    for it together.

    Args:
        lengths: integers [n] in [0, 2**32), n in [1, 2**32): the length of each item.
        batch_size: slots of a batch, in [1, 2**31).
        pool_batches: batches that are sorted together, at least 1.
        drop_last: leave out the items that fill no whole batch; else one batch is short, and it
            can stand anywhere in the epoch.
        shuffle_slots: put the items of each batch in a keyed order, so that the shards of several
            ranks are alike. Without it they ascend by length, and the last rank has the longest.

    >>> sampler = BucketedSampler([5, 1, 4, 2, 3, 6], 2, pool_batches=3)
    >>> [sampler.batch_indices(seed=0, epoch=0, step=step).tolist() for step in range(3)]
    [[4, 2], [1, 3], [0, 5]]
    """

    _made = PlannedSampler._made | {"_shuffled"}

    lengths: Argument[NDArray[np.int64]] = Argument(
        "lengths", "The length of each item: a copy of what was given, read-only."
    )
    pool_batches: Argument[int] = Argument("pool_batches", "How many batches are sorted together.")
    drop_last: Argument[bool] = Argument(
        "drop_last", "Whether the items that fill no whole batch are left out."
    )
    shuffle_slots: Argument[bool] = Argument(
        "shuffle_slots", "Whether a batch's items stand in a keyed order."
    )

    def __init__(
        self,
        lengths: ArrayLike,
        batch_size: int,
        *,
        pool_batches: int = 64,
        drop_last: bool = True,
        shuffle_slots: bool = False,
    ) -> None:
        checked = check_lengths(lengths)
        n = check_integer("len(lengths)", len(checked), 1, 2**32)
        batch_size = check_integer("batch_size", batch_size, 1, 2**31)
        pool_batches = check_integer("pool_batches", pool_batches, 1, 2**31)
        drop_last = check_flag("drop_last", drop_last)
        shuffle_slots = check_flag("shuffle_slots", shuffle_slots)
        arguments = {
            "lengths": checked,
            "batch_size": batch_size,
            "pool_batches": pool_batches,
            "drop_last": drop_last,
            "shuffle_slots": shuffle_slots,
        }
        steps = count_steps(n, batch_size, drop_last)
        rows = steps * batch_size if drop_last else n
        super().__init__(BucketedSampler, arguments, n, steps, rows)
        self._shuffled = shuffle_slots

    def batch_indices(self, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the indices of one batch, int64."""
        steps = self.steps_per_epoch
        seed, epoch, step = check_coordinates(steps, seed, epoch, step)
        first = keyed_order(steps, seed, epoch, 1, PLACE_STREAM).inverse(step) * self._size
        batch = self.plan(seed, epoch)[first : first + self._size]
        if not (self._shuffled and len(batch) > 1):
            return batch.copy()
        return batch[keyed_order(len(batch), seed, epoch, step, SLOT_STREAM)[:]]

    def _build(self, seed: int, epoch: int) -> NDArray[np.int64]:
        kept = self._rows
        indices = keyed_order(self.n, seed, epoch, 0, POOL_STREAM)[:kept]
        # Unique keys: the sorted order does not depend on the sort algorithm.
        keys = (self.lengths[indices].astype(np.uint64) << np.uint64(32)) | indices.astype(
            np.uint64
        )
        pool = self.batch_size * self.pool_batches
        whole = kept - kept % pool
        keys[:whole].reshape(-1, pool).sort(axis=1)
        keys[whole:].sort()
        return (keys & np.uint64(0xFFFFFFFF)).astype(np.int64)

    def _shown(self) -> dict[str, Any]:
        shown = super()._shown()
        if not self.shuffle_slots:  # a state of before the option compares equal
            del shown["shuffle_slots"]
        return shown

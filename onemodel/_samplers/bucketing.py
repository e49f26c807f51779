"""The bucketed sampler: batches of like lengths, in an order that is still shuffled.

Source: docs/specification.md, section "Samplers", bucketed.
"""

from __future__ import annotations

import hashlib
import os
import threading

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onemodel._common.arguments import check_flag
from onemodel._common.arrays import plain_array
from onemodel._common.configured import Argument
from onemodel._common.integers import check_integer, check_uint64
from onemodel._random.permutation import keyed_order
from onemodel._random.rng import check_coordinates
from onemodel._random.streams import PLACE_STREAM, POOL_STREAM, SLOT_STREAM
from onemodel._samplers.samplers import OrderSampler, count_steps

__all__ = ["BucketedSampler"]


class BucketedSampler(OrderSampler):
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

    _made = OrderSampler._made | {"_plans", "_lock", "_process", "_lengths_digest", "_shuffled"}

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
        checked = _checked(lengths)
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
        super().__init__(BucketedSampler, arguments, n, steps)
        self._shuffled = shuffle_slots
        self._plans: dict[tuple[int, int], NDArray[np.int64]] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._lengths_digest: str | None = None

    def batch_indices(self, seed: int, epoch: int, step: int) -> NDArray[np.int64]:
        """Return the indices of one batch, int64."""
        steps = self.steps_per_epoch
        seed, epoch, step = check_coordinates(steps, seed, epoch, step)
        first = keyed_order(steps, seed, epoch, 1, PLACE_STREAM).inverse(step) * self._size
        batch = self.plan(seed, epoch)[first : first + self._size]
        if not (self._shuffled and len(batch) > 1):
            return batch.copy()
        return batch[keyed_order(len(batch), seed, epoch, step, SLOT_STREAM)[:]]

    def plan(self, seed: int, epoch: int) -> NDArray[np.int64]:
        """Return the epoch's indices, batch after batch in sorted order; read-only.

        A batch's place in the epoch is drawn for each; ``batch_indices`` knows it.
        """
        # an integer only: True, which equals 1, is no seed
        plan = self._plans.get((seed, epoch)) if type(seed) is type(epoch) is int else None
        if plan is None:
            key = (check_uint64("seed", seed), check_uint64("epoch", epoch))
            if self._process != os.getpid():  # a forked child may have inherited a taken lock
                self._lock, self._process = threading.Lock(), os.getpid()
            with self._lock:
                plan = self._plans.get(key)
                if plan is None:
                    plan = self._build(*key)
                    plan.flags.writeable = False
                    self._plans = {**dict(list(self._plans.items())[-1:]), key: plan}
        return plan

    def _build(self, seed: int, epoch: int) -> NDArray[np.int64]:
        kept = self.steps_per_epoch * self.batch_size if self.drop_last else self.n
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

    def __repr__(self) -> str:
        if self._lengths_digest is None:
            data = self.lengths.astype("<i8").tobytes()
            self._lengths_digest = hashlib.sha256(data).hexdigest()
        return (
            f"{type(self).__name__}(lengths=<{self.n}, sha256 {self._lengths_digest}>, "
            f"batch_size={self.batch_size}, pool_batches={self.pool_batches}, "
            f"drop_last={self.drop_last}{', shuffle_slots=True' if self.shuffle_slots else ''})"
        )


def _checked(lengths: ArrayLike) -> NDArray[np.int64]:
    values = plain_array("lengths", lengths)
    if values.ndim != 1:
        raise ValueError(f"lengths must have one dimension, got shape {list(values.shape)}")
    if values.size and values.dtype.kind not in "iu":
        raise TypeError(f"lengths must be integers, got {values.dtype}")
    if values.size and not (values.min() >= 0 and values.max() < 2**32):
        raise ValueError(
            f"lengths must be in [0, 2**32), got {int(values.min())} to {int(values.max())}"
        )
    checked = np.array(values, np.int64)
    checked.flags.writeable = False
    return checked

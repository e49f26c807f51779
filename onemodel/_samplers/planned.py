"""Samplers whose epochs each have a plan: all indices of the epoch, made once and kept."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._common.integers import check_uint64
from onemodel._samplers.per_item import PerItemSampler

__all__ = ["PlannedSampler"]

KEPT_PLANS = 2  # epochs: the one that runs, and the one before it or to come


class PlannedSampler(PerItemSampler):
    """A sampler with plans; a subclass says in ``_build`` how one is made.

    Those of the last two epochs asked for are kept. Each is built once even when several threads
    ask for it together.

    Args:
        rows: indices of an epoch.
    """

    _made = PerItemSampler._made | {"_plans", "_lock", "_process", "_rows"}

    def __init__(
        self, owner: type, arguments: dict[str, Any], n: int, steps: int, rows: int
    ) -> None:
        super().__init__(owner, arguments, n, steps)
        self._rows = rows
        self._plans: dict[tuple[int, int], NDArray[np.int64]] = {}
        self._lock = threading.Lock()
        self._process = os.getpid()

    @property
    def rows_per_epoch(self) -> int:
        """How many indices an epoch gives, over all of its batches."""
        return self._rows

    def plan(self, seed: int, epoch: int) -> NDArray[np.int64]:
        """Return the epoch's indices, batch after batch; read-only.

        A sampler may give the batches out in another order; ``batch_indices`` knows it.
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
                    # the oldest goes first: no more than these are ever in memory
                    kept = dict(list(self._plans.items())[1 - KEPT_PLANS :])
                    self._plans = kept
                    plan = self._build(*key)
                    plan.flags.writeable = False
                    self._plans = {**kept, key: plan}
        return plan

    def _build(self, seed: int, epoch: int) -> NDArray[np.int64]:
        raise NotImplementedError

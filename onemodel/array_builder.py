"""The batch builder of the array face."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onemodel.keys import BatchKey
from onemodel.pool import BufferPool
from onemodel.rng import slot_rng

__all__ = ["ArrayBatchBuilder"]


class ArrayBatchBuilder:
    """Gather a batch and transform it as a whole."""

    def __init__(
        self, dataset: Any, transform: Callable[..., Any] | None, pool: BufferPool
    ) -> None:
        self._dataset = dataset
        self._transform = transform

    def build(self, key: BatchKey) -> Any:
        """Return the batch of ``key``."""
        arrays = self._dataset[key.indices]
        if self._transform is None:
            return arrays
        return self._transform(slot_rng(key.seed, key.epoch, key.step, key.first_slot, 0), arrays)

"""How a builder reads the items of a batch, and counts those that others stand for."""

from __future__ import annotations

import threading
from typing import Any

from onemodel._batch.key import BatchKey
from onemodel.datasets import Items
from onemodel.datasets._items.items import ItemBatch, Run

__all__ = ["ItemReader"]


class ItemReader:
    """Reads items for a builder, on any thread.

    Attributes:
        substitutes: how many items were replaced so far, in all batches that were built.

    Args:
        items: the dataset.
        run: how several functions are called at once; None for one after another.
    """

    def __init__(self, items: Items, run: Run | None) -> None:
        self.items = items
        self.substitutes = 0
        self._run = run
        self._lock = threading.Lock()

    def read(self, key: BatchKey) -> ItemBatch:
        """Return the items of the slots of ``key``."""
        batch = self.items.read(key, self._run)
        if batch.substitutes:
            with self._lock:
                self.substitutes += len(batch.substitutes)
        return batch

    def __reduce__(self) -> tuple[Any, ...]:
        return ItemReader, (self.items, self._run)

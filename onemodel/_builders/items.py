"""The items of a batch: read with those that stand for broken ones, and stacked to arrays."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.key import BatchKey
from onemodel._batch.structure import Structure, rebuilt
from onemodel._common.arrays import is_masked
from onemodel._common.describe import shown
from onemodel._memory.pool import BufferPool
from onemodel.datasets import Items
from onemodel.datasets._items.items import ItemBatch, Run

__all__ = ["ItemReader", "stack_items"]


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


def stack_items(items: list[Any], indices: NDArray[np.int64], pool: BufferPool) -> Structure:
    """Return the batch of ``items``: a dict, a tuple or an array, as each of them is.

    Python's integers become int64, its floats float64; what ``numpy.asarray`` takes keeps its
    dtype. All items must have the first one's structure, dtypes and shapes, for a batch that
    depended on which items meet in it would be another one after a change of the sampler.

    Raises:
        TypeError, ValueError: naming the dataset index of the item that does not fit.

    >>> numbers, rows = stack_items([(1, [2.0]), (3, [4.0])], np.array([0, 1]), BufferPool())
    >>> numbers.tolist(), rows.tolist()
    ([1, 3], [[2.0], [4.0]])
    """
    first = items[0]
    if isinstance(first, dict):
        for item, index in zip(items, indices, strict=True):
            if not isinstance(item, dict) or item.keys() != first.keys():
                raise _unlike(_kind(item), _kind(first), index, indices[0])
        return {
            name: _column([item[name] for item in items], indices, f" in {name!r}", pool)
            for name in first
        }
    if isinstance(first, tuple | list):
        for item, index in zip(items, indices, strict=True):
            if not isinstance(item, tuple | list) or len(item) != len(first):
                raise _unlike(_kind(item), _kind(first), index, indices[0])
        columns = [
            _column([item[place] for item in items], indices, f" at {place}", pool)
            for place in range(len(first))
        ]
        return rebuilt(first, columns) if isinstance(first, tuple) else tuple(columns)
    return _column(items, indices, "", pool)


def _column(
    values: list[Any], indices: NDArray[np.int64], where: str, pool: BufferPool
) -> NDArray[Any]:
    """Return the array [B, ...] of one field of the items."""
    if all(isinstance(value, str) for value in values):
        return np.array(values)
    arrays = [
        _array(value, where, index) for value, index in zip(values, indices.tolist(), strict=True)
    ]
    first = arrays[0]
    for array, index in zip(arrays, indices, strict=True):
        if array.dtype != first.dtype or array.shape != first.shape:
            raise _unlike(_text(array), _text(first), index, indices[0], where)
    batch = pool.rent((len(arrays), *first.shape), first.dtype)
    for row, array in enumerate(arrays):
        batch[row] = array
    return batch


def _array(value: Any, where: str, index: int) -> NDArray[Any]:
    """Return one value of an item as an array, whatever platform this is."""
    if is_masked(value):
        raise TypeError(f"items must hold no masked arrays, got one{where} at index {index}")
    if type(value) is int:
        if not -(2**63) <= value < 2**63:
            raise ValueError(f"items must fit in int64, got {shown(value)}{where} at index {index}")
        return np.array(value, np.int64)
    if isinstance(value, bytes | bytearray | dict | set | None):
        raise TypeError(
            f"items must hold numbers and arrays, got a {type(value).__name__}{where} at index "
            f"{index}; a transform can decode it or leave it out"
        )
    try:
        array = np.asarray(value)
    except Exception as error:  # a tensor on a device, a ragged list
        raise TypeError(
            f"items must hold numbers and arrays, got {shown(value)}{where} at index {index}: "
            f"{error}"
        ) from None
    if array.dtype.hasobject:
        raise TypeError(
            f"items must hold numbers and arrays, got {shown(value)}{where} at index {index}"
        )
    if isinstance(value, list | tuple) and array.dtype.kind == "i":
        return array.astype(np.int64)
    return array


def _text(array: NDArray[Any]) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _kind(item: Any) -> str:
    if isinstance(item, dict):
        return f"the keys {list(item)}"
    if isinstance(item, tuple | list):
        return f"{len(item)} values"
    return f"a {type(item).__name__}"


def _unlike(found: str, expected: str, index: Any, first: Any, where: str = "") -> ValueError:
    return ValueError(
        f"items must be alike: index {index} has {found}{where}, and index {first} has {expected}; "
        "a transform can make them so, or a collator can pad them"
    )

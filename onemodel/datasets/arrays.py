"""Arrays as a dataset: ``ArrayDataset``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.structure import Field, fields, name_of, row_count
from onemodel.datasets.gather import gather_rows

__all__ = ["ArrayDataset"]


class ArrayDataset:
    """Arrays with as many rows each: row i of all of them is item i.

    ``dataset[i]``, ``dataset[slice]`` and ``dataset[indices]`` return the structure that the
    arrays were given in: one array is bare, several are a tuple, named ones a dict. Integers and
    slices give read-only views without a copy; an array of indices gives new, writable arrays.
    The dataset's own memory can't be written through what it returns. Reading is safe from
    several threads.

    Args:
        arrays: NumPy arrays, memory maps or what ``numpy.asarray`` takes, of any dtype without
            Python objects and any rank from 1; or one dict of them by name. They are not
            copied and must not change while the dataset is in use.

    Raises:
        TypeError: if there is no array, or a dtype holds Python objects.
        ValueError: if the first dimensions differ, naming the odd array.

    >>> import numpy as np
    >>> dataset = ArrayDataset({"x": np.arange(6).reshape(3, 2), "y": np.arange(3)})
    >>> len(dataset)
    3
    >>> {name: array.tolist() for name, array in dataset[np.array([2, 0])].items()}
    {'x': [[4, 5], [0, 1]], 'y': [2, 0]}
    """

    def __init__(self, *arrays: Any) -> None:
        given: Any = arrays
        if len(arrays) == 1:
            given = dict(arrays[0]) if isinstance(arrays[0], Mapping) else np.asarray(arrays[0])
        if isinstance(given, tuple | dict) and not given:
            raise TypeError("arrays must be at least one array, got none")
        self._fields: dict[Field, NDArray[Any]] = {}
        for field, array in fields(given):
            if isinstance(given, dict) and not isinstance(field, str):
                raise TypeError(f"the names of arrays must be strings, got {field!r}")
            values = np.asarray(array)
            if values.dtype.hasobject:
                raise TypeError(
                    f"{name_of(field)} must have a dtype without Python objects, got {values.dtype}"
                )
            # a view of our own: the caller's array stays writable to the caller
            view = values.view()
            view.flags.writeable = False
            self._fields[field] = view
        self._named = isinstance(given, dict)
        self._length = row_count(self.map_fields(lambda _, array: array))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        """Return an item (int), read-only views (slice) or a gathered batch (indices).

        Raises:
            IndexError: if an index of an array is outside [0, n), n the length, or a single
                integer, which may count from the end, outside [-n, n).
            TypeError: if ``index`` is none of the three.
        """
        if isinstance(index, slice):
            return self.map_fields(lambda _, array: array[index])
        if isinstance(index, np.ndarray | list) and np.ndim(index) == 1:
            places = self._places(index)
            return self.map_fields(lambda _, array: gather_rows(array, places))
        try:
            position = operator.index(index)
        except TypeError:
            raise TypeError(
                f"index must be an integer, a slice or integers [n], got {_described(index)}"
            ) from None
        if not -self._length <= position < self._length:
            raise IndexError(f"index must be in [{-self._length}, {self._length}), got {position}")
        return self.map_fields(lambda _, array: array[position])

    @property
    def arrays(self) -> Any:
        """The arrays themselves, read-only, in their structure."""
        return self.map_fields(lambda _, array: array)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._fields.values())

    def __reduce__(self) -> tuple[Any, ...]:
        whole = self.arrays
        return ArrayDataset, whole if isinstance(whole, tuple) else (whole,)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{'' if field is None else f'{field}: '}{array.dtype} {list(array.shape[1:])}"
            for field, array in self._fields.items()
        )
        return f"ArrayDataset({self._length} rows of {shown})"

    def map_fields(self, function: Callable[[Field, NDArray[Any]], Any]) -> Any:
        """Return the structure with ``function(field, array)`` in place of each array.

        A field is the array's name or position, None for a bare array.
        """
        if self._named:
            return {name: function(name, array) for name, array in self._fields.items()}
        if None in self._fields:
            return function(None, self._fields[None])
        return tuple(function(place, array) for place, array in self._fields.items())

    def fields(self) -> Iterator[tuple[Field, NDArray[Any]]]:
        """Yield (field, array), read-only, in order."""
        yield from self._fields.items()

    def structured(self, arrays: list[Any]) -> Any:
        """Return arrays, one for each field in order, in the structure of the dataset's."""
        if self._named:
            return dict(zip(self._fields, arrays, strict=True))
        return arrays[0] if None in self._fields else tuple(arrays)

    def _places(self, index: Any) -> NDArray[np.int64]:
        places = np.asarray(index)
        if places.size == 0 and isinstance(index, list):
            return np.empty(0, np.int64)
        if places.dtype.kind not in "iu":
            raise TypeError(f"indices must be integers, got {places.dtype}")
        if places.size and (places.min() < 0 or places.max() >= self._length):
            bad = places[(places < 0) | (places >= self._length)][0]
            raise IndexError(f"indices must be in [0, {self._length}), got {bad}")
        return places.astype(np.int64, copy=False)


def _described(index: Any) -> str:
    if isinstance(index, np.ndarray):
        return f"an array {index.dtype} {list(index.shape)}"
    return f"{index!r} of type {type(index).__name__}"

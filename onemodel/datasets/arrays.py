"""Arrays as a dataset: ``ArrayDataset``."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onemodel._batch.structure import Field, fields, name_of, row_count
from onemodel._common.arrays import plain_array, read_only
from onemodel._common.describe import shown
from onemodel.datasets._table.mapped import portable, restored
from onemodel.datasets.gather import gather_rows
from onemodel.datasets.made_once import MadeOnce
from onemodel.datasets.split import checked_indices, split_indices

__all__ = ["ArrayDataset"]


class ArrayDataset(MadeOnce):
    """Arrays with as many rows each: row i of all of them is item i.

    ``dataset[i]``, ``dataset[slice]`` and ``dataset[indices]`` return the structure that the
    arrays were given in: one array is bare, several are a tuple, named ones a dict. Integers and
    slices give read-only views without a copy; an array of indices gives new, writable arrays.
    The dataset's own memory can't be written through what it returns. Reading is safe from
    several threads. A pickle holds arrays by value, memory-mapped ones by path and position.

    Args:
        arrays: NumPy arrays, memory maps or what ``numpy.asarray`` takes, of any dtype without
            Python objects and any rank from 1; or one dict of them by name. They are not
            copied and must not change while the dataset is in use.

    Raises:
        TypeError: if there is no array, an array has a mask, or a dtype holds Python objects.
        ValueError: if the first dimensions differ, naming the odd array, or a sequence is no
            array because its parts have different lengths.

    >>> import numpy as np
    >>> dataset = ArrayDataset({"x": np.arange(6).reshape(3, 2), "y": np.arange(3)})
    >>> len(dataset)
    3
    >>> {name: array.tolist() for name, array in dataset[np.array([2, 0])].items()}
    {'x': [[4, 5], [0, 1]], 'y': [2, 0]}
    """

    _own = frozenset({"_fields", "_named", "_length"})

    def __init__(self, *arrays: Any) -> None:
        self._begin()
        given: Any = arrays
        if len(arrays) == 1:
            named = isinstance(arrays[0], Mapping)
            given = dict(arrays[0]) if named else plain_array("the array", arrays[0])
        if isinstance(given, tuple | dict) and not given:
            raise TypeError("arrays must be at least one array, got none")
        kept: dict[Field, NDArray[Any]] = {}
        for field, array in fields(given):
            if isinstance(given, dict) and not isinstance(field, str):
                raise TypeError(f"the names of arrays must be strings, got {shown(field)}")
            values = plain_array(name_of(field), array)
            if values.dtype.hasobject:
                raise TypeError(
                    f"{name_of(field)} must have a dtype without Python objects, got {values.dtype}"
                )
            # a view of our own: the caller's array stays writable to the caller
            kept[field] = read_only(values)
        length = row_count(kept)
        self._fields = kept
        self._named = isinstance(given, dict)
        self._length = length

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
        if isinstance(index, np.ndarray | list):
            indices = plain_array("index", index)
            if indices.ndim == 1:
                places = checked_indices(indices, self._length)
                return self.map_fields(lambda _, array: gather_rows(array, places))
        try:
            position = None if isinstance(index, bool) else operator.index(index)
        except TypeError:
            position = None
        if position is None:
            raise TypeError(
                f"index must be an integer, a slice or integers [n], got {_described(index)}"
            )
        if not -self._length <= position < self._length:
            raise IndexError(
                f"index must be in [{-self._length}, {self._length}), got {shown(position)}"
            )
        return self.map_fields(lambda _, array: array[position])

    @property
    def arrays(self) -> Any:
        """The arrays themselves, read-only, in their structure."""
        return self.map_fields(lambda _, array: array)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self._fields.values())

    def take(self, indices: ArrayLike) -> ArrayDataset:
        """Return a dataset of the rows at ``indices``, in their order; the rows are copied.

        Args:
            indices: integers [n] in [0, len(self)), any of them also more than once.

        Raises:
            IndexError, TypeError, ValueError: if ``indices`` is not as described.

        >>> ArrayDataset(np.arange(5)).take([4, 0])[:].tolist()
        [4, 0]
        """
        places = checked_indices(indices, self._length)
        return _dataset_of(self.map_fields(lambda _, array: gather_rows(array, places)))

    def split(self, seed: int, fractions: Sequence[float]) -> tuple[ArrayDataset, ...]:
        """Return datasets of random, disjoint parts of the rows, which are copied.

        Which rows each part holds is a function of the length, seed and fractions. A part keeps
        the order of the dataset.

        Args:
            seed: in [0, 2**64).
            fractions: of all rows, each above 0, of a sum up to 1; rounded as
                `datasets.split.split_indices` says.

        Raises:
            TypeError, ValueError: if an argument is not as described, or a part would be empty.

        >>> [len(part) for part in ArrayDataset(np.arange(10)).split(0, (0.7, 0.2, 0.1))]
        [7, 2, 1]
        """
        return tuple(self.take(part) for part in split_indices(self._length, seed, fractions))

    @staticmethod
    def concatenate(datasets: Iterable[ArrayDataset]) -> ArrayDataset:
        """Return a dataset of the rows of all ``datasets``, one after another; they are copied.

        Raises:
            TypeError, ValueError: if there is none, or two differ in structure, dtypes or the
                shape of a row.

        >>> first = ArrayDataset(np.arange(2))
        >>> ArrayDataset.concatenate([first, first])[:].tolist()
        [0, 1, 0, 1]
        """
        try:
            given = list(datasets)
        except TypeError:
            raise TypeError(f"datasets must be a sequence, got {type(datasets).__name__}") from None
        for k, dataset in enumerate(given):
            if not isinstance(dataset, ArrayDataset):
                raise TypeError(
                    f"datasets[{k}] must be an ArrayDataset, got {type(dataset).__name__}"
                )
            if dataset._rows_text() != given[0]._rows_text():
                raise ValueError(
                    f"datasets[{k}] must have rows of {given[0]._rows_text()} as the first, "
                    f"got {dataset._rows_text()}"
                )
        if not given:
            raise ValueError("datasets must be at least one, got none")
        return _dataset_of(
            given[0].map_fields(
                lambda field, _: np.concatenate([dataset._fields[field] for dataset in given])
            )
        )

    def _recipe(self) -> tuple[Any, ...]:
        return _fill, self.map_fields(lambda _, array: portable(array))

    def __repr__(self) -> str:
        return f"ArrayDataset({self._length} rows of {self._rows_text()})"

    def _rows_text(self) -> str:
        return ", ".join(
            f"{'' if field is None else f'{field}: '}{array.dtype} {list(array.shape[1:])}"
            for field, array in self._fields.items()
        )

    def map_fields(self, function: Callable[[Field, NDArray[Any]], Any]) -> Any:
        """Return the structure with ``function(field, array)`` in place of each array.

        A field is the array's name or position, None for a bare array.
        """
        if not callable(function):
            raise TypeError(f"function must be callable, got {shown(function)}")
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
        if not isinstance(arrays, list | tuple) or len(arrays) != len(self._fields):
            raise TypeError(f"arrays must be a list of {len(self._fields)}, got {shown(arrays)}")
        if self._named:
            return dict(zip(self._fields, arrays, strict=True))
        return arrays[0] if None in self._fields else tuple(arrays)


def _dataset_of(structure: Any) -> ArrayDataset:
    """Return the dataset of a bare array, a tuple or a dict of arrays."""
    return ArrayDataset(*structure) if type(structure) is tuple else ArrayDataset(structure)


def _fill(made: ArrayDataset, structure: Any) -> None:
    """Make ``made`` from its pickled arrays."""
    if isinstance(structure, dict):
        arrays: Any = ({name: restored(array) for name, array in structure.items()},)
    elif type(structure) is tuple:
        arrays = tuple(restored(array) for array in structure)
    else:
        arrays = (restored(structure),)
    ArrayDataset.__init__(made, *arrays)


def _described(index: Any) -> str:
    if isinstance(index, np.ndarray):
        return f"an array {index.dtype} {list(index.shape)}"
    return f"{shown(index)} of type {type(index).__name__}"

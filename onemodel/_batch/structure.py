"""The structures of an array batch: a bare array, a tuple of arrays, or a dict of arrays.

A *field* says where in the structure an array stands: None in a bare array, a position in a
tuple, a key in a dict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from onemodel._common.describe import shown

__all__ = [
    "Field",
    "Structure",
    "field_of",
    "fields",
    "map_arrays",
    "map_leaves",
    "own_arrays",
    "replace",
    "row_count",
    "take",
]

Field = int | str | None
Structure = Any  # array | tuple[array, ...] | dict[str, array]

# The usual names of a dict's first and second array.
USUAL_KEYS = ("x", "y")


def fields(batch: Structure) -> Iterator[tuple[Field, Any]]:
    """Yield (field, array) for every array of the batch, in order."""
    if isinstance(batch, dict):
        yield from batch.items()
    elif isinstance(batch, tuple):
        yield from enumerate(batch)
    else:
        yield None, batch


def field_of(batch: Structure, key: int | str | None, place: int) -> Field:
    """Return the field that ``key`` names, or else the usual one of ``place``.

    Args:
        batch: a bare array, a tuple or a dict.
        key: a position in a tuple or a key of a dict; None for the usual field: the array
            itself, item ``place`` of a tuple, and of a dict the key "x" (place 0) or "y"
            (place 1) where it has that, else its key number ``place``.
        place: 0 for images, 1 for labels.

    Raises:
        KeyError, IndexError, TypeError: if the batch has no such field.
    """
    if isinstance(batch, dict):
        if key is not None:
            if key not in batch:
                raise KeyError(f"key must be one of {list(batch)}, got {shown(key)}")
            return key
        if USUAL_KEYS[place] in batch:
            return USUAL_KEYS[place]
        if len(batch) <= place:
            raise TypeError(f"the batch must have {place + 1} arrays, got the keys {list(batch)}")
        names: list[str] = list(batch)
        return names[place]
    if isinstance(batch, tuple):
        position = place if key is None else key
        if not isinstance(position, int):
            raise TypeError(f"key must be a position, for the batch is a tuple, got {shown(key)}")
        if not 0 <= position < len(batch):
            if key is None:
                raise TypeError(f"the batch must have {place + 1} arrays, got {len(batch)}")
            raise IndexError(f"key must be in [0, {len(batch)}), got {position}")
        return position
    if key is not None or place > 0:
        raise TypeError(
            "the batch must be a tuple or a dict of arrays to have "
            f"{'labels' if key is None else f'the key {key!r}'}, got {type(batch).__name__}"
        )
    return None


def take(batch: Structure, field: Field) -> Any:
    """Return the array at ``field``."""
    return batch if field is None else batch[field]


def replace(batch: Structure, field: Field, array: Any) -> Structure:
    """Return a batch like this one with another array at ``field``; the batch itself stays."""
    if field is None:
        return array
    if isinstance(batch, dict):
        return {name: array if name == field else old for name, old in batch.items()}
    return rebuilt(batch, [array if k == field else old for k, old in enumerate(batch)])


def rebuilt(batch: tuple[Any, ...], items: list[Any]) -> tuple[Any, ...]:
    """Return a tuple of the batch's own kind: a named tuple stays one."""
    make = getattr(type(batch), "_make", None)
    return tuple(items) if make is None else make(items)


def map_arrays(batch: Structure, function: Callable[[Any], Any]) -> Structure:
    """Return the batch with ``function`` applied to each of its arrays.

    An object with a method ``map(function)`` does it itself and returns its own kind.
    """
    if isinstance(batch, dict):
        return {name: function(array) for name, array in batch.items()}
    if isinstance(batch, tuple):
        return rebuilt(batch, [function(array) for array in batch])
    if isinstance(batch, list):
        return [function(array) for array in batch]
    own = _own_map(batch)
    return function(batch) if own is None else own(function)


def own_arrays(value: Any, views_only: bool = False) -> Any:
    """Return arrays, or dicts, lists and tuples of them, that may be edited in place.

    What can be written to and may be somebody else's memory is copied: all arrays, or where those
    that own their memory are known to be new, the views alone.

    >>> import numpy as np
    >>> kept = np.zeros(3)
    >>> own_arrays({"x": kept[:2]}, views_only=True)["x"][:] = 1
    >>> kept.tolist()
    [0.0, 0.0, 0.0]
    """
    if isinstance(value, np.ndarray):
        may_be_kept = value.flags.writeable and (value.base is not None or not views_only)
        return value.copy(order="K") if may_be_kept else value
    if type(value) is dict:
        return {name: own_arrays(each, views_only) for name, each in value.items()}
    if type(value) is list:
        return [own_arrays(each, views_only) for each in value]
    if isinstance(value, tuple):
        return rebuilt(value, [own_arrays(each, views_only) for each in value])
    return value


def map_leaves(batch: Any, function: Callable[[Any, str], Any], name: str = "batch") -> Any:
    """Return the batch with ``function(leaf, name)`` applied to everything that holds nothing.

    Dicts, tuples and lists are walked to the bottom, and so is an object with a method
    ``map(function)``. A leaf's name is the expression that reaches it.

    >>> map_leaves({"x": (1, [2])}, lambda leaf, name: f"{name} = {leaf}")
    {'x': ("batch['x'][0] = 1", ["batch['x'][1][0] = 2"])}
    """
    if isinstance(batch, dict):
        return {
            key: map_leaves(value, function, f"{name}[{key!r}]") for key, value in batch.items()
        }
    if isinstance(batch, tuple | list):
        items = [map_leaves(item, function, f"{name}[{k}]") for k, item in enumerate(batch)]
        return rebuilt(batch, items) if isinstance(batch, tuple) else items
    own = _own_map(batch)
    if own is None:
        return function(batch, name)
    arrays = getattr(type(batch), "arrays", None)
    named = arrays(batch) if callable(arrays) else {}
    names = {id(array): f"{name}.{field}" for field, array in named.items()}
    return own(lambda leaf: map_leaves(leaf, function, names.get(id(leaf), name)))


def _own_map(batch: Any) -> Callable[[Callable[[Any], Any]], Any] | None:
    """Return the batch's own ``map``; asked of its class, for instances may invent attributes."""
    return batch.map if callable(getattr(type(batch), "map", None)) else None


def row_count(batch: Structure) -> int:
    """Return the first dimension that all arrays share.

    Raises:
        TypeError: if an item has no rows.
        ValueError: if they differ; the error names the odd one.
    """
    counts: dict[Field, int] = {}
    for field, array in fields(batch):
        shape = getattr(array, "shape", None)
        if shape is None or len(shape) == 0:
            what = type(array).__name__ if shape is None else "an array of rank 0"
            raise TypeError(f"{name_of(field)} must have rows, got {what}")
        counts[field] = int(shape[0])
    if not counts:
        raise ValueError("there must be at least one array, got none")
    (first, expected), *others = counts.items()
    for field, count in others:
        if count != expected:
            # of three or more, the odd one is the one that the others disagree with
            odd = first if list(counts.values()).count(expected) == 1 < len(others) else field
            other = field if odd == first else first
            raise ValueError(
                f"all arrays must have the same number of rows: {name_of(odd)} has "
                f"{counts[odd]}, {name_of(other)} has {counts[other]}"
            )
    return expected


def name_of(field: Field) -> str:
    """Return how an error calls the array at ``field``."""
    return "the array" if field is None else f"array {field!r}"

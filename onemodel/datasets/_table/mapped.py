"""Memory-mapped arrays in pickles: by path and position, and never by value."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["MappedArray", "portable", "restored"]


class MappedArray(NamedTuple):
    """Where an array lies in a file: what is pickled in its place."""

    path: str
    offset: int  # of the first element, in bytes
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def portable(array: NDArray[Any]) -> NDArray[Any] | MappedArray:
    """Return where the array lies in a file, if it is memory-mapped, else the array itself.

    Pages that are copied when they are written (mode "c") may hold what the file does not: such
    an array goes by value.
    """
    base: Any = array
    while isinstance(base, np.ndarray) and isinstance(base.base, np.ndarray):
        base = base.base
    path = getattr(base, "filename", None)
    if not isinstance(base, np.memmap) or path is None or base.mode == "c":
        return array
    start = _address(array) - _address(base) + base.offset
    return MappedArray(
        os.path.abspath(path), start, array.dtype, tuple(array.shape), tuple(array.strides)
    )


def restored(array: NDArray[Any] | MappedArray) -> NDArray[Any]:
    """Return the array, mapped again if it was.

    Raises:
        FileNotFoundError: if the file is missing.
        ValueError: if the file is too short to hold the array.
    """
    if not isinstance(array, MappedArray):
        return array
    try:
        whole = np.memmap(array.path, np.uint8, "r")
        return np.ndarray(array.shape, array.dtype, whole, array.offset, array.strides)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{array.path}: expected {array.dtype} {list(array.shape)} at byte {array.offset}, "
            f"found {os.path.getsize(array.path)} bytes: {error}"
        ) from None


def _address(array: NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address

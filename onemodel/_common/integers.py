"""Checks of integers and shapes: every error names the argument, the range and the value."""

from __future__ import annotations

import math
import operator
import sys
from typing import Any

import numpy as np

from onemodel._common.describe import shown

__all__ = ["TWO_63", "TWO_64", "check_int32", "check_integer", "check_shape", "check_uint64"]

TWO_63 = 2**63
TWO_64 = 2**64

# The most dimensions of an array in NumPy 2.
DIMENSIONS = 64


def _bound(value: int) -> str:
    """Write large powers of two as people read them."""
    magnitude = abs(value)
    if magnitude >= 2**20 and magnitude & (magnitude - 1) == 0:
        return f"{'-' if value < 0 else ''}2**{magnitude.bit_length() - 1}"
    return str(value)


def check_integer(name: str, value: Any, low: int, high: int) -> int:
    """Return ``value`` as an int in ``[low, high)``.

    Raises:
        TypeError: if ``value`` is not an integer; a bool, Python's or NumPy's, is none.
        ValueError: if it is outside ``[low, high)``.

    >>> check_integer("step", 3, 0, 10)
    3
    >>> check_integer("step", -1, 0, 2**64)
    Traceback (most recent call last):
    ...
    ValueError: step must be in [0, 2**64), got -1
    """
    if type(value) is not int:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError(f"{name} must be an integer, got the bool {value!r}")
        try:
            value = operator.index(value)
        except TypeError:
            raise TypeError(
                f"{name} must be an integer in [{_bound(low)}, {_bound(high)}), "
                f"got {shown(value)} of type {type(value).__name__}"
            ) from None
    if not low <= value < high:
        raise ValueError(f"{name} must be in [{_bound(low)}, {_bound(high)}), got {shown(value)}")
    return int(value)


def check_uint64(name: str, value: Any) -> int:
    """Return ``value`` as an int in [0, 2**64), the range of seeds, keys and coordinates."""
    return check_integer(name, value, 0, TWO_64)


def check_int32(name: str, value: Any) -> int:
    """Return ``value`` as an int that a batch's int32 outputs hold."""
    return check_integer(name, value, -(2**31), 2**31)


def check_shape(size: Any, name: str = "size") -> tuple[int, ...]:
    """Return an array's length or shape ``size`` as a shape; errors call it ``name``.

    Raises:
        TypeError: if ``size`` is neither an integer nor a list or tuple of them.
        ValueError: if a dimension is negative, or no array can have so many or such large ones.

    >>> check_shape(3), check_shape([2, 3])
    ((3,), (2, 3))
    """
    given = size if isinstance(size, (tuple, list)) else (size,)
    try:
        # of a list: a tuple of an iterator is cut to size, and CPython keeps 2,000 of those
        shape = tuple([operator.index(each) for each in given])
    except TypeError:
        raise TypeError(
            f"{name} must be an integer or a tuple of them, got {shown(size)}"
        ) from None
    if shape and min(shape) < 0:
        raise ValueError(f"{name} must have dimensions >= 0, got {shown(size)}")
    if len(shape) > DIMENSIONS or math.prod(each for each in shape if each) > sys.maxsize:
        raise ValueError(
            f"{name} must have at most {DIMENSIONS} dimensions and {_bound(sys.maxsize + 1)} "
            f"elements, got {shown(size)}"
        )
    return shape

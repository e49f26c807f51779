"""Arguments of augmentations and transforms: numbers, pairs, flags and keys, checked.

Every error names the argument, the accepted range and the value, and is a TypeError where the
value is of the wrong kind, a ValueError where it is out of range. A bool is no number, text is no
number however it reads, and a masked array is refused because its mask would be lost.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Set
from typing import Any

import numpy as np

from onemodel._common.describe import shown
from onemodel._common.integers import check_integer

__all__ = [
    "check_flag",
    "check_integer_pair",
    "check_key",
    "check_number",
    "check_numbers",
    "check_pair",
    "check_probability",
    "check_range",
    "check_sides",
    "check_unmasked",
]

# The smallest float that rounds to infinity in float32.
FLOAT32_LIMIT = 2.0**128 - 2.0**103


def check_flag(name: str, value: Any) -> bool:
    """Return a bool. Only ``bool`` and NumPy's are flags: of text, "False" would count as true.

    >>> check_flag("keep_aspect", False)
    False
    """
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be a bool, got {shown(value)}")
    return bool(value)


def check_number(name: str, value: Any) -> float:
    """Return a number that float32 holds; it is rounded to float32 where it is used.

    What ``float()`` takes is a number: Python's and NumPy's, a Decimal, an array of rank 0. Bools,
    text, complex numbers, dates and masked values are none.

    >>> check_number("sigma", 3)
    3.0
    """
    if isinstance(value, (np.ndarray, np.generic)):
        refused = value.ndim > 0 or value.dtype.kind not in "iuf"
        refused = refused or isinstance(value, np.ma.MaskedArray)
    else:
        refused = isinstance(value, (bool, str, bytes, bytearray, memoryview))
    if refused:
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    try:
        checked = float(value)
    except OverflowError:
        raise ValueError(f"{name} must fit in float32, got {shown(value)}") from None
    except Exception as error:
        raise TypeError(f"{name} must be a number, got {shown(value)}") from error
    if not math.isfinite(checked):
        raise ValueError(f"{name} must be finite, got {checked}")
    if abs(checked) >= FLOAT32_LIMIT:
        raise ValueError(f"{name} must fit in float32, got {checked}")
    return checked


def check_probability(name: str, value: Any) -> float:
    """Return a probability; it stays in float64.

    >>> check_probability("p", 0.5)
    0.5
    """
    checked = check_number(name, value)
    if not 0 <= checked <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {checked}")
    return checked


def check_pair(name: str, bounds: Any) -> tuple[float, float]:
    """Return a pair (low, high) of floats with low <= high.

    >>> check_pair("gain", [1, 2])
    (1.0, 2.0)
    """
    low, high = two(name, bounds)
    low, high = check_number(f"{name}'s low", low), check_number(f"{name}'s high", high)
    if not low <= high:
        raise ValueError(f"{name} must have low <= high, got ({low}, {high})")
    return low, high


def check_range(name: str, bounds: Any) -> tuple[float, float]:
    """Check a pair (low, high) and return low and the width, subtracted in float64.

    >>> check_range("gain", (1, 1.5))
    (1.0, 0.5)
    """
    low, high = check_pair(name, bounds)
    if abs(high - low) >= FLOAT32_LIMIT:
        raise ValueError(f"{name} must have high - low in float32, got ({low}, {high})")
    return low, high - low


def check_integer_pair(name: str, bounds: Any, low: int, high: int) -> tuple[int, int]:
    """Return a pair of integers, low <= first <= second < high.

    >>> check_integer_pair("size", (4, 16), 1, 1 << 31)
    (4, 16)
    """
    first, second = two(name, bounds)
    first = check_integer(f"{name}'s low", first, low, high)
    second = check_integer(f"{name}'s high", second, low, high)
    if not first <= second:
        raise ValueError(f"{name} must have low <= high, got ({first}, {second})")
    return first, second


def check_sides(name: str, value: Any, low: int, high: int) -> tuple[int, int]:
    """Return the (height, width) that one integer, for both, or a pair of them gives.

    >>> check_sides("size", 24, 1, 1 << 30), check_sides("size", (4, 5), 1, 1 << 30)
    ((24, 24), (4, 5))
    """
    given = items(value)
    if given is None:
        given = [value, value]
    if len(given) != 2:
        raise TypeError(f"{name} must be an integer or (height, width), got {shown(value)}")
    height, width = given
    return check_integer(name, height, low, high), check_integer(name, width, low, high)


def check_numbers(name: str, value: Any) -> list[float]:
    """Return a number as a list of one, and a sequence of numbers as a list, all of float32.

    >>> check_numbers("mean", 0.5), check_numbers("mean", (0, 1))
    ([0.5], [0.0, 1.0])
    """
    given = items(value)
    if given is None:
        return [check_number(name, value)]
    if not given:
        raise ValueError(f"{name} must have at least one number, got {shown(value)}")
    return [check_number(f"{name}[{k}]", each) for k, each in enumerate(given)]


def check_key(name: str, value: Any) -> int | str | None:
    """Return where an array stands in a batch: a position, a key, or None for the usual place.

    >>> check_key("key", "x"), check_key("key", None)
    ('x', None)
    """
    if value is None or isinstance(value, str):
        return value
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a position, a key or None, got {shown(value)}") from None


def check_unmasked(name: str, array: Any) -> None:
    """Refuse a masked array: its mask would be dropped in silence."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} must be an array without a mask, got a masked array")


def two(name: str, bounds: Any) -> list[Any]:
    """Return the two items of a pair."""
    given = items(bounds)
    if given is None or len(given) != 2:
        raise TypeError(f"{name} must be a pair (low, high), got {shown(bounds)}")
    return given


def items(value: Any) -> list[Any] | None:
    """Return the items of what has an order, or None: of text, a set, a dict, a mask."""
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping, Set, np.ma.MaskedArray)):
        return None
    try:
        return list(value)
    except TypeError:  # no sequence; or an array of rank 0
        return None

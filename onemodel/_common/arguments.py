"""Arguments of augmentations and transforms: checked numbers and pairs, shown and rebuilt.

Every error names the argument, the accepted range and the value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from onemodel._common.integers import check_integer

__all__ = [
    "call_text",
    "check_flag",
    "check_integer_pair",
    "check_number",
    "check_numbers",
    "check_pair",
    "check_probability",
    "check_range",
    "rebuild",
]

# The smallest float that rounds to infinity in float32.
FLOAT32_LIMIT = 2.0**128 - 2.0**103


def check_number(name: str, value: Any) -> float:
    """Check a number that float32 holds; it is rounded to float32 where it is used."""
    if isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        checked = float(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if not math.isfinite(checked):
        raise ValueError(f"{name} must be finite, got {checked}")
    if abs(checked) >= FLOAT32_LIMIT:
        raise ValueError(f"{name} must fit in float32, got {checked}")
    return checked


def check_flag(name: str, value: Any) -> bool:
    """Check a flag: True or False, and nothing that merely counts as such."""
    if type(value).__name__ not in ("bool", "bool_"):
        raise TypeError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_probability(name: str, value: Any) -> float:
    """Check a probability."""
    checked = check_number(name, value)
    if not 0 <= checked <= 1:
        raise ValueError(f"{name} must be in [0, 1], got {checked}")
    return checked


def check_pair(name: str, bounds: Any) -> tuple[float, float]:
    """Check a (low, high) pair of floats and return it as such."""
    try:
        low, high = bounds
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair (low, high), got {bounds!r}") from None
    low, high = check_number(f"{name}'s low", low), check_number(f"{name}'s high", high)
    if not low <= high:
        raise ValueError(f"{name} must have low <= high, got ({low}, {high})")
    return low, high


def check_range(name: str, bounds: Any) -> tuple[float, float]:
    """Check a (low, high) pair and return low and the width, subtracted in float64."""
    low, high = check_pair(name, bounds)
    if abs(high - low) >= FLOAT32_LIMIT:
        raise ValueError(f"{name} must have high - low in float32, got ({low}, {high})")
    return low, high - low


def check_integer_pair(name: str, bounds: Any, low: int, high: int) -> tuple[int, int]:
    """Check a pair of integers, low <= first <= second < high, and return it as such."""
    try:
        first, second = bounds
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair (low, high), got {bounds!r}") from None
    first = check_integer(f"{name}'s low", first, low, high)
    second = check_integer(f"{name}'s high", second, low, high)
    if not first <= second:
        raise ValueError(f"{name} must have low <= high, got ({first}, {second})")
    return first, second


def check_numbers(name: str, value: Any) -> list[float]:
    """Return a number as a list of one, and a sequence of numbers as a list; all finite."""
    try:
        values = [float(item) for item in value] if hasattr(value, "__iter__") else [float(value)]
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or numbers, got {value!r}") from None
    if not values or not all(math.isfinite(item) for item in values):
        raise ValueError(f"{name} must be finite, at least one number, got {value!r}")
    return values


def call_text(made: object, arguments: dict[str, Any]) -> str:
    """Return the call that makes ``made``, every argument by name.

    >>> call_text(object(), {"p": 0.5})
    'object(p=0.5)'
    """
    shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"{type(made).__name__}({shown})"


def rebuild(kind: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Return ``kind(**arguments)``: how a pickled transform is made again."""
    return kind(**arguments)

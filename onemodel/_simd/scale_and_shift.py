"""The scale and the shift of uint8 pixels that a mean and a deviation stand for.

Source: docs/specification.md, section "Image helpers": scale = 1 / (255 * std) and
shift = mean / std, every operation rounded to float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._common.arguments import check_number
from onemodel._common.describe import shown
from onemodel._common.integers import check_integer
from onemodel._simd.float_mode import DefaultFloatMode

__all__ = ["Numbers", "channel_numbers", "scale_and_shift"]

Numbers = float | Sequence[float]


def scale_and_shift(
    mean: Numbers, std: Numbers, channels: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return (scale, shift), read-only float32 [channels], of a normalisation by mean and std.

    Args:
        mean: a number for all channels or one for each, finite.
        std: likewise, above 0.
        channels: how many there are.

    Raises:
        TypeError: if mean or std is not a number or numbers.
        ValueError: if one is out of range, or mean and std have another number of channels.

    >>> scale_and_shift(0.5, 0.5, 1)
    (array([0.00784314], dtype=float32), array([1.], dtype=float32))
    """
    try:
        return _remembered(mean, std, channels)
    except TypeError:  # a list can't be remembered; what is wrong is refused again
        return _computed(mean, std, channels)


def _computed(
    mean: Numbers, std: Numbers, channels: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    channels = check_integer("channels", channels, 1, 2**31)
    means = channel_numbers("mean", mean, channels)
    stds = channel_numbers("std", std, channels)
    if not all(value > 0 for value in stds):
        raise ValueError(f"std must be above 0, got {shown(std)}")
    # Whatever the caller has set: the result is remembered for all threads, and checked below.
    with DefaultFloatMode(), np.errstate(all="ignore"):
        scale = np.float32(1) / (np.float32(255) * stds)
        shift = means / stds
    if not (np.isfinite(scale).all() and np.isfinite(shift).all() and (scale > 0).all()):
        raise ValueError(
            f"mean / std and 1 / (255 * std) must fit in float32, got mean {shown(mean)} and "
            f"std {shown(std)}"
        )
    scale.flags.writeable = shift.flags.writeable = False
    return scale, shift


# Images mostly come with the same two numbers again and again.
_remembered = lru_cache(maxsize=64, typed=True)(_computed)


def channel_numbers(name: str, value: Any, channels: int) -> NDArray[np.float32]:
    """Return a number or one for each channel as float32 [channels].

    Raises:
        TypeError: if ``value`` is neither, or a masked array, whose mask would be lost.
        ValueError: if it has another number of them, or one that is not finite in float32.

    >>> channel_numbers("mean", 0.5, 3)
    array([0.5, 0.5, 0.5], dtype=float32)
    """
    text = isinstance(value, (str, bytes, bytearray, memoryview))
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        text, array = True, np.empty(0)
    if text or isinstance(value, np.ma.MaskedArray) or array.dtype.kind not in "biufO":
        raise TypeError(f"{name} must be a number or {channels} numbers, got {shown(value)}")
    if array.shape not in ((), (1,), (channels,)):
        raise ValueError(
            f"{name} must be one number or one for each of {channels} channels, got {shown(value)}"
        )
    try:
        numbers = [check_number(name, each) for each in array.ravel().tolist()]
    except ValueError:
        raise ValueError(f"{name} must be finite in float32, got {shown(value)}") from None
    with DefaultFloatMode(), np.errstate(all="ignore"):
        singles = np.array(numbers, np.float64).astype(np.float32)
    return np.ascontiguousarray(np.broadcast_to(singles, (channels,)))

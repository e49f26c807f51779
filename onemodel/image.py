"""8-bit pixels to planar float32, exactly the same everywhere.

Source: docs/specification.md, section "Image helpers": ``p * scale - shift`` in float32 with
scale = 1 / (255 * std) and shift = mean / std, every operation rounded, none fused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from onemodel._common.arrays import check_out, image_text
from onemodel.transforms.normalize import bytes_to_planar

__all__ = ["gray8_to_planar", "rgb8_to_planar", "scale_and_shift"]

Numbers = float | Sequence[float]


def scale_and_shift(
    mean: Numbers, std: Numbers, channels: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return (scale, shift), float32 [channels], of a normalisation by mean and std.

    Args:
        mean: a number for all channels or one for each, finite.
        std: likewise, above 0.
        channels: how many there are.

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
    """Work scale and shift out and check them."""
    means = numbers("mean", mean, channels)
    stds = numbers("std", std, channels)
    if not all(value > 0 for value in stds):
        raise ValueError(f"std must be above 0, got {std!r}")
    with np.errstate(over="ignore"):
        scale = np.float32(1) / (np.float32(255) * stds)
        shift = means / stds
    if not (np.isfinite(scale).all() and np.isfinite(shift).all() and (scale > 0).all()):
        raise ValueError(
            f"mean / std and 1 / (255 * std) must fit in float32, got {mean!r} and {std!r}"
        )
    scale.flags.writeable = shift.flags.writeable = False
    return scale, shift


# Images mostly come with the same two numbers again and again.
_remembered = lru_cache(maxsize=64)(_computed)


def gray8_to_planar(
    pixels: NDArray[np.uint8],
    mean: float,
    std: float,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Convert uint8 [H, W] to float32 [1, H, W].

    Args:
        pixels: any strides, also negative ones.
        mean: a finite number.
        std: likewise, above 0.
        out: C-contiguous float32 [1, H, W] to fill and return.

    Raises:
        TypeError, ValueError: naming the argument that does not fit.

    >>> import numpy as np
    >>> gray8_to_planar(np.array([[0, 255]], np.uint8), mean=0.5, std=0.5)
    array([[[-1.,  1.]]], dtype=float32)
    """
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise TypeError(f"pixels must be uint8 [H, W], got {image_text(pixels)}")
    return convert(pixels[:, :, np.newaxis], mean, std, out)


def rgb8_to_planar(
    pixels: NDArray[np.uint8],
    mean: Numbers,
    std: Numbers,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Convert interleaved uint8 [H, W, 3] to planar float32 [3, H, W], each channel by its own.

    Arguments and errors as ``gray8_to_planar``; mean and std are one number or three.

    >>> import numpy as np
    >>> rgb8_to_planar(np.zeros((2, 2, 3), np.uint8), mean=[0.0, 0.5, 1.0], std=1.0)[:, 0, 0]
    array([ 0. , -0.5, -1. ], dtype=float32)
    """
    if (
        not isinstance(pixels, np.ndarray)
        or pixels.dtype != np.uint8
        or pixels.ndim != 3
        or pixels.shape[2] != 3
    ):
        raise TypeError(f"pixels must be uint8 [H, W, 3], got {image_text(pixels)}")
    return convert(pixels, mean, std, out)


def convert(
    pixels: NDArray[np.uint8], mean: Numbers, std: Numbers, out: NDArray[np.float32] | None
) -> NDArray[np.float32]:
    """Fill ``out`` [C, H, W] from ``pixels`` [H, W, C] of any strides."""
    height, width, channels = pixels.shape
    scale, shift = scale_and_shift(mean, std, channels)
    out = check_out(out, (channels, height, width), np.float32)
    bytes_to_planar(pixels, scale, shift, out)
    return out


def numbers(name: str, value: Numbers, channels: int) -> NDArray[np.float32]:
    """Check ``value`` and return it as float32 [channels]."""
    try:
        values = np.array(value, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or {channels} numbers, got {value!r}") from None
    if values.shape not in ((), (1,), (channels,)):
        raise ValueError(
            f"{name} must be one number or one for each of {channels} channels, got {value!r}"
        )
    with np.errstate(over="ignore", under="ignore"):
        singles = values.astype(np.float32)
    if not np.isfinite(singles).all():
        raise ValueError(f"{name} must be finite in float32, got {value!r}")
    return np.ascontiguousarray(np.broadcast_to(singles, (channels,)))

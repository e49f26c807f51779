"""8-bit pixels to planar float32, exactly the same everywhere.

Source: docs/specification.md, section "Image helpers": ``p * scale - shift`` in float32 with
scale = 1 / (255 * std) and shift = mean / std, every operation rounded, none fused.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from onemodel._common.arrays import check_out, image_text
from onemodel._simd.pixels import bytes_to_planar
from onemodel._simd.scale_and_shift import Numbers, scale_and_shift

__all__ = ["gray8_to_planar", "rgb8_to_planar", "scale_and_shift"]


def gray8_to_planar(
    pixels: NDArray[np.uint8],
    mean: float = 0.0,
    std: float = 1.0,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]:
    """Convert uint8 [H, W] to float32 [1, H, W].

    Args:
        pixels: any strides, also negative ones.
        mean: a finite number, in units of pixels in [0, 1].
        std: likewise, above 0. Without mean and std, 0 to 255 become 0.0 to 1.0.
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
    mean: Numbers = 0.0,
    std: Numbers = 1.0,
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

"""8-bit pixels to planar float32, exactly the same everywhere.

Source: docs/specification.md, section "Image helpers": ``p * scale - shift`` in float32 with
scale = 1 / (255 * std) and shift = mean / std, every operation rounded, none fused.
"""

from libc.stdint cimport int64_t, uint8_t

import math

import numpy as np

from onemodel.vector cimport table

__all__ = ["gray8_to_planar", "rgb8_to_planar", "scale_and_shift"]


def scale_and_shift(mean, std, channels):
    """Return (scale, shift), float32 [channels], of a normalisation by mean and std.

    Args:
        mean, std: a number for all channels or one for each; finite, std above 0.

    >>> scale_and_shift(0.5, 0.5, 1)
    (array([0.00784314], dtype=float32), array([1.], dtype=float32))
    """
    means = numbers("mean", mean, channels)
    stds = numbers("std", std, channels)
    if not all(value > 0 for value in stds):
        raise ValueError(f"std must be above 0 in float32, got {std!r}")
    with np.errstate(over="ignore"):
        scale = np.float32(1) / (np.float32(255) * stds)
        shift = means / stds
    if not (np.isfinite(scale).all() and np.isfinite(shift).all() and (scale > 0).all()):
        raise ValueError(f"mean and std must give a finite scale and shift, got {mean!r}, {std!r}")
    return scale, shift


def gray8_to_planar(pixels, mean, std, out=None):
    """Convert uint8 [H, W] to float32 [1, H, W].

    Args:
        pixels: any strides, also negative ones.
        mean, std: finite numbers, std above 0.
        out: C-contiguous float32 [1, H, W] to fill and return.

    Raises:
        TypeError, ValueError: naming the argument that does not fit.

    >>> import numpy as np
    >>> gray8_to_planar(np.array([[0, 255]], np.uint8), mean=0.5, std=0.5)
    array([[[-1.,  1.]]], dtype=float32)
    """
    if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 2:
        raise TypeError(f"pixels must be uint8 [H, W], got {described(pixels)}")
    return convert(pixels[:, :, np.newaxis], mean, std, out)


def rgb8_to_planar(pixels, mean, std, out=None):
    """Convert interleaved uint8 [H, W, 3] to planar float32 [3, H, W], each channel by its own.

    Arguments and errors as ``gray8_to_planar``; mean and std are one number or three.

    >>> import numpy as np
    >>> rgb8_to_planar(np.zeros((2, 2, 3), np.uint8), mean=[0.0, 0.5, 1.0], std=1.0)[:, 0, 0]
    array([ 0. , -0.5, -1. ], dtype=float32)
    """
    if (
        not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.ndim != 3
        or pixels.shape[2] != 3
    ):
        raise TypeError(f"pixels must be uint8 [H, W, 3], got {described(pixels)}")
    return convert(pixels, mean, std, out)


def convert(const uint8_t[:, :, :] pixels, mean, std, out):
    """Fill ``out`` [C, H, W] from ``pixels`` [H, W, C] of any strides."""
    cdef int64_t channels = pixels.shape[2], height = pixels.shape[0], width = pixels.shape[1]
    cdef int64_t channel, row, k
    cdef const float[::1] scale, shift
    cdef float[:, :, ::1] target
    cdef const uint8_t *source
    cdef float *place
    cdef float product
    scale, shift = scale_and_shift(mean, std, channels)
    shape = (channels, height, width)
    if out is None:
        out = np.empty(shape, np.float32)
    elif (
        not isinstance(out, np.ndarray) or out.dtype != np.float32 or out.shape != shape
        or not out.flags.c_contiguous or not out.flags.writeable
    ):
        raise ValueError(
            f"out must be a writable, C-contiguous float32 array {list(shape)}, "
            f"got {described(out)}"
        )
    if out.size == 0:
        return out
    target = out
    with nogil:
        for channel in range(channels):
            for row in range(height):
                source = &pixels[row, 0, channel]
                place = &target[channel, row, 0]
                if pixels.strides[1] == 1:
                    table.convert(place, source, width, scale[channel], shift[channel])
                else:
                    for k in range(width):
                        product = <float>source[k * pixels.strides[1]] * scale[channel]
                        place[k] = product - shift[channel]
    return out


def numbers(name, value, channels):
    """Check ``value`` and return it as float32 [channels]."""
    try:
        values = np.array(value, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number or {channels} numbers, got {value!r}") from None
    if values.shape not in ((), (1,), (channels,)):
        raise ValueError(f"{name} must be a number or {channels} numbers, got {value!r}")
    if not all(math.isfinite(each) for each in values.ravel().tolist()):
        raise ValueError(f"{name} must be finite, got {value!r}")
    with np.errstate(over="ignore", under="ignore"):
        return np.ascontiguousarray(np.broadcast_to(values.astype(np.float32), (channels,)))


def described(value):
    """Say what an argument is, in an error message."""
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {list(value.shape)}"
    return f"{type(value).__name__}"

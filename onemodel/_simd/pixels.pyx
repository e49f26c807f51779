"""uint8 pixels to planar float32: the kernel of the image helpers.

Source: docs/specification.md, section "Image helpers".
"""

from libc.stdint cimport int64_t, uint64_t, uint8_t

from onemodel._memory.arrays cimport CONTIGUOUS, STRIDED, WRITABLE, Array, array_of
from onemodel._simd.dispatch cimport loops
from onemodel._simd.float_mode cimport default_float_mode, restore_float_mode

__all__ = ["bytes_to_planar"]


def bytes_to_planar(pixels, scale, shift, out):
    """Fill ``out``, float32 [C, H, W], from uint8 [H, W, C].

    Args:
        pixels: any strides.
        scale, shift: float32 [C]; a pixel p becomes ``p * scale - shift``.

    Raises:
        ValueError: if the arrays do not fit.

    >>> import numpy as np
    >>> planes = np.empty((1, 1, 2), np.float32)
    >>> half = np.full(1, 0.5, np.float32)
    >>> bytes_to_planar(np.array([[[0], [255]]], np.uint8), half, half, planes)
    >>> planes
    array([[[ -0.5, 127. ]]], dtype=float32)
    """
    cdef Array given, scales, shifts, filled
    cdef int64_t channels, height, width, step, channel, y, x
    cdef const uint8_t *source
    cdef float *target
    cdef float channel_scale, channel_shift
    cdef uint64_t mode
    array_of(pixels, b"B", 3, STRIDED, &given)
    array_of(scale, b"f", 1, CONTIGUOUS, &scales)
    array_of(shift, b"f", 1, CONTIGUOUS, &shifts)
    array_of(out, b"f", 3, WRITABLE, &filled)
    height, width, channels = given.shape[0], given.shape[1], given.shape[2]
    step = given.strides[1]
    if scales.size != channels or shifts.size != channels or (
        filled.size != channels * height * width
    ):
        raise ValueError("scale, shift and out must fit the pixels")
    target = <float *>filled.data
    mode = default_float_mode()
    if channels == 3 and step == 3 and given.strides[2] == 1 and given.strides[0] == 3 * width:
        with nogil:
            loops.planar3(
                target, <const uint8_t *>given.data, height, width, <const float *>scales.data,
                <const float *>shifts.data, 0, 0
            )
        restore_float_mode(mode)
        return
    if step == 1 and given.strides[0] == width:     # rows one after another are one long row
        height, width = 1, height * width
    with nogil:
        for channel in range(channels):
            channel_scale = (<const float *>scales.data)[channel]
            channel_shift = (<const float *>shifts.data)[channel]
            for y in range(height):
                source = <const uint8_t *>given.data + y * given.strides[0]
                source += channel * given.strides[2]
                if step == 1:
                    loops.convert(target, source, width, channel_scale, channel_shift)
                else:
                    for x in range(width):
                        target[x] = pixel_value(source[x * step], channel_scale, channel_shift)
                target += width
    restore_float_mode(mode)

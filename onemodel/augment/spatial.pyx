"""Augmentations that move pixels or mix neighbours; the shape stays.

Source: docs/augmentations.md; each class lists its draws in order.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memmove

from onemodel._common.arguments import check_integer_pair, check_number
from onemodel._common.configured import Argument
from onemodel._simd.float_mode cimport to_single
from onemodel.augment.protocol cimport (
    ImageShape,
    IntegerRange,
    NativeAugmentation,
    RandomAugmentation,
    configure,
    draw_integer,
    integer_range_of,
    keep_row,
)
from onemodel._simd.dispatch cimport loops

__all__ = ["Blur", "HorizontalFlip", "Shift"]


cdef void flip_row(
    const void *settings, const void *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    if (<const int64_t *>parameters)[0]:
        loops.reverse(target, source, shape.width)
    else:
        keep_row(target, source, shape.width)


cdef class HorizontalFlip(RandomAugmentation):
    """HorizontalFlip(p=0.5)

    Mirror every row, with probability p: column x becomes column W - 1 - x.

    Draws: one ``next_single()``; applied where it is below p. Applies to rows.

    Args:
        p: probability in [0, 1].

    Raises:
        TypeError: if p is not a number.
        ValueError: if p is outside [0, 1].

    >>> import numpy as np
    >>> from onemodel import SampleRng
    >>> image = np.array([[[1, 2, 3]]], np.float32)
    >>> HorizontalFlip(p=1)(SampleRng(0), image)
    >>> image
    array([[[3., 2., 1.]]], dtype=float32)
    """

    def __cinit__(self):
        self.operation.apply_row = flip_row


ctypedef struct ShiftSettings:
    IntegerRange dx
    IntegerRange dy
    float fill


ctypedef struct ShiftParameters:
    int64_t dx
    int64_t dy


cdef void shift_draw(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil:
    cdef const ShiftSettings *shift = <const ShiftSettings *>settings
    cdef ShiftParameters *values = <ShiftParameters *>parameters
    values.dx = draw_integer(&shift.dx, state)
    values.dy = draw_integer(&shift.dy, state)


cdef inline void fill_row(float *target, int64_t count, float fill) noexcept nogil:
    cdef int64_t column
    for column in range(count):
        target[column] = fill


cdef void shift_row(
    const void *settings, const void *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    cdef float fill = (<const ShiftSettings *>settings).fill
    # as far as a shift can matter, so that no sum below leaves the row
    cdef int64_t dx = min(max((<const ShiftParameters *>parameters).dx, -shape.width), shape.width)
    cdef int64_t kept = shape.width - (dx if dx > 0 else -dx)
    if dx >= 0:
        memmove(target + dx, source, <size_t>kept * sizeof(float))
        fill_row(target, dx, fill)
    else:
        memmove(target, source - dx, <size_t>kept * sizeof(float))
        fill_row(target + kept, -dx, fill)


cdef void shift_image(
    const void *settings, const void *parameters, const ImageShape *shape,
    float *image, float *scratch
) noexcept nogil:
    """Move rows towards the edge that they leave by, so that none is overwritten unread."""
    cdef float fill = (<const ShiftSettings *>settings).fill
    cdef int64_t dy = (<const ShiftParameters *>parameters).dy
    cdef int64_t height = shape.height
    cdef int64_t width = shape.width
    cdef int64_t channel, step, row
    cdef float *plane
    for channel in range(shape.channels):
        plane = image + channel * height * width
        for step in range(height):
            row = height - 1 - step if dy > 0 else step
            if 0 <= row - dy < height:
                shift_row(
                    settings, parameters, shape, channel, row,
                    plane + (row - dy) * width, plane + row * width
                )
            else:
                fill_row(plane + row * width, width, fill)


cdef class Shift(NativeAugmentation):
    """Move the image dx columns to the right and dy rows down; ``fill`` takes what is left free.

    Draws: dx = ``low + next_int(high - low + 1)``, then dy likewise; both are drawn even where
    low = high. Applies to rows where dy can only be 0, to the whole
    image otherwise.

    Args:
        dx: (low, high), integers with -2**31 <= low <= high < 2**31, both included.
        dy: (low, high), likewise.
        fill: the value of pixels that come from outside, finite.

    Raises:
        TypeError: if dx or dy is not a pair of integers, or fill not a number.
        ValueError: if one is outside its range.

    >>> import numpy as np
    >>> from onemodel import SampleRng
    >>> image = np.array([[[1, 2, 3]]], np.float32)
    >>> Shift(dx=(1, 1), fill=9)(SampleRng(0), image)
    >>> image
    array([[[9., 1., 2.]]], dtype=float32)
    """

    cdef ShiftSettings settings

    dx = Argument("dx", "The pair (low, high) of columns to the right.")
    dy = Argument("dy", "The pair (low, high) of rows down.")
    fill = Argument("fill", "The value of pixels that come from outside.")

    @cython.embedsignature.format("c")
    def __init__(self, dx=(-2, 2), dy=(0, 0), fill=0.0):
        dx = check_integer_pair("dx", dx, -(1 << 31), 1 << 31)
        dy = check_integer_pair("dy", dy, -(1 << 31), 1 << 31)
        fill = check_number("fill", fill)
        configure(self, Shift, {"dx": dx, "dy": dy, "fill": fill})
        self.settings.dx = integer_range_of(dx)
        self.settings.dy = integer_range_of(dy)
        self.settings.fill = to_single(fill)
        self.operation.settings = &self.settings
        self.operation.parameter_bytes = sizeof(ShiftParameters)
        self.operation.draw = shift_draw
        if dy == (0, 0):
            self.operation.apply_row = shift_row
        self.operation.apply_image = shift_image


cdef void blur_across(float *target, const float *source, int64_t width) noexcept nogil:
    """(left + right) + (middle + middle) along one row; beyond its ends lies the end itself."""
    cdef float outer, inner
    cdef int64_t last = width - 1
    if width > 2:
        loops.binomial(target + 1, source, source + 1, source + 2, width - 2, 1.0)
    outer = source[0] + source[min(1, last)]
    inner = source[0] + source[0]
    target[0] = outer + inner
    if last > 0:
        outer = source[last - 1] + source[last]
        inner = source[last] + source[last]
        target[last] = outer + inner


cdef void blur_image(
    const void *settings, const void *parameters, const ImageShape *shape,
    float *image, float *scratch
) noexcept nogil:
    """Three rows that are summed across at a time: they stay in the nearest cache."""
    cdef int64_t height = shape.height
    cdef int64_t width = shape.width
    cdef int64_t kept = min(height, 3)
    cdef int64_t channel, row, below
    cdef float *plane
    if not (<const int64_t *>parameters)[0]:
        return
    for channel in range(shape.channels):
        plane = image + channel * height * width
        blur_across(scratch, plane, width)
        for row in range(height):
            below = min(row + 1, height - 1)
            if below > row:
                blur_across(scratch + below % kept * width, plane + below * width, width)
            loops.binomial(
                plane + row * width,
                scratch + max(row - 1, 0) % kept * width,
                scratch + row % kept * width,
                scratch + below % kept * width,
                width,
                0.0625,
            )


cdef class Blur(RandomAugmentation):
    """Blur(p=0.5)

    Soften the image, with probability p: the 3 x 3 binomial kernel [1 2 1] x [1 2 1] / 16.

    Draws: one ``next_single()``; applied where it is below p. Applies to the
    whole image.

    Across and then down, each sum is ``(before + after) + (middle + middle)`` in float32; the
    result is multiplied by 1/16. Beyond an edge lies the edge's own pixel.

    Args:
        p: probability in [0, 1].

    Raises:
        TypeError: if p is not a number.
        ValueError: if p is outside [0, 1].

    >>> import numpy as np
    >>> from onemodel import SampleRng
    >>> image = np.array([[[0, 0, 4, 0]]], np.float32)
    >>> Blur(p=1)(SampleRng(0), image)
    >>> image
    array([[[0., 1., 2., 1.]]], dtype=float32)
    """

    def __cinit__(self):
        self.operation.apply_image = blur_image

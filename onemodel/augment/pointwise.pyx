"""Augmentations whose every pixel depends on itself and its place, not on its neighbours.

Source: docs/augmentations.md; each class lists its draws in order.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t

from onemodel._common.arguments import check_integer_pair, check_number, check_pair
from onemodel._common.configured import Argument
from onemodel._common.integers import check_integer
from onemodel._random.rng cimport next_below, skip_u64
from onemodel._simd.float_mode cimport to_single
from onemodel.augment.protocol cimport (
    ImageShape,
    IntegerRange,
    NativeAugmentation,
    RandomAugmentation,
    Range,
    configure,
    draw_integer,
    draw_number,
    integer_range_of,
    keep_row,
    range_of,
)
from onemodel._simd.dispatch cimport Rows, loops

__all__ = ["Erase", "GainOffset", "Invert", "Noise"]


ctypedef struct GainOffsetSettings:
    Range gain
    Range offset


ctypedef struct GainOffsetParameters:
    float gain
    float offset


cdef void gain_offset_draw(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil:
    cdef const GainOffsetSettings *ranges = <const GainOffsetSettings *>settings
    cdef GainOffsetParameters *values = <GainOffsetParameters *>parameters
    values.gain = draw_number(&ranges.gain, state)
    values.offset = draw_number(&ranges.offset, state)


cdef void gain_offset_row(
    const void *settings, const void *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    cdef const GainOffsetParameters *values = <const GainOffsetParameters *>parameters
    loops.gain_offset(target, source, shape.width, values.gain, values.offset)


cdef void gain_offset_rows(
    const void *settings, const void *parameters, const Rows *rows
) noexcept nogil:
    cdef const GainOffsetParameters *values = <const GainOffsetParameters *>parameters
    loops.store_gain_offset(rows, values.gain, values.offset)


cdef class GainOffset(NativeAugmentation):
    """``x * gain + offset``: one gain and one offset for an image, each operation in float32.

    Draws: gain = ``low + (high - low) * next_single()``, then offset likewise. Applies to rows.

    Args:
        gain: (low, high), finite, low <= high.
        offset: (low, high), likewise.

    Raises:
        TypeError: if an argument is not a pair of numbers.
        ValueError: if a pair is not finite in float32, or low > high.

    >>> import numpy as np
    >>> from onemodel import SampleRng
    >>> image = np.array([[[0, 1, 2]]], np.float32)
    >>> GainOffset(gain=(2, 2), offset=(0.5, 0.5))(SampleRng(0), image)
    >>> image
    array([[[0.5, 2.5, 4.5]]], dtype=float32)
    """

    cdef GainOffsetSettings settings

    gain = Argument("gain", "The pair (low, high) that an image's gain lies in.")
    offset = Argument("offset", "The pair (low, high) that an image's offset lies in.")

    @cython.embedsignature.format("c")
    def __init__(self, gain=(0.8, 1.2), offset=(-0.1, 0.1)):
        cdef GainOffsetSettings settings
        gain, offset = check_pair("gain", gain), check_pair("offset", offset)
        settings.gain, settings.offset = range_of("gain", gain), range_of("offset", offset)
        configure(self, GainOffset, {"gain": gain, "offset": offset})
        self.settings = settings
        self.operation.settings = &self.settings
        self.operation.parameter_bytes = sizeof(GainOffsetParameters)
        self.operation.draw = gain_offset_draw
        self.operation.apply_row = gain_offset_row
        self.operation.store_rows = gain_offset_rows


cdef void noise_draw(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil:
    """Keep where the sequence starts; each pixel's place in it follows from its position."""
    (<uint64_t *>parameters)[0] = state[0]
    skip_u64(state, 12 * <uint64_t>(shape.channels * shape.height * shape.width))


cdef void noise_row(
    const void *settings, const void *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    cdef uint64_t state = (<const uint64_t *>parameters)[0]
    skip_u64(&state, 12 * <uint64_t>((channel * shape.height + row) * shape.width))
    loops.noise(target, source, shape.width, state, (<const float *>settings)[0])


cdef class Noise(NativeAugmentation):
    """``x + sigma * normal``: an independent normal draw for every pixel.

    Draws: one ``next_normal()`` for each value of [C, H, W] in C order, twelve 64-bit words each.
    The product and the sum round to float32. Applies to rows.

    Args:
        sigma: standard deviation, finite, >= 0.

    Raises:
        TypeError: if sigma is not a number.
        ValueError: if sigma is negative or not finite in float32.

    >>> import numpy as np
    >>> from onemodel import SampleRng
    >>> image = np.zeros((1, 1, 3), np.float32)
    >>> Noise(sigma=1)(SampleRng(5), image)
    >>> bool((image[0, 0] == SampleRng(5).standard_normal(3)).all())
    True
    """

    cdef float deviation

    sigma = Argument("sigma", "The standard deviation.")

    @cython.embedsignature.format("c")
    def __init__(self, sigma=0.05):
        cdef double deviation = check_number("sigma", sigma)
        if deviation < 0:
            raise ValueError(f"sigma must be >= 0, got {deviation}")
        configure(self, Noise, {"sigma": deviation})
        self.deviation = to_single(deviation)
        self.operation.settings = &self.deviation
        self.operation.parameter_bytes = sizeof(uint64_t)
        self.operation.draw = noise_draw
        self.operation.apply_row = noise_row


cdef void invert_row(
    const void *settings, const void *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    if (<const int64_t *>parameters)[0]:
        # 1 - x: the sign's change is exact, and the sum rounds as the difference does
        loops.gain_offset(target, source, shape.width, -1.0, 1.0)
    else:
        keep_row(target, source, shape.width)


cdef class Invert(RandomAugmentation):
    """Invert(p=0.5)

    ``1 - x`` for the whole image, with probability p: dark on light becomes light on dark.

    Draws: one ``next_single()``; applied where it is below p. Applies to rows.

    Args:
        p: probability in [0, 1].

    Raises:
        TypeError: if p is not a number.
        ValueError: if p is outside [0, 1].

    >>> import numpy as np
    >>> from onemodel import SampleRng
    >>> image = np.array([[[0, 0.25, 1]]], np.float32)
    >>> Invert(p=1)(SampleRng(0), image)
    >>> image
    array([[[1.  , 0.75, 0.  ]]], dtype=float32)
    """

    def __cinit__(self):
        self.operation.apply_row = invert_row


ctypedef struct EraseSettings:
    int64_t count
    IntegerRange size
    float fill


# A rectangle as far as it lies in the image: rows [top, bottom), columns [left, right).
ctypedef struct Rectangle:
    int64_t top
    int64_t bottom
    int64_t left
    int64_t right


cdef void erase_draw(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil:
    cdef const EraseSettings *erase = <const EraseSettings *>settings
    cdef Rectangle *rectangle
    cdef int64_t height, width
    cdef int64_t k
    for k in range(erase.count):
        rectangle = <Rectangle *>parameters + k
        height = draw_integer(&erase.size, state)
        width = draw_integer(&erase.size, state)
        rectangle.top = <int64_t>next_below(state, <uint64_t>shape.height) - height // 2
        rectangle.left = <int64_t>next_below(state, <uint64_t>shape.width) - width // 2
        rectangle.bottom = min(rectangle.top + height, shape.height)
        rectangle.right = min(rectangle.left + width, shape.width)
        rectangle.top = max(rectangle.top, 0)
        rectangle.left = max(rectangle.left, 0)


cdef void erase_row(
    const void *settings, const void *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    cdef const EraseSettings *erase = <const EraseSettings *>settings
    cdef const Rectangle *rectangle
    cdef float fill = erase.fill
    cdef int64_t k, column
    keep_row(target, source, shape.width)
    for k in range(erase.count):
        rectangle = <const Rectangle *>parameters + k
        if rectangle.top <= row < rectangle.bottom:
            for column in range(rectangle.left, rectangle.right):
                target[column] = fill


cdef class Erase(NativeAugmentation):
    """Paint ``count`` rectangles over all channels of the image, as stains and tears do.

    Draws, for each rectangle: height = ``low + next_int(high - low + 1)``, width likewise, then
    its middle: row = ``next_int(H)``, column = ``next_int(W)``. It covers the rows
    ``row - height // 2`` to ``row - height // 2 + height - 1`` and columns likewise, as far as
    they lie in the image. Applies to rows.

    Args:
        count: number of rectangles, an integer in [0, 1024].
        size: (low, high), integers with 1 <= low <= high < 2**31, both included; pixels.
        fill: the value painted, finite.

    Raises:
        TypeError: if count or a size is not an integer, or fill not a number.
        ValueError: if one is outside its range.

    >>> import numpy as np
    >>> from onemodel import SampleRng
    >>> image = np.ones((1, 2, 6), np.float32)
    >>> Erase(count=1, size=(3, 3))(SampleRng(3), image)
    >>> image
    array([[[0., 0., 1., 1., 1., 1.],
            [0., 0., 1., 1., 1., 1.]]], dtype=float32)
    """

    cdef EraseSettings settings

    count = Argument("count", "The number of rectangles.")
    size = Argument("size", "The pair (low, high) that heights and widths lie in.")
    fill = Argument("fill", "The value painted.")

    @cython.embedsignature.format("c")
    def __init__(self, count=1, size=(4, 16), fill=0.0):
        count = check_integer("count", count, 0, 1025)
        size = check_integer_pair("size", size, 1, 1 << 31)
        fill = check_number("fill", fill)
        configure(self, Erase, {"count": count, "size": size, "fill": fill})
        self.settings.count = count
        self.settings.size = integer_range_of(size)
        self.settings.fill = to_single(fill)
        self.operation.settings = &self.settings
        self.operation.parameter_bytes = self.settings.count * <int64_t>sizeof(Rectangle)
        self.operation.draw = erase_draw
        self.operation.apply_row = erase_row

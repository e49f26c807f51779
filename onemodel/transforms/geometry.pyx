"""Row transforms that move or cover pixels and change no value.

Source: docs/transforms.md; each class lists its draws in order. They read [H, W, C] as one plane
of H lines with W pixels of C items, and [C, H, W] as C planes of H lines with W pixels of one item,
so one loop serves both layouts of both dtypes.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy, memset

from onemodel._common.arguments import check_key, check_probability, check_sides
from onemodel._common.configured import Argument
from onemodel._common.integers import check_integer
from onemodel._random.rng cimport next_below, next_single
from onemodel._simd.dispatch cimport loops
from onemodel.transforms.layout import check_layout
from onemodel.transforms.protocol cimport NativeTransform, RowFormat, configure, row_bytes

__all__ = ["Cutout", "RandomCrop", "RandomHorizontalFlip"]

cdef enum:
    SIZE_LIMIT = 1 << 30        # of sides and paddings: sums and products stay inside int64


cdef inline int64_t pixel_bytes(const RowFormat *format) noexcept nogil:
    return format.item_bytes if format.planar else format.item_bytes * format.channels


cdef inline int64_t planes(const RowFormat *format) noexcept nogil:
    return format.channels if format.planar else 1


cdef void flip_draw(
    const void *settings, uint64_t *state, const RowFormat *before, void *parameters
) noexcept nogil:
    cdef double probability = (<const double *>settings)[0]
    (<FlipParameters *>parameters).mirrored = <double>next_single(state) < probability


cdef void mirror(char *target, const char *source, int64_t width, int64_t size) noexcept nogil:
    """target[x] = source[width - 1 - x] in pixels of `size` bytes."""
    cdef uint8_t *bytes = <uint8_t *>target
    cdef const uint8_t *last_byte = <const uint8_t *>source + width - 1
    cdef float *words = <float *>target
    cdef const float *last_word = <const float *>source + width - 1
    cdef int64_t x
    if size == 3:
        loops.mirror3(bytes, <const uint8_t *>source, width)
    elif size == 1:
        for x in range(width):
            bytes[x] = last_byte[-x]
    elif size == 4 and (<size_t>source | <size_t>target) & 3 == 0:
        for x in range(width):
            words[x] = last_word[-x]
    else:
        for x in range(width):
            memcpy(target + x * size, source + (width - 1 - x) * size, <size_t>size)


cdef const char *flip_apply(
    const void *settings, const void *parameters, const RowFormat *before, const RowFormat *after,
    const char *source, char *target, bint non_temporal
) noexcept nogil:
    cdef int64_t size = pixel_bytes(before)
    cdef int64_t line = before.width * size
    cdef int64_t k
    if not (<const FlipParameters *>parameters).mirrored:
        return source
    for k in range(planes(before) * before.height):
        mirror(target + k * line, source + k * line, before.width, size)
    return target


cdef class RandomHorizontalFlip(NativeTransform):
    """Images from right to left with probability ``p``; the others stay as they are.

    Draws, for each row from its own generator: ``next_single``; it is flipped where that is
    less than p. One draw, whatever p is.

    Args:
        p: a probability in [0, 1].
        key: which array; None for the first (of a dict: "x" where there is one).
        layout: "HWC" or "CHW", the axes of a row; None for the usual ones of its dtype.

    >>> import numpy as np
    >>> from onemodel._random.rng import SampleRng
    >>> images = np.arange(3, dtype=np.uint8).reshape(1, 1, 3)
    >>> RandomHorizontalFlip(p=1)(SampleRng(0), images).tolist()
    [[[2, 1, 0]]]
    """

    p = Argument("p", "The probability that an image is flipped.")

    @cython.embedsignature.format("c")
    def __init__(self, p=0.5, key=None, layout=None):
        cdef double probability = check_probability("p", p)
        configure(self, RandomHorizontalFlip, {
            "p": probability, "key": check_key("key", key), "layout": check_layout(layout)
        })
        self.probability = probability
        self.operation.settings = &self.probability
        self.operation.parameter_bytes = sizeof(FlipParameters)
        self.operation.draw = flip_draw
        self.operation.apply = flip_apply


ctypedef struct CropSettings:
    int64_t padding
    int64_t height              # of the result; 0: as the image
    int64_t width


ctypedef struct CropParameters:
    int64_t top                 # of the result's first pixel, in the image: may be negative
    int64_t left


cdef inline int64_t crop_height(const CropSettings *crop, const RowFormat *before) noexcept nogil:
    return crop.height if crop.height > 0 else before.height


cdef inline int64_t crop_width(const CropSettings *crop, const RowFormat *before) noexcept nogil:
    return crop.width if crop.width > 0 else before.width


cdef void crop_draw(
    const void *settings, uint64_t *state, const RowFormat *before, void *parameters
) noexcept nogil:
    cdef const CropSettings *crop = <const CropSettings *>settings
    cdef CropParameters *place = <CropParameters *>parameters
    cdef int64_t down = before.height + 2 * crop.padding - crop_height(crop, before) + 1
    cdef int64_t right = before.width + 2 * crop.padding - crop_width(crop, before) + 1
    place.top = <int64_t>next_below(state, <uint64_t>down) - crop.padding
    place.left = <int64_t>next_below(state, <uint64_t>right) - crop.padding


cdef const char *crop_apply(
    const void *settings, const void *parameters, const RowFormat *before, const RowFormat *after,
    const char *source, char *target, bint non_temporal
) noexcept nogil:
    cdef const CropParameters *place = <const CropParameters *>parameters
    cdef int64_t size = pixel_bytes(before)
    cdef int64_t line = before.width * size
    cdef int64_t width = after.width
    # columns [start, stop) of the result come from the image, the others are 0
    cdef int64_t start = min(max(-place.left, 0), width)
    cdef int64_t stop = max(min(before.width - place.left, width), start)
    cdef int64_t _plane, y, row
    if (
        place.top == 0 and place.left == 0
        and after.height == before.height and after.width == before.width
    ):
        return source
    cdef char *result = target
    for _plane in range(planes(before)):
        for y in range(after.height):
            row = y + place.top
            if 0 <= row < before.height:
                memset(result, 0, <size_t>(start * size))
                memcpy(
                    result + start * size,
                    source + row * line + (start + place.left) * size,
                    <size_t>((stop - start) * size),
                )
                memset(result + stop * size, 0, <size_t>((width - stop) * size))
            else:
                memset(result, 0, <size_t>(width * size))
            result += width * size
        source += before.height * line
    return target


cdef class RandomCrop(NativeTransform):
    """A random window of the image with ``padding`` zero pixels on every side.

    Draws, for each row from its own generator: the window's top in the padded image,
    ``next_int(H + 2 * padding - height + 1)``, then its left,
    ``next_int(W + 2 * padding - width + 1)``.

    Args:
        padding: zero pixels added on each side, in [0, 2**30).
        size: (height, width) of the window, or one integer for both; None: as the image.
        key: which array; None for the first (of a dict: "x" where there is one).
        layout: "HWC" or "CHW", the axes of a row; None for the usual ones of its dtype.

    Raises:
        ValueError: if the window is larger than the padded image.

    >>> import numpy as np
    >>> from onemodel._random.rng import SampleRng
    >>> images = np.ones((8, 32, 32, 3), np.uint8)
    >>> RandomCrop(padding=4)(SampleRng(0), images).shape
    (8, 32, 32, 3)
    >>> RandomCrop(padding=0, size=24)(SampleRng(0), images).shape
    (8, 24, 24, 3)
    """

    cdef CropSettings settings

    padding = Argument("padding", "Zero pixels added on each side.")
    size = Argument("size", "(height, width) of the window; None: as the image.")

    @cython.embedsignature.format("c")
    def __init__(self, padding=0, size=None, key=None, layout=None):
        cdef CropSettings settings
        padding = check_integer("padding", padding, 0, SIZE_LIMIT)
        if size is not None:
            size = check_sides("size", size, 1, SIZE_LIMIT)
        settings.padding = padding
        settings.height, settings.width = (0, 0) if size is None else size
        configure(self, RandomCrop, {
            "padding": padding, "size": size, "key": check_key("key", key),
            "layout": check_layout(layout),
        })
        self.settings = settings
        self.operation.settings = &self.settings
        self.operation.parameter_bytes = sizeof(CropParameters)
        self.operation.draw = crop_draw
        self.operation.apply = crop_apply

    cdef RowFormat after(self, RowFormat before) except *:
        cdef int64_t height = crop_height(&self.settings, &before)
        cdef int64_t width = crop_width(&self.settings, &before)
        cdef int64_t margin = 2 * self.settings.padding
        if height > before.height + margin or width > before.width + margin:
            raise ValueError(
                f"size must be at most {(before.height + margin, before.width + margin)}, the "
                f"image with its padding, got {(height, width)}"
            )
        before.height = height
        before.width = width
        return before


ctypedef struct CutoutParameters:
    int64_t y
    int64_t x


cdef void cutout_draw(
    const void *settings, uint64_t *state, const RowFormat *before, void *parameters
) noexcept nogil:
    cdef CutoutParameters *centre = <CutoutParameters *>parameters
    centre.y = <int64_t>next_below(state, <uint64_t>before.height)
    centre.x = <int64_t>next_below(state, <uint64_t>before.width)


cdef const char *cutout_apply(
    const void *settings, const void *parameters, const RowFormat *before, const RowFormat *after,
    const char *source, char *target, bint non_temporal
) noexcept nogil:
    cdef const CutoutParameters *centre = <const CutoutParameters *>parameters
    cdef int64_t side = (<const int64_t *>settings)[0]
    cdef int64_t size = pixel_bytes(before)
    cdef int64_t line = before.width * size
    cdef int64_t top = max(centre.y - side // 2, 0)
    cdef int64_t bottom = min(centre.y - side // 2 + side, before.height)
    cdef int64_t left = max(centre.x - side // 2, 0)
    cdef int64_t right = min(centre.x - side // 2 + side, before.width)
    cdef int64_t plane, y
    cdef char *pixels
    memcpy(target, source, <size_t>row_bytes(before))
    for plane in range(planes(before)):
        pixels = target + plane * before.height * line + left * size
        for y in range(top, bottom):
            memset(pixels + y * line, 0, <size_t>((right - left) * size))
    return target


cdef class Cutout(NativeTransform):
    """A square of zeros at a random place, cut off where it leaves the image.

    With c the centre, it covers rows and columns [c - size // 2, c - size // 2 + size). After
    Normalize the zeros are the mean.

    Draws, for each row from its own generator: the centre's row ``next_int(H)``, then its
    column ``next_int(W)``.

    Args:
        size: side of the square in pixels, in [1, 2**30).
        key: which array; None for the first (of a dict: "x" where there is one).
        layout: "HWC" or "CHW", the axes of a row; None for the usual ones of its dtype.

    >>> import numpy as np
    >>> from onemodel._random.rng import SampleRng
    >>> images = np.ones((1, 4, 4), np.float32)
    >>> int(Cutout(size=1)(SampleRng(0), images).sum())
    15
    """

    cdef int64_t side

    size = Argument("size", "The side of the square in pixels.")

    @cython.embedsignature.format("c")
    def __init__(self, size, key=None, layout=None):
        cdef int64_t side = check_integer("size", size, 1, SIZE_LIMIT)
        configure(self, Cutout, {
            "size": side, "key": check_key("key", key), "layout": check_layout(layout)
        })
        self.side = side
        self.operation.settings = &self.side
        self.operation.parameter_bytes = sizeof(CutoutParameters)
        self.operation.draw = cutout_draw
        self.operation.apply = cutout_apply

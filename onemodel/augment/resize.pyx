"""Sample transforms that change an image's size: bilinear, exact on every processor.

Source: docs/augmentations.md. Positions are fractions of integers, so no rounding decides which
pixels are read; the weights and the pixels are float32 arithmetic in a written order.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from onemodel._common.arguments import check_flag, check_number
from onemodel._common.arrays import as_c_contiguous, image_text
from onemodel._common.configured cimport Configured, check_initialised, configure
from onemodel._common.configured import Argument
from onemodel._memory.arrays cimport CONTIGUOUS, WRITABLE, Array, array_of
from onemodel._common.integers import check_integer
from onemodel._random.rng cimport SampleRng
from onemodel._simd.float_mode cimport default_float_mode, restore_float_mode
from onemodel.datasets.sample cimport Sample
from onemodel.augment.protocol cimport Range, draw_number, range_of

__all__ = ["ResizeHeight", "StretchWidth"]

cdef object FLOAT32 = np.dtype(np.float32)

cdef enum:
    LONGEST = 0x7FFFFFFF        # sides up to here keep every position in 63 bits


# Where the pixels of one side come from: pixel x lies between source pixels first[x] and
# first[x] + 1, `weight[x]` of the way. From `inner` on it lies beyond the last one.
ctypedef struct Places:
    int64_t count
    int64_t inner
    int32_t *first
    float *weight


cdef bint find_places(Places *places, int64_t length, int64_t count) noexcept nogil:
    """Lay `count` pixels over `length` source pixels; False where there is no memory."""
    cdef int64_t position, x
    cdef int64_t whole = 2 * count
    cdef float divisor = <float>whole
    places.count = count
    places.inner = 0
    places.first = <int32_t *>malloc(count * sizeof(int32_t))
    places.weight = <float *>malloc(count * sizeof(float))
    if places.first == NULL or places.weight == NULL:
        return False
    for x in range(count):
        # centre over centre: (x + 1/2) * length / count - 1/2, times 2 * count
        position = max((2 * x + 1) * length - count, 0)
        places.first[x] = <int32_t>(position // whole)
        places.weight[x] = <float>(position % whole) / divisor
        if places.first[x] < length - 1:
            places.inner = x + 1
    return True


cdef void free_places(Places *places) noexcept nogil:
    free(places.first)
    free(places.weight)


cdef void blend_rows(
    float *target, const float *above, const float *below, float weight, int64_t width
) noexcept nogil:
    cdef float difference, product
    cdef int64_t x
    for x in range(width):
        difference = below[x] - above[x]
        product = difference * weight
        target[x] = above[x] + product


cdef void blend_columns(
    float *target, const float *source, int64_t width, const Places *places
) noexcept nogil:
    """Four pixels at a time: all are read before one is written, so vectors can do the rest."""
    cdef const int32_t *first = places.first
    cdef const float *weight = places.weight
    cdef const float *pair
    cdef float[4] left
    cdef float[4] right
    cdef float[4] part
    cdef float difference, product
    cdef int64_t x = 0
    cdef int k
    while x + 4 <= places.inner:
        for k in range(4):
            pair = source + first[x + k]
            left[k] = pair[0]
            right[k] = pair[1]
            part[k] = weight[x + k]
        for k in range(4):
            difference = right[k] - left[k]
            product = difference * part[k]
            target[x + k] = left[k] + product
        x += 4
    while x < places.inner:
        pair = source + first[x]
        difference = pair[1] - pair[0]
        product = difference * weight[x]
        target[x] = pair[0] + product
        x += 1
    while x < places.count:
        target[x] = source[width - 1]
        x += 1


cdef void resize_plane(
    float *target, const float *source, int64_t height, int64_t width, const Places *rows,
    const Places *columns, float *buffer
) noexcept nogil:
    """Down first, into one row that stays in the cache, and then across.

    A side whose length stays is left alone.
    """
    cdef const float *row
    cdef float *place
    cdef int64_t y
    for y in range(rows.count):
        row = source + min(<int64_t>rows.first[y], height - 1) * width
        if rows.count != height and y < rows.inner:
            place = buffer if columns.count != width else target
            blend_rows(place, row, row + width, rows.weight[y], width)
            row = place
        if columns.count != width:
            blend_columns(target, row, width, columns)
        elif row != target:
            memcpy(target, row, width * sizeof(float))
        target += columns.count


cdef Sample resized(Sample sample, given, int64_t height, int64_t width):
    """Return a new Sample of that size, with the target and label of the old one.

    `given` is the old image as pixels_of returns it.
    """
    cdef Array source, target
    array_of(given, b"f", 3, CONTIGUOUS, &source)
    image = np.empty((source.shape[0], height, width), FLOAT32)
    array_of(image, b"f", 3, WRITABLE, &target)
    cdef Places rows, columns
    cdef int64_t channel
    cdef float *buffer = <float *>malloc(source.shape[2] * sizeof(float))
    cdef bint there
    cdef uint64_t mode = default_float_mode()
    with nogil:
        there = find_places(&rows, source.shape[1], height)
        there = find_places(&columns, source.shape[2], width) and there and buffer != NULL
        if there:
            for channel in range(source.shape[0]):
                resize_plane(
                    <float *>target.data + channel * height * width,
                    <const float *>source.data + channel * source.shape[1] * source.shape[2],
                    source.shape[1], source.shape[2], &rows, &columns, buffer
                )
        free_places(&rows)
        free_places(&columns)
        free(buffer)
    restore_float_mode(mode)
    if not there:
        raise MemoryError(f"no memory to resize an image to {height} x {width}")
    image.flags.writeable = False       # as a sample shows it: it needs no view of its own
    return sample.with_image(image)


cdef pixels_of(Sample sample):
    """Check the image and return it as an aligned, C-contiguous np.ndarray."""
    image = sample.image            # an array of the base class, or what a Sample refuses
    if type(image) is not np.ndarray or image.dtype != FLOAT32 or image.ndim != 3:
        raise TypeError(f"image must be a float32 array [C, H, W], got {image_text(image)}")
    if 0 in image.shape or max(image.shape) > LONGEST:
        raise ValueError(
            f"image must have C, H and W in [1, 2**31), got shape {list(image.shape)}"
        )
    return as_c_contiguous(image)


cdef int64_t check_width(width) except -1:
    """Return a new width if an image may have it; it is at least 1."""
    if width > LONGEST:
        raise ValueError(f"new width must be in [1, 2**31), got {width}")
    return width


cdef class StretchWidth(Configured):
    """Make the image wider or narrower by a drawn factor; as ``transform(rng, sample)``.

    Draws: factor = ``low + (high - low) * next_single()``. The new width is
    ``int(float32(W) * factor + 0.5)``, at least 1. Bilinear between the two nearest columns,
    with no smoothing before: factors much below 1/2 skip columns.

    Returns a new ``Sample`` with the same target and label; the one given stays as it is.

    Args:
        low: smallest factor, in (0, 100].
        high: largest factor, in [low, 100].

    Raises:
        TypeError: if an argument is not a number, or on a call the image is not a float32 array
            [C, H, W].
        ValueError: if an argument is outside its range, or on a call the image has no pixels.

    >>> import numpy as np
    >>> from onemodel import Sample, SampleRng
    >>> sample = Sample(np.array([[[0, 1, 2, 3]]], np.float32), label=7)
    >>> StretchWidth(2, 2)(SampleRng(0), sample).image
    array([[[0.  , 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.  ]]], dtype=float32)
    """

    cdef Range factor

    low = Argument("low", "The smallest factor.")
    high = Argument("high", "The largest factor.")

    @cython.embedsignature.format("c")
    def __init__(self, low=0.9, high=1.1):
        low, high = check_number("low", low), check_number("high", high)
        if not 0 < low <= 100:
            raise ValueError(f"low must be in (0, 100], got {low}")
        if not low <= high <= 100:
            raise ValueError(f"high must be in [{low}, 100], got {high}")
        configure(self, StretchWidth, {"low": low, "high": high})
        self.factor = range_of("(low, high)", (low, high))

    def __call__(self, SampleRng rng not None, Sample sample not None):
        """Return a new sample whose image has another width."""
        check_initialised(self)
        sample = sample.plain()
        image = pixels_of(sample)
        _, height, width = image.shape
        cdef uint64_t mode = default_float_mode()
        cdef float factor = draw_number(&self.factor, &rng.current)
        cdef float product = <float><int64_t>width * factor
        cdef float rounded = product + <float>0.5
        restore_float_mode(mode)
        width = check_width(max(1, <int64_t>rounded))
        return resized(sample, image, height, width)


cdef class ResizeHeight(Configured):
    """Give the image a fixed height, so that images of any height share a batch.

    Draws: none. The width follows in proportion: ``(2 * W * height + H) // (2 * H)``, at least 1,
    which is the nearest integer; with ``keep_aspect=False`` it stays. Bilinear, down and then
    across, with no smoothing before: heights much below half the old one skip rows.

    Returns a new ``Sample`` with the same target and label; the one given stays as it is.

    Args:
        height: the new height, an integer in [1, 65536].
        keep_aspect: whether the width changes in proportion.

    Raises:
        TypeError: if height is not an integer or keep_aspect not a bool, or on a call the image
            is not a float32 array [C, H, W].
        ValueError: if height is outside its range, or on a call the image has no pixels.

    >>> import numpy as np
    >>> from onemodel import Sample, SampleRng
    >>> sample = Sample(np.zeros((1, 64, 300), np.float32))
    >>> ResizeHeight(32)(SampleRng(0), sample).image.shape
    (1, 32, 150)
    """

    height = Argument("height", "The new height.")
    keep_aspect = Argument("keep_aspect", "Whether the width changes in proportion.")

    @cython.embedsignature.format("c")
    def __init__(self, height, keep_aspect=True):
        height = check_integer("height", height, 1, 65537)
        keep_aspect = check_flag("keep_aspect", keep_aspect)
        configure(self, ResizeHeight, {"height": height, "keep_aspect": keep_aspect})

    def __call__(self, SampleRng rng not None, Sample sample not None):
        """Return a new sample whose image has the height."""
        check_initialised(self)
        sample = sample.plain()
        image = pixels_of(sample)
        _, height, width = image.shape
        if self.keep_aspect:
            width = check_width(max(1, (2 * width * self.height + height) // (2 * height)))
        return resized(sample, image, self.height, width)

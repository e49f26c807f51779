"""The loops of Mixup and CutMix: draws, blends and boxes, row after row.

Source: docs/transforms.md. The classes, with their checks, are in mixup.py.
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

import numpy as np

from onemodel._random.batch_rng cimport BatchRng
from onemodel._random.rng cimport next_below, next_double
from onemodel._memory.arrays cimport address
from onemodel._simd.float_mode cimport default_float_mode, restore_float_mode

__all__ = ["cut_rows", "mix_rows"]


ctypedef struct Blend:
    int64_t partner             # a row of this shard
    float weight                # of the row itself
    float rest                  # of its partner: 1 - weight


cdef double draw_weight(uint64_t *state, int power) noexcept nogil:
    """Beta(1 / power, 1 / power) by Joehnk's method: products, a sum and a quotient."""
    cdef double u, x, y, total
    cdef int _power
    while True:
        u = next_double(state)
        x = u
        for _power in range(1, power):
            x = x * u
        u = next_double(state)
        y = u
        for _power in range(1, power):
            y = y * u
        total = x + y
        if 0 < total <= 1:
            return x / total


cdef int64_t draw_partner(
    uint64_t *state, int64_t row, int64_t rows, uint64_t first_slot, uint64_t block
) noexcept nogil:
    """A row among those of this shard whose global slots share the row's block."""
    cdef int64_t into = <int64_t>((first_slot + <uint64_t>row) % block)
    cdef int64_t low = max(row - into, 0)
    cdef int64_t high = min(row - into + <int64_t>block, rows)
    return low + <int64_t>next_below(state, <uint64_t>(high - low))


cdef void weigh(
    const float *own, const float *partner, float *target, int64_t count, const Blend *blend
) noexcept nogil:
    """own * weight + partner * rest; each product and the sum round to float32."""
    cdef float weight = blend.weight
    cdef float rest = blend.rest
    cdef float first, second
    cdef int64_t k
    for k in range(count):
        first = own[k] * weight
        second = partner[k] * rest
        target[k] = first + second


cdef int check_rows(source, result) except -1:
    """Check arrays that are read and written row by row: whole and alike."""
    if (
        result.shape != source.shape or result.dtype != source.dtype
        or not (source.flags.c_contiguous and source.flags.aligned and result.flags.carray)
    ):
        raise ValueError("results must be writable, aligned, C-contiguous and like their inputs")
    return 0


cdef int check_counts(images, labels, int power, int64_t block) except -1:
    if power < 1 or block < 1:
        raise ValueError(f"power and block must be at least 1, got {power} and {block}")
    if len(images) != len(labels) or labels.dtype != "float32":
        raise ValueError("labels must be float32, with as many rows as images")
    return 0


def mix_rows(BatchRng rng not None, int power, int64_t block, images, result, labels, blended):
    """Fill ``result`` and ``blended`` with rows of ``images`` and ``labels`` and of partners.

    Args:
        power: k of Beta(1 / k, 1 / k).
        block: consecutive global slots that exchange.
        images, labels, result, blended: C-contiguous float32 of as many rows, all checked.
    """
    # a subclass may say what it likes of its dtype, shape and layout
    images, result, labels, blended = map(np.asarray, (images, result, labels, blended))
    check_rows(images, result)
    check_rows(labels, blended)
    check_counts(images, labels, power, block)
    if images.dtype != "float32":
        raise ValueError(f"images must be float32, got {images.dtype}")
    cdef int64_t rows = len(images)
    cdef uint64_t *states = rng.row_states(rows)
    cdef const float *source = <const float *>address(images)
    cdef const float *label_rows = <const float *>address(labels)
    cdef float *target = <float *>address(result)
    cdef float *label_target = <float *>address(blended)
    cdef int64_t size = images.size // rows if rows else 0
    cdef int64_t label_size = labels.size // rows if rows else 0
    cdef int64_t k
    cdef Blend blend
    cdef uint64_t mode = default_float_mode()
    with nogil:
        for k in range(rows):
            blend.partner = draw_partner(
                &states[k], k, rows, rng.first_slot, <uint64_t>block
            )
            blend.weight = <float>draw_weight(&states[k], power)
            blend.rest = <float>1.0 - blend.weight
            weigh(
                label_rows + k * label_size, label_rows + blend.partner * label_size,
                label_target + k * label_size, label_size, &blend,
            )
            weigh(
                source + k * size, source + blend.partner * size, target + k * size, size, &blend,
            )
    restore_float_mode(mode)


def cut_rows(
    BatchRng rng not None, int power, int64_t block, images, result, labels, blended,
    int64_t height, int64_t width, int64_t pixel_bytes,
):
    """Fill ``result`` with images in which a box is a partner's, ``blended`` with their labels.

    Args:
        images, result: C-contiguous, planes of ``height`` rows of ``width`` pixels.
        power, block, labels, blended: as for ``mix_rows``.
    """
    # a subclass may say what it likes of its dtype, shape and layout
    images, result, labels, blended = map(np.asarray, (images, result, labels, blended))
    check_rows(images, result)
    check_rows(labels, blended)
    check_counts(images, labels, power, block)
    if height < 1 or width < 1 or pixel_bytes < 1 or images[:1].nbytes % (
        height * width * pixel_bytes
    ):
        raise ValueError(f"images must be planes of {height} x {width} x {pixel_bytes} bytes")
    cdef int64_t rows = len(images)
    cdef uint64_t *states = rng.row_states(rows)
    cdef const char *source = address(images)
    cdef const float *label_rows = <const float *>address(labels)
    cdef char *target = address(result)
    cdef float *label_target = <float *>address(blended)
    cdef int64_t label_size = labels.size // rows if rows else 0
    cdef int64_t row_bytes = images.nbytes // rows if rows else 0
    cdef int64_t plane_bytes = height * width * pixel_bytes
    cdef double pixels = <double>(height * width)
    cdef double ratio, tall, wide, outside
    cdef int64_t half_height, half_width, top, bottom, left, right
    cdef int64_t k, plane, x, y, place
    cdef Blend blend
    cdef uint64_t mode = default_float_mode()
    with nogil:
        for k in range(rows):
            blend.partner = draw_partner(
                &states[k], k, rows, rng.first_slot, <uint64_t>block
            )
            ratio = sqrt(1.0 - draw_weight(&states[k], power))
            tall = <double>height * ratio
            wide = <double>width * ratio
            half_height = <int64_t>tall // 2
            half_width = <int64_t>wide // 2
            y = <int64_t>next_below(&states[k], <uint64_t>height)
            x = <int64_t>next_below(&states[k], <uint64_t>width)
            top = max(y - half_height, 0)
            bottom = min(y + half_height, height)
            left = max(x - half_width, 0)
            right = min(x + half_width, width)
            outside = <double>(height * width - (bottom - top) * (right - left))
            blend.weight = <float>(outside / pixels)
            blend.rest = <float>1.0 - blend.weight
            weigh(
                label_rows + k * label_size, label_rows + blend.partner * label_size,
                label_target + k * label_size, label_size, &blend,
            )
            memcpy(target + k * row_bytes, source + k * row_bytes, <size_t>row_bytes)
            for plane in range(row_bytes // plane_bytes):
                for y in range(top, bottom):
                    place = plane * plane_bytes + (y * width + left) * pixel_bytes
                    memcpy(
                        target + k * row_bytes + place,
                        source + blend.partner * row_bytes + place,
                        <size_t>((right - left) * pixel_bytes),
                    )
    restore_float_mode(mode)

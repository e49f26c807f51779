"""Rows of an array by index: the copy behind `dataset[indices]`, without the GIL.

Any dtype without Python objects, any rank and any strides: a row is folded into runs of bytes
that lie together, and where it is one run the copy is a memcpy for each index.
"""

from libc.stdint cimport int64_t
from libc.string cimport memcpy

import math

import numpy as np

from onemodel._common.arrays import check_out
from onemodel._memory.arrays cimport CONTIGUOUS, Array, address, array_of
from onemodel._simd.cache_hint cimport prefetch_row
from onemodel._simd.dispatch cimport store_fence, loops

__all__ = ["gather_rows"]


def gather_rows(source, indices, out=None, bint non_temporal=False):
    """Return the rows ``source[indices]`` as a new C-contiguous array, or fill ``out`` with them.

    Args:
        source: array of rank at least 1; it may be strided, read-only or a memory map.
        indices: int64 [n], each in [0, len(source)).
        out: C-contiguous, aligned, writable, of source's dtype and shape [n, ...], no memory of
            source.
        non_temporal: write it with non-temporal stores; the bytes are the same.

    Raises:
        IndexError: if an index is out of range, naming it and the length.
        TypeError, ValueError: if an argument is not as described.

    >>> import numpy as np
    >>> gather_rows(np.arange(6).reshape(3, 2), np.array([2, 0])).tolist()
    [[4, 5], [0, 1]]
    """
    cdef RowSource rows
    source = np.asarray(source)
    indices = np.asarray(indices)
    if indices.size and indices.dtype.kind not in "iu":
        raise TypeError(f"indices must be integers, got {indices.dtype}")
    if source.ndim == 0:
        raise ValueError("source must have rows, got an array of rank 0")
    if source.dtype.hasobject:
        raise TypeError(f"source must have a dtype without Python objects, got {source.dtype}")
    cdef Array given
    indices = np.ascontiguousarray(indices, np.int64)
    array_of(indices, b"q", 1, CONTIGUOUS, &given)
    cdef const int64_t *places = <const int64_t *>given.data
    cdef int64_t count = given.size
    cdef int64_t length = source.shape[0]
    cdef int64_t k
    for k in range(count):
        if not 0 <= places[k] < length:
            raise IndexError(f"indices must be in [0, {length}), got {places[k]} at {k}")
    out = check_out(out, (count, *source.shape[1:]), source.dtype)
    if np.may_share_memory(source, out):
        raise ValueError("out must share no memory with source")
    if out.size == 0 or out.dtype.itemsize == 0:
        return out
    row_source(source, &rows)
    cdef char *target = address(out)
    with nogil:
        gather_native(&rows, places, count, target, non_temporal)
    return out


cdef int row_source(source, RowSource *rows) except -1:
    rows.base = address(source)
    rows.stride, rows.length = source.strides[0], source.shape[0]
    rows.row_bytes = math.prod(source.shape[1:]) * source.dtype.itemsize
    layout_of(&rows.layout, source.shape[1:], source.strides[1:], source.dtype.itemsize)
    return 0


cdef void gather_native(
    const RowSource *rows, const int64_t *indices, int64_t count, char *target, bint non_temporal
) noexcept nogil:
    cdef bint whole = rows.layout.rank == 0
    cdef int64_t k
    non_temporal = non_temporal and whole and rows.row_bytes & 3 == 0
    for k in range(count):
        if k + 1 < count and whole:
            prefetch_row(rows.base + indices[k + 1] * rows.stride, rows.row_bytes)
        if non_temporal:
            loops.copy_non_temporal(
                <float *>target, <const float *>(rows.base + indices[k] * rows.stride),
                rows.row_bytes >> 2,
            )
        else:
            copy_row(&rows.layout, rows.base + indices[k] * rows.stride, target)
        target += rows.row_bytes
    if non_temporal:
        store_fence()


cdef int layout_of(RowLayout *layout, shape, strides, int64_t itemsize) except -1:
    """Fold the row's axes: those that lie in one run, and those of one stride."""
    cdef int64_t count, stride
    layout.run = itemsize
    layout.rank = 0
    # from the last axis to the first; the grid's axes stand in the same, reversed order
    for count, stride in zip(reversed(shape), reversed(strides)):
        if count == 1:
            continue
        if layout.rank == 0 and stride == layout.run:
            layout.run *= count
        elif (
            layout.rank > 0
            and stride == layout.strides[layout.rank - 1] * layout.counts[layout.rank - 1]
        ):
            layout.counts[layout.rank - 1] *= count
        else:
            layout.counts[layout.rank] = count
            layout.strides[layout.rank] = stride
            layout.rank += 1
    return 0


cdef inline void copy_runs(
    char *target, const char *source, int64_t count, int64_t stride, int64_t run
) noexcept nogil:
    """Copy runs that lie `stride` apart; the usual item sizes are single moves."""
    cdef int64_t k
    if run == 1:
        for k in range(count):
            target[k] = source[k * stride]
    elif run == 2:
        for k in range(count):
            memcpy(target + 2 * k, source + k * stride, 2)
    elif run == 4:
        for k in range(count):
            memcpy(target + 4 * k, source + k * stride, 4)
    elif run == 8:
        for k in range(count):
            memcpy(target + 8 * k, source + k * stride, 8)
    else:
        for k in range(count):
            memcpy(target + k * run, source + k * stride, <size_t>run)


cdef void copy_row(const RowLayout *layout, const char *source, char *target) noexcept nogil:
    cdef int64_t position[MAXIMUM_RANK]
    cdef int axis
    if layout.rank == 0:
        memcpy(target, source, <size_t>layout.run)
        return
    for axis in range(layout.rank):
        position[axis] = 0
    while True:
        copy_runs(target, source, layout.counts[0], layout.strides[0], layout.run)
        target += layout.counts[0] * layout.run
        # step the outer axes like an odometer
        axis = 1
        while axis < layout.rank:
            position[axis] += 1
            source += layout.strides[axis]
            if position[axis] < layout.counts[axis]:
                break
            source -= layout.counts[axis] * layout.strides[axis]
            position[axis] = 0
            axis += 1
        if axis == layout.rank or layout.rank == 1:
            return

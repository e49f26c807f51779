"""The C protocol of native row transforms: write your own in Cython against this file.

A row transform is a `RowOperation`: settings that never change, a function that draws the random
parameters of one row, and a function that makes the new row out of the old one. A chain of
operations runs row by row in one pass over memory: each row goes through all operations while it is in
L1. Rows have generators of their own, so the order of rows changes no draw.

To add one: subclass NativeTransform, fill `self.operation` and `self.arguments` in __init__
(settings must live as long as the object: point at a C struct that is a field of it), override
`after` where the row's shape or dtype changes or not every one is accepted, and give the class a
docstring that lists its draws in order.
"""

from libc.stdint cimport int64_t, uint64_t


cdef enum RowKind:
    UINT8_HWC                   # channels interleaved, as decoders give them
    FLOAT32_CHW                 # planes, as networks take them


ctypedef struct RowFormat:
    RowKind kind
    int64_t channels
    int64_t height
    int64_t width
    bint flat                   # rows are [height, width], with no axis for the one channel


# Draw one row's parameters from *state into `parameters` (parameter_bytes, 8-byte aligned).
ctypedef void (*RowDraw)(
    const void *settings, uint64_t *state, const RowFormat *before, void *parameters
) noexcept nogil

# Make the new row and return where it lies: `target`, or `source` where nothing changed.
# `source` must stay as it is; the two do not overlap. `non_temporal` says that nobody reads
# `target` soon: stores may be non-temporal, the caller fences them.
ctypedef const char *(*RowApply)(
    const void *settings, const void *parameters, const RowFormat *before, const RowFormat *after,
    const char *source, char *target, bint non_temporal
) noexcept nogil


ctypedef struct RowOperation:
    const void *settings
    int64_t parameter_bytes         # size of what `draw` fills in
    RowDraw draw                # NULL where nothing is drawn
    RowApply apply


cdef class NativeTransform:
    cdef RowOperation operation
    cdef readonly dict arguments
    cdef readonly object key
    cdef RowFormat after(self, RowFormat before) except *
    cdef NativeTransform merged_with(self, NativeTransform previous, RowFormat before)


cdef class RowChain:
    """Stages in order, for rows of one format, ready to run without the GIL."""
    cdef readonly tuple parts
    cdef readonly object dtype
    cdef readonly tuple shape
    cdef tuple owners           # who the operations' settings belong to
    cdef RowOperation *operations
    cdef RowFormat *formats     # formats[k] is what operation k reads
    cdef int count
    cdef int64_t parameter_bytes
    cdef int64_t scratch_bytes
    cdef int64_t result_bytes

    cdef void run_rows(
        self, const char *base, int64_t stride, const int64_t *indices, int64_t rows,
        uint64_t *states, char *target, char *memory, bint non_temporal
    ) noexcept nogil


cdef char *address(array) except NULL


cdef inline int64_t format_bytes(const RowFormat *format) noexcept nogil:
    cdef int64_t values = format.channels * format.height * format.width
    return values if format.kind == UINT8_HWC else 4 * values

"""The rows of an array as kernels gather them."""

from libc.stdint cimport int64_t

cdef enum:
    MAXIMUM_RANK = 64           # NumPy's own


ctypedef struct RowLayout:
    int64_t run                 # bytes that lie together
    int rank                    # of the grid of runs; 0 where the row is one run
    int64_t counts[MAXIMUM_RANK]
    int64_t strides[MAXIMUM_RANK]


ctypedef struct RowSource:
    const char *base
    int64_t stride              # from row to row, in bytes
    int64_t length              # rows
    int64_t row_bytes           # of a row when it lies together
    RowLayout layout


# Describe an array of rank at least 1 whose dtype holds no objects; keep the array.
cdef int row_source(source, RowSource *rows) except -1

# Copy the rows at `indices`, all of them in [0, length), to `target`, one after another.
cdef void gather_native(
    const RowSource *rows, const int64_t *indices, int64_t count, char *target, bint non_temporal
) noexcept nogil

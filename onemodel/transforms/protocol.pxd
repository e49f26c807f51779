"""The C protocol of native row transforms: write your own in Cython against this file.

A row is one item of an array of images. A row transform has an `Operation`: settings that never
change, a function `draw` that draws the random parameters of one row, and a function `apply` that
makes the new row out of the old one. A chain of operations runs row by row in one pass over
memory: each row goes through all operations while it is in L1. Rows have generators of their own,
so the order of rows changes no draw.

To add one: subclass NativeTransform; in __init__ check the arguments, hand them to `configure`,
`key` and `layout` among them, and fill `self.operation` (settings must live as long as the object:
point at a C struct that is a field of it); override `after` where the row's shape or dtype changes
or not every one is accepted; and give the class a docstring that lists its draws in order. The
repr, pickling and the attribute `arguments` come from what `configure` keeps.
"""

from libc.stdint cimport int64_t, uint64_t

from onemodel._common.configured cimport Configured, configure


ctypedef struct RowFormat:
    int64_t item_bytes          # 1: uint8, 4: float32
    bint planar                 # [C, H, W], a plane for each channel; else [H, W, C]
    bint flat                   # [H, W]: no axis for the one channel
    int64_t channels
    int64_t height
    int64_t width


# Draw one row's parameters from *state into `parameters` (parameter_bytes, 8-byte aligned).
ctypedef void (*DrawFunction)(
    const void *settings, uint64_t *state, const RowFormat *before, void *parameters
) noexcept nogil

# Make the new row and return where it lies: `target`, or `source` where nothing changed.
# `source` must stay as it is; the two do not overlap. `non_temporal` says that nobody reads
# `target` soon: non-temporal stores may be used, the caller fences them.
ctypedef const char *(*ApplyFunction)(
    const void *settings, const void *parameters, const RowFormat *before, const RowFormat *after,
    const char *source, char *target, bint non_temporal
) noexcept nogil


ctypedef struct Operation:
    const void *settings
    int64_t parameter_bytes             # size of what `draw` fills in
    DrawFunction draw                   # NULL where nothing is drawn
    ApplyFunction apply


cdef class NativeTransform(Configured):
    cdef Operation operation
    cdef RowFormat after(self, RowFormat before) except *
    cdef NativeTransform merged_with(self, NativeTransform previous, RowFormat before)


# Edit an array of these dimensions in place, with draws from *state: what other compilers give.
ctypedef void (*EditFunction)(
    uint64_t *state, int64_t first, int64_t second, int64_t third, void *values
) noexcept nogil


cdef class CompiledTransform(NativeTransform):
    """One whose functions another compiler made: a subclass checks and compiles them."""
    cdef EditFunction functions[4]      # of bytes and floats, each [a, b, c] and [a, b]


# An operation with the rows that it reads and makes.
ctypedef struct BoundOperation:
    Operation operation
    RowFormat before
    RowFormat after


cdef class RowChain(Configured):
    """Native transforms in order, for rows of one format, ready to run without the GIL."""
    cdef object result_dtype
    cdef tuple result_shape
    cdef tuple owners           # who the operations' settings belong to
    cdef BoundOperation *operations
    cdef int count
    cdef int64_t parameter_bytes
    cdef int64_t scratch_bytes
    cdef int64_t result_bytes

    cdef int check_rows(self, source, result) except -1
    cdef void run_rows(
        self, const char *base, int64_t stride, const int64_t *indices, int64_t rows,
        uint64_t *states, char *target, char *memory, bint non_temporal
    ) noexcept nogil


cdef inline int64_t row_bytes(const RowFormat *format) noexcept nogil:
    return format.item_bytes * format.channels * format.height * format.width

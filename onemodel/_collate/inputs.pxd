"""Where the pixels, symbols and labels of one batch lie."""

from libc.stdint cimport int32_t, int64_t

from onemodel.datasets.columns cimport Columns
from onemodel.datasets.sample cimport ImageSource


ctypedef struct Slot:
    ImageSource image
    const int32_t *target
    int64_t target_length
    int32_t label
    int32_t index


# What one batch is made of. `slots` has one more than `count`, all zero: what follows the last slot
# can be looked at.
ctypedef struct Inputs:
    Slot *slots
    int64_t count
    int64_t channels
    int64_t height
    int64_t widest
    int64_t columns             # sum of the widths
    int64_t symbols             # sum of the target lengths
    int64_t longest             # target
    bint bytes
    const float *scale          # per channel, for uint8 pixels
    const float *shift


cdef class CollateInputs:
    cdef Inputs inputs
    cdef object owner           # keeps the memory that the slots point to alive


# Point the slots at the images at `indices`. Returns the position of the first index that is no
# image or does not fit in int32, or -1 where all are well, or -2 where there is no memory. The
# caller frees `inputs.slots`.
cdef int64_t point_at_columns(
    Columns columns, const int64_t *indices, int64_t count, Inputs *inputs
) noexcept nogil

# Start anew with `count` slots, all zero; False where there is no memory.
cdef bint allocate(Inputs *inputs, int64_t count) noexcept nogil

# Keep the slots [first, first + count). `widest` and `longest` stay those of all.
cdef void narrow(Inputs *inputs, int64_t first, int64_t count) noexcept nogil

# Count a slot in; False where one of its numbers does not fit in a batch's int32.
cdef bint add_totals(Inputs *inputs, Slot *slot, int64_t index) noexcept nogil

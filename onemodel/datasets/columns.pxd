"""The columns of a dataset as kernels see them."""

from libc.stdint cimport int32_t, int64_t


cdef class Columns:
    """A whole image dataset in flat arrays, checked once."""
    cdef readonly int64_t count
    cdef readonly int64_t channels
    cdef readonly int64_t height
    cdef readonly object arrays     # by name, read-only; keeps the memory below alive
    cdef bint bytes                 # uint8 pixels, else float32
    cdef const char *pixels
    cdef const int64_t *offsets     # of image i, in elements
    cdef const int64_t *widths
    cdef const int32_t *targets
    cdef const int64_t *target_offsets
    cdef const int32_t *labels
    cdef const float *scale         # per channel, for uint8 pixels
    cdef const float *shift

    cdef int check_each(self, int64_t count, int64_t elements) except -1

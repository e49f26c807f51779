from libc.stdint cimport int32_t, int64_t


cdef class Columns:
    """A whole dataset in flat arrays, checked once."""
    cdef readonly int64_t count
    cdef readonly int64_t channels
    cdef readonly int64_t height
    cdef bint bytes             # uint8 pixels, else float32
    cdef tuple arrays           # keeps the memory below alive
    cdef const char *pixels
    cdef const int64_t *offsets
    cdef const int64_t *widths
    cdef const int32_t *targets
    cdef const int64_t *target_offsets
    cdef const int32_t *labels
    cdef const float *scale
    cdef const float *shift

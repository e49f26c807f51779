"""A sample as kernels see it: where its pixels and its target lie."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from onemodel._memory.lock cimport Lock, read_word


# One image in memory: strides in bytes, `width` pixels in each row.
ctypedef struct ImageSource:
    const char *pixels
    int64_t plane_stride
    int64_t row_stride
    int64_t column_stride
    int64_t width


cdef class Sample:
    # In front what collation looks at: two cache lines of an object that lies anywhere.
    cdef uint32_t resolved      # 1: this part is set and image_buffer is held
    cdef ImageSource source
    cdef int64_t channels
    cdef int64_t height
    cdef const int32_t *target_data
    cdef int64_t target_length
    cdef int32_t label_value
    cdef readonly object image
    cdef readonly object target
    cdef readonly object label
    cdef bint made              # __init__ has run
    cdef object symbols         # int32 array that target_data points into
    cdef tuple looked_up        # symbols and label of the sample that it was made from, or None
    cdef Py_buffer image_buffer

    cdef Lock lock              # of the thread that fills all this in

    cdef object resolve(self)
    cdef Sample plain(self)
    cdef Sample with_image(self, image)


cdef inline bint is_resolved(Sample sample) noexcept nogil:
    """Whether the fields are filled in, and seen as such by this thread."""
    return read_word(&sample.resolved) != 0

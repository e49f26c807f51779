"""Where the pixels, symbols and labels of one batch lie."""

from libc.stdint cimport int32_t, int64_t

from onemodel.datasets.sample cimport ImageSource


ctypedef struct Slot:
    ImageSource image
    const int32_t *target
    int64_t target_length
    int32_t label
    int32_t index


cdef class CollateInputs:
    cdef Slot *slots
    cdef readonly int64_t count
    cdef readonly int64_t channels
    cdef readonly int64_t height
    cdef readonly int64_t widest
    cdef readonly int64_t columns       # sum of the widths
    cdef readonly int64_t symbols       # sum of the target lengths
    cdef object owner                   # keeps the memory behind the slots alive
    cdef bint bytes
    cdef const float *scale             # per channel, for uint8 pixels
    cdef const float *shift

    cdef int allocate(self, int64_t count) except -1

"""What other row transforms use of the flip, to do it in a pass of their own."""

from libc.stdint cimport int64_t, uint64_t

from onemodel.transforms.protocol cimport NativeTransform, RowFormat


ctypedef struct FlipParameters:
    int64_t mirrored


cdef void flip_draw(
    const void *settings, uint64_t *state, const RowFormat *before, void *parameters
) noexcept nogil


cdef class RandomHorizontalFlip(NativeTransform):
    cdef double probability

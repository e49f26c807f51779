"""The indices of a batch without the GIL, as the library's own samplers give them."""

from libc.stdint cimport int64_t, uint64_t


cdef class IndexPlan:
    """What one sampler gives for one seed."""

    cdef readonly int64_t batch_size
    cdef uint64_t seed
    cdef object source                  # the sampler or its arrays: keeps their memory alive

    # Write the indices of a batch, at most batch_size, and return how many; -1 where the sampler
    # must be asked.
    cdef int64_t fill(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept nogil

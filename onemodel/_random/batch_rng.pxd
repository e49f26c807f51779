"""The generators of a batch's rows, for kernels."""

from libc.stdint cimport int64_t, uint64_t

from onemodel._random.rng cimport SampleRng


cdef class BatchRng(SampleRng):
    cdef readonly object pool
    cdef uint64_t row_prefix
    cdef readonly uint64_t first_slot
    cdef uint64_t *states
    cdef int64_t count

    @staticmethod
    cdef BatchRng begin(uint64_t seed, uint64_t epoch, uint64_t step, uint64_t first_slot)
    cdef void restart(self, uint64_t prefix, uint64_t first_slot) noexcept
    cdef uint64_t *row_states(self, int64_t rows) except NULL


cdef BatchRng rows_rng(SampleRng rng)

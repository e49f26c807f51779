"""The class's fields, so that other kernels can read a permutation's plan without Python."""

from libc.stdint cimport uint64_t

from onemodel._simd.feistel cimport Feistel


cdef class KeyedPermutation:
    cdef Feistel plan
    cdef readonly object key

    cdef object sliced(self, positions)
    cdef uint64_t inside(self, name, value) except? 0

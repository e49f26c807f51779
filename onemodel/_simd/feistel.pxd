"""The keyed permutation as inline primitives for other kernels; feistel.h says how it is made."""

from libc.stdint cimport uint64_t


cdef extern from "feistel.h":
    ctypedef struct Feistel "onemodel_feistel":
        uint64_t n

    # prepare the permutation of [0, n) that `key` names, n in [0, 2**63)
    void feistel "onemodel_feistel_set"(Feistel *plan, uint64_t n, uint64_t key) noexcept nogil
    # where `position` in [0, n) goes; 0 where n <= 1
    uint64_t permute "onemodel_permute"(const Feistel *plan, uint64_t position) noexcept nogil
    # the position that goes to `index`
    uint64_t unpermute "onemodel_unpermute"(const Feistel *plan, uint64_t index) noexcept nogil

"""SplitMix64's step as inline primitives; splitmix64.h says what they do."""

from libc.stdint cimport uint64_t


cdef extern from "splitmix64.h":
    # one output of SplitMix64 whose state before the increment is x
    uint64_t mix64 "onemodel_mix64"(uint64_t x) noexcept nogil
    # the next output; the state moves on
    uint64_t next_u64 "onemodel_next_u64"(uint64_t *state) noexcept nogil
    # leave the state where so many calls of next_u64 would
    void skip_u64 "onemodel_skip_u64"(uint64_t *state, uint64_t draws) noexcept nogil

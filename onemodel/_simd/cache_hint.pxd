"""Ask for memory before it is read."""

from libc.stdint cimport int64_t


cdef extern from "cache_hint.h":
    void prefetch_row "onemodel_prefetch_row"(const char *row, int64_t size) noexcept nogil

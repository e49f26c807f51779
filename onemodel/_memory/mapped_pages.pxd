"""Pages of memory-mapped files, for kernels: mapped_pages.h says what is told to the system."""

from libc.stdint cimport int64_t


cdef extern from "mapped_pages.h":
    void will_need "onemodel_will_need"(const char *begin, int64_t bytes) noexcept nogil
    int64_t page_waits "onemodel_page_waits"() noexcept nogil

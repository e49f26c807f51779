"""A lock for a few lines of C, held without the GIL and never found taken after a fork.

The word of a taken lock is the fork generation of the process that took it. A child of a fork
has a later generation, so a lock that a thread of the parent held is free to it. What a lock
guards must therefore be usable after any prefix of a critical section: one store that counts.

While it is held, nothing may call Python, wait, or return early: then no finaliser, signal
handler or exception can find it taken.
"""

from libc.stdint cimport uint32_t


ctypedef struct Lock:
    uint32_t word               # 0: free


cdef extern from "atomics.h":
    bint swap_if "onemodel_swap_if"(
        uint32_t *word, uint32_t expected, uint32_t desired
    ) noexcept nogil
    uint32_t read_word "onemodel_read"(const uint32_t *word) noexcept nogil
    void write_word "onemodel_write"(uint32_t *word, uint32_t value) noexcept nogil
    void yield_processor "onemodel_yield"() noexcept nogil


cdef uint32_t generation        # of this process; at least 1

cdef void wait_for(Lock *wanted) noexcept nogil


cdef inline void lock(Lock *mine) noexcept nogil:
    if not swap_if(&mine.word, 0, generation):
        wait_for(mine)


cdef inline void unlock(Lock *mine) noexcept nogil:
    write_word(&mine.word, 0)

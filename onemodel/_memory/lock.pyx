"""The waiting side of `lock.pxd`, and the count of forks."""

import os

__all__ = ["count_fork"]

cdef enum:
    SPINS = 200                 # reads before the processor is given away: a section is shorter


cdef void wait_for(Lock *wanted) noexcept nogil:
    cdef uint32_t holder
    cdef int spins = 0
    while True:
        holder = read_word(&wanted.word)
        # free, or held by a thread of the process that this one was forked from
        if holder == 0 or holder != generation:
            if swap_if(&wanted.word, holder, generation):
                return
        spins += 1
        if spins >= SPINS:
            yield_processor()
            spins = 0


def count_fork():
    """Tell all locks that this process was forked: no thread of its parent is here."""
    global generation
    generation += 1


generation = 1
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=count_fork)

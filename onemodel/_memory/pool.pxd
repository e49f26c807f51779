"""The pool's fields, so that kernels can rent memory without Python."""

from libc.stdint cimport int64_t

cdef enum:
    ALIGNMENT = 64              # a cache line, and the widest vectors
    SIZE_CLASSES = 256          # four to each power of two
    CACHED_BYTES = 7 << 20      # measured: docs/guides/speed.md


# Stands before the aligned memory of every block, used or free.
cdef struct Header:
    void *raw                   # what the allocator gave
    Header *next                # in the free list
    int size_class
    int64_t size                # of the memory behind the header


cdef class Block:
    cdef Header *header
    cdef int64_t size
    cdef BufferPool pool


cdef class BufferPool:
    # The free lists are touched by C code alone between two Python operations, so the GIL
    # guards them: no lock that a fork or a finaliser could find taken.
    cdef Header *free_blocks[SIZE_CLASSES]
    cdef int64_t rented
    cdef int64_t returned
    cdef int64_t allocated
    cdef int64_t bytes
    cdef int64_t bytes_out      # rented now

    cdef object allocate(self, tuple shape, kind)
    cdef Block take(self, int64_t wanted)
    cdef void release_header(self, Header *header) noexcept


cdef inline char *memory(Block block) noexcept:
    """The aligned memory of a block, `block.size` bytes."""
    return <char *>block.header + ALIGNMENT


cdef inline bint exceeds_cache(BufferPool pool) noexcept:
    """Whether more is rented out now than caches hold: BufferPool.exceeds_cache says what follows."""
    return pool.bytes_out > CACHED_BYTES

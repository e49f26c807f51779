"""The pool's fields, so that kernels can rent memory without Python."""

from cpython.ref cimport PyObject
from libc.stdint cimport int64_t

from onemodel._memory.lock cimport Lock

cdef enum:
    ALIGNMENT = 64              # a cache line, and the widest vectors
    SIZE_CLASSES = 512          # eight to each power of two
    CACHED_BYTES = 7 << 20      # measured: docs/guides/speed.md


# Precedes the aligned memory of every buffer, rented or free.
cdef struct Header:
    void *raw                   # what the allocator gave
    PyObject *owner             # who holds that memory; NULL for ordinary memory
    Header *next                # in the free list
    int size_class
    int64_t size                # of the memory behind the header
    int64_t asked               # of it, by who rents it now


cdef class Block:
    cdef Header *header
    cdef int64_t size
    cdef BufferPool pool


cdef class BufferPool:
    # The lock guards all that follows. A fork may come between any two stores; then the child's
    # lists hold what the parent's held or one buffer less, and its counters may be off by it.
    cdef Lock lock
    cdef Header *free_buffers[SIZE_CLASSES]
    cdef object allocator
    cdef object failure         # what it raised last
    cdef bint has_allocator     # as much can be asked without the GIL
    cdef int64_t rented
    cdef int64_t returned
    cdef int64_t allocated
    cdef int64_t bytes          # allocated and not freed
    cdef int64_t bytes_out      # rented now
    cdef int64_t asked_out      # of which this was asked for
    cdef int64_t most_asked     # the largest asked_out there was
    cdef int64_t most_kept      # so much may be held; the largest bytes_out since all was back

    # `wanted` bytes, or NULL where there is no memory.
    cdef Header *acquire(self, int64_t wanted) noexcept nogil
    cdef void count_most(self) noexcept nogil
    cdef void *call_allocator(self, int64_t size, PyObject **owner) noexcept with gil
    cdef void release(self, Header *header) noexcept nogil
    cdef Header *pop(self, int first, int stop, int64_t largest) noexcept nogil
    cdef Header *evict(self, int stop, int64_t excess, bint one) noexcept nogil

    # Bytes that are rented now.
    cdef int64_t count_out(self) noexcept nogil

    # With the GIL: the buffer becomes an object's, and returns when nobody holds that any more.
    cdef object allocate(self, tuple shape, kind)
    cdef Block allocate_block(self, int64_t wanted)
    cdef Block own(self, Header *header, int64_t size)


cdef inline char *header_memory(Header *header) noexcept nogil:
    """The aligned memory behind a header, `header.size` bytes."""
    return <char *>header + ALIGNMENT


cdef inline char *memory(Block block) noexcept:
    """The aligned memory of a block, `block.size` bytes."""
    return header_memory(block.header)


cdef inline bint exceeds_cache(BufferPool pool) noexcept nogil:
    """Whether more is rented out now than caches hold: BufferPool.exceeds_cache says why."""
    return pool.count_out() > CACHED_BYTES

"""Buffers that come back by themselves when nobody looks at them any more.

A rented array stands on a Block, and every view of the array, every tensor made from it and
every DLPack capsule holds the Block. Its memory goes back to the pool in the Block's
deallocation and in no other place, so memory that somebody can still read is never handed out
again.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memset

import math
from typing import NamedTuple

import numpy as np

from onemodel._common.integers import check_shape

__all__ = ["BufferPool", "PoolStats"]

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    NEAR_CLASSES = 5


class PoolStats(NamedTuple):
    """Counters of a pool since it was made; ``bytes`` is what it has allocated and not freed."""

    rented: int
    returned: int
    allocated: int
    bytes: int


cdef inline int size_class_of(int64_t wanted, int64_t *size) noexcept nogil:
    """The smallest class that holds `wanted` bytes: 64, 80, 96, 112, 128, 160, ..."""
    cdef int64_t base = 64
    cdef int class_number = 0
    cdef int64_t quarter
    cdef int64_t steps
    while base * 2 <= wanted:
        base *= 2
        class_number += 4
    quarter = base // 4
    steps = (wanted - base + quarter - 1) // quarter if wanted > base else 0
    size[0] = base + steps * quarter
    return class_number + <int>steps


@cython.no_gc
cdef class Block:
    """One rented buffer; the array's base. Its end is the return of the memory."""

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, memory(self), self.size, 0, flags)

    def __dealloc__(self):
        if self.header != NULL:
            self.pool.release_header(self.header)


cdef class BufferPool:
    """Memory for batches: 64-byte aligned, in size classes, the block that came back last first.

    Memory returns when the last array, view or tensor on it is gone. The pool keeps what came
    back; it holds as much as was ever out at once. Calls are safe from several threads.

    >>> pool = BufferPool()
    >>> array = pool.rent((2, 3), "float32")
    >>> array.shape, array.dtype.str, pool.stats.rented
    ((2, 3), '<f4', 1)
    >>> del array
    >>> pool.stats.returned
    1
    """

    def __cinit__(self):
        memset(self.free_blocks, 0, sizeof(self.free_blocks))

    def rent(self, shape, dtype):
        """Return an uninitialised, C-contiguous, writable array.

        Args:
            shape: an integer, or a tuple or list of integers >= 0.
            dtype: any dtype without Python objects.

        Raises:
            ValueError: if a dimension is negative or the array is too large for this platform.
            TypeError: if the dtype holds Python objects.
        """
        kind = np.dtype(dtype)
        if kind.hasobject:
            raise TypeError(f"dtype must hold no Python objects, got {kind}")
        return self.allocate(check_shape(shape, "shape"), kind)

    @property
    def stats(self):
        """The counters, a ``PoolStats`` (rented, returned, allocated, bytes)."""
        return PoolStats(self.rented, self.returned, self.allocated, self.bytes)

    @property
    def exceeds_cache(self):
        """Whether more is rented out now than caches hold.

        Then a new buffer is cold, and stores that go around the caches write it faster; a buffer
        that keeps coming back is warm, and ordinary stores do. Both write the same bytes.
        """
        return exceeds_cache(self)

    def clear(self):
        """Free the memory that is not rented out."""
        cdef Header *header
        cdef int k
        for k in range(SIZE_CLASSES):
            while self.free_blocks[k] != NULL:
                header = self.free_blocks[k]
                self.free_blocks[k] = header.next
                self.bytes -= header.size
                PyMem_RawFree(header.raw)

    def __repr__(self):
        return (
            f"BufferPool(rented={self.rented}, returned={self.returned}, "
            f"allocated={self.allocated}, bytes={self.bytes})"
        )

    def __dealloc__(self):
        self.clear()

    cdef object allocate(self, tuple shape, kind):
        """What ``rent`` does, of arguments that are known to be good."""
        wanted = math.prod(shape) * kind.itemsize
        limit = min(1 << 62, PY_SSIZE_T_MAX // 2)
        if wanted > limit:
            raise ValueError(f"shape must give at most {limit} bytes, got {shape} of {kind}")
        return np.ndarray(shape, kind, self.take(wanted))

    cdef Block take(self, int64_t wanted):
        cdef int64_t size
        cdef int class_number = size_class_of(wanted, &size)
        cdef Block block = Block.__new__(Block)
        cdef Header *header = NULL
        cdef void *raw
        cdef int near
        # a free block up to twice as large serves as well, and spares an allocation
        for near in range(class_number, min(class_number + NEAR_CLASSES, SIZE_CLASSES)):
            header = self.free_blocks[near]
            if header != NULL:
                self.free_blocks[near] = header.next
                break
        else:
            raw = PyMem_RawMalloc(<size_t>(size + 2 * ALIGNMENT))
            if raw == NULL:
                raise MemoryError(f"no memory for a buffer of {size} bytes")
            # the header fills the cache line before the first aligned byte
            header = <Header *>((<uintptr_t>raw + ALIGNMENT - 1) & ~<uintptr_t>(ALIGNMENT - 1))
            header.raw = raw
            header.size_class = class_number
            header.size = size
            self.allocated += 1
            self.bytes += size
        block.header = header
        block.size = wanted
        block.pool = self
        self.rented += 1
        self.bytes_out += header.size
        return block

    cdef void release_header(self, Header *header) noexcept:
        header.next = self.free_blocks[header.size_class]
        self.free_blocks[header.size_class] = header
        self.returned += 1
        self.bytes_out -= header.size

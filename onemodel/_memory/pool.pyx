"""Buffers that come back by themselves when nobody holds them any more.

A rented array is backed by a Block, and every view of the array, every tensor made from it and
every DLPack capsule holds the Block. Its memory goes back to the pool in the Block's
deallocation and in no other place, so memory that somebody can still read is never handed out
again. A worker that has no Python object yet acquires and releases buffers by their headers.
"""

cimport cython
from cpython.buffer cimport PyBuffer_FillInfo
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc
from cpython.memoryview cimport PyMemoryView_GET_BUFFER
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport int64_t, uintptr_t
from libc.string cimport memset

import math
from typing import NamedTuple

import numpy as np

from onemodel._common.configured import rebuild
from onemodel._common.describe import shown
from onemodel._common.integers import check_shape
from onemodel._memory.lock cimport lock, unlock

__all__ = ["BufferPool", "PoolStats"]

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    NEAR_CLASSES = 9            # up to twice as large


class PoolStats(NamedTuple):
    """Counters of a pool since it was made; ``bytes`` is what it has allocated and not freed."""

    rented: int
    returned: int
    allocated: int
    bytes: int


cdef inline int size_class_of(int64_t wanted, int64_t *size) noexcept nogil:
    """The smallest class that holds `wanted` bytes: 64, 72, 80, ..., 120, 128, 144, ..."""
    cdef int64_t base = 64
    cdef int class_number = 0
    cdef int64_t part
    cdef int64_t steps
    while base * 2 <= wanted:
        base *= 2
        class_number += 8
    part = base // 8
    steps = (wanted - base + part - 1) // part if wanted > base else 0
    size[0] = base + steps * part
    return class_number + <int>steps


cdef inline int64_t with_rest(int64_t asked) noexcept nogil:
    """What may be kept of so much: a sixteenth more is for small sizes beside large ones."""
    return asked + asked // 16


@cython.no_gc
cdef class Block:
    """One rented buffer; the array's base. Its end is the return of the memory."""

    def __getbuffer__(self, Py_buffer *view, int flags):
        PyBuffer_FillInfo(view, self, memory(self), self.size, 0, flags)

    def __dealloc__(self):
        if self.header != NULL:
            self.pool.release(self.header)


cdef class BufferPool:
    """Memory for batches: 64-byte aligned, in size classes, the buffer that came back last first.

    Memory returns when the last array, view or tensor on it is gone. The pool keeps what came
    back. When all but a little is back, it holds no more than was out at once: at most a fifth
    more than the largest sum of bytes that was asked for at once, where sizes of less than 64
    count as 64. While some are out, a smaller size may be in a larger buffer, and the pool has at
    most twice that. Calls are safe from several threads, and after a fork.

    Args:
        allocate: where the memory itself comes from; None for ordinary memory. It is called with
            a number of bytes, on any thread, and returns an object whose writable, contiguous
            buffer has at least as many: pinned memory, shared memory. The pool holds the object
            until it frees the memory.

    Raises:
        TypeError: if ``allocate`` is neither callable nor None.

    >>> pool = BufferPool()
    >>> array = pool.rent((2, 3), "float32")
    >>> array.shape, array.dtype.str, pool.stats.rented
    ((2, 3), '<f4', 1)
    >>> del array
    >>> pool.stats.returned
    1
    """

    def __cinit__(self, *args, **kwargs):
        memset(self.free_buffers, 0, sizeof(self.free_buffers))

    def __init__(self, *, allocate=None):
        if self.has_allocator:
            raise TypeError("a BufferPool cannot be changed; make another")
        if allocate is not None and not callable(allocate):
            raise TypeError(f"allocate must be callable(nbytes) or None, got {shown(allocate)}")
        self.allocator = allocate
        self.has_allocator = allocate is not None

    def rent(self, shape, dtype):
        """Return an uninitialised, C-contiguous, writable array.

        Args:
            shape: an integer, or a tuple or list of integers >= 0.
            dtype: any dtype without Python objects.

        Raises:
            ValueError: if a dimension is negative or the array is too large for this platform.
            TypeError: if the dtype holds Python objects.
        """
        try:
            kind = np.dtype(dtype)
        except (TypeError, ValueError) as error:
            raise type(error)(f"dtype must be one of NumPy's, got {shown(dtype)}") from None
        if kind.hasobject:
            raise TypeError(f"dtype must hold no Python objects, got {kind}")
        return self.allocate(check_shape(shape, "shape"), kind)

    @property
    def stats(self):
        """The counters, a ``PoolStats`` (rented, returned, allocated, bytes)."""
        lock(&self.lock)
        cdef int64_t rented = self.rented, returned = self.returned
        cdef int64_t allocated = self.allocated, held = self.bytes
        unlock(&self.lock)
        return PoolStats(rented, returned, allocated, held)

    @property
    def exceeds_cache(self):
        """Whether more is rented out now than caches hold.

        Then a new buffer is cold, and non-temporal stores write it faster; a buffer that keeps
        coming back is warm, and ordinary stores do. Both write the same bytes.
        """
        return exceeds_cache(self)

    def clear(self):
        """Free the memory that is not rented out."""
        cdef Header *header
        lock(&self.lock)
        header = self.evict(SIZE_CLASSES, self.bytes, False)
        self.most_asked = self.asked_out
        self.most_kept = self.bytes_out
        unlock(&self.lock)
        free_all(header)

    def __repr__(self):
        counts = ", ".join([f"{name}={count}" for name, count in self.stats._asdict().items()])
        return f"BufferPool({counts})"

    def __reduce__(self):
        if self.allocator is None:
            return type(self), ()
        return rebuild, (type(self), BufferPool, {"allocate": self.allocator})

    def __dealloc__(self):
        free_all(self.evict(SIZE_CLASSES, self.bytes, False))

    cdef int64_t count_out(self) noexcept nogil:
        lock(&self.lock)
        cdef int64_t out = self.bytes_out
        unlock(&self.lock)
        return out

    cdef Header *acquire(self, int64_t wanted) noexcept nogil:
        cdef int64_t size
        cdef int class_number = size_class_of(wanted, &size)
        cdef Header *header
        cdef Header *evicted = NULL
        cdef void *raw
        cdef PyObject *owner = NULL
        cdef int64_t excess, room
        lock(&self.lock)
        # All that are out may have at most twice what was ever asked for at once, also when as much
        # is asked for again: this one may have what its size and the largest of sums leave.
        room = max(self.most_asked, self.asked_out + size) + self.asked_out + size - self.bytes_out
        # a free buffer up to twice as large serves as well, and spares an allocation
        header = self.pop(class_number, class_number + NEAR_CLASSES, room)
        if header == NULL:
            excess = self.bytes + size - max(self.most_kept, self.bytes_out + size)
            if excess > 0:
                # The pool is full of other sizes. A smaller one goes that makes room by itself;
                # else a larger one serves; else whatever is free goes.
                evicted = self.evict(class_number, excess, True)
                if evicted == NULL:
                    header = self.pop(class_number + NEAR_CLASSES, SIZE_CLASSES, room)
                    if header == NULL:
                        evicted = self.evict(SIZE_CLASSES, excess, False)
        self.asked_out += size
        if header == NULL:
            self.allocated += 1
            self.bytes += size
            self.bytes_out += size
        else:
            header.asked = size
            self.bytes_out += header.size
            self.count_most()
        self.rented += 1
        unlock(&self.lock)
        free_all(evicted)
        if header != NULL:
            return header
        if self.has_allocator:
            raw = self.call_allocator(size + 2 * ALIGNMENT, &owner)
        else:
            raw = PyMem_RawMalloc(<size_t>(size + 2 * ALIGNMENT))
        if raw == NULL:
            lock(&self.lock)
            self.allocated -= 1
            self.bytes -= size
            self.rented -= 1
            self.bytes_out -= size
            self.asked_out -= size
            unlock(&self.lock)
            return NULL
        lock(&self.lock)
        self.count_most()
        unlock(&self.lock)
        # the header fills the cache line before the first aligned byte
        header = <Header *>((<uintptr_t>raw + ALIGNMENT - 1) & ~<uintptr_t>(ALIGNMENT - 1))
        header.raw = raw
        header.owner = owner
        header.size_class = class_number
        header.size = header.asked = size
        return header

    cdef void count_most(self) noexcept nogil:
        """Note what is out now, if it was never more. The lock is held."""
        self.most_asked = max(self.most_asked, self.asked_out)
        self.most_kept = max(self.most_kept, self.bytes_out, with_rest(self.most_asked))

    cdef void *call_allocator(self, int64_t size, PyObject **owner) noexcept with gil:
        """Memory of the pool's `allocate` and the object that owns it; NULL where it failed, and
        then `failure` says why.
        """
        cdef Py_buffer *buffer
        try:
            memory = self.allocator(size)
            try:
                view = memoryview(memory)
                if view.readonly or not view.c_contiguous or view.nbytes < size:
                    raise TypeError
            except TypeError:
                raise TypeError(
                    f"allocate must return a writable, contiguous buffer of at least {size} bytes, "
                    f"got {shown(memory)}"
                ) from None
            buffer = PyMemoryView_GET_BUFFER(view)
            Py_INCREF(view)
            owner[0] = <PyObject *>view
            return buffer.buf
        except BaseException as error:
            self.failure = error
            return NULL

    cdef void release(self, Header *header) noexcept nogil:
        cdef Header *evicted = NULL
        lock(&self.lock)
        header.next = self.free_buffers[header.size_class]
        self.free_buffers[header.size_class] = header
        self.returned += 1
        self.bytes_out -= header.size
        self.asked_out -= header.asked
        if self.asked_out <= self.most_asked // 64:
            # not sooner: steps that overlap would give memory back and ask for it again
            self.most_kept = with_rest(self.most_asked)
            evicted = self.evict(SIZE_CLASSES, self.bytes - self.most_kept, False)
        unlock(&self.lock)
        free_all(evicted)

    cdef Header *pop(self, int first, int stop, int64_t largest) noexcept nogil:
        """Take a free buffer of the first class that has one, unless it is too large. The lock is
        held.
        """
        cdef Header *header
        cdef int number
        for number in range(first, min(stop, SIZE_CLASSES)):
            header = self.free_buffers[number]
            if header != NULL:
                if header.size > largest:
                    return NULL
                self.free_buffers[number] = header.next
                return header
        return NULL

    cdef Header *evict(self, int stop, int64_t excess, bint one) noexcept nogil:
        """Take free buffers of classes below `stop` until `excess` bytes are found: the smallest
        that has as much, or else, unless it must be `one`, the largest there is. Return them as a
        list to free. The lock is held.
        """
        cdef Header *evicted = NULL
        cdef Header *header
        cdef int64_t size
        cdef int number
        while excess > 0:
            header = self.pop(size_class_of(excess, &size), stop, self.bytes)
            number = 0 if one else stop
            while header == NULL and number > 0:
                number -= 1
                header = self.pop(number, number + 1, self.bytes)
            if header == NULL:
                break
            header.next = evicted
            evicted = header
            self.bytes -= header.size
            excess -= header.size
        return evicted

    cdef object allocate(self, tuple shape, kind):
        """What ``rent`` does, of arguments that are known to be good."""
        wanted = math.prod(shape) * kind.itemsize
        limit = min(1 << 62, PY_SSIZE_T_MAX // 2)
        if wanted > limit:
            raise ValueError(f"shape must give at most {limit} bytes, got {shape} of {kind}")
        return np.ndarray(shape, kind, self.allocate_block(wanted))

    cdef Block allocate_block(self, int64_t wanted):
        cdef Header *header = self.acquire(wanted)
        if header == NULL:
            failure, self.failure = self.failure, None
            if failure is not None and not isinstance(failure, MemoryError):
                raise failure
            raise MemoryError(f"no memory for a buffer of {wanted} bytes") from failure
        return self.own(header, wanted)

    cdef Block own(self, Header *header, int64_t size):
        cdef Block block = Block.__new__(Block)
        block.header = header
        block.size = size
        block.pool = self
        return block


cdef void release_owner(PyObject *owner) noexcept with gil:
    Py_XDECREF(owner)


cdef void free_all(Header *header) noexcept nogil:
    cdef Header *following
    while header != NULL:
        following = header.next
        if header.owner == NULL:
            PyMem_RawFree(header.raw)
        else:
            release_owner(header.owner)
        header = following

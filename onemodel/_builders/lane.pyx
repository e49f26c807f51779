"""The base of native lanes: how a batch's buffers are rented, handed over and given back."""

from cpython.ref cimport Py_XDECREF, PyObject
from libc.stdint cimport int64_t, uint64_t

__all__ = ["Lane"]


cdef class Lane:
    """What native lanes share; ``lane.pxd`` says what each of them gives to the engine."""

    cdef int build(self, uint64_t g, NativeBatch *batch) noexcept nogil:
        return NEEDS_PYTHON

    cdef object finish(self, NativeBatch *batch):
        return None

    cdef void drop(self, NativeBatch *batch) noexcept nogil:
        cdef int k
        for k in range(self.buffers):
            if batch.buffers[k] != NULL:
                self.pool.release(batch.buffers[k])
                batch.buffers[k] = NULL
        if batch.owner != NULL:
            with gil:
                Py_XDECREF(<PyObject *>batch.owner)
            batch.owner = NULL

    cdef bint rent(self, NativeBatch *batch, int number, int64_t size) noexcept nogil:
        """Rent buffer `number` of the batch; False where there is no memory."""
        batch.buffers[number] = self.pool.acquire(size)
        return batch.buffers[number] != NULL

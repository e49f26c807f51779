"""The ring's fields. What each method guarantees is in ring.pyx."""

from cpython.pythread cimport PyLockStatus, PyThread_type_lock
from libc.stdint cimport int64_t, uint32_t, uint64_t

from onemodel._builders.lane cimport Lane, NativeBatch
from onemodel._engine.steps cimport Steps
from onemodel._engine.waiters cimport Waiter


cdef extern from "clock.h":
    double seconds_now "onemodel_seconds"() noexcept nogil
    double thread_seconds "onemodel_thread_seconds"() noexcept nogil

cdef extern from "pythread.h":
    # -1 microseconds wait for ever; with `interruptible` a signal ends the wait
    PyLockStatus PyThread_acquire_lock_timed(
        PyThread_type_lock lock, long long microseconds, int interruptible
    ) noexcept nogil

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() nogil

cdef enum:
    CPU_EVERY = 16      # native batches for each call of the system for a thread's time


cdef class Ring:
    cdef readonly Lane lane             # or None
    cdef readonly object build          # build(step) -> (batch, error); it never raises
    cdef readonly list threads          # that were started: asked only where a wait is long
    cdef int64_t process
    cdef uint32_t forks                 # lock.generation of that process

    cdef Steps steps

    cdef bint claim(self, Waiter *me, uint64_t *step, uint64_t *generation) noexcept nogil
    cdef void count_worker_cpu(self, Waiter *me) noexcept nogil
    cdef void deliver_native(
        self, uint64_t step, uint64_t generation, NativeBatch *batch, bint by_worker, double began
    ) noexcept nogil
    cdef bint is_lost(self) noexcept
    cdef object build_object(
        self, uint64_t step, uint64_t generation, bint by_worker, double began
    )
    cdef Waiter *borrow_waiter(self) except NULL
    cdef void return_waiter(self, Waiter *waiter) noexcept nogil
    cdef void leave(self, bint keep)
    cdef void drop_slots(self)

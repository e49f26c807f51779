"""Queues of sleeping threads. The one that came last is called first: its stack is in a cache.

The lock that guards a queue is held during every function here.
"""

from cpython.pythread cimport PyThread_release_lock, PyThread_type_lock


# A thread that sleeps until another one releases its semaphore.
ctypedef struct Waiter:
    PyThread_type_lock semaphore
    Waiter *next                # in a queue, or among the spare ones
    bint queued
    double counted_cpu          # processor time of this thread that a ring has counted


cdef inline void push(Waiter **queue, Waiter *waiter) noexcept nogil:
    waiter.next = queue[0]
    waiter.queued = True
    queue[0] = waiter


cdef inline void remove(Waiter **queue, Waiter *waiter) noexcept nogil:
    cdef Waiter **place = queue
    while place[0] != waiter:
        place = &place[0].next
    place[0] = waiter.next
    waiter.queued = False


cdef inline void notify(Waiter **queue) noexcept nogil:
    cdef Waiter *waiter = queue[0]
    if waiter != NULL:
        queue[0] = waiter.next
        waiter.queued = False
        PyThread_release_lock(waiter.semaphore)


cdef inline void notify_all(Waiter **queue) noexcept nogil:
    while queue[0] != NULL:
        notify(queue)

"""The consumer's side of a ring: it takes the steps in order, waits, or builds one itself.

Source: docs/specification.md, section "Delivery". A consumer never sees who built a batch.
"""

from cpython.exc cimport PyErr_CheckSignals
from cpython.pythread cimport (
    PY_LOCK_ACQUIRED,
    PY_LOCK_FAILURE,
    PyLockStatus,
    PyThread_acquire_lock,
)
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int64_t, uint64_t

from onemodel._memory.lock cimport lock, unlock
from onemodel._builders.lane cimport BUILT, Lane, NativeBatch
from onemodel._engine.ring cimport (
    CPU_EVERY,
    PyThread_acquire_lock_timed,
    PyThread_get_thread_ident,
    Ring,
    seconds_now,
    thread_seconds,
)
from onemodel._engine.steps cimport (
    NATIVE,
    Slot,
    Steps,
    builds_are_short,
    claim_next,
    consumer_is_alone,
    goes_on,
    is_ready,
    may_claim,
    take_next,
)
from onemodel._engine.waiters cimport Waiter, notify, push, remove

import os

from onemodel._batch.caught import is_interruption
from onemodel._collate.image_batch import ImageBatch

__all__ = ["take", "wait_ready"]

cdef enum:
    LONG_MICROSECONDS = 1000000     # a consumer that waited for so long looks after the workers


def take(Ring ring not None, uint64_t pass_number):
    """Return (step, batch, error) of the next step, or None where that pass is over.

    It waits for a step that a worker builds, and builds one that nobody has begun where that
    is the shorter way. Ctrl-C interrupts the wait. Several threads may take: each step goes to
    one of them.
    """
    cdef Steps *steps = &ring.steps
    cdef Slot taken
    cdef uint64_t step, generation
    cdef bint alone
    cdef double requested_at = seconds_now()
    cdef double cpu
    lock(&steps.lock)
    cdef bint measured = not steps.native or steps.counters.batches % CPU_EVERY == 0
    cdef bint timed = measured or steps.returned_cpu > 0
    unlock(&steps.lock)
    cpu = thread_seconds() if timed else 0
    if ring.is_lost():
        raise RuntimeError(
            f"this iterator's worker threads live in process {ring.process} and did not come "
            f"along when it forked into {os.getpid()}; start a new pass here"
        )
    lock(&steps.lock)
    count_consumer(steps, requested_at, cpu)
    steps.counters.ready += steps.ready_count
    while True:
        if not goes_on(steps, pass_number):
            unlock(&steps.lock)
            return None
        if is_ready(steps):
            break
        step = steps.next_take
        # after a failed step no worker goes on; a consumer that does builds for itself
        alone = consumer_is_alone(steps) or (
            steps.claimable == 0 and steps.next_claim == step
        )
        if alone or (builds_are_short(steps) and steps.building < steps.processors):
            if steps.next_claim == step and (alone or steps.claimable > 0):
                claim_next(steps)
                steps.next_take += 1
                steps.takeable -= 1
                unlock(&steps.lock)
                built = build_here(ring, step, pass_number, requested_at)
                if measured:
                    count_consumer_cpu(steps, cpu)
                return built
            if steps.native and may_claim(steps):
                step = claim_next(steps)
                generation = steps.generation
                unlock(&steps.lock)
                help_out(ring, step, generation)
                lock(&steps.lock)
                continue
        sleep_until_notified(ring)     # releases the lock and takes it again
    step = steps.next_take
    taken = take_next(steps)
    unlock(&steps.lock)
    if taken.state == NATIVE:
        error = None
        made = ring.lane.finish(&taken.batch)
    else:
        made, error = <tuple>taken.entry
        Py_XDECREF(taken.entry)
    count_columns(ring, made)
    cdef double now = seconds_now()
    lock(&steps.lock)
    steps.counters.wait_seconds += now - requested_at
    steps.returned_at = now
    unlock(&steps.lock)
    if measured:
        count_consumer_cpu(steps, cpu)
    return step, made, error


cdef void count_consumer(Steps *steps, double now, double cpu) noexcept nogil:
    """Count what the consumer did since it was given a batch. The lock is held."""
    cdef double busy = now - steps.returned_at
    if steps.returned_at > 0:
        steps.counters.consumer_seconds += busy
        steps.consumer_builds = builds_are_short(steps) and busy < steps.mean_build / 2
        steps.returned_at = 0
    if steps.returned_cpu > 0:
        if steps.returned_thread == PyThread_get_thread_ident():
            steps.counters.consumer_cpu_seconds += cpu - steps.returned_cpu
        steps.returned_cpu = 0


cdef void count_consumer_cpu(Steps *steps, double began) noexcept nogil:
    """Add what the consumer's thread computed inside of a take."""
    cdef double now = thread_seconds()
    lock(&steps.lock)
    steps.counters.cpu_takes += 1
    steps.counters.consumer_build_cpu_seconds += now - began
    steps.returned_cpu = now
    steps.returned_thread = PyThread_get_thread_ident()
    unlock(&steps.lock)


cdef int count_columns(Ring ring, batch) except -1:
    cdef int64_t real, padded
    # the library's own alone: a class of the user's may have a method of that name
    if isinstance(batch, ImageBatch):
        real, padded = ImageBatch.count_columns(batch)
        lock(&ring.steps.lock)     # threads may share the iterator
        ring.steps.counters.real_columns += real
        ring.steps.counters.padded_columns += padded
        unlock(&ring.steps.lock)
    return 0


cdef object build_here(Ring ring, uint64_t step, uint64_t pass_number, double requested_at):
    """Build the consumer's own next step on its thread."""
    cdef Steps *steps = &ring.steps
    cdef NativeBatch batch
    cdef Lane lane = ring.lane
    cdef int status
    cdef double now
    made = error = None
    if lane is not None:
        with nogil:
            status = lane.build(step, &batch)
    if lane is not None and status == BUILT:
        made = lane.finish(&batch)
    else:
        made, error = ring.build(step)
    count_columns(ring, made)
    now = seconds_now()
    lock(&steps.lock)
    steps.counters.batches += 1
    steps.counters.build_seconds += now - requested_at
    steps.counters.wait_seconds += now - requested_at
    steps.returned_at = now
    # another thread may have ended this pass meanwhile, and begun the next one
    if error is not None and steps.attached and steps.pass_number == pass_number:
        steps.claimable = 0
    unlock(&steps.lock)
    return step, made, error


cdef int help_out(Ring ring, uint64_t step, uint64_t generation) except -1:
    """Build a later step on the consumer's thread, while a worker builds its next one."""
    cdef NativeBatch batch
    cdef Lane lane = ring.lane
    cdef int status
    cdef double began = seconds_now()
    with nogil:
        status = lane.build(step, &batch)
        if status == BUILT:
            ring.deliver_native(step, generation, &batch, False, began)
    if status != BUILT:
        error = ring.build_object(step, generation, False, began)
        if error is not None and is_interruption(error):
            # a Ctrl-C or a timeout now, and no error of that step, which may never be taken
            raise error
    return 0


cdef int sleep_until_notified(Ring ring) except -1:
    """Sleep as a consumer. The lock is held before and after, and free where this raises."""
    cdef Waiter *me
    cdef PyLockStatus status
    cdef bint notified
    unlock(&ring.steps.lock)
    me = ring.borrow_waiter()
    lock(&ring.steps.lock)
    # what the caller saw may have changed while the lock was free: it looks again
    if (
        is_ready(&ring.steps)
        or ring.steps.takeable == 0
        or (consumer_is_alone(&ring.steps) and ring.steps.next_claim == ring.steps.next_take)
    ):
        unlock(&ring.steps.lock)
        ring.return_waiter(me)
        lock(&ring.steps.lock)
        return 0
    push(&ring.steps.consumers, me)
    unlock(&ring.steps.lock)
    try:
        while True:
            with nogil:
                status = PyThread_acquire_lock_timed(me.semaphore, LONG_MICROSECONDS, 1)
            if status == PY_LOCK_ACQUIRED:
                break
            PyErr_CheckSignals()
            if status == PY_LOCK_FAILURE:
                ring.recount_workers()
    except BaseException:
        lock(&ring.steps.lock)
        notified = not me.queued
        if notified:
            notify(&ring.steps.consumers)     # the call was for this thread: pass it on
        else:
            remove(&ring.steps.consumers, me)
        unlock(&ring.steps.lock)
        if notified:
            PyThread_acquire_lock(me.semaphore, 1)
        ring.return_waiter(me)
        raise
    ring.return_waiter(me)
    lock(&ring.steps.lock)
    return 0


def wait_ready(Ring ring not None, uint64_t pass_number):
    """Wait until ``take`` would not: for a thread that waits in an event loop's place."""
    lock(&ring.steps.lock)
    while (
        goes_on(&ring.steps, pass_number)
        and not consumer_is_alone(&ring.steps)
        and not is_ready(&ring.steps)
    ):
        sleep_until_notified(ring)
    notify(&ring.steps.consumers)
    unlock(&ring.steps.lock)

"""The ring: what worker threads and the consumer share, and how the workers build.

Source: docs/specification.md, section "Delivery". Which steps may be built and where they wait is
in steps.pxd. Nothing that is computed depends on which thread built it.

A worker claims, builds and delivers without the GIL where the loader has a native lane. What the
lane cannot build goes through ``build``, with the GIL. The lock is held for a few lines of C and
never across a call to Python (see lock.pxd); threads that wait sleep on a semaphore of their own.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.pythread cimport (
    PY_LOCK_ACQUIRED,
    PyLockStatus,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
)
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from onemodel._memory.lock cimport lock, generation as fork_generation, unlock
from onemodel._builders.lane cimport BUILT, Lane, NativeBatch
from onemodel._engine.steps cimport (
    NATIVE,
    OBJECT,
    Counters,
    Slot,
    Steps,
    begin_pass,
    can_go_on,
    claim_next,
    deliver,
    empty,
    end_pass,
    is_ready,
    is_wanted,
    slot_of,
    worker_may_claim,
)
from onemodel._engine.waiters cimport Waiter, notify_all, push, remove

import os

from onemodel._common.threads import processors

__all__ = ["Ring"]

cdef enum:
    IDLE_MICROSECONDS = 1000000     # a worker that no pass needs for so long ends


@cython.no_gc_clear             # __dealloc__ gives native batches back through the lane
cdef class Ring:
    """Steps that are built ahead of one consumer, or of several that share an iterator.

    Args:
        build: from a global step to (batch, error), one of them None.
        lane: the native lane, or None; what it cannot build is built by ``build``.
        depth: how many steps may be built or waiting ahead of the consumer, in [1, 2**16].
        limit: how many workers may build at once.
    """

    def __cinit__(self, build, Lane lane, int64_t depth, int64_t limit):
        self.build = build
        self.lane = lane
        self.process = os.getpid()
        self.forks = fork_generation
        self.threads = []
        self.steps.depth = self.steps.window = depth
        self.steps.limit = limit
        self.steps.processors = processors()
        self.steps.native = lane is not None
        self.steps.slots = <Slot *>calloc(depth, sizeof(Slot))
        if self.steps.slots == NULL:
            raise MemoryError(f"no memory for a ring of {depth} slots")

    def __dealloc__(self):
        cdef Waiter *waiter
        self.drop_slots()
        free(self.steps.slots)
        while self.steps.spare != NULL:
            waiter = self.steps.spare
            self.steps.spare = waiter.next
            PyThread_free_lock(waiter.semaphore)
            free(waiter)

    # Positions: with the GIL, on the consumer's side

    def attach(self, uint64_t start, uint64_t steps, uint64_t ahead):
        """Begin a pass of ``steps`` steps from ``start`` on; ``ahead`` more may be built after it.

        What was built for this position stays; for another one it is dropped. Returns the number
        of the pass, which ``take`` asks for.
        """
        cdef Steps *own = &self.steps
        lock(&own.lock)
        cdef bint going_on = can_go_on(own, start)
        unlock(&own.lock)
        if not going_on:
            self.leave(False)
        lock(&own.lock)
        begin_pass(own, start, steps, ahead, going_on)
        cdef uint64_t number = own.pass_number
        unlock(&own.lock)
        return number

    def detach(self, uint64_t pass_number, bint keep):
        """End a pass; whether it had not ended before. ``keep`` what was built after its last step,
        for a pass that goes on there; else drop all and build nothing more.
        """
        lock(&self.steps.lock)
        cdef bint current = self.steps.attached and self.steps.pass_number == pass_number
        if current:
            self.steps.attached = False     # here and now, for one of several threads
        unlock(&self.steps.lock)
        if current:
            self.leave(keep)
        return current

    cdef void leave(self, bint keep):
        lock(&self.steps.lock)
        end_pass(&self.steps, keep)
        unlock(&self.steps.lock)
        if not keep:
            self.drop_slots()

    def close(self):
        """End the workers and drop what waits; safe at any moment, on any thread."""
        if self.is_lost():
            return
        lock(&self.steps.lock)
        self.steps.closed = True
        unlock(&self.steps.lock)
        self.leave(False)

    cdef void drop_slots(self):
        """Empty every slot. Nothing is delivered meanwhile: the generation has passed."""
        cdef Slot dropped
        cdef int64_t place
        for place in range(self.steps.depth if self.steps.slots != NULL else 0):
            lock(&self.steps.lock)
            dropped = empty(&self.steps, place)
            unlock(&self.steps.lock)
            if dropped.state == NATIVE:
                self.lane.drop(&dropped.batch)
            elif dropped.state == OBJECT:
                Py_XDECREF(dropped.entry)

    cdef bint is_lost(self) noexcept:
        """Whether this process was forked from one that has the worker threads.

        A ring without threads goes on in the child. Of its queues only the parent knows.
        """
        if self.forks == fork_generation:
            return False
        if self.steps.live > 0:
            return True
        self.steps.workers = self.steps.consumers = NULL
        self.steps.building = self.steps.starting = 0
        self.forks = fork_generation
        self.process = os.getpid()
        return False

    @property
    def depth(self):
        """How many steps may be built or waiting ahead of the consumer."""
        return self.steps.depth

    @property
    def is_usable(self):
        """Whether a pass can begin: not closed, and its threads are in this process."""
        lock(&self.steps.lock)
        cdef bint closed = self.steps.closed
        unlock(&self.steps.lock)
        return not closed and not self.is_lost()

    @property
    def built_ahead(self):
        """How many steps are finished and wait."""
        lock(&self.steps.lock)
        cdef int64_t count = self.steps.ready_count
        unlock(&self.steps.lock)
        return count

    @property
    def waiting(self):
        """How many consumers sleep until a step is finished."""
        cdef int64_t count = 0
        cdef Waiter *waiter
        lock(&self.steps.lock)
        waiter = self.steps.consumers
        while waiter != NULL:
            count += 1
            waiter = waiter.next
        unlock(&self.steps.lock)
        return count

    @property
    def is_ready(self):
        """Whether ``take`` would return without waiting for a worker."""
        lock(&self.steps.lock)
        cdef bint ready = self.steps.takeable == 0 or is_ready(&self.steps)
        unlock(&self.steps.lock)
        return ready

    @property
    def workers_alive(self):
        """How many worker threads there are."""
        lock(&self.steps.lock)
        cdef int64_t count = self.steps.live
        unlock(&self.steps.lock)
        return count

    def set_limit(self, int64_t limit, int64_t window):
        """Let so many workers build at once from now on; 0 lets the consumer build all.

        Args:
            window: how many steps may be built or waiting ahead, in [1, depth].
        """
        cdef Steps *steps = &self.steps
        lock(&steps.lock)
        steps.limit, steps.window = limit, min(max(window, 1), steps.depth)
        notify_all(&steps.workers)
        notify_all(&steps.consumers)    # with no worker they build for themselves
        unlock(&steps.lock)

    def count(self):
        """Return what was counted since the ring was made, as a dict."""
        lock(&self.steps.lock)
        cdef Counters counters = self.steps.counters
        unlock(&self.steps.lock)
        return counters

    # Workers

    def add_worker(self):
        """Count in a thread that is about to run ``work``; it counts itself out."""
        lock(&self.steps.lock)
        self.steps.live += 1
        self.steps.starting += 1
        unlock(&self.steps.lock)

    def started(self, thread):
        """Keep a thread that was counted in and has started; None of one that could not."""
        cdef Steps *steps = &self.steps
        if thread is not None:
            self.threads.append(thread)
        lock(&steps.lock)
        steps.starting -= 1
        if thread is None:
            steps.live -= 1
            notify_all(&steps.consumers)    # without a worker they build for themselves
        unlock(&steps.lock)

    def work(self):
        """Build steps until the ring is closed or idle: what a worker thread runs."""
        cdef Waiter *me
        cdef uint64_t step = 0
        cdef uint64_t generation = 0
        cdef NativeBatch batch
        cdef Lane lane = self.lane
        cdef int64_t uncounted = 0
        cdef double began
        try:
            me = self.borrow_waiter()
        except BaseException:
            lock(&self.steps.lock)
            self.steps.live -= 1
            notify_all(&self.steps.consumers)
            unlock(&self.steps.lock)
            raise
        me.counted_cpu = thread_seconds()
        try:
            with nogil:
                while self.claim(me, &step, &generation):
                    began = seconds_now()
                    if self.steps.native and lane.build(step, &batch) == BUILT:
                        self.deliver_native(step, generation, &batch, True, began)
                        uncounted += 1
                        if uncounted == CPU_EVERY:
                            uncounted = 0
                            self.count_worker_cpu(me)
                        continue
                    with gil:
                        self.build_object(step, generation, True, began)
                    self.count_worker_cpu(me)
        finally:
            self.count_worker_cpu(me)
            self.return_waiter(me)

    cdef void count_worker_cpu(self, Waiter *me) noexcept nogil:
        """Add what a worker's thread computed since it was asked last."""
        cdef double now = thread_seconds()
        lock(&self.steps.lock)
        self.steps.counters.worker_cpu_seconds += now - me.counted_cpu
        unlock(&self.steps.lock)
        me.counted_cpu = now

    cdef bint claim(self, Waiter *me, uint64_t *step, uint64_t *generation) noexcept nogil:
        """Wait for a step to build; False where this thread is to end: it is counted out then."""
        cdef Steps *steps = &self.steps
        cdef PyLockStatus status
        lock(&steps.lock)
        while not steps.closed:
            if worker_may_claim(steps):
                step[0] = claim_next(steps)
                generation[0] = steps.generation
                steps.building += 1
                unlock(&steps.lock)
                return True
            push(&steps.workers, me)
            if steps.attached:
                unlock(&steps.lock)
                self.count_worker_cpu(me)
                PyThread_acquire_lock(me.semaphore, 1)
                lock(&steps.lock)
                continue
            unlock(&steps.lock)
            self.count_worker_cpu(me)
            status = PyThread_acquire_lock_timed(me.semaphore, IDLE_MICROSECONDS, 0)
            lock(&steps.lock)
            if status == PY_LOCK_ACQUIRED:
                continue
            if me.queued:
                remove(&steps.workers, me)
                if steps.attached:          # a pass began meanwhile, with enough built ahead
                    continue
                break
            # notified in this very moment: the token is there
            unlock(&steps.lock)
            PyThread_acquire_lock(me.semaphore, 1)
            lock(&steps.lock)
        steps.live -= 1
        if steps.live <= 0:
            notify_all(&steps.consumers)
        unlock(&steps.lock)
        return False

    cdef void deliver_native(
        self, uint64_t step, uint64_t generation, NativeBatch *batch, bint by_worker, double began
    ) noexcept nogil:
        """Put a native batch into its slot, or drop it where nobody wants it any more."""
        cdef Steps *steps = &self.steps
        cdef double seconds = seconds_now() - began
        lock(&steps.lock)
        if by_worker:
            steps.building -= 1
        cdef bint wanted = is_wanted(steps, generation)
        if wanted:
            slot_of(steps, step).batch = batch[0]
            deliver(steps, step, NATIVE, seconds)
        unlock(&steps.lock)
        if not wanted:
            self.lane.drop(batch)

    cdef object build_object(
        self, uint64_t step, uint64_t generation, bint by_worker, double began
    ):
        """Build a step with Python and put it into its slot. Whatever happens, it is delivered.

        Returns the error that it is delivered with, or None.
        """
        cdef Steps *steps = &self.steps
        cdef double cpu = thread_seconds()
        cdef bint failed
        try:
            entry = self.build(step)
            failed = entry[1] is not None
        except BaseException as error:      # not of the build: an asynchronous one
            entry = (None, error)
            failed = True
        cpu = thread_seconds() - cpu
        cdef double seconds = seconds_now() - began
        Py_INCREF(entry)                    # the slot's, or given up below
        lock(&steps.lock)
        if by_worker:
            steps.building -= 1
        cdef bint wanted = is_wanted(steps, generation)
        if wanted:
            slot_of(steps, step).entry = <PyObject *>entry
            if by_worker:
                steps.counters.python_builds += 1
                steps.counters.python_seconds += seconds
                steps.counters.python_cpu_seconds += cpu
            if failed:
                steps.claimable = 0         # nobody gets past this step
            deliver(steps, step, OBJECT, seconds)
        unlock(&steps.lock)
        if not wanted:
            Py_XDECREF(<PyObject *>entry)
        return entry[1]

    cdef Waiter *borrow_waiter(self) except NULL:
        """A semaphore for one sleep or more. It is not freed before the ring: the thread that
        notifies may still look at it when the sleeper has gone on.
        """
        cdef Waiter *waiter
        lock(&self.steps.lock)
        waiter = self.steps.spare
        if waiter != NULL:
            self.steps.spare = waiter.next
        unlock(&self.steps.lock)
        if waiter == NULL:
            waiter = <Waiter *>calloc(1, sizeof(Waiter))
            if waiter != NULL:
                waiter.semaphore = PyThread_allocate_lock()
            if waiter == NULL or waiter.semaphore == NULL:
                free(waiter)
                raise MemoryError("no memory for a semaphore")
            PyThread_acquire_lock(waiter.semaphore, 1)      # a semaphore of 0: one call opens it
        return waiter

    cdef void return_waiter(self, Waiter *waiter) noexcept nogil:
        lock(&self.steps.lock)
        waiter.next = self.steps.spare
        self.steps.spare = waiter
        unlock(&self.steps.lock)

    def recount_workers(self):
        """Count out threads that ended outside of ``work``: an asynchronous exception may do it."""
        cdef int64_t counted = self.workers_alive
        cdef int64_t alive = sum([thread.is_alive() for thread in self.threads])
        lock(&self.steps.lock)
        # none has come or gone since, and none starts: that one is counted and not alive yet
        if self.steps.live == counted and self.steps.starting == 0 and alive < counted:
            self.steps.live = alive
            if alive == 0:
                notify_all(&self.steps.consumers)
        unlock(&self.steps.lock)

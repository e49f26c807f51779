"""The ring: what worker threads and the consumer share. It builds ahead and delivers in order.

Source: docs/specification.md, section "Delivery". Step s waits in slot ``s mod depth``. A step may
be claimed only while it is below next-to-take + depth, so no two steps meet in a slot. Nothing
that is computed depends on which thread built it.

A worker claims, builds and delivers without the GIL where the loader has a native lane. What the
lane cannot build goes through ``build``, with the GIL. The lock is held for a few lines of C and
never across a call to Python (see lock.pxd); threads that wait sleep on a semaphore of their own.
"""

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.pythread cimport (
    PY_LOCK_ACQUIRED,
    PY_LOCK_FAILURE,
    PyLockStatus,
    PyThread_acquire_lock,
    PyThread_allocate_lock,
    PyThread_free_lock,
    PyThread_type_lock,
)
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

from onemodel._memory.lock cimport lock, generation as fork_generation, unlock
from onemodel._builders.lane cimport BUILT, Lane, NativeBatch
from onemodel._engine.waiters cimport notify, notify_all, push, remove

import os

from onemodel._batch.caught import is_interruption
from onemodel._collate.image_batch import ImageBatch
from onemodel._common.threads import processors

__all__ = ["Ring"]

cdef extern from "pythread.h":
    # -1 microseconds wait for ever; with `interruptible` a signal ends the wait
    PyLockStatus PyThread_acquire_lock_timed(
        PyThread_type_lock lock, long long microseconds, int interruptible
    ) noexcept nogil

cdef extern from "Python.h":
    unsigned long PyThread_get_thread_ident() nogil

cdef extern from "clock.h":
    double seconds_now "onemodel_seconds"() noexcept nogil
    double thread_seconds "onemodel_thread_seconds"() noexcept nogil

cdef enum:
    IDLE_MICROSECONDS = 1000000     # a worker that no pass needs for so long ends
    LONG_MICROSECONDS = 1000000     # a consumer that waited for so long looks after the workers
    CPU_EVERY = 16                  # native batches for each call of the system for a thread's time

# A build on a native lane shorter than this costs about what two sleeps cost. Then a consumer that
# would wait builds a step itself, and sleeping workers are called when a quarter of the window is
# left.
cdef double SHORT_BUILD = 1e-3


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
        self.depth = depth
        self.limit = limit
        self.window = depth
        self.processors = processors()
        self.process = os.getpid()
        self.forks = fork_generation
        self.threads = []
        self.slots = <Slot *>calloc(depth, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError(f"no memory for a ring of {depth} slots")

    def __dealloc__(self):
        cdef Waiter *waiter
        self.drop_slots()
        free(self.slots)
        while self.spare != NULL:
            waiter = self.spare
            self.spare = waiter.next
            PyThread_free_lock(waiter.semaphore)
            free(waiter)

    # Positions: with the GIL, on the consumer's side

    def attach(self, uint64_t start, uint64_t steps, uint64_t ahead):
        """Begin a pass of ``steps`` steps from ``start`` on; ``ahead`` more may be built after it.

        What was built for this position stays; for another one it is dropped. Returns the number
        of the pass, which ``take`` asks for.
        """
        cdef uint64_t claimed
        lock(&self.lock)
        cdef bint fits = not self.attached and self.next_take == start and self.claimable > 0
        unlock(&self.lock)
        if not fits:
            self.leave(False)
        lock(&self.lock)
        if not fits:
            self.next_take = self.next_claim = start
        claimed = self.next_claim - self.next_take
        self.takeable = steps
        self.claimable = steps + ahead if steps + ahead >= steps else <uint64_t>-1
        self.claimable -= min(claimed, self.claimable)
        self.attached = True
        self.returned_at = self.returned_cpu = 0
        self.pass_number += 1
        if self.may_claim():
            notify_all(&self.workers)
        unlock(&self.lock)
        return self.pass_number

    def detach(self, uint64_t pass_number, bint keep):
        """End a pass; whether it had not ended before. ``keep`` what was built after its last step,
        for a pass that goes on there; else drop all and build nothing more.
        """
        lock(&self.lock)
        cdef bint current = self.attached and self.pass_number == pass_number
        if current:
            self.attached = False       # here and now, for one of several threads
        unlock(&self.lock)
        if current:
            self.leave(keep)
        return current

    cdef void leave(self, bint keep):
        lock(&self.lock)
        self.attached = False
        self.takeable = 0
        if not keep:
            self.claimable = 0
            self.generation += 1
        notify_all(&self.workers)       # they may sleep for a second now, and not for ever
        notify_all(&self.consumers)
        unlock(&self.lock)
        if not keep:
            self.drop_slots()

    def close(self):
        """End the workers and drop what waits; safe at any moment, on any thread."""
        if self.is_lost():
            return
        lock(&self.lock)
        self.closed = True
        unlock(&self.lock)
        self.leave(False)

    cdef void drop_slots(self):
        """Empty every slot. Nothing is delivered meanwhile: the generation has passed."""
        cdef NativeBatch batch
        cdef SlotState state
        cdef PyObject *entry = NULL
        cdef int64_t k
        for k in range(self.depth if self.slots != NULL else 0):
            lock(&self.lock)
            state = self.slots[k].state
            if state != EMPTY:
                self.slots[k].state = EMPTY
                self.ready_count -= 1
                batch, entry = self.slots[k].batch, self.slots[k].entry
            unlock(&self.lock)
            if state == NATIVE:
                self.lane.drop(&batch)
            elif state == OBJECT:
                Py_XDECREF(entry)

    cdef bint is_lost(self) noexcept:
        """Whether this process was forked from one that has the worker threads.

        A ring without threads goes on in the child. Of its queues only the parent knows.
        """
        if self.forks == fork_generation:
            return False
        if self.live > 0:
            return True
        self.workers = self.consumers = NULL
        self.building = self.starting = 0
        self.forks = fork_generation
        self.process = os.getpid()
        return False

    @property
    def is_usable(self):
        """Whether a pass can begin: not closed, and its threads are in this process."""
        lock(&self.lock)
        cdef bint closed = self.closed
        unlock(&self.lock)
        return not closed and not self.is_lost()

    @property
    def built_ahead(self):
        """How many steps are finished and wait."""
        lock(&self.lock)
        cdef int64_t ready = self.ready_count
        unlock(&self.lock)
        return ready

    @property
    def waiting(self):
        """How many consumers sleep until a step is finished."""
        cdef int64_t count = 0
        cdef Waiter *waiter
        lock(&self.lock)
        waiter = self.consumers
        while waiter != NULL:
            count += 1
            waiter = waiter.next
        unlock(&self.lock)
        return count

    @property
    def is_ready(self):
        """Whether ``take`` would return without waiting for a worker."""
        lock(&self.lock)
        cdef bint ready = (
            self.takeable == 0
            or self.slots[self.next_take % <uint64_t>self.depth].state != EMPTY
        )
        unlock(&self.lock)
        return ready

    @property
    def workers_alive(self):
        """How many worker threads there are."""
        lock(&self.lock)
        cdef int64_t live = self.live
        unlock(&self.lock)
        return live

    def set_limit(self, int64_t limit, int64_t window):
        """Let so many workers build at once from now on; 0 lets the consumer build all.

        Args:
            window: how many steps may be built or waiting ahead, in [1, depth].
        """
        lock(&self.lock)
        self.limit, self.window = limit, min(max(window, 1), self.depth)
        notify_all(&self.workers)
        notify_all(&self.consumers)     # with no worker they build for themselves
        unlock(&self.lock)

    def count(self):
        """Return what was counted since the ring was made, as a dict."""
        lock(&self.lock)
        cdef Counters counters = self.counters
        unlock(&self.lock)
        return counters

    # Workers

    def add_worker(self):
        """Count in a thread that is about to run ``work``; it counts itself out."""
        lock(&self.lock)
        self.live += 1
        self.starting += 1
        unlock(&self.lock)

    def started(self, thread):
        """Keep a thread that was counted in and has started; None of one that could not."""
        if thread is not None:
            self.threads.append(thread)
        lock(&self.lock)
        self.starting -= 1
        if thread is None:
            self.live -= 1
            notify_all(&self.consumers)     # without a worker they build for themselves
        unlock(&self.lock)

    def work(self):
        """Build steps until the ring is closed or idle: what a worker thread runs."""
        cdef Waiter *me
        cdef uint64_t step = 0
        cdef uint64_t generation = 0
        cdef NativeBatch batch
        cdef Lane lane = self.lane
        cdef bint native = lane is not None
        cdef int64_t uncounted = 0
        cdef double began
        try:
            me = self.borrow_waiter()
        except BaseException:
            lock(&self.lock)
            self.live -= 1
            notify_all(&self.consumers)
            unlock(&self.lock)
            raise
        me.counted_cpu = thread_seconds()
        try:
            with nogil:
                while self.claim(me, &step, &generation):
                    began = seconds_now()
                    if native and lane.build(step, &batch) == BUILT:
                        if not self.deliver(step, generation, &batch, seconds_now() - began):
                            lane.drop(&batch)
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
        lock(&self.lock)
        self.counters.worker_cpu_seconds += now - me.counted_cpu
        unlock(&self.lock)
        me.counted_cpu = now

    cdef bint claim(self, Waiter *me, uint64_t *step, uint64_t *generation) noexcept nogil:
        """Wait for a step to build; False where this thread is to end: it is counted out then."""
        cdef PyLockStatus status
        lock(&self.lock)
        while True:
            if self.closed:
                break
            if self.building < self.most_building() and self.may_claim():
                step[0] = self.next_claim
                generation[0] = self.generation
                self.next_claim += 1
                self.claimable -= 1
                self.building += 1
                unlock(&self.lock)
                return True
            push(&self.workers, me)
            if self.attached:
                unlock(&self.lock)
                self.count_worker_cpu(me)
                PyThread_acquire_lock(me.semaphore, 1)
                lock(&self.lock)
                continue
            unlock(&self.lock)
            self.count_worker_cpu(me)
            status = PyThread_acquire_lock_timed(me.semaphore, IDLE_MICROSECONDS, 0)
            lock(&self.lock)
            if status == PY_LOCK_ACQUIRED:
                continue
            if me.queued:
                remove(&self.workers, me)
                if self.attached:           # a pass began meanwhile, with enough built ahead
                    continue
                break
            # notified in this very moment: the token is there
            unlock(&self.lock)
            PyThread_acquire_lock(me.semaphore, 1)
            lock(&self.lock)
        self.live -= 1
        if self.live <= 0:
            notify_all(&self.consumers)
        unlock(&self.lock)
        return False

    cdef bint may_claim(self) noexcept nogil:
        return (
            self.claimable > 0
            and self.next_claim - self.next_take < <uint64_t>self.window
        )

    cdef bint builds_are_short(self) noexcept nogil:
        return self.lane is not None and self.mean_build < SHORT_BUILD

    cdef int64_t most_building(self) noexcept nogil:
        """How many workers may build now. A consumer that builds as well takes one processor."""
        if self.consumer_builds and self.limit >= self.processors:
            return max(self.processors - 1, 1)
        return self.limit

    cdef bint consumer_is_alone(self) noexcept nogil:
        return self.limit == 0 or self.live <= 0

    cdef bint deliver(
        self, uint64_t step, uint64_t generation, NativeBatch *batch, double seconds
    ) noexcept nogil:
        """Put a native batch into its slot; False where nobody wants it any more."""
        cdef Slot *slot
        cdef bint wanted
        lock(&self.lock)
        self.building -= 1
        wanted = generation == self.generation and not self.closed
        if wanted:
            slot = &self.slots[step % <uint64_t>self.depth]
            slot.batch = batch[0]
            slot.state = NATIVE
            self.settle(step, seconds)
        unlock(&self.lock)
        return wanted

    cdef void settle(self, uint64_t step, double seconds) noexcept nogil:
        """What every delivery does to the counters and to a waiting consumer. The lock is held."""
        self.slots[step % <uint64_t>self.depth].seconds = seconds
        self.mean_build += (seconds - self.mean_build) * 0.125
        self.ready_count += 1
        self.counters.builds += 1
        if step == self.next_take:
            notify(&self.consumers)
        # a worker that was woken for one step of several calls the next one
        if (
            not self.builds_are_short()
            and self.may_claim()
            and self.building < self.most_building()
        ):
            notify(&self.workers)

    cdef object build_object(
        self, uint64_t step, uint64_t generation, bint by_worker, double began
    ):
        """Build a step with Python and put it into its slot. Whatever happens, it is delivered.

        Returns the error that it is delivered with, or None.
        """
        cdef bint wanted, failed
        cdef double cpu = thread_seconds()
        cdef int64_t place = <int64_t>(step % <uint64_t>self.depth)
        try:
            entry = self.build(step)
            failed = entry[1] is not None
        except BaseException as error:      # not of the build: an asynchronous one
            entry = (None, error)
            failed = True
        cpu = thread_seconds() - cpu
        cdef double seconds = seconds_now() - began
        Py_INCREF(entry)                    # the slot's, or given up below
        lock(&self.lock)
        if by_worker:
            self.building -= 1
        wanted = generation == self.generation and not self.closed
        if wanted:
            self.slots[place].entry = <PyObject *>entry
            self.slots[place].state = OBJECT
            if by_worker:
                self.counters.python_builds += 1
                self.counters.python_seconds += seconds
                self.counters.python_cpu_seconds += cpu
            if failed:
                self.claimable = 0          # nobody gets past this step
            self.settle(step, seconds)
        unlock(&self.lock)
        if not wanted:
            Py_XDECREF(<PyObject *>entry)
        return entry[1]

    # The consumer

    def take(self, uint64_t pass_number):
        """Return (step, batch, error) of the next step, or None where that pass is over.

        It waits for a step that a worker builds, and builds one that nobody has begun where that
        is the shorter way. Ctrl-C interrupts the wait. Several threads may take: each step goes to
        one of them.
        """
        cdef NativeBatch batch
        cdef SlotState state
        cdef uint64_t step, generation
        cdef int64_t place
        cdef bint alone
        cdef PyObject *entry = NULL
        cdef double requested_at = seconds_now()
        cdef double cpu
        lock(&self.lock)
        cdef bint measured = self.lane is None or self.counters.batches % CPU_EVERY == 0
        cdef bint timed = measured or self.returned_cpu > 0
        unlock(&self.lock)
        cpu = thread_seconds() if timed else 0
        if self.is_lost():
            raise RuntimeError(
                f"this iterator's worker threads live in process {self.process} and did not come "
                f"along when it forked into {os.getpid()}; start a new pass here"
            )
        lock(&self.lock)
        if self.returned_at > 0:
            self.counters.consumer_seconds += requested_at - self.returned_at
            self.consumer_builds = (
                self.builds_are_short() and requested_at - self.returned_at < self.mean_build / 2
            )
            self.returned_at = 0
        if self.returned_cpu > 0:
            if self.returned_thread == PyThread_get_thread_ident():
                self.counters.consumer_cpu_seconds += cpu - self.returned_cpu
            self.returned_cpu = 0
        self.counters.ready += self.ready_count
        while True:
            if self.takeable == 0 or self.closed or self.pass_number != pass_number:
                unlock(&self.lock)
                return None
            step = self.next_take
            place = <int64_t>(step % <uint64_t>self.depth)
            state = self.slots[place].state
            if state != EMPTY:
                break
            # after a failed step no worker goes on; a consumer that does builds for itself
            alone = self.consumer_is_alone() or (self.claimable == 0 and self.next_claim == step)
            if alone or (self.builds_are_short() and self.building < self.processors):
                if self.next_claim == step and (alone or self.claimable > 0):
                    self.next_claim += 1
                    self.claimable -= min(self.claimable, <uint64_t>1)
                    self.next_take += 1
                    self.takeable -= 1
                    unlock(&self.lock)
                    taken = self.build_here(step, pass_number, requested_at)
                    if measured:
                        self.count_consumer_cpu(cpu)
                    return taken
                if self.lane is not None and self.may_claim():
                    step = self.next_claim
                    generation = self.generation
                    self.next_claim += 1
                    self.claimable -= 1
                    unlock(&self.lock)
                    self.help_out(step, generation)
                    lock(&self.lock)
                    continue
            self.sleep_until_notified()     # releases the lock and takes it again
        batch, entry = self.slots[place].batch, self.slots[place].entry
        self.slots[place].state = EMPTY
        self.ready_count -= 1
        self.next_take += 1
        self.takeable -= 1
        self.counters.batches += 1
        self.counters.build_seconds += self.slots[place].seconds
        if self.slots[self.next_take % <uint64_t>self.depth].state != EMPTY:
            notify(&self.consumers)         # another thread may be waiting for that one
        if not self.builds_are_short() or (
            self.next_claim - self.next_take <= <uint64_t>(self.window // 4)
        ):
            notify(&self.workers)
        unlock(&self.lock)
        if state == NATIVE:
            error = None
            made = self.lane.finish(&batch)
        else:
            made, error = <tuple>entry
            Py_XDECREF(entry)
        self.count_columns(made)
        cdef double now = seconds_now()
        lock(&self.lock)
        self.counters.wait_seconds += now - requested_at
        self.returned_at = now
        unlock(&self.lock)
        if measured:
            self.count_consumer_cpu(cpu)
        return step, made, error

    cdef void count_consumer_cpu(self, double began) noexcept nogil:
        """Add what the consumer's thread computed inside of a take."""
        cdef double now = thread_seconds()
        lock(&self.lock)
        self.counters.cpu_takes += 1
        self.counters.consumer_build_cpu_seconds += now - began
        self.returned_cpu = now
        self.returned_thread = PyThread_get_thread_ident()
        unlock(&self.lock)

    cdef int count_columns(self, batch) except -1:
        # the library's own alone: a class of the user's may have a method of that name
        if isinstance(batch, ImageBatch):
            real, padded = ImageBatch.count_columns(batch)
            self.counters.real_columns += real
            self.counters.padded_columns += padded
        return 0

    cdef object build_here(self, uint64_t step, uint64_t pass_number, double requested_at):
        """Build the consumer's own next step on its thread."""
        cdef NativeBatch batch
        cdef Lane lane = self.lane
        cdef int status
        cdef double now
        made = error = None
        if lane is not None:
            with nogil:
                status = lane.build(step, &batch)
        if lane is not None and status == BUILT:
            made = lane.finish(&batch)
        else:
            made, error = self.build(step)
        self.count_columns(made)
        now = seconds_now()
        lock(&self.lock)
        self.counters.batches += 1
        self.counters.build_seconds += now - requested_at
        self.counters.wait_seconds += now - requested_at
        self.returned_at = now
        # another thread may have ended this pass meanwhile, and begun the next one
        if error is not None and self.attached and self.pass_number == pass_number:
            self.claimable = 0
        unlock(&self.lock)
        return step, made, error

    cdef int help_out(self, uint64_t step, uint64_t generation) except -1:
        """Build a later step on the consumer's thread, while a worker builds its next one."""
        cdef NativeBatch batch
        cdef Lane lane = self.lane
        cdef int status
        cdef double began = seconds_now()
        with nogil:
            status = lane.build(step, &batch)
        if status != BUILT:
            error = self.build_object(step, generation, False, began)
            if error is not None and is_interruption(error):
                # a Ctrl-C or a timeout now, and no error of that step, which may never be taken
                raise error
            return 0
        lock(&self.lock)
        self.building += 1                  # deliver counts a builder out
        unlock(&self.lock)
        if not self.deliver(step, generation, &batch, seconds_now() - began):
            lane.drop(&batch)
        return 0

    cdef Waiter *borrow_waiter(self) except NULL:
        """A semaphore for one sleep or more. It is not freed before the ring: the thread that
        notifies may still look at it when the sleeper has gone on.
        """
        cdef Waiter *waiter
        lock(&self.lock)
        waiter = self.spare
        if waiter != NULL:
            self.spare = waiter.next
        unlock(&self.lock)
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
        lock(&self.lock)
        waiter.next = self.spare
        self.spare = waiter
        unlock(&self.lock)

    cdef int sleep_until_notified(self) except -1:
        """Sleep as a consumer. The lock is held before and after, and free where this raises."""
        cdef Waiter *me
        cdef PyLockStatus status
        cdef bint notified
        unlock(&self.lock)
        me = self.borrow_waiter()
        lock(&self.lock)
        # what the caller saw may have changed while the lock was free: it looks again
        if (
            self.slots[self.next_take % <uint64_t>self.depth].state != EMPTY
            or self.takeable == 0
            or (self.consumer_is_alone() and self.next_claim == self.next_take)
        ):
            unlock(&self.lock)
            self.return_waiter(me)
            lock(&self.lock)
            return 0
        push(&self.consumers, me)
        unlock(&self.lock)
        try:
            while True:
                with nogil:
                    status = PyThread_acquire_lock_timed(me.semaphore, LONG_MICROSECONDS, 1)
                if status == PY_LOCK_ACQUIRED:
                    break
                PyErr_CheckSignals()
                if status == PY_LOCK_FAILURE:
                    self.recount_workers()
        except BaseException:
            lock(&self.lock)
            notified = not me.queued
            if notified:
                notify(&self.consumers)     # the call was for this thread: pass it on
            else:
                remove(&self.consumers, me)
            unlock(&self.lock)
            if notified:
                PyThread_acquire_lock(me.semaphore, 1)
            self.return_waiter(me)
            raise
        self.return_waiter(me)
        lock(&self.lock)
        return 0

    def recount_workers(self):
        """Count out threads that ended outside of ``work``: an asynchronous exception may do it."""
        cdef int64_t counted = self.workers_alive
        cdef int64_t alive = sum([thread.is_alive() for thread in self.threads])
        lock(&self.lock)
        # none has come or gone since, and none starts: that one is counted and not alive yet
        if self.live == counted and self.starting == 0 and alive < counted:
            self.live = alive
            if alive == 0:
                notify_all(&self.consumers)
        unlock(&self.lock)

    def wait_ready(self, uint64_t pass_number):
        """Wait until ``take`` would not: for a thread that waits in an event loop's place."""
        lock(&self.lock)
        while (
            self.takeable > 0 and not self.closed and self.pass_number == pass_number
            and not self.consumer_is_alone()
            and self.slots[self.next_take % <uint64_t>self.depth].state == EMPTY
        ):
            self.sleep_until_notified()
        notify(&self.consumers)
        unlock(&self.lock)

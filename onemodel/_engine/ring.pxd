"""The ring's fields. What each method guarantees is in ring.pyx."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from onemodel._memory.lock cimport Lock
from onemodel._builders.lane cimport Lane, NativeBatch
from onemodel._engine.waiters cimport Waiter


ctypedef enum SlotState:
    EMPTY                       # nobody has built the step yet
    NATIVE                      # Slot.batch holds it
    OBJECT                      # Slot.entry holds it


ctypedef struct Slot:
    SlotState state
    double seconds              # it took to build
    NativeBatch batch
    PyObject *entry             # a reference of the slot's own to (batch, error)


ctypedef struct Counters:
    int64_t batches             # taken
    int64_t ready               # finished ones found at each take, summed
    int64_t builds              # by worker threads
    double build_seconds
    int64_t python_builds       # of builds those with Python, by workers
    double python_seconds       # of build_seconds what was built with Python, by workers
    double python_cpu_seconds   # what the threads computed in it
    int64_t real_columns        # of images, before and
    int64_t padded_columns      # after padding
    double wait_seconds
    double consumer_seconds
    double worker_cpu_seconds           # of worker threads
    int64_t cpu_takes                   # takes whose processor time was measured, and of those:
    double consumer_build_cpu_seconds   # inside take
    double consumer_cpu_seconds         # between it and the next one


cdef class Ring:
    cdef readonly Lane lane             # or None
    cdef readonly object build          # build(step) -> (batch, error); it never raises
    cdef readonly list threads          # that were started: asked only where a wait is long
    cdef readonly int64_t depth
    cdef int64_t process
    cdef uint32_t forks                 # lock.generation of that process

    cdef Lock lock                      # guards all that follows
    cdef Slot *slots
    cdef uint64_t next_claim
    cdef uint64_t next_take
    cdef uint64_t claimable             # steps from next_claim on that may be built
    cdef uint64_t takeable              # steps from next_take on that the pass yields
    cdef uint64_t generation            # of positions: claims of an earlier one are dropped
    cdef int64_t ready_count
    cdef int64_t building               # workers inside a build
    cdef int64_t limit                  # how many may be
    cdef int64_t window                 # at most depth: how far ahead is built now
    cdef int64_t processors             # that this process may use
    cdef bint consumer_builds           # it came back at once and would wait: see most_building
    cdef int64_t live                   # worker threads
    cdef int64_t starting               # of these, that may not run yet
    cdef bint attached                  # a pass runs
    cdef uint64_t pass_number           # its number: who takes for an earlier one gets nothing
    cdef bint closed
    cdef Waiter *workers                # that sleep
    cdef Waiter *consumers              # likewise
    cdef Waiter *spare                  # semaphores live as long as the ring: see borrow_waiter
    cdef double mean_build              # seconds of a build, of late
    cdef double returned_at             # when the consumer left with a batch; 0 for never
    cdef double returned_cpu            # its thread's processor time then; 0 where not measured
    cdef unsigned long returned_thread  # and that thread
    cdef Counters counters

    cdef bint claim(self, Waiter *me, uint64_t *step, uint64_t *generation) noexcept nogil
    cdef bint may_claim(self) noexcept nogil
    cdef void count_worker_cpu(self, Waiter *me) noexcept nogil
    cdef void count_consumer_cpu(self, double began) noexcept nogil
    cdef bint deliver(
        self, uint64_t step, uint64_t generation, NativeBatch *batch, double seconds
    ) noexcept nogil
    cdef bint builds_are_short(self) noexcept nogil
    cdef int64_t most_building(self) noexcept nogil
    cdef bint consumer_is_alone(self) noexcept nogil
    cdef bint is_lost(self) noexcept
    cdef void settle(self, uint64_t step, double seconds) noexcept nogil
    cdef object build_object(
        self, uint64_t step, uint64_t generation, bint by_worker, double began
    )
    cdef object build_here(self, uint64_t step, uint64_t pass_number, double requested_at)
    cdef int help_out(self, uint64_t step, uint64_t generation) except -1
    cdef Waiter *borrow_waiter(self) except NULL
    cdef void return_waiter(self, Waiter *waiter) noexcept nogil
    cdef int sleep_until_notified(self) except -1
    cdef int count_columns(self, batch) except -1
    cdef void leave(self, bint keep)
    cdef void drop_slots(self)

"""The steps that a ring builds ahead: who may build which one, and where it waits.

Source: docs/specification.md, section "Delivery". Step s waits at ``s mod depth``. A step may be
claimed only while it is below next-to-take + window, so no two steps meet in a slot.

The lock is held during every function here.
"""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from onemodel._builders.lane cimport NativeBatch
from onemodel._engine.waiters cimport Waiter, notify, notify_all
from onemodel._memory.lock cimport Lock


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


ctypedef struct Steps:
    Lock lock                   # guards all that follows
    Slot *slots
    int64_t depth               # how many there are
    int64_t window              # at most depth: how far ahead is built now
    uint64_t next_claim
    uint64_t next_take
    uint64_t claimable          # steps from next_claim on that may be built
    uint64_t takeable           # steps from next_take on that the pass yields
    uint64_t generation         # of positions: claims of an earlier one are dropped
    uint64_t pass_number        # its number: who takes for an earlier one gets nothing
    bint attached               # a pass runs
    bint closed
    int64_t ready_count
    int64_t building            # workers inside a build
    int64_t limit               # how many may be
    int64_t processors          # that this process may use
    int64_t live                # worker threads
    int64_t starting            # of these, that may not run yet
    bint native                 # there is a lane
    bint consumer_builds        # it came back at once and would wait: see most_building
    double mean_build           # seconds of a build, of late
    double returned_at          # when the consumer left with a batch; 0 for never
    double returned_cpu         # its thread's processor time then; 0 where not measured
    unsigned long returned_thread       # and that thread
    Waiter *workers             # that sleep
    Waiter *consumers           # likewise
    Waiter *spare               # semaphores live as long as the ring
    Counters counters


cdef inline Slot *slot_of(Steps *steps, uint64_t step) noexcept nogil:
    return &steps.slots[step % <uint64_t>steps.depth]


cdef inline bint is_ready(Steps *steps) noexcept nogil:
    """Whether the step to take next is finished."""
    return slot_of(steps, steps.next_take).state != EMPTY


cdef inline bint may_claim(Steps *steps) noexcept nogil:
    return (
        steps.claimable > 0
        and steps.next_claim - steps.next_take < <uint64_t>steps.window
    )


cdef inline bint builds_are_short(Steps *steps) noexcept nogil:
    """Whether a build on a lane costs about what two sleeps cost.

    Then a consumer that would wait builds a step itself, and sleeping workers are called when a
    quarter of the window is left.
    """
    return steps.native and steps.mean_build < 1e-3


cdef inline int64_t most_building(Steps *steps) noexcept nogil:
    """How many workers may build now. A consumer that builds as well takes one processor."""
    if steps.consumer_builds and steps.limit >= steps.processors:
        return max(steps.processors - 1, 1)
    return steps.limit


cdef inline bint worker_may_claim(Steps *steps) noexcept nogil:
    return steps.building < most_building(steps) and may_claim(steps)


cdef inline bint consumer_is_alone(Steps *steps) noexcept nogil:
    return steps.limit == 0 or steps.live <= 0


cdef inline bint goes_on(Steps *steps, uint64_t pass_number) noexcept nogil:
    """Whether the pass has another step to take."""
    return steps.takeable > 0 and not steps.closed and steps.pass_number == pass_number


cdef inline uint64_t claim_next(Steps *steps) noexcept nogil:
    """The step that the caller builds from here on."""
    cdef uint64_t step = steps.next_claim
    steps.next_claim += 1
    steps.claimable -= min(steps.claimable, <uint64_t>1)
    return step


cdef inline bint can_go_on(Steps *steps, uint64_t start) noexcept nogil:
    """Whether a pass from ``start`` on takes what was built ahead."""
    return not steps.attached and steps.next_take == start and steps.claimable > 0


cdef inline void begin_pass(
    Steps *steps, uint64_t start, uint64_t count, uint64_t ahead, bint going_on
) noexcept nogil:
    """Let ``count`` steps from ``start`` on be taken, and ``ahead`` more be built."""
    cdef uint64_t claimed
    if not going_on:
        steps.next_take = steps.next_claim = start
    claimed = steps.next_claim - steps.next_take
    steps.takeable = count
    steps.claimable = count + ahead if count + ahead >= count else <uint64_t>-1
    steps.claimable -= min(claimed, steps.claimable)
    steps.attached = True
    steps.pass_number += 1
    steps.returned_at = steps.returned_cpu = 0
    if may_claim(steps):
        notify_all(&steps.workers)


cdef inline void end_pass(Steps *steps, bint keep) noexcept nogil:
    """Let nothing more be taken; unless ``keep``, nothing be built, and drop what is."""
    steps.attached = False
    steps.takeable = 0
    if not keep:
        steps.claimable = 0
        steps.generation += 1
    notify_all(&steps.workers)      # they may sleep for a second now, and not for ever
    notify_all(&steps.consumers)


cdef inline bint is_wanted(Steps *steps, uint64_t generation) noexcept nogil:
    return generation == steps.generation and not steps.closed


cdef inline void deliver(
    Steps *steps, uint64_t step, SlotState state, double seconds
) noexcept nogil:
    """Call a step finished, which its slot holds by now."""
    cdef Slot *slot = slot_of(steps, step)
    slot.state = state
    slot.seconds = seconds
    steps.mean_build += (seconds - steps.mean_build) * 0.125
    steps.ready_count += 1
    steps.counters.builds += 1
    if step == steps.next_take:
        notify(&steps.consumers)
    # a worker that was woken for one step of several calls the next one
    if not builds_are_short(steps) and worker_may_claim(steps):
        notify(&steps.workers)


cdef inline Slot take_next(Steps *steps) noexcept nogil:
    """What the slot of the next step held; the slot is empty then."""
    cdef Slot *slot = slot_of(steps, steps.next_take)
    cdef Slot taken = slot[0]
    slot.state = EMPTY
    steps.ready_count -= 1
    steps.next_take += 1
    steps.takeable -= 1
    steps.counters.batches += 1
    steps.counters.build_seconds += taken.seconds
    if is_ready(steps):
        notify(&steps.consumers)        # another thread may be waiting for that one
    if not builds_are_short(steps) or (
        steps.next_claim - steps.next_take <= <uint64_t>(steps.window // 4)
    ):
        notify(&steps.workers)
    return taken


cdef inline Slot empty(Steps *steps, int64_t place) noexcept nogil:
    """What a slot held; it is empty then, and nobody is told."""
    cdef Slot dropped = steps.slots[place]
    if dropped.state != EMPTY:
        steps.slots[place].state = EMPTY
        steps.ready_count -= 1
    return dropped

"""The library's own samplers as kernels ask them.

Source: docs/specification.md, section "Samplers". Each plan is made of a sampler whose
``batch_indices`` nobody has overridden, and gives the same indices.
"""

from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from onemodel._memory.arrays cimport CONTIGUOUS, Array, array_of
from onemodel._memory.lock cimport Lock, lock, unlock
from onemodel._random.rng cimport derive64, derive_prefix
from onemodel._random.streams cimport (
    BUDGET_PLACE_STREAM,
    GROUP_STREAM,
    ORDER_STREAM,
    PLACE_STREAM,
    SLOT_STREAM,
)
from onemodel._samplers.draws cimport draw_slots, draw_weighted_slots
from onemodel._simd.dispatch cimport loops
from onemodel._simd.feistel cimport Feistel, feistel, unpermute

from onemodel._batch.caught import caught
from onemodel._common.overrides import is_own
from onemodel._samplers.bucketing import BucketedSampler
from onemodel._samplers.budget import BudgetSampler
from onemodel._samplers.samplers import MixingSampler, SequentialSampler, ShuffledSampler
from onemodel._samplers.weighted import WeightedSampler

__all__ = ["IndexPlan", "are_indices", "index_plan", "is_unchanged"]


cdef class IndexPlan:
    """Indices of batches; made by ``index_plan``."""

    cdef int64_t fill(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept nogil:
        return -1

    def make(self, uint64_t epoch):
        """Make what the batches of an epoch need; of most samplers nothing."""


cdef class SequentialPlan(IndexPlan):
    cdef int64_t n

    cdef int64_t fill(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept nogil:
        cdef int64_t first = <int64_t>step * self.batch_size
        cdef int64_t count = max(0, min(self.batch_size, self.n - first))
        cdef int64_t k
        for k in range(count):
            indices[k] = first + k
        return count


cdef class ShuffledPlan(SequentialPlan):
    cdef int64_t fill(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept nogil:
        cdef Feistel order
        cdef int64_t count = SequentialPlan.fill(self, epoch, step, indices)
        if self.n > 1:
            feistel(&order, <uint64_t>self.n, derive64(self.seed, epoch, 0, 0, ORDER_STREAM))
            loops.permute(&order, <uint64_t *>indices, <uint64_t *>indices, count)
        return count


cdef class MixingPlan(IndexPlan):
    cdef int64_t last
    cdef const double *cumulative
    cdef const int64_t *starts
    cdef const int64_t *sizes

    cdef int64_t fill(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept nogil:
        draw_slots(
            self.cumulative, self.starts, self.sizes, self.last,
            derive_prefix(self.seed, epoch, step), indices, self.batch_size,
        )
        return self.batch_size


cdef class WeightedPlan(IndexPlan):
    cdef const uint64_t *table
    cdef uint64_t n
    cdef uint64_t total
    cdef uint64_t last_step
    cdef int64_t last_rows      # of the last step

    cdef int64_t fill(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept nogil:
        cdef int64_t count = self.batch_size if step < self.last_step else self.last_rows
        draw_weighted_slots(
            self.table, self.n, self.total, derive_prefix(self.seed, epoch, step), indices, count
        )
        return count


cdef class BudgetPlan(IndexPlan):
    cdef const int64_t *order
    cdef const int64_t *firsts  # of each group; BudgetSampler.groups says what these hold
    cdef const int64_t *items
    cdef const int64_t *first_batches
    cdef const int64_t *batches
    cdef int64_t last           # group
    cdef uint64_t steps
    cdef int64_t multiple_of

    cdef int64_t fill(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept nogil:
        cdef Feistel order
        cdef int64_t batch, begin, count, slot, middle
        cdef uint64_t units, batches, number
        cdef int64_t group = 0
        cdef int64_t above = self.last + 1
        feistel(&order, self.steps, derive64(self.seed, epoch, 0, 0, BUDGET_PLACE_STREAM))
        batch = <int64_t>unpermute(&order, step)
        while above - group > 1:
            middle = (group + above) // 2
            if self.first_batches[middle] <= batch:
                group = middle
            else:
                above = middle
        units = <uint64_t>(self.items[group] // self.multiple_of)
        batches = <uint64_t>self.batches[group]
        number = <uint64_t>(batch - self.first_batches[group])
        begin = <int64_t>(number * units // batches) * self.multiple_of
        count = <int64_t>((number + 1) * units // batches) * self.multiple_of - begin
        feistel(
            &order, <uint64_t>self.items[group],
            derive64(self.seed, epoch, <uint64_t>group, 0, GROUP_STREAM),
        )
        for slot in range(count):
            indices[slot] = begin + slot
        if self.items[group] > 1:
            loops.permute(&order, <uint64_t *>indices, <uint64_t *>indices, count)
        for slot in range(count):
            indices[slot] = self.order[self.firsts[group] + indices[slot]]
        return count


cdef enum:
    KEPT_PLANS = 2              # epochs: the one that runs, and the one before it or to come


cdef class PlannedPlan(IndexPlan):
    """The sampler's plan of each epoch, as the sampler makes it: with the GIL, once an epoch."""

    cdef uint64_t steps
    cdef int64_t kept           # indices of an epoch's plan
    cdef bint shuffle_places    # of the batches in the epoch
    cdef bint shuffle_slots
    cdef Lock lock              # guards the rest; held while a batch's indices are copied
    cdef PyObject *arrays[KEPT_PLANS]   # references, so that they change under the lock
    cdef const int64_t *plans[KEPT_PLANS]
    cdef uint64_t epochs[KEPT_PLANS]
    cdef int oldest

    cdef int64_t fill(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept nogil:
        cdef int64_t count = -1
        cdef const int64_t *plan
        lock(&self.lock)
        plan = self.find(epoch)
        if plan != NULL:
            count = self.copy(plan, epoch, step, indices)
        unlock(&self.lock)
        if count < 0:
            with gil:
                count = self.copy_of_made(epoch, step, indices)
        return count

    cdef const int64_t *find(self, uint64_t epoch) noexcept nogil:
        cdef int k
        for k in range(KEPT_PLANS):
            if self.plans[k] != NULL and self.epochs[k] == epoch:
                return self.plans[k]
        return NULL

    cdef int64_t copy(
        self, const int64_t *plan, uint64_t epoch, uint64_t step, int64_t *indices
    ) noexcept nogil:
        """Copy the batch of a step out of its epoch's plan."""
        cdef Feistel order
        cdef uint64_t batch = step
        cdef int64_t count, slot
        if self.shuffle_places:
            feistel(&order, self.steps, derive64(self.seed, epoch, 1, 0, PLACE_STREAM))
            batch = unpermute(&order, step)
        plan += <int64_t>batch * self.batch_size
        count = max(0, min(self.batch_size, self.kept - <int64_t>batch * self.batch_size))
        if not self.shuffle_slots:
            memcpy(indices, plan, count * sizeof(int64_t))
            return count
        feistel(&order, <uint64_t>count, derive64(self.seed, epoch, step, 0, SLOT_STREAM))
        for slot in range(count):
            indices[slot] = slot
        if count > 1:
            loops.permute(&order, <uint64_t *>indices, <uint64_t *>indices, count)
        for slot in range(count):
            indices[slot] = plan[indices[slot]]
        return count

    cdef int64_t copy_of_made(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept:
        """Make an epoch's plan and copy out of it; -1 where that raised."""
        cdef Array found
        try:
            plan = self.make(epoch)
            array_of(plan, b"q", 1, CONTIGUOUS, &found)
            return self.copy(<const int64_t *>found.data, epoch, step, indices)
        except BaseException as error:
            caught.error = error
            return -1

    def make(self, uint64_t epoch):
        """Return an epoch's plan, which the sampler makes where it is not here; it is kept."""
        cdef Array found
        cdef PyObject *old = NULL
        cdef int place
        lock(&self.lock)
        if self.find(epoch) == NULL:
            # goes first: no more than these are ever in memory
            place = self.oldest
            old, self.arrays[place] = self.arrays[place], NULL
            self.plans[place] = NULL
        unlock(&self.lock)
        Py_XDECREF(old)
        plan = self.source.plan(self.seed, epoch)
        array_of(plan, b"q", 1, CONTIGUOUS, &found)
        if found.size != self.kept:
            raise ValueError(f"a plan must have {self.kept} indices, got {found.size}")
        Py_INCREF(plan)
        old = <PyObject *>plan
        lock(&self.lock)
        if self.find(epoch) == NULL:    # else another thread has made it by now
            place = self.oldest
            self.oldest = (place + 1) % KEPT_PLANS
            old, self.arrays[place] = self.arrays[place], old
            self.plans[place], self.epochs[place] = <const int64_t *>found.data, epoch
        unlock(&self.lock)
        Py_XDECREF(old)
        return plan

    def __dealloc__(self):
        cdef int k
        for k in range(KEPT_PLANS):
            Py_XDECREF(self.arrays[k])


def is_unchanged(sampler, base):
    """Return whether ``sampler`` takes everything but its dunder methods from ``base``.

    A plan reads the sampler's sizes once and copies its arithmetic. So another ``n`` or ``_plan``
    counts as much as another ``batch_indices``.
    """
    names = {name for kind in base.__mro__ for name in vars(kind) if not name.startswith("__")}
    return is_own(sampler, base, *(names - base._made))     # every object has those of its own


def index_plan(sampler, seed):
    """Return the plan of one of the library's own samplers, or None of any other."""
    cdef IndexPlan plan
    if is_unchanged(sampler, ShuffledSampler):
        plan = ShuffledPlan.__new__(ShuffledPlan)
        (<SequentialPlan>plan).n = sampler.n
    elif is_unchanged(sampler, SequentialSampler):
        plan = SequentialPlan.__new__(SequentialPlan)
        (<SequentialPlan>plan).n = sampler.n
    elif is_unchanged(sampler, MixingSampler):
        plan = mixing_plan(sampler)
    elif is_unchanged(sampler, BucketedSampler):
        plan = planned_plan(sampler)
        (<PlannedPlan>plan).shuffle_places = True
        (<PlannedPlan>plan).shuffle_slots = sampler.shuffle_slots
    elif is_unchanged(sampler, BudgetSampler):
        plan = budget_plan(sampler)
    elif is_unchanged(sampler, WeightedSampler):
        plan = weighted_plan(sampler) if sampler.replacement else planned_plan(sampler)
    else:
        return None
    plan.batch_size = sampler.batch_size
    plan.seed = seed
    return plan


cdef MixingPlan mixing_plan(sampler):
    cdef MixingPlan plan = MixingPlan.__new__(MixingPlan)
    cdef Array found
    cumulative, starts, sizes = plan.source = sampler.sources
    array_of(cumulative, b"d", 1, CONTIGUOUS, &found)
    plan.cumulative, plan.last = <const double *>found.data, found.size - 1
    array_of(starts, b"q", 1, CONTIGUOUS, &found)
    plan.starts = <const int64_t *>found.data
    array_of(sizes, b"q", 1, CONTIGUOUS, &found)
    plan.sizes = <const int64_t *>found.data
    return plan


cdef WeightedPlan weighted_plan(sampler):
    cdef WeightedPlan plan = WeightedPlan.__new__(WeightedPlan)
    cdef Array found
    plan.source, plan.total = sampler.alias_table
    array_of(plan.source, b"Q", 2, CONTIGUOUS, &found)
    plan.table, plan.n = <const uint64_t *>found.data, <uint64_t>(found.size // 2)
    plan.last_step = sampler.steps_per_epoch - 1
    plan.last_rows = sampler.rows_per_epoch - plan.last_step * sampler.batch_size
    return plan


cdef BudgetPlan budget_plan(sampler):
    cdef BudgetPlan plan = BudgetPlan.__new__(BudgetPlan)
    cdef Array found
    order, groups = plan.source = sampler.groups
    array_of(order, b"q", 1, CONTIGUOUS, &found)
    plan.order = <const int64_t *>found.data
    array_of(groups, b"q", 2, CONTIGUOUS, &found)
    plan.last = found.size // 4 - 1
    plan.firsts = <const int64_t *>found.data
    plan.items = plan.firsts + found.size // 4
    plan.first_batches = plan.items + found.size // 4
    plan.batches = plan.first_batches + found.size // 4
    plan.steps, plan.multiple_of = sampler.steps_per_epoch, sampler.multiple_of
    return plan


cdef PlannedPlan planned_plan(sampler):
    cdef PlannedPlan plan = PlannedPlan.__new__(PlannedPlan)
    plan.source = sampler
    plan.steps = sampler.steps_per_epoch
    plan.kept = sampler.rows_per_epoch
    return plan


def are_indices(indices, int64_t length):
    """Return whether a contiguous int64 array of rank 1 holds indices in [0, length) only."""
    cdef Array given
    cdef int64_t k
    cdef uint64_t outside = 0
    array_of(indices, b"q", 1, CONTIGUOUS, &given)
    cdef const uint64_t *places = <const uint64_t *>given.data
    for k in range(given.size):
        outside |= places[k] >= <uint64_t>length        # a negative one as well
    return outside == 0

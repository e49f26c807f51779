"""The library's own samplers as kernels ask them.

Source: docs/specification.md, section "Samplers". Each plan is made of a sampler whose
``batch_indices`` nobody has overridden, and gives the same indices.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from onemodel._builders.lane cimport interrupt_again
from onemodel._memory.arrays cimport CONTIGUOUS, Array, array_of
from onemodel._memory.lock cimport Lock, lock, unlock
from onemodel._random.rng cimport derive64, derive_prefix
from onemodel._random.streams cimport ORDER_STREAM, PLACE_STREAM, SLOT_STREAM
from onemodel._samplers.mixing cimport draw_slots
from onemodel._simd.dispatch cimport loops
from onemodel._simd.feistel cimport Feistel, feistel, permute, unpermute

from onemodel._common.overrides import is_own
from onemodel._samplers.bucketing import BucketedSampler
from onemodel._samplers.samplers import MixingSampler, SequentialSampler, ShuffledSampler

__all__ = ["IndexPlan", "are_indices", "index_plan", "is_unchanged"]


cdef class IndexPlan:
    """Indices of batches; made by ``index_plan``."""

    cdef int64_t fill(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept nogil:
        return -1


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
    cdef tuple arrays           # keeps the memory below alive
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


cdef enum:
    KEPT_PLANS = 3              # epochs: the one that ends, the one that begins, the one to come


cdef class BucketedPlan(IndexPlan):
    """The sampler's plan of each epoch, as the sampler makes it: with the GIL, once an epoch."""

    cdef object sampler
    cdef uint64_t steps
    cdef int64_t kept           # indices of an epoch's plan
    cdef bint shuffle_slots
    cdef Lock lock              # guards the rest; held while a batch's indices are copied
    cdef list arrays
    cdef const int64_t *plans[KEPT_PLANS]
    cdef uint64_t epochs[KEPT_PLANS]
    cdef int oldest

    cdef int64_t fill(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept nogil:
        cdef int64_t count = self.copy(epoch, step, indices)
        if count < 0:
            with gil:
                self.prepare(epoch)
            count = self.copy(epoch, step, indices)
        return count

    cdef int64_t copy(self, uint64_t epoch, uint64_t step, int64_t *indices) noexcept nogil:
        """Copy the batch of a step out of its epoch's plan; -1 where that is not here."""
        cdef Feistel places
        cdef int64_t first
        cdef int64_t count = -1
        cdef int k
        feistel(&places, self.steps, derive64(self.seed, epoch, 1, 0, PLACE_STREAM))
        first = <int64_t>unpermute(&places, step) * self.batch_size
        lock(&self.lock)
        for k in range(KEPT_PLANS):
            if self.plans[k] != NULL and self.epochs[k] == epoch:
                count = max(0, min(self.batch_size, self.kept - first))
                if self.shuffle_slots:
                    self.copy_shuffled(epoch, step, self.plans[k] + first, indices, count)
                else:
                    memcpy(indices, self.plans[k] + first, count * sizeof(int64_t))
                break
        unlock(&self.lock)
        return count

    cdef void copy_shuffled(
        self, uint64_t epoch, uint64_t step, const int64_t *batch, int64_t *indices, int64_t count
    ) noexcept nogil:
        """Copy a batch, its items in the slots that the step's key gives them."""
        cdef Feistel slots
        cdef int64_t slot
        feistel(&slots, <uint64_t>count, derive64(self.seed, epoch, step, 0, SLOT_STREAM))
        for slot in range(count):
            indices[slot] = batch[permute(&slots, <uint64_t>slot)]

    cdef void prepare(self, uint64_t epoch) noexcept:
        """Ask the sampler for an epoch's plan. What it raises, it raises again when it is asked
        for the batch.
        """
        cdef Array found
        cdef int place
        try:
            plan = self.sampler.plan(self.seed, epoch)
            array_of(plan, b"q", 1, CONTIGUOUS, &found)
        except Exception:
            return
        except BaseException as error:      # an interrupt came by chance here
            interrupt_again(error)
            return
        if found.size != self.kept:
            return
        lock(&self.lock)
        place = self.oldest
        self.oldest = (place + 1) % KEPT_PLANS
        self.plans[place] = <const int64_t *>found.data
        self.epochs[place] = epoch
        unlock(&self.lock)
        self.arrays[place] = plan       # the one before it goes now: nobody reads it any more


def is_unchanged(sampler, base):
    """Return whether ``sampler`` takes everything but its dunder methods from ``base``.

    A plan reads the sampler's sizes once and copies its arithmetic. So another ``n`` or ``_plan``
    counts as much as another ``batch_indices``.
    """
    names = {name for kind in base.__mro__ for name in vars(kind) if not name.startswith("__")}
    return is_own(sampler, base, *names)


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
        plan = bucketed_plan(sampler)
    else:
        return None
    plan.batch_size = sampler.batch_size
    plan.seed = seed
    return plan


cdef MixingPlan mixing_plan(sampler):
    cdef MixingPlan plan = MixingPlan.__new__(MixingPlan)
    cdef Array found
    cumulative, starts, sizes = plan.arrays = sampler.sources
    array_of(cumulative, b"d", 1, CONTIGUOUS, &found)
    plan.cumulative, plan.last = <const double *>found.data, found.size - 1
    array_of(starts, b"q", 1, CONTIGUOUS, &found)
    plan.starts = <const int64_t *>found.data
    array_of(sizes, b"q", 1, CONTIGUOUS, &found)
    plan.sizes = <const int64_t *>found.data
    return plan


cdef BucketedPlan bucketed_plan(sampler):
    cdef BucketedPlan plan = BucketedPlan.__new__(BucketedPlan)
    plan.sampler = sampler
    plan.steps = sampler.steps_per_epoch
    plan.kept = sampler.steps_per_epoch * sampler.batch_size if sampler.drop_last else sampler.n
    plan.shuffle_slots = sampler.shuffle_slots
    plan.arrays = [None] * KEPT_PLANS
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

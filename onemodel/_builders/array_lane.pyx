"""The native lane of the array face: rows of arrays by index, with row transforms on the way.

Source: docs/transforms.md and docs/specification.md, section "Delivery". The bytes are those of
``ArrayBatchBuilder``, whose loops these are.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc

from onemodel._memory.pool cimport Block, exceeds_cache, header_memory
from onemodel._builders.indices cimport IndexPlan
from onemodel._builders.lane cimport BUILT, MOST_BUFFERS, NEEDS_PYTHON, Lane, NativeBatch
from onemodel._random.rng cimport derive_prefix, derive_suffix
from onemodel._random.streams cimport ROW_STREAM
from onemodel._simd.float_mode cimport default_float_mode, restore_float_mode
from onemodel.datasets.gather cimport RowSource, gather_native, row_source
from onemodel.transforms.protocol cimport RowChain

import math

import numpy as np

__all__ = ["array_lane"]


cdef class ArrayLane(Lane):
    cdef object rebuild         # from a list of arrays to the batch's structure
    cdef tuple arrays           # keeps the memory below alive
    cdef list kinds             # (shape of a row, dtype) of each field
    cdef RowSource sources[MOST_BUFFERS]
    cdef int64_t row_bytes[MOST_BUFFERS]        # of a row of the batch
    cdef RowChain chain         # or None
    cdef int chained            # the field that it transforms
    cdef int64_t length
    cdef uint64_t seed
    cdef uint64_t steps_per_epoch
    cdef int64_t rank
    cdef int64_t world

    cdef int build(self, uint64_t g, NativeBatch *batch) noexcept nogil:
        cdef int64_t rows, first, end
        cdef int field
        cdef int status = NEEDS_PYTHON
        cdef uint64_t mode
        cdef int64_t *indices = <int64_t *>malloc(self.plan.batch_size * sizeof(int64_t))
        batch.epoch, batch.step = g // self.steps_per_epoch, g % self.steps_per_epoch
        batch.owner = NULL
        for field in range(self.buffers):
            batch.buffers[field] = NULL
        if indices == NULL:
            return NEEDS_PYTHON
        mode = default_float_mode()
        rows = self.plan.fill(batch.epoch, batch.step, indices)
        first, end = self.rank * rows // self.world, (self.rank + 1) * rows // self.world
        batch.rows, batch.first_slot, batch.count = rows, <uint64_t>first, end - first
        if end > first and self.are_rows(indices + first, end - first):
            status = BUILT
            for field in range(self.buffers):
                if not (
                    self.rent(batch, field, batch.count * self.row_bytes[field])
                    and self.fill_field(field, indices + first, batch)
                ):
                    status = NEEDS_PYTHON
                    break
        restore_float_mode(mode)
        if status != BUILT:
            self.drop(batch)
        free(indices)
        return status

    cdef bint are_rows(self, const int64_t *indices, int64_t count) noexcept nogil:
        cdef int64_t k
        for k in range(count):
            if not 0 <= indices[k] < self.length:
                return False
        return True

    cdef bint fill_field(
        self, int field, const int64_t *indices, NativeBatch *batch
    ) noexcept nogil:
        """Write one field of the batch; False where there is no memory."""
        cdef char *target = header_memory(batch.buffers[field])
        cdef bint non_temporal = exceeds_cache(self.pool)
        if self.chained != field:
            gather_native(&self.sources[field], indices, batch.count, target, non_temporal)
            return True
        return run_chain(
            self.chain, &self.sources[field], indices, batch.count, batch.first_slot,
            derive_prefix(self.seed, batch.epoch, batch.step), target, non_temporal,
        )

    cdef object finish(self, NativeBatch *batch):
        cdef Block block
        cdef int field
        cdef list arrays = []
        for field in range(self.buffers):
            shape, dtype = self.kinds[field]
            block = self.pool.own(
                batch.buffers[field], batch.count * self.row_bytes[field]
            )
            arrays.append(np.ndarray((batch.count, *shape), dtype, block))
        return self.rebuild(arrays)


cdef bint run_chain(
    RowChain chain, const RowSource *source, const int64_t *indices, int64_t count,
    uint64_t first_slot, uint64_t prefix, char *target, bint non_temporal
) noexcept nogil:
    """Run row transforms, each row with its own generator; False where there is no memory."""
    cdef uint64_t *states = <uint64_t *>malloc(count * sizeof(uint64_t))
    cdef char *memory = <char *>malloc(2 * chain.scratch_bytes + chain.parameter_bytes + 256)
    cdef bint there = states != NULL and memory != NULL
    cdef int64_t k
    if there:
        for k in range(count):
            states[k] = derive_suffix(prefix, first_slot + <uint64_t>k, ROW_STREAM)
        chain.run_rows(
            source.base, source.stride, indices, count, states, target, memory, non_temporal
        )
    free(states)
    free(memory)
    return there


def array_lane(arrays, chain, chained, rebuild, pool, IndexPlan plan, builder):
    """Return the lane of a dataset of arrays, or None where it has too many.

    Args:
        arrays: the dataset's, in order.
        chain: a ``RowChain`` for array number ``chained``, or None.
        rebuild: from a list of batch arrays, in that order, to the batch.
        pool: where the batches' memory comes from.
        plan: the sampler's.
        builder: the ``StepBuilder``.
    """
    cdef ArrayLane lane = ArrayLane.__new__(ArrayLane)
    cdef int field
    if len(arrays) > MOST_BUFFERS:
        return None
    lane.pool, lane.buffers = pool, len(arrays)
    lane.plan, lane.rebuild, lane.arrays = plan, rebuild, tuple(arrays)
    lane.chain, lane.chained = chain, -1 if chain is None else chained
    lane.kinds = []
    for field in range(lane.buffers):
        array = arrays[field]
        row_source(array, &lane.sources[field])
        kind = (array.shape[1:], array.dtype)
        if field == lane.chained:
            kind = (tuple(chain.shape), chain.dtype)
        lane.kinds.append(kind)
        lane.row_bytes[field] = math.prod(kind[0]) * kind[1].itemsize
    lane.length = builder.length
    lane.seed, lane.steps_per_epoch = builder.seed, builder.steps_per_epoch
    lane.rank, lane.world = builder.shard
    return lane

"""The generator that an array transform is handed: the batch's own, and one for each row.

Source: docs/transforms.md, section "Common rules".
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, realloc

import numpy as np

from onemodel._memory.arrays cimport WRITABLE, Array, array_of
from onemodel._common.integers import check_integer, check_uint64
from onemodel._random.rng cimport (
    SampleRng,
    derive_prefix,
    derive_suffix,
    new_array,
    next_double,
    next_u64,
)
from onemodel._random.streams cimport ROW_STREAM, TRANSFORM_STREAM

__all__ = ["BatchRng"]


cdef class BatchRng(SampleRng):
    """The generator of an array batch, which also holds one generator for each row.

    The batch's own draws are those of ``SampleRng(derive(seed, epoch, step, first_slot, 0))``.
    Row k starts at ``derive(seed, epoch, step, first_slot + k, 2)``: its draws depend on its slot
    in the *global* batch and stay the same when the batch is sharded. Every native transform
    moves the row generators on, one after another. One object is for one thread.

    Args:
        seed, epoch, step, first_slot: integers in [0, 2**64).

    >>> rng = BatchRng(42, epoch=1, step=2)
    >>> shard = BatchRng(42, epoch=1, step=2, first_slot=2)
    >>> rng.row_random(4)[2:].tolist() == shard.row_random(2).tolist()
    True
    """

    @cython.embedsignature.format("c")
    def __init__(self, seed, epoch=0, step=0, first_slot=0):
        cdef uint64_t prefix = derive_prefix(
            check_uint64("seed", seed), check_uint64("epoch", epoch), check_uint64("step", step)
        )
        self.restart(prefix, check_uint64("first_slot", first_slot))

    @staticmethod
    cdef BatchRng begin(uint64_t seed, uint64_t epoch, uint64_t step, uint64_t first_slot):
        """The constructor for kernels: no Python integer, no check."""
        cdef BatchRng rng = BatchRng.__new__(BatchRng)
        rng.restart(derive_prefix(seed, epoch, step), first_slot)
        return rng

    cdef void restart(self, uint64_t prefix, uint64_t first_slot) noexcept:
        self.row_prefix = prefix
        self.first_slot = first_slot
        self.current = derive_suffix(prefix, first_slot, TRANSFORM_STREAM)
        self.count = 0

    def __dealloc__(self):
        free(self.states)

    cdef uint64_t *row_states(self, int64_t rows) except NULL:
        """The states of the generators of rows 0 .. rows - 1, made when first asked for."""
        cdef uint64_t *states
        cdef int64_t k
        if self.states == NULL or rows > self.count:
            states = <uint64_t *>realloc(self.states, (rows + 1) * sizeof(uint64_t))
            if states == NULL:
                raise MemoryError(f"no memory for the generators of {rows} rows")
            self.states = states
            for k in range(self.count, rows):
                states[k] = derive_suffix(
                    self.row_prefix, self.first_slot + <uint64_t>k, ROW_STREAM
                )
            self.count = rows
        return self.states

    def row_u64(self, rows):
        """Return one draw of ``next_u64`` from each of the first rows: uint64 [rows].

        For transforms in Python whose draws must not change with the number of shards.
        """
        values = new_array("rows", check_integer("rows", rows, 0, 1 << 60), np.uint64)
        cdef Array flat
        array_of(values, b"Q", 1, WRITABLE, &flat)
        cdef uint64_t *states = self.row_states(flat.size)
        cdef int64_t k
        for k in range(flat.size):
            (<uint64_t *>flat.data)[k] = next_u64(&states[k])
        return values

    def row_random(self, rows):
        """Return one draw of ``next_double`` from each of the first rows: float64 [rows]."""
        values = new_array("rows", check_integer("rows", rows, 0, 1 << 60), np.float64)
        cdef Array flat
        array_of(values, b"d", 1, WRITABLE, &flat)
        cdef uint64_t *states = self.row_states(flat.size)
        cdef int64_t k
        for k in range(flat.size):
            (<double *>flat.data)[k] = next_double(&states[k])
        return values

    def use_pool(self, pool):
        """Take the arrays that native transforms return from ``pool``; returns None."""
        self.pool = pool

    def rent(self, shape, dtype):
        """Return an uninitialised array: from the pool where there is one."""
        if self.pool is None:
            return np.empty(shape, dtype)
        return self.pool.rent(shape, dtype)

    def __reduce__(self):
        states = [self.states[k] for k in range(self.count)]
        return BatchRng, (0,), (self.current, self.row_prefix, self.first_slot, states)

    def __setstate__(self, state):
        current, prefix, first_slot, states = state
        states = list(states)       # room is made for its length, whatever another object says
        self.restart(prefix, first_slot)
        self.current = current
        self.row_states(len(states))
        for k, value in enumerate(states):
            self.states[k] = value

    def __repr__(self):
        return f"BatchRng(state={self.current:#018x}, first_slot={self.first_slot})"


cdef BatchRng rows_rng(SampleRng rng):
    """A batch's generator: `rng` itself, or one whose seed is drawn from it."""
    if isinstance(rng, BatchRng):
        return <BatchRng>rng
    return BatchRng.begin(next_u64(&rng.current), 0, 0, 0)

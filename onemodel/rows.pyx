"""Row transforms: the generator of a batch and its rows, and the runner of chains of stages.

The protocol stands in rows.pxd; the transforms in row_images.pyx, normalize.pyx.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcpy

import numpy as np

from onemodel.checks import integer, uint64
from onemodel.rng cimport (
    ROW_STREAM,
    TRANSFORM_STREAM,
    SampleRng,
    derive_prefix,
    derive_suffix,
    next_double,
    next_u64,
)
from onemodel.structure import field_of, put, take
from onemodel.vector cimport stream_fence, table

__all__ = ["BatchRng", "NativeTransform", "RowProgram"]


cdef extern from "prefetch.h":
    void prefetch_row "onemodel_prefetch_row"(const char *row, int64_t size) noexcept nogil


cdef enum:
    ALIGNMENT = 64              # a cache line
    # A batch larger than this leaves the second cache before anybody reads it, so its stores
    # may go around the caches and save the reads that ordinary stores begin with.
    STREAM_BYTES = 1 << 20


cdef class BatchRng(SampleRng):
    """The generator of an array batch, which also holds one generator for each row.

    The batch's own draws are those of ``SampleRng(derive(seed, epoch, step, first_slot, 0))``.
    Row k starts at ``derive(seed, epoch, step, first_slot + k, 2)``: its draws hang on its slot
    in the *global* batch and stay the same when the batch is sharded. Every native transform
    moves the row generators on, one after another. One object is for one thread.

    Args:
        seed, epoch, step, first_slot: integers in [0, 2**64).

    >>> rng = BatchRng(42, epoch=1, step=2)
    >>> shard = BatchRng(42, epoch=1, step=2, first_slot=2)
    >>> rng.row_random(4)[2:].tolist() == shard.row_random(2).tolist()
    True
    """

    def __init__(self, seed, epoch=0, step=0, first_slot=0):
        cdef uint64_t prefix = derive_prefix(
            uint64("seed", seed), uint64("epoch", epoch), uint64("step", step)
        )
        self.restart(prefix, uint64("first_slot", first_slot))

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
        values = np.empty(integer("rows", rows, 0, 1 << 60), np.uint64)
        cdef uint64_t[::1] flat = values
        cdef uint64_t *states = self.row_states(flat.shape[0])
        cdef int64_t k
        for k in range(flat.shape[0]):
            flat[k] = next_u64(&states[k])
        return values

    def row_random(self, rows):
        """Return one draw of ``next_double`` from each of the first rows: float64 [rows]."""
        values = np.empty(integer("rows", rows, 0, 1 << 60), np.float64)
        cdef double[::1] flat = values
        cdef uint64_t *states = self.row_states(flat.shape[0])
        cdef int64_t k
        for k in range(flat.shape[0]):
            flat[k] = next_double(&states[k])
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
        self.restart(prefix, first_slot)
        self.current = current
        self.row_states(len(states))
        for k, value in enumerate(states):
            self.states[k] = value

    def __repr__(self):
        return f"BatchRng(state={self.current:#018x}, first_slot={self.first_slot})"


cdef BatchRng batch_rng(SampleRng rng):
    """A batch's generator: `rng` itself, or one whose seed is drawn from it."""
    if isinstance(rng, BatchRng):
        return <BatchRng>rng
    return BatchRng.begin(next_u64(&rng.current), 0, 0, 0)


# The head of what NumPy's `__array_struct__` points at, a part of its array interface: written
# out so that NumPy is no build dependency.
ctypedef struct ArrayStruct:
    int two
    int rank
    char kind
    int item_bytes
    int flags
    Py_ssize_t *shape
    Py_ssize_t *strides
    char *data


cdef char *address(array) except NULL:
    """Where an array's first item lies, whatever its dtype and whether it may be written.

    A memoryview would do for most arrays; those of dates or unknown fields export none.
    """
    capsule = array.__array_struct__
    return (<ArrayStruct *>PyCapsule_GetPointer(capsule, NULL)).data


cdef class NativeTransform:
    """What native row transforms share; see rows.pxd for how to write one.

    ``transform(rng, batch)`` returns a new batch of the same structure in which one array, the
    first unless ``key`` names another, is replaced; the given arrays are never written to. With
    a ``BatchRng`` each row draws from its own generator; with a plain ``SampleRng`` one draw of
    ``next_u64`` is the seed of a ``BatchRng`` with epoch, step and first slot 0.

    Rows are images: uint8 [H, W, C], or float32 [C, H, W]; [H, W] is an image of one channel.
    """

    def __call__(self, SampleRng rng not None, batch):
        """Return the batch with its images transformed by draws from ``rng``.

        Raises:
            TypeError, ValueError: if the images have another dtype or shape than accepted.
        """
        cdef BatchRng rows = batch_rng(rng)
        field = field_of(batch, self.key, 0)
        images = np.asarray(take(batch, field))
        if images.ndim == 0:
            raise ValueError("images must have rows, got an array of rank 0")
        program = RowProgram([self], images.dtype, images.shape[1:])
        result = rows.rent((len(images), *program.shape), program.dtype)
        program.run(rows, np.ascontiguousarray(images), None, result)
        return put(batch, field, result)

    cdef RowFormat after(self, RowFormat before) except *:
        """The format of the rows that come out; raises where `before` is not accepted."""
        return before

    cdef NativeTransform merged_with(self, NativeTransform previous, RowFormat before):
        """A transform that does `previous` and then this one in a single pass, or None.

        `before` is what `previous` reads and gives.
        """
        return None

    def __repr__(self):
        shown = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{type(self).__name__}({shown})"

    def __reduce__(self):
        return rebuild, (type(self), self.arguments)


def rebuild(kind, arguments):
    """Return ``kind(**arguments)``: how a pickled transform is made again."""
    return kind(**arguments)


cdef RowFormat format_of(dtype, shape) except *:
    """The format of rows with this dtype and shape, checked."""
    cdef RowFormat found
    dtype = np.dtype(dtype)
    if dtype == np.uint8:
        found.kind = UINT8_HWC
    elif dtype == np.float32:
        found.kind = FLOAT32_CHW
    else:
        raise TypeError(f"images must be uint8 [H, W, C] or float32 [C, H, W], got {dtype}")
    if len(shape) not in (2, 3):
        raise ValueError(f"images must be of rank 2 or 3, got rows of shape {tuple(shape)}")
    if 0 in shape:
        raise ValueError(f"images must have pixels, got rows of shape {tuple(shape)}")
    found.flat = len(shape) == 2
    if found.flat:
        shape = (*shape, 1) if found.kind == UINT8_HWC else (1, *shape)
    if found.kind == UINT8_HWC:
        found.height, found.width, found.channels = shape
    else:
        found.channels, found.height, found.width = shape
    return found


cdef tuple shape_of(RowFormat format):
    if format.flat:
        return (format.height, format.width)
    if format.kind == UINT8_HWC:
        return (format.height, format.width, format.channels)
    return (format.channels, format.height, format.width)


cdef inline int64_t padded(int64_t size) noexcept nogil:
    return (size + ALIGNMENT - 1) & ~<int64_t>(ALIGNMENT - 1)


cdef class RowProgram:
    """Native transforms in order, ready to run on rows of one dtype and shape.

    Args:
        parts: NativeTransform objects, at least one; the program keeps them alive.
        dtype, shape: of one row. The attributes ``dtype`` and ``shape`` are those of a row that
            comes out.

    Raises:
        TypeError, ValueError: if a part does not accept the rows that reach it.
    """

    def __init__(self, parts, dtype, shape):
        cdef RowFormat format = format_of(dtype, shape)
        cdef RowFormat before
        cdef NativeTransform merged
        self.parts = tuple(parts)
        owners = []
        self.stages = <RowStage *>malloc((len(self.parts) + 1) * sizeof(RowStage))
        self.formats = <RowFormat *>malloc((len(self.parts) + 1) * sizeof(RowFormat))
        if self.stages == NULL or self.formats == NULL:
            raise MemoryError(f"no memory for {len(self.parts)} stages")
        self.formats[0] = format
        for part in self.parts:
            if not isinstance(part, NativeTransform):
                raise TypeError(f"parts must be native row transforms, got {part!r}")
            before, format = format, (<NativeTransform>part).after(format)
            merged = None
            if owners:
                merged = (<NativeTransform>part).merged_with(owners[len(owners) - 1], before)
            if merged is None:
                merged = part
                self.count += 1
            else:
                owners.pop()
            owners.append(merged)
            self.stages[self.count - 1] = merged.stage
            self.formats[self.count] = format
        if self.count == 0:
            raise ValueError("parts must have at least one transform, got none")
        cdef int k
        for k in range(self.count):
            self.drawn_bytes = max(self.drawn_bytes, self.stages[k].drawn_bytes)
            if k > 0:
                self.scratch_bytes = max(
                    self.scratch_bytes, padded(format_bytes(&self.formats[k]))
                )
        self.owners = tuple(owners)
        self.result_bytes = format_bytes(&self.formats[self.count])
        self.shape = shape_of(format)
        self.dtype = np.dtype(np.uint8 if format.kind == UINT8_HWC else np.float32)

    def __dealloc__(self):
        free(self.stages)
        free(self.formats)

    def run(self, BatchRng rng not None, source, indices, result):
        """Make row k of ``result`` out of row ``indices[k]`` of ``source``, in one nogil pass.

        Args:
            rng: its row generators are moved on.
            source: rows of the program's input format, each contiguous.
            indices: int64 array, None for 0, 1, 2, ...
            result: C-contiguous, writable, of the program's output format.

        Raises:
            TypeError, ValueError, IndexError: if an array is not as described.
        """
        cdef int64_t rows = len(result)
        cdef const int64_t[::1] places
        cdef const int64_t *first = NULL
        cdef int64_t source_rows = len(source)
        cdef int64_t k
        expected = shape_of(self.formats[0])
        kind = np.uint8 if self.formats[0].kind == UINT8_HWC else np.float32
        if source.dtype != kind or source.shape[1:] != expected:
            raise TypeError(f"source must be rows {np.dtype(kind)} {expected}")
        if result.dtype != self.dtype or result.shape[1:] != self.shape:
            raise TypeError(f"result must be rows {self.dtype} {self.shape}")
        if not (result.flags.c_contiguous and result.flags.writeable):
            raise ValueError("result must be C-contiguous and writable")
        if source_rows > 0 and not source[0].flags.c_contiguous:
            raise ValueError("source must have contiguous rows")
        if indices is not None:
            places = indices
            if places.shape[0] != rows:
                raise ValueError(f"indices must be {rows}, one a row, got {places.shape[0]}")
            for k in range(rows):
                if not 0 <= places[k] < source_rows:
                    raise IndexError(f"indices must be in [0, {source_rows}), got {places[k]}")
            if rows > 0:
                first = &places[0]
        elif source_rows != rows:
            raise ValueError(f"source must have {rows} rows, got {source_rows}")
        if rows == 0:
            return
        cdef uint64_t *states = rng.row_states(rows)
        cdef char *target = address(result)
        cdef const char *base = address(source)
        cdef int64_t stride = source.strides[0]
        cdef char *memory = <char *>malloc(
            2 * self.scratch_bytes + padded(self.drawn_bytes) + 2 * ALIGNMENT
        )
        if memory == NULL:
            raise MemoryError(f"no memory for two rows of {self.scratch_bytes} bytes")
        with nogil:
            self.run_rows(base, stride, first, rows, states, target, memory)
        free(memory)

    cdef void run_rows(
        self, const char *base, int64_t stride, const int64_t *indices, int64_t rows,
        uint64_t *states, char *target, char *memory
    ) noexcept nogil:
        cdef char *aligned = <char *>(
            (<uintptr_t>memory + ALIGNMENT - 1) & ~<uintptr_t>(ALIGNMENT - 1)
        )
        cdef char *scratch = aligned + padded(self.drawn_bytes)
        cdef char *other = scratch + self.scratch_bytes
        cdef int64_t source_bytes = format_bytes(&self.formats[0])
        cdef bint streamed = rows * self.result_bytes >= STREAM_BYTES
        cdef const char *row
        cdef char *place
        cdef RowStage *stage
        cdef int64_t k, ahead
        cdef int j
        for k in range(rows):
            if k + 1 < rows:
                ahead = k + 1 if indices == NULL else indices[k + 1]
                prefetch_row(base + ahead * stride, source_bytes)
            row = base + (k if indices == NULL else indices[k]) * stride
            for j in range(self.count):
                stage = &self.stages[j]
                if stage.draw != NULL:
                    stage.draw(stage.settings, &states[k], &self.formats[j], aligned)
                # a stage may not write where it reads: take the scratch that `row` is not in
                place = target if j + 1 == self.count else (other if row == scratch else scratch)
                row = stage.apply(
                    stage.settings, aligned, &self.formats[j], &self.formats[j + 1], row, place,
                    streamed and j + 1 == self.count
                )
            if row != target:
                if streamed and self.result_bytes & 3 == 0:
                    table.stream(<float *>target, <const float *>row, self.result_bytes >> 2)
                else:
                    memcpy(target, row, <size_t>self.result_bytes)
            target += self.result_bytes
        if streamed:
            stream_fence()

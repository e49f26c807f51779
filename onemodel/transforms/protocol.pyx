"""Row transforms: what they share, and the runner of chains of operations.

protocol.pxd holds the protocol; geometry.pyx and normalize.pyx the transforms.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from onemodel._common.arguments import call_text, rebuild
from onemodel._common.array_checks import check_rows, as_c_contiguous, row_format
from onemodel._memory.arrays cimport CONTIGUOUS, Array, array_of
from onemodel._random.batch_rng cimport BatchRng, rows_rng
from onemodel._simd.cache_hint cimport prefetch_row
from onemodel._random.rng cimport SampleRng
from onemodel._batch.structure import field_of, put, take
from onemodel._simd.dispatch cimport loops, store_fence

__all__ = ["NativeTransform", "RowChain"]

cdef enum:
    ALIGNMENT = 64              # a cache line


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
    """What native row transforms share; see protocol.pxd for how to write one.

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
        cdef BatchRng rows = rows_rng(rng)
        field = field_of(batch, self.key, 0)
        images = as_c_contiguous(take(batch, field))
        if images.ndim == 0:
            raise ValueError("images must have rows, got an array of rank 0")
        chain = RowChain([self], images.dtype, images.shape[1:])
        result = rows.rent((len(images), *chain.shape), chain.dtype)
        chain.run(rows, images, None, result)
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
        return call_text(self, self.arguments)

    def __reduce__(self):
        return rebuild, (type(self), self.arguments)


cdef RowFormat format_of(dtype, shape) except *:
    """The format of rows with this dtype and shape, checked."""
    cdef RowFormat found
    is_bytes, found.flat, height, width, channels = row_format(dtype, shape)
    found.kind = UINT8_HWC if is_bytes else FLOAT32_CHW
    found.height, found.width, found.channels = height, width, channels
    return found


cdef tuple shape_of(RowFormat format):
    if format.flat:
        return (format.height, format.width)
    if format.kind == UINT8_HWC:
        return (format.height, format.width, format.channels)
    return (format.channels, format.height, format.width)


cdef inline int64_t padded(int64_t size) noexcept nogil:
    return (size + ALIGNMENT - 1) & ~<int64_t>(ALIGNMENT - 1)


cdef class RowChain:
    """Native transforms in order, ready to run on rows of one dtype and shape.

    Args:
        parts: NativeTransform objects, at least one; the chain keeps them alive.
        dtype, shape: of one row. The attributes ``dtype`` and ``shape`` are those of a row that
            comes out.

    Raises:
        TypeError, ValueError: if a part does not accept the rows that reach it.
    """

    @cython.embedsignature.format("c")
    def __init__(self, parts, dtype, shape):
        cdef RowFormat format = format_of(dtype, shape)
        cdef RowFormat before
        cdef NativeTransform merged
        if self.operations != NULL:
            raise TypeError("a RowChain is made once")
        self.parts = tuple(parts)
        owners = []
        self.operations = <RowOperation *>malloc((len(self.parts) + 1) * sizeof(RowOperation))
        self.formats = <RowFormat *>malloc((len(self.parts) + 1) * sizeof(RowFormat))
        if self.operations == NULL or self.formats == NULL:
            raise MemoryError(f"no memory for {len(self.parts)} operations")
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
            self.operations[self.count - 1] = merged.operation
            self.formats[self.count] = format
        if self.count == 0:
            raise ValueError("parts must have at least one transform, got none")
        cdef int k
        for k in range(self.count):
            self.parameter_bytes = max(self.parameter_bytes, self.operations[k].parameter_bytes)
            if k > 0:
                self.scratch_bytes = max(
                    self.scratch_bytes, padded(format_bytes(&self.formats[k]))
                )
        self.owners = tuple(owners)
        self.result_bytes = format_bytes(&self.formats[self.count])
        self.shape = shape_of(format)
        self.dtype = np.dtype(np.uint8 if format.kind == UINT8_HWC else np.float32)

    def __dealloc__(self):
        free(self.operations)
        free(self.formats)

    def run(self, BatchRng rng not None, source, indices, result, bint non_temporal=False):
        """Make row k of ``result`` out of row ``indices[k]`` of ``source``, in one nogil pass.

        Args:
            rng: its row generators are moved on.
            source: rows of the chain's input format, each contiguous and aligned.
            indices: int64 array, None for 0, 1, 2, ...
            result: C-contiguous, writable, of the chain's output format; no memory of source.
            non_temporal: write it with non-temporal stores; the bytes are the same.

        Raises:
            TypeError, ValueError, IndexError: if an array is not as described.
        """
        cdef int64_t rows = len(result)
        cdef Array given
        cdef const int64_t *places
        cdef const int64_t *first = NULL
        cdef int64_t source_rows = len(source)
        cdef int64_t k
        if self.owners is None:
            raise TypeError("the RowChain was not initialised")
        check_rows(
            source, np.uint8 if self.formats[0].kind == UINT8_HWC else np.float32,
            shape_of(self.formats[0]), result, self.dtype, self.shape,
        )
        if indices is not None:
            array_of(indices, b"q", 1, CONTIGUOUS, &given)
            places = <const int64_t *>given.data
            if given.size != rows:
                raise ValueError(f"indices must be {rows}, one a row, got {given.size}")
            for k in range(rows):
                if not 0 <= places[k] < source_rows:
                    raise IndexError(f"indices must be in [0, {source_rows}), got {places[k]}")
            first = places
        elif source_rows != rows:
            raise ValueError(f"source must have {rows} rows, got {source_rows}")
        if rows == 0:
            return
        cdef uint64_t *states = rng.row_states(rows)
        cdef char *target = address(result)
        cdef const char *base = address(source)
        cdef int64_t stride = source.strides[0]
        cdef char *memory = <char *>malloc(
            2 * self.scratch_bytes + padded(self.parameter_bytes) + 2 * ALIGNMENT
        )
        if memory == NULL:
            raise MemoryError(f"no memory for two rows of {self.scratch_bytes} bytes")
        with nogil:
            self.run_rows(base, stride, first, rows, states, target, memory, non_temporal)
        free(memory)

    cdef void run_rows(
        self, const char *base, int64_t stride, const int64_t *indices, int64_t rows,
        uint64_t *states, char *target, char *memory, bint non_temporal
    ) noexcept nogil:
        cdef char *aligned = <char *>(
            (<uintptr_t>memory + ALIGNMENT - 1) & ~<uintptr_t>(ALIGNMENT - 1)
        )
        cdef char *scratch = aligned + padded(self.parameter_bytes)
        cdef char *other = scratch + self.scratch_bytes
        cdef int64_t source_bytes = format_bytes(&self.formats[0])
        cdef const char *row
        cdef char *place
        cdef RowOperation *operation
        cdef int64_t k, ahead
        cdef int j
        for k in range(rows):
            if k + 1 < rows:
                ahead = k + 1 if indices == NULL else indices[k + 1]
                prefetch_row(base + ahead * stride, source_bytes)
            row = base + (k if indices == NULL else indices[k]) * stride
            for j in range(self.count):
                operation = &self.operations[j]
                if operation.draw != NULL:
                    operation.draw(operation.settings, &states[k], &self.formats[j], aligned)
                # an operation may not write where it reads: take the scratch that `row` is not in
                place = target if j + 1 == self.count else (other if row == scratch else scratch)
                row = operation.apply(
                    operation.settings, aligned, &self.formats[j], &self.formats[j + 1], row, place,
                    non_temporal and j + 1 == self.count
                )
            if row != target:
                if non_temporal and self.result_bytes & 3 == 0:
                    loops.copy_non_temporal(<float *>target, <const float *>row, self.result_bytes >> 2)
                else:
                    memcpy(target, row, <size_t>self.result_bytes)
            target += self.result_bytes
        if non_temporal:
            store_fence()

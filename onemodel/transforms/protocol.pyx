"""Native row transforms: what they share, and the chain that runs them.

protocol.pxd holds the protocol; geometry.pyx and normalize.pyx the transforms.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from onemodel._common.arguments import check_unmasked
from onemodel._common.describe import shown
from onemodel._batch.structure import field_of, replace, take
from onemodel._common.configured cimport check_initialised
from onemodel._common.configured import Argument
from onemodel._memory.arrays cimport CONTIGUOUS, Array, address, array_of
from onemodel._random.batch_rng cimport BatchRng, rows_rng
from onemodel._random.rng cimport SampleRng
from onemodel._simd.cache_hint cimport prefetch_row
from onemodel._simd.float_mode cimport default_float_mode, restore_float_mode
from onemodel._simd.dispatch cimport store_fence, loops
from onemodel.transforms.layout import image_format, rows_of

__all__ = ["CompiledTransform", "NativeTransform", "RowChain"]

cdef enum:
    CACHE_LINE = 64


cdef class NativeTransform(Configured):
    """What native row transforms share; see protocol.pxd for how to write one.

    ``transform(rng, batch)`` returns a new batch of the same structure in which one array, the
    first unless ``key`` names another, is replaced; the given arrays are never written to. With
    a ``BatchRng`` each row draws from its own generator; with a plain ``SampleRng`` one draw of
    ``next_u64`` is the seed of a ``BatchRng`` with epoch, step and first slot 0.

    Rows are images: uint8 [H, W, C], or float32 [C, H, W]; [H, W] is an image of one channel.
    ``layout`` "HWC" or "CHW" says that the axes of a row are these, whatever the dtype.
    """

    @property
    def key(self):
        """Which array of the batch holds the images; None for the first."""
        return self.arguments.get("key")

    @property
    def layout(self):
        """The axes of a row, "HWC" or "CHW"; None for those that its dtype usually has."""
        return self.arguments.get("layout")

    def __call__(self, SampleRng rng not None, batch):
        """Return the batch with its images transformed by draws from ``rng``.

        Raises:
            TypeError, ValueError: if the images have another dtype or shape than accepted.
        """
        check_operation(self)
        cdef BatchRng rows = rows_rng(rng)
        field = field_of(batch, self.key, 0)
        images = rows_of("images", take(batch, field))
        if images.ndim == 0:
            raise ValueError("images must have rows, got an array of rank 0")
        chain = RowChain([self], images.dtype, images.shape[1:])
        result = rows.rent((len(images), *chain.shape), chain.dtype)
        chain.run(rows, images, None, result)
        return replace(batch, field, result)

    cdef RowFormat after(self, RowFormat before) except *:
        """The format of the rows that come out; raises where `before` is not accepted."""
        return before

    cdef NativeTransform merged_with(self, NativeTransform previous, RowFormat before):
        """A transform that does `previous` and then this one in a single pass, or None.

        `before` is what both of them read.
        """
        return None


cdef int function_for(const RowFormat *format) noexcept nogil:
    """Which function of a CompiledTransform edits rows of this format."""
    return 2 * (format.item_bytes == 4) + format.flat


cdef void keep_state(
    const void *settings, uint64_t *state, const RowFormat *before, void *parameters
) noexcept nogil:
    (<uint64_t **>parameters)[0] = state


cdef const char *edit_row(
    const void *settings, const void *parameters, const RowFormat *before, const RowFormat *after,
    const char *source, char *target, bint non_temporal
) noexcept nogil:
    cdef EditFunction edit = (<const EditFunction *>settings)[function_for(before)]
    cdef uint64_t *state = (<uint64_t **>parameters)[0]
    memcpy(target, source, <size_t>row_bytes(before))
    if before.flat:
        edit(state, before.height, before.width, 1, target)
    elif before.planar:
        edit(state, before.channels, before.height, before.width, target)
    else:
        edit(state, before.height, before.width, before.channels, target)
    return target


cdef class CompiledTransform(NativeTransform):
    """One whose functions another compiler made: a subclass checks and compiles them.

    Its method ``_compiled(dtype, shape)`` returns the address of an EditFunction (protocol.pxd)
    for rows of this dtype and shape, which stays as long as the object. Rows keep both.
    """

    def __cinit__(self, *args, **kwargs):
        self.operation.settings = self.functions
        self.operation.parameter_bytes = sizeof(uint64_t *)
        self.operation.draw = keep_state
        self.operation.apply = edit_row

    def _compiled(self, dtype, shape):
        raise NotImplementedError("a subclass compiles it")

    cdef RowFormat after(self, RowFormat before) except *:
        cdef uintptr_t found = self._compiled(row_dtype(&before), row_shape(&before))
        self.functions[function_for(&before)] = <EditFunction><void *>found
        return before


cdef int check_operation(NativeTransform part) except -1:
    """Stop before a call through NULL: a subclass may have left __init__ out."""
    check_initialised(part)
    if part.operation.apply == NULL:
        name = type(part).__name__
        raise TypeError(f"{name} was not initialised: __init__ must set its operation")
    return 0


cdef RowFormat row_format(dtype, shape, layout) except *:
    """How rows of this dtype and shape are read, checked."""
    cdef RowFormat found
    (
        found.item_bytes, found.planar, found.flat, found.channels, found.height, found.width
    ) = image_format(dtype, shape, layout)
    return found


cdef tuple row_shape(const RowFormat *format):
    if format.flat:
        return (format.height, format.width)
    if format.planar:
        return (format.channels, format.height, format.width)
    return (format.height, format.width, format.channels)


cdef row_dtype(const RowFormat *format):
    return np.dtype(np.uint8 if format.item_bytes == 1 else np.float32)


cdef inline bint same_format(const RowFormat *one, const RowFormat *other) noexcept nogil:
    """Whether rows of one dtype and shape are read alike."""
    return one.item_bytes == other.item_bytes and one.planar == other.planar


cdef inline int64_t aligned_size(int64_t size) noexcept nogil:
    """Bytes of scratch memory, rounded up to whole cache lines."""
    return (size + CACHE_LINE - 1) & ~<int64_t>(CACHE_LINE - 1)


cdef tuple bind_operations(
    tuple parts, dtype, shape, BoundOperation *operations, int *count
):
    """Fill in the operations of the parts, and return who owns their settings.

    Each part reads the rows that reach it as its own `layout` says, as it does when it is called.
    """
    cdef BoundOperation *bound
    cdef RowFormat before, after
    cdef NativeTransform merged
    owners = []
    for part in parts:
        if not isinstance(part, NativeTransform):
            raise TypeError(f"parts must be native row transforms, got {shown(part)}")
        check_operation(part)
        before = row_format(dtype, shape, part.layout)
        after = (<NativeTransform>part).after(before)
        merged = None
        if count[0] > 0 and same_format(&operations[count[0] - 1].before, &before):
            merged = (<NativeTransform>part).merged_with(owners[count[0] - 1], before)
        if merged is None:
            owners.append(part)
            bound = &operations[count[0]]
            bound.operation, bound.before = (<NativeTransform>part).operation, before
            count[0] += 1
        else:
            owners[count[0] - 1] = merged
            bound = &operations[count[0] - 1]
            bound.operation = merged.operation
        bound.after = after
        dtype, shape = row_dtype(&after), row_shape(&after)
    return tuple(owners)


cdef class RowChain(Configured):
    """Native transforms in order, ready to run on rows of one dtype and shape.

    Args:
        parts: NativeTransform objects, at least one; the chain keeps them alive.
        dtype, shape: of one row. The attributes ``dtype`` and ``shape`` are those of a row that
            comes out.

    Raises:
        TypeError, ValueError: if a part does not accept the rows that reach it.
    """

    parts = Argument("parts", "The transforms, in order.")

    @cython.embedsignature.format("c")
    def __init__(self, parts, dtype, shape):
        parts, dtype, shape = tuple(parts), np.dtype(dtype), tuple(shape)
        if not parts:
            raise ValueError("parts must have at least one transform, got none")
        cdef int count = 0
        cdef int k
        cdef BoundOperation *operations = <BoundOperation *>malloc(
            len(parts) * sizeof(BoundOperation)
        )
        if operations == NULL:
            raise MemoryError(f"no memory for {len(parts)} operations")
        try:
            owners = bind_operations(parts, dtype, shape, operations, &count)
            configure(self, RowChain, {"parts": parts, "dtype": dtype, "shape": shape})
        except BaseException:
            free(operations)
            raise
        self.operations, self.count, self.owners = operations, count, owners
        for k in range(count):
            self.parameter_bytes = max(
                self.parameter_bytes, operations[k].operation.parameter_bytes
            )
            if k > 0:
                self.scratch_bytes = max(
                    self.scratch_bytes, aligned_size(row_bytes(&operations[k].before))
                )
        self.result_bytes = row_bytes(&operations[count - 1].after)
        self.result_shape = row_shape(&operations[count - 1].after)
        self.result_dtype = row_dtype(&operations[count - 1].after)

    def __dealloc__(self):
        free(self.operations)

    @property
    def dtype(self):
        """The dtype of a row that comes out."""
        check_initialised(self)
        return self.result_dtype

    @property
    def shape(self):
        """The shape of a row that comes out."""
        check_initialised(self)
        return self.result_shape

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
        check_initialised(self)
        if not isinstance(result, np.ndarray):
            raise TypeError(f"result must be an array, got {shown(result)}")
        check_unmasked("source", source)
        # a subclass may say what it likes of its dtype, shape and layout
        source, result = np.asarray(source), np.asarray(result)
        self.check_rows(source, result)
        cdef int64_t rows = len(result)
        cdef int64_t source_rows = len(source)
        cdef const int64_t *first = NULL
        cdef Array places
        cdef int64_t k
        if indices is not None:
            indices = np.array(indices)     # nobody can change a copy between check and use
            array_of(indices, b"q", 1, CONTIGUOUS, &places)
            first = <const int64_t *>places.data
            if places.size != rows:
                raise ValueError(f"indices must be {rows}, one a row, got {places.size}")
            for k in range(rows):
                if not 0 <= first[k] < source_rows:
                    raise IndexError(f"indices must be in [0, {source_rows}), got {first[k]}")
        elif source_rows != rows:
            raise ValueError(f"source must have {rows} rows, got {source_rows}")
        if rows == 0:
            return
        cdef uint64_t *states = rng.row_states(rows)
        cdef char *target = address(result)
        cdef const char *base = address(source)
        cdef int64_t stride = source.strides[0]
        cdef char *memory = <char *>malloc(
            2 * self.scratch_bytes + aligned_size(self.parameter_bytes) + 2 * CACHE_LINE
        )
        if memory == NULL:
            raise MemoryError(f"no memory for two rows of {self.scratch_bytes} bytes")
        cdef uint64_t mode = default_float_mode()
        with nogil:
            self.run_rows(base, stride, first, rows, states, target, memory, non_temporal)
        restore_float_mode(mode)
        free(memory)

    cdef int check_rows(self, source, result) except -1:
        """Check what `run` reads and writes: rows of the right dtype, shape and layout, apart."""
        given, dtype, shape = self.given, self.result_dtype, self.result_shape
        if source.dtype != given["dtype"] or source.shape[1:] != given["shape"]:
            raise TypeError(
                f"source must be rows {given['dtype']} {given['shape']}, got {source.dtype} "
                f"{source.shape[1:]}"
            )
        if result.dtype != dtype or result.shape[1:] != shape:
            raise TypeError(
                f"result must be rows {dtype} {shape}, got {result.dtype} {result.shape[1:]}"
            )
        if not result.flags.carray:
            raise ValueError("result must be C-contiguous, aligned and writable")
        if np.may_share_memory(source, result):
            raise ValueError("result must share no memory with source")
        if len(source) > 0 and not (source[0].flags.c_contiguous and source.flags.aligned):
            raise ValueError("source must have contiguous, aligned rows")
        return 0

    cdef void run_rows(
        self, const char *base, int64_t stride, const int64_t *indices, int64_t rows,
        uint64_t *states, char *target, char *memory, bint non_temporal
    ) noexcept nogil:
        cdef char *parameters = <char *>(
            (<uintptr_t>memory + CACHE_LINE - 1) & ~<uintptr_t>(CACHE_LINE - 1)
        )
        cdef char *scratch = parameters + aligned_size(self.parameter_bytes)
        cdef char *other = scratch + self.scratch_bytes
        cdef int64_t source_bytes = row_bytes(&self.operations[0].before)
        cdef const char *row
        cdef char *place
        cdef const BoundOperation *bound
        cdef const Operation *operation
        cdef int64_t k, ahead
        cdef int j
        for k in range(rows):
            if k + 1 < rows:
                ahead = k + 1 if indices == NULL else indices[k + 1]
                prefetch_row(base + ahead * stride, source_bytes)
            row = base + (k if indices == NULL else indices[k]) * stride
            for j in range(self.count):
                bound = &self.operations[j]
                operation = &bound.operation
                if operation.draw != NULL:
                    operation.draw(operation.settings, &states[k], &bound.before, parameters)
                # an operation may not write where it reads: take the scratch that `row` is not in
                place = target if j + 1 == self.count else (other if row == scratch else scratch)
                row = operation.apply(
                    operation.settings, parameters, &bound.before, &bound.after, row, place,
                    non_temporal and j + 1 == self.count
                )
            if row != target:
                if non_temporal and self.result_bytes & 3 == 0:
                    loops.copy_non_temporal(
                        <float *>target, <const float *>row, self.result_bytes >> 2
                    )
                else:
                    memcpy(target, row, <size_t>self.result_bytes)
            target += self.result_bytes
        if non_temporal:
            store_fence()

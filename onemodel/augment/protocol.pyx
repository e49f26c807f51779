"""Native augmentations: what they share, and the chain that runs them.

A chain edits one image, or runs row by row inside the pass that makes a batch. protocol.pxd holds
the protocol; pointwise.pyx and spatial.pyx the augmentations. The argument checks are here too,
for augmentations that are written elsewhere.
"""

cimport cython
from cpython.buffer cimport PyBuffer_Release
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from onemodel._common.arguments import (
    check_flag,
    check_integer_pair,
    check_number,
    check_numbers,
    check_pair,
    check_probability,
    check_range,
)
from onemodel._common.describe import shown
from onemodel._common.configured cimport check_initialised
from onemodel._common.configured import Argument
from onemodel._common.integers import check_integer
from onemodel._memory.arrays cimport CONTIGUOUS, WRITABLE, Array, hold_array
from onemodel._random.rng cimport SampleRng
from onemodel._simd.cache_hint cimport prefetch_row
from onemodel._simd.float_mode cimport default_float_mode, restore_float_mode, to_single
from onemodel._simd.float_mode import DefaultFloatMode

__all__ = [
    "Argument",
    "Chain",
    "CompiledAugmentation",
    "NativeAugmentation",
    "RandomAugmentation",
    "check_flag",
    "check_integer",
    "check_integer_pair",
    "check_number",
    "check_numbers",
    "check_pair",
    "check_probability",
]

cdef enum:
    PIECE = 256                 # floats of a row that are copied at a time


cdef class NativeAugmentation(Configured):
    """What native augmentations share; see protocol.pxd for how to write one.

    ``augmentation(rng, image)`` edits a C-contiguous, writable float32 array [C, H, W] in place
    and returns None. An augmentation never changes: its attributes are read-only, its repr shows
    every argument exactly, it can be pickled and used by several threads at once.
    """

    def __call__(self, SampleRng rng not None, image):
        """Edit ``image`` in place with draws from ``rng``.

        Raises:
            TypeError, ValueError: if the image is not a writable, aligned, C-contiguous float32
                [C, H, W] with at least one pixel.
        """
        cdef Array pixels
        cdef Py_buffer view
        check_operation(self)
        hold_pixels("image", image, WRITABLE, &pixels, &view)
        try:
            run_in_place(&self.operation, 1, self.operation.parameter_bytes, rng, &pixels)
        finally:
            PyBuffer_Release(&view)


cdef void draw_applied(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil:
    """Settings are a probability; parameters one int64, 0 where the image stays as it is."""
    (<int64_t *>parameters)[0] = draw_bernoulli((<const double *>settings)[0], state)


cdef class RandomAugmentation(NativeAugmentation):
    """An augmentation that is applied with probability p; the draw is made whatever p is.

    Args:
        p: probability in [0, 1].

    Raises:
        TypeError: if p is not a number.
        ValueError: if p is outside [0, 1].
    """

    p = Argument("p", "The probability that an image is changed.")

    @cython.embedsignature.format("c")
    def __init__(self, p=0.5):
        cdef double probability = check_probability("p", p)
        configure(self, RandomAugmentation, {"p": probability})
        self.probability = probability
        self.operation.settings = &self.probability
        self.operation.parameter_bytes = sizeof(int64_t)
        self.operation.draw = draw_applied


cdef void keep_state(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil:
    (<uint64_t **>parameters)[0] = state


cdef void edit_image(
    const void *settings, const void *parameters, const ImageShape *shape,
    float *image, float *scratch
) noexcept nogil:
    (<EditFunction>settings)(
        (<uint64_t **>parameters)[0], shape.channels, shape.height, shape.width, image
    )


cdef void draw_compiled(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil:
    (<const CompiledPixelsSettings *>settings).draw(
        state, shape.channels, shape.height, shape.width, parameters
    )


cdef void compiled_row(
    const void *settings, const void *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    """A piece at a time by way of a copy, so that a row may be made where it lies."""
    cdef MakePixelsFunction make = (<const CompiledPixelsSettings *>settings).from_floats
    cdef float copy[PIECE]
    cdef int64_t count, start = 0
    if source != target:
        make(parameters, source, 1, 0, shape.width, target)
        return
    while start < shape.width:
        count = min(<int64_t>PIECE, shape.width - start)
        memcpy(copy, source + start, <size_t>count * sizeof(float))
        make(parameters, copy, 1, 0, count, target + start)
        start += count


cdef void compiled_rows(
    const void *settings, const void *parameters, const Rows *rows
) noexcept nogil:
    cdef const CompiledPixelsSettings *pixels = <const CompiledPixelsSettings *>settings
    cdef MakePixelsFunction make = pixels.from_bytes if rows.bytes else pixels.from_floats
    cdef const char *source = <const char *>rows.source
    cdef const char *following = rows.next_source
    cdef float *target = rows.target
    cdef int64_t k, _row
    for _row in range(rows.count):
        prefetch_row(following, rows.next_size)
        make(parameters, source, rows.scale, rows.shift, rows.width, target)
        for k in range(rows.width, rows.padded):
            target[k] = rows.pad
        source += rows.stride
        following += rows.next_stride
        target += rows.padded


cdef class CompiledAugmentation(NativeAugmentation):
    """One whose functions another compiler made: a subclass checks and compiles them.

    All are addresses of functions that protocol.pxd describes and that stay as long as this.
    """

    def _edits(self, uintptr_t edit):
        """Run an EditFunction over the whole image."""
        self.operation.settings = <const void *>edit
        self.operation.parameter_bytes = sizeof(uint64_t *)
        self.operation.draw = keep_state
        self.operation.apply_image = edit_image

    def _makes_pixels(
        self, uintptr_t draw, int64_t drawn_bytes, uintptr_t from_bytes, uintptr_t from_floats
    ):
        """Run MakePixelsFunctions on rows, with what an EditFunction has drawn."""
        self.pixels.draw = <EditFunction><void *>draw
        self.pixels.from_bytes = <MakePixelsFunction><void *>from_bytes
        self.pixels.from_floats = <MakePixelsFunction><void *>from_floats
        self.operation.settings = &self.pixels
        self.operation.parameter_bytes = drawn_bytes
        self.operation.draw = draw_compiled
        self.operation.apply_row = compiled_row
        self.operation.store_rows = compiled_rows


cdef class Chain(Configured):
    """Native augmentations in order, ready to run without the GIL.

    ``chain(rng, image)`` edits an image in place; ``chain(rng, image, out)`` leaves it as it
    is and writes what it becomes to ``out``, in one pass where every part applies to rows. Both
    make the draws and the bytes of the parts called one after another.

    Args:
        parts: NativeAugmentation objects; the chain keeps them alive.

    Raises:
        TypeError: if a part is not a native augmentation, or was not initialised.

    >>> import numpy as np
    >>> from onemodel import SampleRng
    >>> from onemodel.augment import GainOffset, Invert
    >>> image = np.zeros((1, 1, 2), np.float32)
    >>> Chain([GainOffset((1, 1), (0.25, 0.25)), Invert(1)])(SampleRng(0), image)
    >>> image
    array([[[0.75, 0.75]]], dtype=float32)
    """

    parts = Argument("parts", "The augmentations, in order.")

    @cython.embedsignature.format("c")
    def __init__(self, parts):
        parts = tuple(parts)
        for part in parts:
            if not isinstance(part, NativeAugmentation):
                raise TypeError(f"parts must be native augmentations, got {shown(part)}")
            check_operation(part)
        cdef Operation *operations = <Operation *>malloc((len(parts) + 1) * sizeof(Operation))
        if operations == NULL:
            raise MemoryError(f"no memory for {len(parts)} operations")
        try:
            configure(self, Chain, {"parts": parts})
        except TypeError:
            free(operations)
            raise
        self.operations = operations
        self.by_rows = True
        for part in parts:
            operations[self.count] = (<NativeAugmentation>part).operation
            if operations[self.count].apply_row == NULL:
                self.by_rows = False
            self.parameter_bytes += aligned_size(operations[self.count].parameter_bytes)
            self.count += 1

    def __dealloc__(self):
        free(self.operations)

    def __call__(self, SampleRng rng not None, image, out=None):
        """Edit ``image`` in place, or write what it becomes to ``out``.

        Args:
            rng: the generator that every part draws from, in order.
            image: aligned, C-contiguous float32 [C, H, W] with at least one pixel.
            out: None, or an array like ``image`` that shares no memory with it.

        Raises:
            TypeError, ValueError: if an array is not as described.
        """
        cdef Array source, target
        cdef Py_buffer image_view, out_view
        check_initialised(self)
        hold_pixels("image", image, WRITABLE if out is None else CONTIGUOUS, &source, &image_view)
        try:
            if out is None:
                run_in_place(self.operations, self.count, self.parameter_bytes, rng, &source)
                return
            hold_pixels("out", out, WRITABLE, &target, &out_view)
            try:
                run_apart(self, rng, &source, &target)
            finally:
                PyBuffer_Release(&out_view)
        finally:
            PyBuffer_Release(&image_view)


cdef int hold_pixels(name, image, int flags, Array *pixels, Py_buffer *view) except -1:
    """Check an image and hold its buffer, so that it stays where it is without the GIL."""
    kind = "a writable, aligned, C-contiguous" if flags == WRITABLE else "an aligned, C-contiguous"
    try:
        hold_array(image, b"f", 3, flags, pixels, view)
    except (TypeError, ValueError, BufferError) as error:
        raise (TypeError if isinstance(error, TypeError) else ValueError)(
            f"{name} must be {kind} float32 array [C, H, W]: {error}"
        ) from None
    if pixels.size == 0 or <uintptr_t>pixels.data % sizeof(float) != 0:
        shape = (pixels.shape[0], pixels.shape[1], pixels.shape[2])
        PyBuffer_Release(view)
        raise ValueError(
            f"{name} must have pixels, got shape {shape}" if 0 in shape
            else f"{name} must be {kind} float32 array [C, H, W], got one at an odd address"
        )
    return 0


cdef int check_operation(NativeAugmentation part) except -1:
    """Stop before a call through NULL: a subclass may have left __init__ out."""
    check_initialised(part)
    if part.operation.draw == NULL or (
        part.operation.apply_row == NULL and part.operation.apply_image == NULL
    ):
        name = type(part).__name__
        raise TypeError(f"{name} was not initialised: __init__ must set its operation")
    return 0


cdef ImageShape image_shape(const Array *pixels) noexcept:
    cdef ImageShape shape
    shape.channels, shape.height, shape.width = pixels.shape[0], pixels.shape[1], pixels.shape[2]
    return shape


cdef int run_in_place(
    const Operation *operations, int count, int64_t parameter_bytes, SampleRng rng,
    const Array *pixels
) except -1:
    cdef ImageShape shape = image_shape(pixels)
    cdef size_t scratch_bytes = 1
    cdef int k
    for k in range(count):
        if operations[k].apply_row == NULL:
            scratch_bytes = pixels.size * sizeof(float)
    cdef char *parameters = <char *>malloc(parameter_bytes + 8)
    cdef float *scratch = <float *>malloc(scratch_bytes)
    if parameters == NULL or scratch == NULL:
        free(parameters)
        free(scratch)
        raise MemoryError(f"no memory to edit an image of {pixels.size * sizeof(float)} bytes")
    cdef uint64_t mode = default_float_mode()
    with nogil:
        run_image(
            operations, count, &rng.current, parameters, &shape, <float *>pixels.data, scratch
        )
    restore_float_mode(mode)
    free(parameters)
    free(scratch)
    return 0


cdef int run_apart(Chain chain, SampleRng rng, const Array *source, const Array *target) except -1:
    """Write what the image `source` becomes to `target`: by rows where that is possible."""
    cdef ImageShape shape = image_shape(source)
    cdef int64_t channel, row
    cdef const float *read = <const float *>source.data
    cdef float *write = <float *>target.data
    cdef char *parameters
    if (
        source.shape[0] != target.shape[0]
        or source.shape[1] != target.shape[1]
        or source.shape[2] != target.shape[2]
    ):
        raise ValueError(
            f"out must have the image's shape {(shape.channels, shape.height, shape.width)}, "
            f"got {(target.shape[0], target.shape[1], target.shape[2])}"
        )
    if read < write + target.size and write < read + source.size:
        raise ValueError("out must share no memory with image")
    if chain.count == 0 or not chain.by_rows:
        memcpy(write, read, source.size * sizeof(float))
        return run_in_place(chain.operations, chain.count, chain.parameter_bytes, rng, target)
    parameters = <char *>malloc(chain.parameter_bytes + 8)
    if parameters == NULL:
        raise MemoryError(f"no memory for {chain.parameter_bytes} bytes of parameters")
    cdef uint64_t mode = default_float_mode()
    with nogil:
        draw_parameters(chain.operations, chain.count, &rng.current, &shape, parameters)
        for channel in range(shape.channels):
            for row in range(shape.height):
                run_row(
                    chain.operations, chain.count, parameters, &shape, channel, row, read, write
                )
                read += shape.width
                write += shape.width
    restore_float_mode(mode)
    free(parameters)
    return 0


cdef void draw_parameters(
    const Operation *operations, int count, uint64_t *state, const ImageShape *shape,
    char *parameters
) noexcept nogil:
    """Draw every operation's parameters, in order, each into its part of `parameters`."""
    cdef int k
    for k in range(count):
        operations[k].draw(operations[k].settings, state, shape, parameters)
        parameters += aligned_size(operations[k].parameter_bytes)


cdef void run_image(
    const Operation *operations, int count, uint64_t *state, char *parameters,
    const ImageShape *shape, float *image, float *scratch
) noexcept nogil:
    """Draw for the operations and run them, one after another over a whole image, in place."""
    cdef const Operation *operation
    cdef int k
    cdef int64_t channel, row
    cdef float *pixels
    for k in range(count):
        operation = &operations[k]
        operation.draw(operation.settings, state, shape, parameters)
        if operation.apply_row == NULL:
            operation.apply_image(operation.settings, parameters, shape, image, scratch)
            continue
        for channel in range(shape.channels):
            for row in range(shape.height):
                pixels = image + (channel * shape.height + row) * shape.width
                operation.apply_row(
                    operation.settings, parameters, shape, channel, row, pixels, pixels
                )


cdef Range range_of(name, bounds) except *:
    """The width was subtracted in float64 and is rounded once."""
    cdef Range checked
    with DefaultFloatMode():    # whatever the thread that makes the object was set to
        low, width = check_range(name, bounds)
    checked.low, checked.width = to_single(low), to_single(width)
    return checked


cdef IntegerRange integer_range_of(tuple bounds):
    cdef IntegerRange checked
    checked.low = bounds[0]
    checked.count = bounds[1] - bounds[0] + 1
    return checked

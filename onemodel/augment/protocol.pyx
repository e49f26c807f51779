"""The runner of native augmentations: one image, or row by row inside the batch's one pass.

The protocol stands in operations.pxd; the augmentations in pointwise.pyx and spatial.pyx.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from onemodel._common.arguments import check_probability, check_integer_pair, check_number, check_pair, check_range
from onemodel._memory.arrays cimport CONTIGUOUS, WRITABLE, Array, array_of
from onemodel._random.rng cimport SampleRng

__all__ = ["NativeAugmentation", "Chain"]


cdef class NativeAugmentation:
    """What native augmentations share; see protocol.pxd for how to write one.

    ``augmentation(rng, image)`` edits a C-contiguous, writable float32 array [C, H, W] in place
    and returns None. An augmentation never changes: its attributes are read-only, its repr shows
    every argument exactly, it can be pickled and used by several threads at once.
    """

    def __call__(self, SampleRng rng not None, image):
        """Edit ``image`` in place with draws from ``rng``.

        Raises:
            TypeError, ValueError: if the image is not a writable, C-contiguous float32 [C, H, W]
                with at least one pixel.
        """
        cdef Array pixels
        writable_pixels("image", image, &pixels)
        check_operation(self)
        edit_in_place(&self.operation, 1, self.operation.parameter_bytes, rng, &pixels)


cdef int forbid_reinit(const void *made) except -1:
    """Refuse a second __init__: a chain or a running pass may hold what the first one made."""
    if made != NULL:
        raise TypeError("augmentations and chains are made once; make another")
    return 0


cdef class Chain:
    """Native augmentations in order, ready to run without the GIL.

    ``chain(rng, image)`` edits an image in place; ``chain(rng, image, out)`` leaves it as it
    is and writes what it becomes to ``out``, in one pass where every part edits rows. Both make
    the draws and the bytes of the parts called one after another.

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

    @cython.embedsignature.format("c")
    def __init__(self, parts):
        forbid_reinit(self.operations)
        self.parts = tuple(parts)
        self.by_rows = True
        self.operations = <Operation *>malloc((len(self.parts) + 1) * sizeof(Operation))
        if self.operations == NULL:
            raise MemoryError(f"no memory for {len(self.parts)} operations")
        for part in self.parts:
            if not isinstance(part, NativeAugmentation):
                raise TypeError(f"parts must be native augmentations, got {part!r}")
            check_operation(part)
            self.operations[self.count] = (<NativeAugmentation>part).operation
            if self.operations[self.count].edit_row == NULL:
                self.by_rows = False
            self.parameter_bytes += padded(self.operations[self.count].parameter_bytes)
            self.count += 1

    def __dealloc__(self):
        free(self.operations)

    def __call__(self, SampleRng rng not None, image, out=None):
        """Edit ``image`` in place, or write what it becomes to ``out``.

        Args:
            rng: the generator that every part draws from, in order.
            image: C-contiguous float32 [C, H, W] with at least one pixel.
            out: None, or an array like ``image`` that shares no memory with it.

        Raises:
            TypeError, ValueError: if an array is not as described.
        """
        cdef Array source, target
        if out is None:
            writable_pixels("image", image, &target)
        else:
            writable_pixels("out", out, &target)
            if image is None:
                raise TypeError("image must be a float32 array [C, H, W], got None")
            try:
                array_of(image, b"f", 3, CONTIGUOUS, &source)
            except (TypeError, ValueError) as error:
                raise type(error)(
                    f"image must be a C-contiguous float32 array [C, H, W]: {error}"
                ) from None
            if (
                source.shape[0] != target.shape[0]
                or source.shape[1] != target.shape[1]
                or source.shape[2] != target.shape[2]
            ):
                raise ValueError(f"out must have the image's shape {image.shape}, got {out.shape}")
            if (
                <const float *>source.data < <const float *>target.data + target.size
                and <const float *>target.data < <const float *>source.data + source.size
            ):
                raise ValueError("out must share no memory with image")
            if self.by_rows and self.count:
                edit_rows(self, rng, &source, &target)
                return
            memcpy(target.data, source.data, source.size * sizeof(float))
        if self.count:
            edit_in_place(self.operations, self.count, self.parameter_bytes, rng, &target)

    def __repr__(self):
        return f"Chain([{', '.join(map(repr, self.parts))}])"

    def __reduce__(self):
        return Chain, (self.parts,)


cdef int writable_pixels(name, image, Array *pixels) except -1:
    if image is None:
        raise TypeError(f"{name} must be a float32 array [C, H, W], got None")
    try:
        array_of(image, b"f", 3, WRITABLE, pixels)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} must be a writable, C-contiguous float32 array [C, H, W]: {error}"
        ) from None
    if pixels.size == 0:
        raise ValueError(f"{name} must have pixels, got shape {image.shape}")
    return 0


cdef int check_operation(NativeAugmentation part) except -1:
    """Stop before a call through NULL: a subclass may have left __init__ out."""
    if part.operation.draw == NULL or (part.operation.edit_row == NULL and part.operation.edit_image == NULL):
        raise TypeError(f"{type(part).__name__} was not initialised: its __init__ must run")
    return 0


cdef ImageShape shape_of(const Array *pixels) noexcept:
    cdef ImageShape shape
    shape.channels, shape.height, shape.width = pixels.shape[0], pixels.shape[1], pixels.shape[2]
    return shape


cdef int edit_in_place(
    const Operation *operations, int count, int64_t parameter_bytes, SampleRng rng, const Array *pixels
) except -1:
    cdef ImageShape shape = shape_of(pixels)
    cdef size_t scratch_bytes = 1
    cdef int k
    for k in range(count):
        if operations[k].edit_row == NULL:
            scratch_bytes = pixels.size * sizeof(float)
    cdef char *parameters = <char *>malloc(parameter_bytes + 8)
    cdef float *scratch = <float *>malloc(scratch_bytes)
    if parameters == NULL or scratch == NULL:
        free(parameters)
        free(scratch)
        raise MemoryError(f"no memory to edit an image of {pixels.size * sizeof(float)} bytes")
    with nogil:
        draw_parameters(operations, count, &rng.current, &shape, parameters)
        edit_image(operations, count, parameters, &shape, <float *>pixels.data, scratch)
    free(parameters)
    free(scratch)
    return 0


cdef int edit_rows(
    Chain chain, SampleRng rng, const Array *source, const Array *target
) except -1:
    cdef ImageShape shape = shape_of(source)
    cdef int64_t channel, row
    cdef const float *read = <const float *>source.data
    cdef float *write = <float *>target.data
    cdef char *parameters = <char *>malloc(chain.parameter_bytes + 8)
    if parameters == NULL:
        raise MemoryError(f"no memory for {chain.parameter_bytes} bytes of parameters")
    with nogil:
        draw_parameters(chain.operations, chain.count, &rng.current, &shape, parameters)
        for channel in range(shape.channels):
            for row in range(shape.height):
                edit_row(
                    chain.operations, chain.count, parameters, &shape, channel, row, read, write
                )
                read += shape.width
                write += shape.width
    free(parameters)
    return 0


cdef void draw_parameters(
    const Operation *operations, int count, uint64_t *state, const ImageShape *shape, char *parameters
) noexcept nogil:
    """Draw every operation's parameters, in order, each into its part of `parameters`."""
    cdef int k
    for k in range(count):
        operations[k].draw(operations[k].settings, state, shape, parameters)
        parameters += padded(operations[k].parameter_bytes)


cdef void edit_image(
    const Operation *operations, int count, const char *parameters, const ImageShape *shape,
    float *image, float *scratch
) noexcept nogil:
    """Run the operations one after another over a whole image, in place."""
    cdef int k
    cdef int64_t channel, row
    cdef float *pixels
    for k in range(count):
        if operations[k].edit_row == NULL:
            operations[k].edit_image(operations[k].settings, parameters, shape, image, scratch)
        else:
            for channel in range(shape.channels):
                for row in range(shape.height):
                    pixels = image + (channel * shape.height + row) * shape.width
                    operations[k].edit_row(
                        operations[k].settings, parameters, shape, channel, row, pixels, pixels
                    )
        parameters += padded(operations[k].parameter_bytes)


cdef void draw_applied(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil:
    (<int64_t *>parameters)[0] = draw_chance((<const double *>settings)[0], state)


cdef double number_of(name, value) except? -1:
    return check_number(name, value)


cdef double chance_of(name, value) except? -1:
    return check_probability(name, value)


cdef tuple pair_of(name, bounds):
    return check_pair(name, bounds)


cdef Span span_of(name, bounds) except *:
    """The width was subtracted in float64 and is rounded once."""
    cdef Span checked
    low, width = check_range(name, bounds)
    checked.low = <float><double>low
    checked.width = <float><double>width
    return checked


cdef tuple integer_pair_of(name, bounds, low, high):
    return check_integer_pair(name, bounds, low, high)


cdef IntegerSpan integer_span_of(tuple bounds):
    cdef IntegerSpan checked
    checked.low = bounds[0]
    checked.count = bounds[1] - bounds[0] + 1
    return checked

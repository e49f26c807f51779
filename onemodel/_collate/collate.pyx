"""Make a padded batch: gather, convert, augment and pad in one pass without the GIL.

Source: docs/specification.md, section "Collation". `collate` is the whole pass for native
augmentations. `collate_each` is the plain route, in which a Python callable edits a contiguous
copy of each image; both give the same bytes.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from onemodel._collate.errors import augment_error
from onemodel._memory.arrays cimport WRITABLE, Array, array_of
from onemodel._memory.pool cimport Block, BufferPool, memory, exceeds_cache
from onemodel._random.rng cimport AUGMENTATION_STREAM, SampleRng, derive_prefix, derive_suffix
from onemodel.datasets.sample cimport ImageSource
from onemodel._collate.inputs cimport Slot, CollateInputs
from onemodel.augment.protocol cimport (
    ImageShape, Chain, Operation, draw_parameters, edit_image, edit_row,
)
from onemodel._simd.dispatch cimport Rows, store_fence, table

__all__ = ["collate", "collate_each"]

FLOAT32 = np.dtype(np.float32)
INT32 = np.dtype(np.int32)

cdef const float *whole_row(
    CollateInputs inputs, const ImageSource *image, int64_t channel, int64_t row
) noexcept nogil:
    """The row in place, if it lies there as contiguous floats; else NULL."""
    if inputs.bytes or image.column_stride != sizeof(float):
        return NULL
    return <const float *>(
        image.pixels + channel * image.plane_stride + row * image.row_stride
    )


cdef void load_row(
    CollateInputs inputs, const ImageSource *image, int64_t channel, int64_t row, float *target
) noexcept nogil:
    """Bring one row of `width` floats to `target`, converted if the pixels are bytes."""
    cdef const char *source = (
        image.pixels + channel * image.plane_stride + row * image.row_stride
    )
    cdef int64_t k
    if inputs.bytes:
        table.convert(
            target, <const uint8_t *>source, image.width, inputs.scale[channel],
            inputs.shift[channel],
        )
    elif image.column_stride == sizeof(float):
        memcpy(target, source, image.width * sizeof(float))
    else:
        for k in range(image.width):
            target[k] = (<const float *>(source + k * image.column_stride))[0]


cdef void load_rows(CollateInputs inputs, const ImageSource *image, float *target) noexcept nogil:
    """Bring a whole image to `target` as a contiguous [C, H, W]."""
    cdef int64_t channel, row
    for channel in range(inputs.channels):
        for row in range(inputs.height):
            load_row(inputs, image, channel, row, target)
            target += image.width


# What making one image needs; the buffers are reused from slot to slot.
ctypedef struct Work:
    const Operation *operations
    int count                   # of operations
    bint by_rows
    bint non_temporal
    float pad
    int64_t padded_width
    char *parameters
    float *image                # [C, H, W] where an operation needs whole images
    float *scratch
    float *buffer               # a row on its way to the batch


cdef void make_row(
    CollateInputs inputs, const Work *work, const ImageSource *image, const ImageShape *shape,
    int64_t channel, int64_t row, float *target
) noexcept nogil:
    """Write one edited row, without its padding, to `target`."""
    cdef const float *source
    if not work.by_rows:
        source = work.image + (channel * shape.height + row) * shape.width
        memcpy(target, source, shape.width * sizeof(float))
        return
    source = whole_row(inputs, image, channel, row) if work.count > 0 else NULL
    if source == NULL:
        load_row(inputs, image, channel, row, target)
        source = target
    edit_row(work.operations, work.count, work.parameters, shape, channel, row, source, target)


cdef void store_image(
    CollateInputs inputs, const Work *work, const ImageSource *image, const ImageShape *shape,
    Rows *rows
) noexcept nogil:
    """Write one slot by rows: a channel at a time where one loop takes it from the source to
    the batch, else each row by way of a buffer that stays in the first cache.
    """
    cdef int64_t channel, row
    cdef int64_t size = 1 if inputs.bytes else sizeof(float)
    cdef bint directly = work.by_rows and image.column_stride == size and (
        work.count == 0 or (work.count == 1 and work.operations[0].store_rows != NULL)
    )
    cdef const char *ahead = rows.ahead
    rows.count = shape.height if directly else 1
    rows.bytes = directly and inputs.bytes
    for channel in range(shape.channels):
        rows.ahead = ahead + channel * shape.height * rows.ahead_stride
        if directly:
            rows.source = image.pixels + channel * image.plane_stride
            rows.stride = image.row_stride
            if inputs.bytes:
                rows.scale, rows.shift = inputs.scale[channel], inputs.shift[channel]
            if work.count == 0:
                table.store_rows(rows)
            else:
                work.operations[0].store_rows(work.operations[0].settings, work.parameters, rows)
            rows.target += shape.height * rows.padded
            continue
        rows.source = work.buffer
        for row in range(shape.height):
            make_row(inputs, work, image, shape, channel, row, work.buffer)
            table.store_rows(rows)
            rows.ahead += rows.ahead_stride
            rows.target += rows.padded


cdef inline void pad_row(float *row, int64_t width, int64_t padded, float pad) noexcept nogil:
    cdef int64_t k
    for k in range(width, padded):
        row[k] = pad


cdef void make_image(
    CollateInputs inputs, const Work *work, const Slot *slot, uint64_t state, float *target
) noexcept nogil:
    """Write one slot of the batch, [C, H, padded_width] from `target` on.

    Images lie anywhere, so the processor can't guess the next one: its rows are asked for while
    this one's are made.
    """
    cdef const ImageSource *image = &slot.image
    cdef const ImageSource *following = &slot[1].image      # of width 0 behind the last
    cdef int64_t padded_width = work.padded_width
    cdef ImageShape shape
    cdef Rows rows
    cdef int64_t channel, row
    shape.channels, shape.height, shape.width = inputs.channels, inputs.height, image.width
    draw_parameters(work.operations, work.count, &state, &shape, work.parameters)
    if not work.by_rows:
        load_rows(inputs, image, work.image)
        edit_image(work.operations, work.count, work.parameters, &shape, work.image, work.scratch)
    if padded_width % 4 == 0:
        rows.width, rows.padded, rows.pad, rows.target = (
            shape.width, padded_width, work.pad, target
        )
        rows.stride, rows.scale, rows.shift = 0, 0, 0
        rows.non_temporal = work.non_temporal
        rows.ahead, rows.ahead_stride = following.pixels, following.row_stride
        rows.ahead_size = following.width * following.column_stride
        store_image(inputs, work, image, &shape, &rows)
        return
    for channel in range(shape.channels):
        for row in range(shape.height):
            make_row(inputs, work, image, &shape, channel, row, target)
            pad_row(target, shape.width, padded_width, work.pad)
            target += padded_width


cdef void store_integers(CollateInputs inputs, int32_t *target) noexcept nogil:
    """Write widths, target lengths, labels and indices, `count` each, then the targets."""
    cdef int64_t slot, count = inputs.count
    cdef int64_t place = 4 * count
    cdef const Slot *one
    for slot in range(count):
        one = &inputs.slots[slot]
        target[slot] = <int32_t>one.image.width
        target[count + slot] = <int32_t>one.target_length
        target[2 * count + slot] = one.label
        target[3 * count + slot] = one.index
        if one.target_length > 0:
            memcpy(target + place, one.target, one.target_length * sizeof(int32_t))
            place += one.target_length


cdef class Output:
    """The arrays of a batch, rented for a pass to fill, and where their memory lies."""
    cdef object images              # float32 [count, C, H, padded width]
    cdef object integers            # int32: see store_integers
    cdef float *pixels
    cdef int32_t *numbers
    cdef int64_t image_floats
    cdef bint non_temporal

    @staticmethod
    cdef Output of(CollateInputs inputs, BufferPool pool, int64_t padded_width):
        cdef Output output = Output.__new__(Output)
        cdef Array found
        if padded_width < inputs.widest:
            raise ValueError(
                f"padded_width must be at least {inputs.widest}, got {padded_width}"
            )
        output.integers = pool.allocate((4 * inputs.count + inputs.symbols,), INT32)
        array_of(output.integers, b"i", 1, WRITABLE, &found)
        output.numbers = <int32_t *>found.data
        shape = (inputs.count, inputs.channels, inputs.height, padded_width)
        output.images = pool.allocate(shape, FLOAT32)
        array_of(output.images, b"f", 4, WRITABLE, &found)
        output.pixels = <float *>found.data
        output.image_floats = inputs.channels * inputs.height * padded_width
        output.non_temporal = exceeds_cache(pool)
        return output


def collate(
    CollateInputs inputs not None, BufferPool pool not None, int64_t padded_width, float pad_value,
    Chain chain not None, uint64_t seed, uint64_t epoch, uint64_t step, uint64_t first_slot,
):
    """Make every slot of ``inputs``: gathered, converted, augmented, padded.

    Args:
        padded_width: columns of the batch's images, at least the widest source's.
        chain: native augmentations; slot j's draw from
            ``derive(seed, epoch, step, first_slot + j, 1)``.

    Returns:
        (images, integers) in memory of the pool: float32 [count, C, H, padded_width], and int32
        with widths, target lengths, labels, indices [count each], then all targets.

    Raises:
        ValueError: if padded_width is too small, or the batch too large for this platform.
    """
    cdef Output output = Output.of(inputs, pool, padded_width)
    cdef Work work
    cdef int64_t slot
    cdef int64_t widest = inputs.channels * inputs.height * inputs.widest
    cdef uint64_t prefix
    if inputs.count == 0:
        return output.images, output.integers
    work.operations, work.count, work.by_rows = chain.operations, chain.count, chain.by_rows
    work.pad = pad_value
    work.padded_width = padded_width
    work.non_temporal = output.non_temporal
    work.parameters = <char *>malloc(chain.parameter_bytes + 8)
    work.image = <float *>malloc(0 if chain.by_rows else widest * sizeof(float))
    work.scratch = <float *>malloc(0 if chain.by_rows else widest * sizeof(float))
    work.buffer = <float *>malloc(padded_width * sizeof(float))
    try:
        if work.parameters == NULL or work.buffer == NULL or (
            not work.by_rows and (work.image == NULL or work.scratch == NULL)
        ):
            raise MemoryError(f"no memory for images of {widest} pixels")
        with nogil:
            store_integers(inputs, output.numbers)
            prefix = derive_prefix(seed, epoch, step)
            for slot in range(inputs.count):
                make_image(
                    inputs, &work, &inputs.slots[slot],
                    derive_suffix(prefix, first_slot + <uint64_t>slot, AUGMENTATION_STREAM),
                    output.pixels + slot * output.image_floats,
                )
            store_fence()
    finally:
        free(work.parameters)
        free(work.image)
        free(work.scratch)
        free(work.buffer)
    return output.images, output.integers


def collate_each(
    CollateInputs inputs not None, BufferPool pool not None, int64_t padded_width, float pad_value,
    augment, uint64_t seed, uint64_t epoch, uint64_t step, uint64_t first_slot,
):
    """Make what ``collate`` makes, by the plain route: copy, edit, copy to the batch.

    Args:
        augment: ``augment(rng, image)`` edits a contiguous float32 [C, H, W] in place.

    Raises:
        TypeError, ValueError: if augment returns another array or changes the shape.
        whatever augment raises, with a note of the slot and the dataset index.
    """
    cdef Output output = Output.of(inputs, pool, padded_width)
    cdef int64_t slot, size
    cdef uint64_t prefix = derive_prefix(seed, epoch, step)
    cdef uint64_t state
    cdef Block block
    cdef Rows rows
    cdef float *place
    store_integers(inputs, output.numbers)
    for slot in range(inputs.count):
        shape = (inputs.channels, inputs.height, inputs.slots[slot].image.width)
        size = shape[0] * shape[1] * shape[2]
        block = pool.take(size * <int64_t>sizeof(float))
        place = <float *>memory(block)
        scratch = np.ndarray(shape, FLOAT32, block)
        load_rows(inputs, &inputs.slots[slot].image, place)
        state = derive_suffix(prefix, first_slot + <uint64_t>slot, AUGMENTATION_STREAM)
        try:
            result = augment(SampleRng.start(state), scratch)
        except BaseException as error:
            error.add_note(
                f"slot {first_slot + slot}, dataset index {inputs.slots[slot].index}"
            )
            raise
        if (
            scratch.shape != shape or scratch.dtype is not FLOAT32
            or (result is not None and result is not scratch)
        ):
            raise augment_error(
                augment, result, scratch, shape, first_slot + slot, inputs.slots[slot].index
            )
        rows.source, rows.stride, rows.bytes = place, shape[2] * sizeof(float), False
        rows.scale, rows.shift = 0, 0
        rows.width, rows.count = shape[2], shape[0] * shape[1]
        rows.target = output.pixels + slot * output.image_floats
        rows.padded, rows.pad, rows.non_temporal = padded_width, pad_value, output.non_temporal
        rows.ahead, rows.ahead_stride, rows.ahead_size = NULL, 0, 0
        store_any_rows(&rows)
    store_fence()
    return output.images, output.integers


cdef void store_any_rows(const Rows *rows) noexcept nogil:
    """store_rows, also for padded widths that are no multiple of four."""
    cdef int64_t _row
    cdef float *target = rows.target
    cdef const float *source = <const float *>rows.source
    if rows.padded % 4 == 0:
        table.store_rows(rows)
        return
    for _row in range(rows.count):
        memcpy(target, source, rows.width * sizeof(float))
        pad_row(target, rows.width, rows.padded, rows.pad)
        target += rows.padded
        source += rows.width

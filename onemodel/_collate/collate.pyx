"""Make a padded batch: gather, convert, augment and pad in one pass without the GIL.

Source: docs/specification.md, section "Collation". `collate` is the whole pass for native
augmentations. `collate_each` is the reference path, in which a Python callable edits a contiguous
copy of each image; both give the same bytes.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from onemodel._collate.errors import augment_error
from onemodel._collate.inputs cimport CollateInputs, Inputs, Slot
from onemodel._batch.notes import note_slot
from onemodel._memory.pool cimport Block, BufferPool, exceeds_cache, memory
from onemodel._random.rng cimport SampleRng, derive_prefix, derive_suffix
from onemodel._random.streams cimport AUGMENTATION_STREAM
from onemodel._simd.dispatch cimport Rows, loops, store_fence
from onemodel._simd.float_mode cimport default_float_mode, restore_float_mode
from onemodel.augment.protocol cimport (
    Chain, ImageShape, Operation, draw_parameters, run_image, run_row,
)
from onemodel.datasets.sample cimport ImageSource

__all__ = ["collate", "collate_each"]

FLOAT32 = np.dtype(np.float32)
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)


cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX


cdef const float *whole_row(
    const Inputs *inputs, const ImageSource *image, int64_t channel, int64_t row
) noexcept nogil:
    """The row in place, if it lies there as contiguous floats; else NULL."""
    if inputs.bytes or image.column_stride != sizeof(float):
        return NULL
    return <const float *>(
        image.pixels + channel * image.plane_stride + row * image.row_stride
    )


cdef void load_row(
    const Inputs *inputs, const ImageSource *image, int64_t channel, int64_t row, float *target
) noexcept nogil:
    """Bring one row of `width` floats to `target`, converted if the pixels are bytes."""
    cdef const char *source = (
        image.pixels + channel * image.plane_stride + row * image.row_stride
    )
    cdef int64_t k
    if inputs.bytes:
        loops.convert(
            target, <const uint8_t *>source, image.width, inputs.scale[channel],
            inputs.shift[channel],
        )
    elif image.column_stride == sizeof(float):
        memcpy(target, source, image.width * sizeof(float))
    else:
        for k in range(image.width):
            target[k] = (<const float *>(source + k * image.column_stride))[0]


cdef void load_rows(const Inputs *inputs, const ImageSource *image, float *target) noexcept nogil:
    """Bring a whole image to `target` as a contiguous [C, H, W]."""
    cdef int64_t channel, row
    for channel in range(inputs.channels):
        for row in range(inputs.height):
            load_row(inputs, image, channel, row, target)
            target += image.width


# What making one image needs; the buffers are reused from slot to slot.
ctypedef struct Work:
    CollateSettings settings
    bint non_temporal
    int64_t padded_width
    char *parameters
    float *image                # [C, H, W] where an operation needs whole images
    float *scratch
    float *buffer               # a row on its way to the batch


cdef CollateSettings settings_of(Chain chain, float pad) noexcept:
    cdef CollateSettings settings
    settings.operations, settings.count = chain.operations, chain.count
    settings.parameter_bytes, settings.by_rows = chain.parameter_bytes, chain.by_rows
    settings.pad = pad
    return settings


cdef Rows rows_of(
    const Work *work, const ImageShape *shape, float *target, const ImageSource *following
) noexcept nogil:
    """What a row loop reads, but for its source: the rows of an image on their way to `target`.

    Images lie anywhere, so the processor can't guess the next one: a hint for its rows is given
    while this one's are made.
    """
    cdef Rows rows
    rows.source, rows.stride, rows.bytes, rows.scale, rows.shift = NULL, 0, False, 0, 0
    rows.width, rows.count = shape.width, 1
    rows.target, rows.padded, rows.pad = target, work.padded_width, work.settings.pad
    rows.non_temporal = work.non_temporal
    rows.next_source, rows.next_stride, rows.next_size = NULL, 0, 0
    if following != NULL:
        rows.next_source, rows.next_stride = following.pixels, following.row_stride
        rows.next_size = following.width * following.column_stride
    return rows


cdef void make_row(
    const Inputs *inputs, const Work *work, const ImageSource *image, const ImageShape *shape,
    int64_t channel, int64_t row, float *target
) noexcept nogil:
    """Write one edited row, without its padding, to `target`."""
    cdef const CollateSettings *settings = &work.settings
    cdef const float *source = NULL
    if settings.count > 0:
        source = whole_row(inputs, image, channel, row)
    if source == NULL:
        load_row(inputs, image, channel, row, target)
        source = target
    run_row(
        settings.operations, settings.count, work.parameters, shape, channel, row, source, target
    )


cdef void make_image(
    const Inputs *inputs, const Work *work, const Slot *slot, uint64_t state, float *target
) noexcept nogil:
    """Write one slot of the batch, [C, H, padded_width] from `target` on.

    A channel at a time where one loop takes it to the batch, from the source or from the edited
    image; else each row by way of a buffer that stays in L1.
    """
    cdef const ImageSource *image = &slot.image
    cdef const CollateSettings *settings = &work.settings
    cdef const Operation *operation = settings.operations
    cdef ImageShape shape
    cdef Rows rows
    cdef int64_t channel, row
    cdef int64_t size = 1 if inputs.bytes else sizeof(float)
    cdef bint directly = settings.by_rows and image.column_stride == size and (
        settings.count == 0 or (settings.count == 1 and operation.store_rows != NULL)
    )
    shape.channels, shape.height, shape.width = inputs.channels, inputs.height, image.width
    rows = rows_of(work, &shape, target, &slot[1].image)    # of width 0 behind the last slot
    cdef const char *following = rows.next_source
    rows.count = 1 if settings.by_rows and not directly else shape.height
    rows.bytes = directly and inputs.bytes
    if settings.by_rows:
        draw_parameters(operation, settings.count, &state, &shape, work.parameters)
    else:
        load_rows(inputs, image, work.image)
        run_image(
            operation, settings.count, &state, work.parameters, &shape, work.image, work.scratch
        )
        rows.stride = shape.width * <int64_t>sizeof(float)
    for channel in range(shape.channels):
        rows.next_source = following + channel * shape.height * rows.next_stride
        if directly:
            rows.source = image.pixels + channel * image.plane_stride
            rows.stride = image.row_stride
            if inputs.bytes:
                rows.scale, rows.shift = inputs.scale[channel], inputs.shift[channel]
            if settings.count == 0:
                loops.store_rows(&rows)
            else:
                operation.store_rows(operation.settings, work.parameters, &rows)
            rows.target += shape.height * rows.padded
            continue
        if not settings.by_rows:
            rows.source = work.image + channel * shape.height * shape.width
            loops.store_rows(&rows)
            rows.target += shape.height * rows.padded
            continue
        rows.source = work.buffer
        for row in range(shape.height):
            make_row(inputs, work, image, &shape, channel, row, work.buffer)
            loops.store_rows(&rows)
            rows.next_source += rows.next_stride
            rows.target += rows.padded


# The layout of the integers: labels first, which may have 64 bits; widths, target lengths and
# indices, `count` each; then the targets. These two functions and integer_bytes know it.

cdef void store_integers(
    const Inputs *inputs, const BatchShape *shape, int32_t *labels
) noexcept nogil:
    cdef int64_t slot, length, count = inputs.count
    cdef int32_t *widths = labels + shape.label_words * count
    cdef int32_t *targets = widths + 3 * count
    cdef const Slot *one
    for slot in range(count):
        one = &inputs.slots[slot]
        widths[slot] = <int32_t>one.image.width
        widths[count + slot] = <int32_t>one.target_length
        widths[2 * count + slot] = one.index
        if shape.label_words == 2:
            (<int64_t *>labels)[slot] = one.label
        else:
            labels[slot] = one.label
        length = one.target_length
        if length > 0:
            memcpy(targets, one.target, length * sizeof(int32_t))
        if shape.target_columns:
            memset(targets + length, 0, (shape.target_columns - length) * sizeof(int32_t))
            length = shape.target_columns
        targets += length


cdef dict batch_arrays(
    Block images, Block integers, int64_t count, int64_t channels, int64_t height,
    int64_t symbols, const BatchShape *shape
):
    cdef int64_t first = shape.label_words * count
    numbers = np.ndarray((first + 3 * count + symbols,), INT32, integers)
    labels = numbers[:first]
    targets = numbers[first + 3 * count:]
    if shape.label_words == 2:
        labels = labels.view(INT64)
    if shape.target_columns:
        targets = targets.reshape(count, shape.target_columns)
    return {
        "images": np.ndarray((count, channels, height, shape.padded_width), FLOAT32, images),
        "widths": numbers[first:first + count],
        "targets": targets,
        "target_lengths": numbers[first + count:first + 2 * count],
        "labels": labels,
        "indices": numbers[first + 2 * count:first + 3 * count],
    }


cdef bint collate_native(
    const Inputs *inputs, const CollateSettings *settings, const BatchShape *shape,
    bint non_temporal, uint64_t prefix, uint64_t first_slot, int32_t *integers, float *images
) noexcept nogil:
    cdef Work work
    cdef int64_t slot, padded_width = shape.padded_width
    cdef int64_t whole = inputs.channels * inputs.height * inputs.widest
    cdef int64_t image_floats = inputs.channels * inputs.height * padded_width
    cdef size_t image_size = 0 if settings.by_rows else whole * sizeof(float)
    work.settings = settings[0]
    work.padded_width, work.non_temporal = padded_width, non_temporal
    work.parameters = <char *>malloc(settings.parameter_bytes + 8)
    work.image = <float *>malloc(image_size + 8)
    work.scratch = <float *>malloc(image_size + 8)
    work.buffer = <float *>malloc(padded_width * sizeof(float) + 8)
    cdef bint there = (
        work.parameters != NULL and work.image != NULL and work.scratch != NULL
        and work.buffer != NULL
    )
    cdef uint64_t mode = default_float_mode()
    if there:
        store_integers(inputs, shape, integers)
        for slot in range(inputs.count):
            make_image(
                inputs, &work, &inputs.slots[slot],
                derive_suffix(prefix, first_slot + <uint64_t>slot, AUGMENTATION_STREAM),
                images + slot * image_floats,
            )
        store_fence()
    restore_float_mode(mode)
    free(work.parameters)
    free(work.image)
    free(work.scratch)
    free(work.buffer)
    return there


cdef tuple rent_blocks(const Inputs *inputs, BufferPool pool, const BatchShape *shape):
    """Return the blocks of images and integers."""
    if shape.padded_width < inputs.widest or 0 < shape.target_columns < inputs.longest:
        raise ValueError(
            f"layout must be at least ({inputs.widest}, {inputs.longest}), "
            f"got ({shape.padded_width}, {shape.target_columns})"
        )
    rows = inputs.count * inputs.channels * inputs.height
    numbers = inputs.count * <object>shape.target_columns
    check_bytes("images", rows * <object>shape.padded_width * 4)
    check_bytes("targets", numbers * 4)
    symbols = target_count(inputs, shape)
    integers = pool.allocate_block(integer_bytes(inputs.count, symbols, shape))
    return pool.allocate_block(image_bytes(inputs, shape.padded_width)), integers


cdef int check_bytes(name, size) except -1:
    if size > PY_SSIZE_T_MAX // 2:
        raise ValueError(
            f"a batch's {name} must have at most {PY_SSIZE_T_MAX // 2} bytes, got {size}"
        )
    return 0


def collate(
    CollateInputs inputs not None, BufferPool pool not None, tuple layout not None, float pad_value,
    Chain chain not None, key,
):
    """Make every slot of ``inputs``: gathered, converted, augmented, padded.

    Args:
        layout: pixel columns of the batch's images, at least the widest input's; columns of its
            padded targets, at least the longest's, or 0 to concatenate them; and how many int32
            words a label has, 1 or 2.
        chain: native augmentations; slot j's draw from
            ``derive(seed, epoch, step, first_slot + j, 1)``.
        key: the ``BatchKey``.

    Returns:
        The arrays by name, in memory of the pool: "images" float32 [count, C, H, pixel columns];
        "widths", "target_lengths", "labels", "indices" int32 [count]; "targets" int32 [sum] or
        [count, columns]. "labels" are int64 where they have 2 words.

    Raises:
        ValueError: if layout is too small, or the batch too large for this platform.
    """
    cdef const Inputs *given = &inputs.inputs
    cdef CollateSettings settings = settings_of(chain, pad_value)
    cdef BatchShape formed
    formed.padded_width, formed.target_columns, formed.label_words = layout
    cdef Block images, integers
    images, integers = rent_blocks(given, pool, &formed)
    cdef uint64_t prefix = derive_prefix(key.seed, key.epoch, key.step)
    cdef uint64_t first_slot = key.first_slot
    cdef bint there, non_temporal = exceeds_cache(pool)
    cdef int32_t *numbers = <int32_t *>memory(integers)
    cdef float *pixels = <float *>memory(images)
    with nogil:
        there = collate_native(
            given, &settings, &formed, non_temporal, prefix, first_slot, numbers, pixels
        )
    if not there:
        raise MemoryError(f"no memory for images of {given.widest} columns")
    return batch_arrays(
        images, integers, given.count, given.channels, given.height, target_count(given, &formed),
        &formed,
    )


def collate_each(
    CollateInputs inputs not None, BufferPool pool not None, tuple layout not None, float pad_value,
    augment, key,
):
    """Make what ``collate`` makes, by the reference path: copy, edit, copy to the batch.

    Args:
        augment: ``augment(rng, image)`` edits a contiguous float32 [C, H, W] in place.

    Raises:
        TypeError, ValueError: if augment returns another array or changes the shape.
        whatever augment raises, with a note of the slot and the dataset index.
    """
    cdef const Inputs *given = &inputs.inputs
    cdef BatchShape formed
    formed.padded_width, formed.target_columns, formed.label_words = layout
    cdef Block images, integers, block
    images, integers = rent_blocks(given, pool, &formed)
    cdef uint64_t prefix = derive_prefix(key.seed, key.epoch, key.step)
    cdef uint64_t first_slot = key.first_slot
    cdef uint64_t state
    cdef int64_t slot, size
    cdef int64_t image_floats = given.channels * given.height * formed.padded_width
    cdef Work work
    cdef Rows rows
    cdef ImageShape shape
    work.settings.pad, work.padded_width = pad_value, formed.padded_width
    work.non_temporal = exceeds_cache(pool)
    store_integers(given, &formed, <int32_t *>memory(integers))
    for slot in range(given.count):
        shape.channels, shape.height = given.channels, given.height
        shape.width = given.slots[slot].image.width
        size = shape.channels * shape.height * shape.width
        block = pool.allocate_block(size * <int64_t>sizeof(float))
        dimensions = (shape.channels, shape.height, shape.width)
        image = np.ndarray(dimensions, FLOAT32, block)
        load_rows(given, &given.slots[slot].image, <float *>memory(block))
        state = derive_suffix(prefix, first_slot + <uint64_t>slot, AUGMENTATION_STREAM)
        try:
            result = augment(SampleRng.start(state), image)
            if (
                image.shape != dimensions or image.dtype is not FLOAT32
                or not image.flags.c_contiguous
                or (result is not None and result is not image)
            ):
                raise augment_error(
                    augment, result, image, dimensions, first_slot + slot,
                    given.slots[slot].index,
                )
        except BaseException as error:
            note_slot(error, key, slot, given.slots[slot].index)
            raise
        rows = rows_of(
            &work, &shape, <float *>memory(images) + slot * image_floats, NULL
        )
        rows.source, rows.stride = memory(block), shape.width * sizeof(float)
        rows.count = shape.channels * shape.height
        loops.store_rows(&rows)
    store_fence()
    return batch_arrays(
        images, integers, given.count, given.channels, given.height, target_count(given, &formed),
        &formed,
    )

"""Make a padded batch: gather, convert, augment and pad in one pass without the GIL.

Source: docs/specification.md, section "Collation". `collate` is the whole pass for native
augmentations. `load_image` and `store_image` are the plain route's two halves, between which a
Python callable edits a contiguous copy; both routes give the same bytes.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from onemodel.rng cimport AUGMENTATION_STREAM, derive_prefix, derive_suffix
from onemodel.sample cimport ImageSource
from onemodel.sources cimport Slot, Sources
from onemodel.stages cimport ImageShape, Program, Stage, draw_stages, edit_image, edit_row
from onemodel.vector cimport stream_fence, table

cdef extern from "prefetch.h":
    void prefetch_row "onemodel_prefetch_row"(const char *row, int64_t size) noexcept nogil

__all__ = ["collate", "load_image", "store_image", "write_integers"]

cdef enum:
    # Rows are made in a buffer that stays in the first-level cache and leave it in streamed
    # whole cache lines.
    BUFFER_FLOATS = 2048


cdef const float *whole_row(
    Sources sources, const ImageSource *image, int64_t channel, int64_t row
) noexcept nogil:
    """The row in place, if it lies there as contiguous floats; else NULL."""
    if sources.bytes or image.column_stride != sizeof(float):
        return NULL
    return <const float *>(
        image.pixels + channel * image.plane_stride + row * image.row_stride
    )


cdef void load_row(
    Sources sources, const ImageSource *image, int64_t channel, int64_t row, float *target
) noexcept nogil:
    """Bring one row of `width` floats to `target`, converted if the pixels are bytes."""
    cdef const char *source = (
        image.pixels + channel * image.plane_stride + row * image.row_stride
    )
    cdef int64_t k
    if sources.bytes:
        table.convert(
            target, <const uint8_t *>source, image.width, sources.scale[channel],
            sources.shift[channel],
        )
    elif image.column_stride == sizeof(float):
        memcpy(target, source, image.width * sizeof(float))
    else:
        for k in range(image.width):
            target[k] = (<const float *>(source + k * image.column_stride))[0]


cdef void load_rows(Sources sources, const ImageSource *image, float *target) noexcept nogil:
    """Bring a whole image to `target` as a contiguous [C, H, W]."""
    cdef int64_t channel, row
    for channel in range(sources.channels):
        for row in range(sources.height):
            load_row(sources, image, channel, row, target)
            target += image.width


# What making one image needs; the buffers are reused from slot to slot.
ctypedef struct Work:
    const Stage *stages
    int count                   # of stages
    bint by_rows
    bint streamed
    float pad
    int64_t padded_width
    char *drawn
    float *image                # [C, H, W] where a stage needs whole images
    float *scratch
    float *buffer               # rows on their way to streamed stores


cdef void make_row(
    Sources sources, const Work *work, const Slot *slot, const ImageShape *shape,
    int64_t channel, int64_t row, float *target
) noexcept nogil:
    """Write one finished row, padding included, to `target`.

    Images lie anywhere, so the processor can't guess the next one: its row is asked for while
    this one is made.
    """
    cdef const ImageSource *image = &slot.image
    cdef const ImageSource *following = &slot[1].image      # of width 0 behind the last
    cdef const float *source = NULL
    cdef int64_t k
    prefetch_row(
        following.pixels + channel * following.plane_stride + row * following.row_stride,
        following.width * following.column_stride,
    )
    if not work.by_rows:
        memcpy(
            target, work.image + (channel * shape.height + row) * shape.width,
            shape.width * sizeof(float),
        )
    else:
        if work.count > 0:
            source = whole_row(sources, image, channel, row)
        if source == NULL:
            load_row(sources, image, channel, row, target)
            source = target
        edit_row(work.stages, work.count, work.drawn, shape, channel, row, source, target)
    for k in range(shape.width, work.padded_width):
        target[k] = work.pad


cdef void make_image(
    Sources sources, const Work *work, const Slot *slot, uint64_t state, float *target
) noexcept nogil:
    """Write one slot of the batch, [C, H, padded_width] from `target` on."""
    cdef const ImageSource *image = &slot.image
    cdef ImageShape shape
    cdef int64_t rows = sources.channels * sources.height
    cdef int64_t most, together, first, k
    cdef float *place
    shape.channels, shape.height, shape.width = sources.channels, sources.height, image.width
    draw_stages(work.stages, work.count, &state, &shape, work.drawn)
    if not work.by_rows:
        load_rows(sources, image, work.image)
        edit_image(work.stages, work.count, work.drawn, &shape, work.image, work.scratch)
    if not work.streamed:
        for k in range(rows):
            make_row(
                sources, work, slot, &shape, k // shape.height, k % shape.height,
                target + k * work.padded_width,
            )
        return
    most = max(1, BUFFER_FLOATS // work.padded_width)
    first = 0
    while first < rows:
        together = min(most, rows - first)
        place = work.buffer
        for k in range(first, first + together):
            make_row(
                sources, work, slot, &shape, k // shape.height, k % shape.height, place
            )
            place += work.padded_width
        table.stream(
            target + first * work.padded_width, work.buffer, together * work.padded_width
        )
        first += together


def collate(
    Sources sources not None, float[:, :, :, ::1] images not None, float pad_value,
    Program program not None, bint streamed, uint64_t seed, uint64_t epoch, uint64_t step,
    uint64_t first_slot,
):
    """Fill ``images`` with every slot of ``sources``: gathered, converted, augmented, padded.

    Args:
        images: float32 [count, C, H, padded width], all of it written.
        program: native augmentations; slot j's draw from
            ``derive(seed, epoch, step, first_slot + j, 1)``.
        streamed: write with stores that go around the caches.

    Raises:
        ValueError: if ``images`` has another shape.
    """
    cdef Work work
    cdef int64_t slot, pixels, widest, image_floats
    cdef uint64_t prefix
    check_images(sources, images)
    work.stages, work.count, work.by_rows = program.stages, program.count, program.by_rows
    work.pad = pad_value
    work.padded_width = images.shape[3]
    image_floats = images.shape[1] * images.shape[2] * images.shape[3]
    pixels = images.shape[0] * image_floats
    if pixels == 0:
        return
    work.streamed = streamed
    widest = sources.channels * sources.height * sources.widest
    work.drawn = <char *>malloc(program.drawn_bytes + 8)
    work.image = <float *>malloc(0 if program.by_rows else widest * sizeof(float))
    work.scratch = <float *>malloc(0 if program.by_rows else widest * sizeof(float))
    work.buffer = <float *>malloc(max(BUFFER_FLOATS, work.padded_width) * sizeof(float))
    try:
        if work.drawn == NULL or work.buffer == NULL or (
            not work.by_rows and (work.image == NULL or work.scratch == NULL)
        ):
            raise MemoryError(f"no memory for images of {widest} pixels")
        with nogil:
            prefix = derive_prefix(seed, epoch, step)
            for slot in range(sources.count):
                make_image(
                    sources, &work, &sources.slots[slot],
                    derive_suffix(prefix, first_slot + <uint64_t>slot, AUGMENTATION_STREAM),
                    &images[0, 0, 0, 0] + slot * image_floats,
                )
            stream_fence()
    finally:
        free(work.drawn)
        free(work.image)
        free(work.scratch)
        free(work.buffer)


def write_integers(Sources sources not None, int32_t[::1] integers not None):
    """Fill ``integers`` with widths, target lengths, labels, indices [count each], then targets.

    Raises:
        ValueError: if ``integers`` has not ``4 * count + symbols`` elements.
    """
    cdef int64_t slot, count = sources.count
    cdef int64_t place = 4 * count
    cdef const Slot *one
    if integers.shape[0] != place + sources.symbols:
        raise ValueError(
            f"integers must have {place + sources.symbols} elements, got {integers.shape[0]}"
        )
    with nogil:
        for slot in range(count):
            one = &sources.slots[slot]
            integers[slot] = <int32_t>one.image.width
            integers[count + slot] = <int32_t>one.target_length
            integers[2 * count + slot] = one.label
            integers[3 * count + slot] = one.index
            if one.target_length > 0:
                memcpy(&integers[place], one.target, one.target_length * sizeof(int32_t))
                place += one.target_length


def load_image(Sources sources not None, int64_t slot, float[:, :, ::1] image not None):
    """Copy the slot's image, converted to floats, into ``image`` [C, H, W]."""
    if not 0 <= slot < sources.count:
        raise IndexError(f"slot must be in [0, {sources.count}), got {slot}")
    if (
        image.shape[0] != sources.channels or image.shape[1] != sources.height
        or image.shape[2] != sources.slots[slot].image.width
    ):
        raise ValueError(f"image must have the shape of slot {slot}")
    with nogil:
        load_rows(sources, &sources.slots[slot].image, &image[0, 0, 0])


def store_image(
    float[:, :, :, ::1] images not None, int64_t slot, const float[:, :, ::1] image not None,
    float pad_value,
):
    """Copy ``image`` [C, H, W] to the left of ``images[slot]`` and pad its rows."""
    cdef int64_t rows, width, padded_width, row, k
    cdef float *target
    if not 0 <= slot < images.shape[0]:
        raise IndexError(f"slot must be in [0, {images.shape[0]}), got {slot}")
    if (
        image.shape[0] != images.shape[1] or image.shape[1] != images.shape[2]
        or image.shape[2] > images.shape[3]
    ):
        raise ValueError(f"image must fit in images[{slot}]")
    rows, width, padded_width = image.shape[0] * image.shape[1], image.shape[2], images.shape[3]
    if rows * width == 0:
        return
    with nogil:
        for row in range(rows):
            target = &images[slot, 0, 0, 0] + row * padded_width
            memcpy(target, &image[0, 0, 0] + row * width, width * sizeof(float))
            for k in range(width, padded_width):
                target[k] = pad_value


cdef int check_images(Sources sources, float[:, :, :, ::1] images) except -1:
    if (
        images.shape[0] != sources.count or images.shape[1] != sources.channels
        or images.shape[2] != sources.height or images.shape[3] < sources.widest
    ):
        raise ValueError(
            f"images must be [{sources.count}, {sources.channels}, {sources.height}, "
            f"at least {sources.widest}]"
        )
    return 0

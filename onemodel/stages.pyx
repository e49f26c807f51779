"""The runner of native augmentations: one image, or row by row inside the batch's one pass.

The protocol stands in stages.pxd; the augmentations in pointwise.pyx and spatial.pyx.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc

import math

from onemodel.rng cimport SampleRng

__all__ = ["NativeAugmentation", "Program"]


cdef class NativeAugmentation:
    """What native augmentations share; see stages.pxd for how to write one.

    ``augmentation(rng, image)`` edits a C-contiguous, writable float32 array [C, H, W] in place
    and returns None.
    """

    def __call__(self, SampleRng rng not None, image):
        """Edit ``image`` in place with draws from ``rng``.

        Raises:
            TypeError, ValueError: if the image is not a writable, C-contiguous float32 [C, H, W].
        """
        cdef float[:, :, ::1] pixels = image
        cdef ImageShape shape
        shape.channels, shape.height, shape.width = pixels.shape[0], pixels.shape[1], pixels.shape[2]
        cdef int64_t size = shape.channels * shape.height * shape.width
        if size == 0:
            raise ValueError(f"image must have pixels, got shape {image.shape}")
        cdef char *drawn = <char *>malloc(self.stage.drawn_bytes + 8)
        cdef float *scratch = <float *>malloc(size * sizeof(float))
        if drawn == NULL or scratch == NULL:
            free(drawn)
            free(scratch)
            raise MemoryError(f"no memory for an image of {size} pixels")
        with nogil:
            draw_stages(&self.stage, 1, &rng.current, &shape, drawn)
            edit_image(&self.stage, 1, drawn, &shape, &pixels[0, 0, 0], scratch)
        free(drawn)
        free(scratch)


cdef class Program:
    """Native augmentations in order, ready to run without the GIL.

    Args:
        parts: NativeAugmentation objects; the program keeps them alive.
    """

    def __init__(self, parts):
        self.parts = tuple(parts)
        self.by_rows = True
        self.stages = <Stage *>malloc((len(self.parts) + 1) * sizeof(Stage))
        if self.stages == NULL:
            raise MemoryError(f"no memory for {len(self.parts)} stages")
        for part in self.parts:
            if not isinstance(part, NativeAugmentation):
                raise TypeError(f"parts must be native augmentations, got {part!r}")
            self.stages[self.count] = (<NativeAugmentation>part).stage
            if self.stages[self.count].edit_row == NULL:
                self.by_rows = False
            self.drawn_bytes += padded(self.stages[self.count].drawn_bytes)
            self.count += 1

    def __dealloc__(self):
        free(self.stages)


cdef inline int64_t padded(int64_t size) noexcept nogil:
    return (size + 7) & ~<int64_t>7


cdef void draw_stages(
    const Stage *stages, int count, uint64_t *state, const ImageShape *shape, char *drawn
) noexcept nogil:
    """Draw every stage's parameters, in order, each into its part of `drawn`."""
    cdef int k
    for k in range(count):
        stages[k].draw(stages[k].settings, state, shape, drawn)
        drawn += padded(stages[k].drawn_bytes)


cdef void edit_row(
    const Stage *stages, int count, const char *drawn, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    """Run at least one stage of rows: the first reads `source`, the others edit `target`."""
    cdef int k
    for k in range(count):
        stages[k].edit_row(stages[k].settings, drawn, shape, channel, row, source, target)
        source = target
        drawn += padded(stages[k].drawn_bytes)


cdef void edit_image(
    const Stage *stages, int count, const char *drawn, const ImageShape *shape,
    float *image, float *scratch
) noexcept nogil:
    """Run the stages one after another over a whole image, in place."""
    cdef int k
    cdef int64_t channel, row
    cdef float *pixels
    for k in range(count):
        if stages[k].edit_row == NULL:
            stages[k].edit_image(stages[k].settings, drawn, shape, image, scratch)
        else:
            for channel in range(shape.channels):
                for row in range(shape.height):
                    pixels = image + (channel * shape.height + row) * shape.width
                    stages[k].edit_row(
                        stages[k].settings, drawn, shape, channel, row, pixels, pixels
                    )
        drawn += padded(stages[k].drawn_bytes)


cdef Span span_of(name, bounds) except *:
    """Check a (low, high) pair: the span is subtracted in float64 and rounded once."""
    cdef Span span
    try:
        low, high = bounds
        low, high = float(low), float(high)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a pair (low, high), got {bounds!r}") from None
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"{name} must be finite with low <= high, got ({low}, {high})")
    span.low = <float>low
    span.width = <float>(<double>high - <double>low)
    if not (math.isfinite(span.low) and math.isfinite(span.width)):
        raise ValueError(f"{name} must fit in float32, got ({low}, {high})")
    return span

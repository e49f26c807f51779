"""Augmentations whose every pixel depends on itself alone.

Source: docs/specification.md, section "Augmentations"; each class lists its draws in order.
"""

from libc.stdint cimport int64_t, uint64_t

from onemodel.stages cimport ImageShape, NativeAugmentation, Span, draw_span, span_of
from onemodel.vector cimport table

__all__ = ["GainOffset"]


ctypedef struct GainOffsetSettings:
    Span gain
    Span offset


ctypedef struct GainOffsetDrawn:
    float gain
    float offset


cdef void gain_offset_draw(
    const void *settings, uint64_t *state, const ImageShape *shape, void *drawn
) noexcept nogil:
    cdef const GainOffsetSettings *spans = <const GainOffsetSettings *>settings
    cdef GainOffsetDrawn *values = <GainOffsetDrawn *>drawn
    values.gain = draw_span(&spans.gain, state)
    values.offset = draw_span(&spans.offset, state)


cdef void gain_offset_row(
    const void *settings, const void *drawn, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    cdef const GainOffsetDrawn *values = <const GainOffsetDrawn *>drawn
    table.gain_offset(target, source, shape.width, values.gain, values.offset)


cdef class GainOffset(NativeAugmentation):
    """``x * gain + offset``, one gain and one offset for an image, each operation in float32.

    Draws: gain = ``low + (high - low) * next_single()``, then offset likewise.

    Args:
        gain: (low, high), finite, low <= high.
        offset: (low, high), likewise.
    """

    cdef GainOffsetSettings settings
    cdef readonly tuple gain
    cdef readonly tuple offset

    def __init__(self, gain=(0.8, 1.2), offset=(-0.1, 0.1)):
        self.settings.gain = span_of("gain", gain)
        self.settings.offset = span_of("offset", offset)
        self.gain, self.offset = tuple(gain), tuple(offset)
        self.stage.settings = &self.settings
        self.stage.drawn_bytes = sizeof(GainOffsetDrawn)
        self.stage.draw = gain_offset_draw
        self.stage.edit_row = gain_offset_row

    def __repr__(self):
        return f"GainOffset(gain={self.gain}, offset={self.offset})"

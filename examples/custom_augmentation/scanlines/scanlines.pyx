"""Every n-th row darker, as a worn scanner draws them: a native augmentation of one's own."""

from libc.stdint cimport int64_t, uint64_t

from onemodel.augment.protocol cimport (
    ImageShape,
    IntegerSpan,
    NativeAugmentation,
    Span,
    copy_row,
    draw_integer,
    draw_span,
    integer_pair_of,
    integer_span_of,
    pair_of,
    span_of,
)


# What never changes: a field of the object, so that it lives as long as the object does.
ctypedef struct Settings:
    IntegerSpan period
    Span gain


# What is drawn for one image.
ctypedef struct Drawn:
    int64_t period
    int64_t phase
    float gain


cdef void draw(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil:
    cdef const Settings *scanlines = <const Settings *>settings
    cdef Drawn *values = <Drawn *>parameters
    cdef IntegerSpan phases
    values.period = draw_integer(&scanlines.period, state)
    phases.low, phases.count = 0, <uint64_t>values.period
    values.phase = draw_integer(&phases, state)
    values.gain = draw_span(&scanlines.gain, state)


cdef void edit_row(
    const void *settings, const void *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    cdef const Drawn *values = <const Drawn *>parameters
    cdef float gain = values.gain
    cdef int64_t column
    if row % values.period == values.phase:
        for column in range(shape.width):
            target[column] = source[column] * gain
    else:
        copy_row(target, source, shape.width)


cdef class Scanlines(NativeAugmentation):
    """Multiply every n-th row by a gain.

    Draws: 1. n = ``low + next_int(high - low + 1)`` from ``period``; 2. the first such row,
    ``next_int(n)``; 3. the gain, ``low + (high - low) * next_single()``. Edits rows.

    Args:
        period: (low, high), integers with 1 <= low <= high < 2**31, both included.
        gain: (low, high), finite, low <= high.
    """

    cdef Settings settings
    cdef readonly tuple period
    cdef readonly tuple gain

    def __init__(self, period=(3, 6), gain=(0.5, 0.9)):
        self.period = integer_pair_of("period", period, 1, 1 << 31)
        self.gain = pair_of("gain", gain)
        self.settings.period = integer_span_of(self.period)
        self.settings.gain = span_of("gain", self.gain)
        self.operation.settings = &self.settings
        self.operation.parameter_bytes = sizeof(Drawn)
        self.operation.draw = draw
        self.operation.edit_row = edit_row

    def __repr__(self):
        return f"Scanlines(period={self.period}, gain={self.gain})"

    def __reduce__(self):
        return type(self), (self.period, self.gain)

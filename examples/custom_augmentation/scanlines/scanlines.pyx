"""Every n-th row darker, as a worn scanner draws them: a native augmentation of one's own."""

from libc.stdint cimport int64_t, uint64_t

from onemodel.augment.protocol import Argument, check_integer_pair, check_pair
from onemodel.augment.protocol cimport (
    ImageShape,
    IntegerRange,
    NativeAugmentation,
    Range,
    configure,
    draw_integer,
    draw_number,
    integer_range_of,
    keep_row,
    range_of,
)


# What never changes: a field of the object, so that it lives as long as the object does.
ctypedef struct Settings:
    IntegerRange period
    Range gain


# What is drawn for one image.
ctypedef struct Parameters:
    int64_t period
    int64_t phase
    float gain


cdef void draw(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil:
    cdef const Settings *scanlines = <const Settings *>settings
    cdef Parameters *values = <Parameters *>parameters
    cdef IntegerRange phases
    values.period = draw_integer(&scanlines.period, state)
    phases.low, phases.count = 0, <uint64_t>values.period
    values.phase = draw_integer(&phases, state)
    values.gain = draw_number(&scanlines.gain, state)


cdef void apply_row(
    const void *settings, const void *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    cdef const Parameters *values = <const Parameters *>parameters
    cdef float gain = values.gain
    cdef int64_t column
    if row % values.period == values.phase:
        for column in range(shape.width):
            target[column] = source[column] * gain
    else:
        keep_row(target, source, shape.width)


cdef class Scanlines(NativeAugmentation):
    """Multiply every n-th row by a gain.

    Draws: 1. n = ``low + next_int(high - low + 1)`` from ``period``; 2. the first such row,
    ``next_int(n)``; 3. the gain, ``low + (high - low) * next_single()``. Applies to rows.

    Args:
        period: (low, high), integers with 1 <= low <= high < 2**31, both included.
        gain: (low, high), finite, low <= high.
    """

    cdef Settings settings

    period = Argument("period", "The pair (low, high) that n lies in.")
    gain = Argument("gain", "The pair (low, high) that the gain lies in.")

    def __init__(self, period=(3, 6), gain=(0.5, 0.9)):
        cdef Settings settings
        period = check_integer_pair("period", period, 1, 1 << 31)
        gain = check_pair("gain", gain)
        settings.period, settings.gain = integer_range_of(period), range_of("gain", gain)
        # keeps the arguments, for the repr and for pickle; refuses a second __init__
        configure(self, Scanlines, {"period": period, "gain": gain})
        self.settings = settings
        self.operation.settings = &self.settings
        self.operation.parameter_bytes = sizeof(Parameters)
        self.operation.draw = draw
        self.operation.apply_row = apply_row

"""The C protocol of native augmentations: write your own in Cython against this file.

An augmentation is a `Operation`: settings that never change, a function that draws the random
parameters of one image, and a function that edits either one row or a whole image. The split
lets a chain of operations run row by row in one pass over memory: all parameters are drawn first,
operation after operation, so every draw stands at the same place of the generator's sequence whichever
way the pixels are walked.

To add one: subclass NativeAugmentation, fill `self.operation` in __init__ (settings must live as
long as the object: point at a C struct that is a field of it), and give the class a docstring
that lists its draws in order, a __repr__ that shows every argument and a __reduce__ for pickle.
examples/custom_augmentation in the source repository is a whole package that does so.

What an operation must keep so that batches replay: it reads nothing but its arguments, draws from
`state` alone, and computes with integers and float32 + - * / in an order that its docstring
gives (compile with -ffp-contract=off). Rows come in any order and on any thread.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from onemodel._simd.dispatch cimport Rows
from onemodel._random.rng cimport next_below, next_single


ctypedef struct ImageShape:
    int64_t channels
    int64_t height
    int64_t width


# Draw one image's parameters from *state into `parameters` (parameter_bytes, 8-byte aligned). Leave
# *state after all draws of the operation, those that edit_row makes for each pixel included.
ctypedef void (*DrawFunction)(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil

# Write the edited row (channel, row) of `width` floats to `target`, which may be `source`.
ctypedef void (*RowFunction)(
    const void *settings, const void *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil

# Optional: read, edit and pad rows of one channel in one loop, for an operation that makes all rows of
# an image alike (dispatch.h says what `rows` holds).
ctypedef void (*RowsFunction)(
    const void *settings, const void *parameters, const Rows *rows
) noexcept nogil

# Edit a contiguous image [channels, height, width] in place; `scratch` has room for another.
ctypedef void (*ImageFunction)(
    const void *settings, const void *parameters, const ImageShape *shape, float *image, float *scratch
) noexcept nogil


ctypedef struct Operation:
    const void *settings
    int64_t parameter_bytes         # size of what `draw` fills in
    DrawFunction draw
    RowFunction edit_row        # NULL where a row needs other rows
    ImageFunction edit_image    # read only where edit_row is NULL
    RowsFunction store_rows       # NULL where the operation has none


cdef class NativeAugmentation:
    cdef Operation operation


cdef class Chain:
    """Native augmentations in order, ready to run without the GIL."""
    cdef readonly tuple parts
    cdef Operation *operations
    cdef int count
    cdef int64_t parameter_bytes
    cdef bint by_rows           # every operation edits rows


cdef int forbid_reinit(const void *made) except -1

cdef void draw_parameters(
    const Operation *operations, int count, uint64_t *state, const ImageShape *shape, char *parameters
) noexcept nogil


cdef inline int64_t padded(int64_t size) noexcept nogil:
    """Round the bytes that an operation draws up to the next operation's alignment."""
    return (size + 7) & ~<int64_t>7


cdef inline void edit_row(
    const Operation *operations, int count, const char *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    """Run at least one operation of rows: the first reads `source`, the others edit `target`."""
    cdef int k
    for k in range(count):
        operations[k].edit_row(operations[k].settings, parameters, shape, channel, row, source, target)
        source = target
        parameters += padded(operations[k].parameter_bytes)


cdef void edit_image(
    const Operation *operations, int count, const char *parameters, const ImageShape *shape,
    float *image, float *scratch
) noexcept nogil


cdef inline void copy_row(float *target, const float *source, int64_t width) noexcept nogil:
    """What edit_row does to a row that the operation leaves as it is."""
    if target != source:
        memcpy(target, source, <size_t>width * sizeof(float))


# Arguments. Each check names the argument, the accepted range and the value.

ctypedef struct Span:
    float low
    float width


ctypedef struct IntegerSpan:
    int64_t low
    uint64_t count              # how many integers: both ends are in


cdef tuple pair_of(name, bounds)                            # two floats
cdef Span span_of(name, bounds) except *
cdef tuple integer_pair_of(name, bounds, low, high)         # low <= first <= second < high
cdef IntegerSpan integer_span_of(tuple bounds)
cdef double number_of(name, value) except? -1               # finite in float32
cdef double chance_of(name, value) except? -1               # in [0, 1]


cdef inline float draw_span(const Span *span, uint64_t *state) noexcept nogil:
    """low + (high - low) * next_single, each operation rounded to float32."""
    cdef float part = span.width * next_single(state)
    return span.low + part


cdef inline int64_t draw_integer(const IntegerSpan *span, uint64_t *state) noexcept nogil:
    """low + next_int(high - low + 1): every integer of the span alike."""
    return span.low + <int64_t>next_below(state, span.count)


cdef inline bint draw_chance(double chance, uint64_t *state) noexcept nogil:
    """next_single < chance, compared in float64. The draw is made whatever the chance."""
    return <double>next_single(state) < chance


# The DrawFunction of an operation that is applied with a chance: settings points at the chance (a
# double), parameters is one int64, 0 where the image stays as it is.
cdef void draw_applied(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil

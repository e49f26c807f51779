"""The C protocol of native augmentations: write your own in Cython against this file.

An augmentation has an `Operation`: settings that never change, a function `draw` that draws the
random parameters of one image, and a function that applies them to one row of the image or to a
whole image. The split lets a chain of operations run row by row in one pass over memory: all
parameters are drawn first, operation after operation, so every draw has the same place in the
generator's sequence whichever way the pixels are walked.

To add one: subclass NativeAugmentation; in __init__ check the arguments, hand them to `configure`
and fill `self.operation` (settings must live as long as the object: point at a C struct that is a
field of it); and give the class a docstring that lists its draws in order. The repr, pickling and
the attribute `arguments` come from what `configure` keeps.
examples/custom_augmentation in the source repository is a whole package that does so.

What an operation must keep so that batches replay: it reads nothing but its arguments, draws from
`state` alone, and computes with integers and float32 + - * / in an order that its docstring
gives (compile with -ffp-contract=off). Rows come in any order and on any thread.
"""

from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memcpy

from onemodel._common.configured cimport Configured, configure
from onemodel._simd.dispatch cimport Rows
from onemodel._random.rng cimport next_below, next_single


ctypedef struct ImageShape:
    int64_t channels
    int64_t height
    int64_t width


# Draw one image's parameters from *state into `parameters` (parameter_bytes, 8-byte aligned). Leave
# *state after all draws of the operation, those that apply_row makes for each pixel included.
# apply_image follows before the next operation draws: where apply_row is NULL, `parameters` may
# keep `state` itself, and apply_image draws from it.
ctypedef void (*DrawFunction)(
    const void *settings, uint64_t *state, const ImageShape *shape, void *parameters
) noexcept nogil

# Write the new row (channel, row) of `width` floats to `target`, which may be `source`.
ctypedef void (*ApplyRowFunction)(
    const void *settings, const void *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil

# Change a contiguous image [channels, height, width] in place; `scratch` has the size of another.
ctypedef void (*ApplyImageFunction)(
    const void *settings, const void *parameters, const ImageShape *shape,
    float *image, float *scratch
) noexcept nogil

# Optional: read, change, pad and store rows of one channel in one loop, for an operation that
# treats all rows of an image alike (dispatch.h says what `rows` holds).
ctypedef void (*StoreRowsFunction)(
    const void *settings, const void *parameters, const Rows *rows
) noexcept nogil


ctypedef struct Operation:
    const void *settings
    int64_t parameter_bytes             # size of what `draw` fills in
    DrawFunction draw
    ApplyRowFunction apply_row          # NULL where a row needs other rows
    ApplyImageFunction apply_image      # read only where apply_row is NULL
    StoreRowsFunction store_rows        # NULL where the operation has none


cdef class NativeAugmentation(Configured):
    cdef Operation operation


cdef class RandomAugmentation(NativeAugmentation):
    """One that is applied with probability p: a subclass sets what is applied, in __cinit__."""
    cdef double probability


# What other compilers give. Edit an array of these dimensions in place, with draws from *state; or,
# for pixels, fill in what is drawn for an image of this shape.
ctypedef void (*EditFunction)(
    uint64_t *state, int64_t first, int64_t second, int64_t third, void *values
) noexcept nogil

# Make `width` new pixels of bytes, of which p * scale - shift is taken, or of floats, which are
# taken as they are. `target` is not `source`.
ctypedef void (*MakePixelsFunction)(
    const void *drawn, const void *source, float scale, float shift, int64_t width, float *target
) noexcept nogil


ctypedef struct CompiledPixelsSettings:
    EditFunction draw
    MakePixelsFunction from_bytes
    MakePixelsFunction from_floats


cdef class CompiledAugmentation(NativeAugmentation):
    """One whose functions another compiler made: a subclass checks and compiles them."""
    cdef CompiledPixelsSettings pixels


cdef class Chain(Configured):
    """Native augmentations in order, ready to run without the GIL."""
    cdef Operation *operations
    cdef int count
    cdef int64_t parameter_bytes
    cdef bint by_rows           # every operation applies to rows


cdef void draw_parameters(
    const Operation *operations, int count, uint64_t *state, const ImageShape *shape,
    char *parameters
) noexcept nogil


cdef inline int64_t aligned_size(int64_t size) noexcept nogil:
    """The bytes that an operation draws, rounded up to the alignment of the next one's."""
    return (size + 7) & ~<int64_t>7


cdef inline void run_row(
    const Operation *operations, int count, const char *parameters, const ImageShape *shape,
    int64_t channel, int64_t row, const float *source, float *target
) noexcept nogil:
    """Run at least one operation on a row: the first reads `source`, the others `target`."""
    cdef int k
    for k in range(count):
        operations[k].apply_row(
            operations[k].settings, parameters, shape, channel, row, source, target
        )
        source = target
        parameters += aligned_size(operations[k].parameter_bytes)


cdef void run_image(
    const Operation *operations, int count, uint64_t *state, char *parameters,
    const ImageShape *shape, float *image, float *scratch
) noexcept nogil


cdef inline void keep_row(float *target, const float *source, int64_t width) noexcept nogil:
    """What apply_row does to a row that the operation leaves as it is."""
    if target != source:
        memcpy(target, source, <size_t>width * sizeof(float))


# Ranges that parameters are drawn from.

ctypedef struct Range:
    float low
    float width


ctypedef struct IntegerRange:
    int64_t low
    uint64_t count              # how many integers: both ends are in


cdef Range range_of(name, bounds) except *
cdef IntegerRange integer_range_of(tuple bounds)            # checked, low <= high


cdef inline float draw_number(const Range *bounds, uint64_t *state) noexcept nogil:
    """low + (high - low) * next_single, each operation rounded to float32."""
    cdef float part = bounds.width * next_single(state)
    return bounds.low + part


cdef inline int64_t draw_integer(const IntegerRange *bounds, uint64_t *state) noexcept nogil:
    """low + next_int(high - low + 1): every integer of the range alike."""
    return bounds.low + <int64_t>next_below(state, bounds.count)


cdef inline bint draw_bernoulli(double probability, uint64_t *state) noexcept nogil:
    """next_single < probability, compared in float64. The draw is made whatever it is."""
    return <double>next_single(state) < probability

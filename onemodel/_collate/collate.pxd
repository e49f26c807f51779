"""Collation without the GIL, for whoever has its inputs and its memory."""

from libc.stdint cimport int32_t, int64_t, uint64_t

from onemodel._collate.inputs cimport Inputs
from onemodel._memory.pool cimport Block, BufferPool
from onemodel.augment.protocol cimport Chain, Operation


# How batches are made; the same for every batch of a collator.
ctypedef struct CollateSettings:
    const Operation *operations
    int count                   # of operations
    int64_t parameter_bytes
    bint by_rows
    float pad


# What a batch is brought to.
ctypedef struct BatchShape:
    int64_t padded_width
    int64_t target_columns      # of padded targets; 0 where they are concatenated
    int label_words             # a label's int32 words: 1, or 2 for int64


cdef CollateSettings settings_of(Chain chain, float pad) noexcept

cdef inline int64_t rounded_up(int64_t size, int64_t multiple) noexcept nogil:
    return (size + multiple - 1) // multiple * multiple


# Numbers in a batch's targets.
cdef inline int64_t target_count(const Inputs *inputs, const BatchShape *shape) noexcept nogil:
    return inputs.count * shape.target_columns if shape.target_columns else inputs.symbols


# Bytes of a batch's two buffers.
cdef inline int64_t integer_bytes(
    int64_t count, int64_t symbols, const BatchShape *shape
) noexcept nogil:
    return ((3 + shape.label_words) * count + symbols) * <int64_t>sizeof(int32_t)


cdef inline int64_t image_bytes(const Inputs *inputs, int64_t padded_width) noexcept nogil:
    return inputs.count * inputs.channels * inputs.height * padded_width * <int64_t>sizeof(float)


# Fill both buffers; False where there is no memory for what one image needs on its way.
cdef bint collate_native(
    const Inputs *inputs, const CollateSettings *settings, const BatchShape *shape,
    bint non_temporal, uint64_t prefix, uint64_t first_slot, int32_t *integers, float *images
) noexcept nogil

# The arrays of a batch by name, backed by its two buffers. `symbols` as target_count says.
cdef dict batch_arrays(
    Block images, Block integers, int64_t count, int64_t channels, int64_t height,
    int64_t symbols, const BatchShape *shape
)

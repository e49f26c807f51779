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


cdef CollateSettings settings_of(Chain chain, float pad) noexcept

cdef inline int64_t padded_width_of(int64_t widest, int64_t multiple) noexcept nogil:
    return (widest + multiple - 1) // multiple * multiple


# Bytes of a batch's two buffers.
cdef inline int64_t integer_bytes(int64_t count, int64_t symbols) noexcept nogil:
    return (4 * count + symbols) * <int64_t>sizeof(int32_t)


cdef inline int64_t image_bytes(const Inputs *inputs, int64_t padded_width) noexcept nogil:
    return inputs.count * inputs.channels * inputs.height * padded_width * <int64_t>sizeof(float)


# Fill both buffers; False where there is no memory for what one image needs on its way.
cdef bint collate_native(
    const Inputs *inputs, const CollateSettings *settings, int64_t padded_width,
    bint non_temporal, uint64_t prefix, uint64_t first_slot, int32_t *integers, float *images
) noexcept nogil

# The arrays of a batch by name, backed by its two buffers.
cdef dict batch_arrays(
    Block images, Block integers, int64_t count, int64_t channels, int64_t height,
    int64_t padded_width, int64_t symbols
)

"""The loops of the variant that this processor runs: other kernels call them through `loops`."""

from libc.stdint cimport int64_t, uint8_t, uint64_t

from onemodel._simd.feistel cimport Feistel


cdef extern from "dispatch.h":
    ctypedef struct Rows "onemodel_rows":
        const void *source
        int64_t stride
        bint bytes
        float scale
        float shift
        int64_t width
        int64_t count
        float *target
        int64_t padded
        float pad
        bint non_temporal
        const char *next_source
        int64_t next_stride
        int64_t next_size

    # the headers say what each loop does, in the list at their end
    ctypedef struct Loops "onemodel_loops":
        const char *name
        void (*noise)(float *, const float *, int64_t, uint64_t, float) noexcept nogil
        void (*permute)(const Feistel *, const uint64_t *, uint64_t *, int64_t) noexcept nogil
        void (*planar3)(
            float *, const uint8_t *, int64_t, int64_t, const float *, const float *, int, int
        ) noexcept nogil
        void (*mirror3)(uint8_t *, const uint8_t *, int64_t) noexcept nogil
        void (*store_rows)(const Rows *) noexcept nogil
        void (*store_gain_offset)(const Rows *, float, float) noexcept nogil
        void (*copy_non_temporal)(float *, const float *, int64_t) noexcept nogil
        void (*gain_offset)(float *, const float *, int64_t, float, float) noexcept nogil
        void (*convert)(float *, const uint8_t *, int64_t, float, float) noexcept nogil
        void (*reverse)(float *, const float *, int64_t) noexcept nogil
        void (*binomial)(
            float *, const float *, const float *, const float *, int64_t, float
        ) noexcept nogil


cdef const Loops *loops
cdef void store_fence() noexcept nogil

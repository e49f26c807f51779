"""SplitMix64 and the seed derivation as inline primitives for other kernels.

Construction: G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014 (SplitMix64's constants: S. Vigna). docs/specification.md gives every
draw. It is a generator for sampling and augmentation and not one for secrets.

Every function here is exact integer arithmetic modulo 2^64, or float arithmetic whose every
operation is exact or rounds in the written order.
"""

from libc.stdint cimport uint64_t

from onemodel._simd.splitmix64 cimport mix64, next_u64, skip_u64


cdef inline uint64_t derive_prefix(uint64_t seed, uint64_t epoch, uint64_t step) noexcept nogil:
    """The part of derive64 that all slots of a batch share."""
    return mix64(mix64(mix64(seed ^ <uint64_t>0xD1B54A32D192ED03) + epoch) + step)


cdef inline uint64_t derive_suffix(uint64_t prefix, uint64_t slot, uint64_t stream) noexcept nogil:
    return mix64(mix64(prefix + slot) + stream)


cdef inline uint64_t derive64(
    uint64_t seed, uint64_t epoch, uint64_t step, uint64_t slot, uint64_t stream
) noexcept nogil:
    """The generator state of one (seed, epoch, step, slot, stream)."""
    return derive_suffix(derive_prefix(seed, epoch, step), slot, stream)


cdef inline float next_single(uint64_t *state) noexcept nogil:
    """Uniform in [0, 1), a multiple of 2^-24: both steps are exact in float32."""
    return <float>(next_u64(state) >> 40) * <float>(1.0 / 16777216.0)


cdef inline double next_double(uint64_t *state) noexcept nogil:
    """Uniform in [0, 1), a multiple of 2^-53: both steps are exact in float64."""
    return <double>(next_u64(state) >> 11) * (1.0 / 9007199254740992.0)


cdef inline uint64_t high_product(uint64_t a, uint64_t b) noexcept nogil:
    """Bits 64..127 of a * b, from 32-bit halves.

    No compiler has a 128-bit product everywhere; on WebAssembly it is a call. This form is
    exact on all of them.
    """
    cdef uint64_t a_low = a & <uint64_t>0xFFFFFFFF
    cdef uint64_t a_high = a >> 32
    cdef uint64_t b_low = b & <uint64_t>0xFFFFFFFF
    cdef uint64_t b_high = b >> 32
    cdef uint64_t low = a_low * b_low
    cdef uint64_t middle = a_high * b_low + (low >> 32)
    cdef uint64_t other = a_low * b_high + (middle & <uint64_t>0xFFFFFFFF)
    return a_high * b_high + (middle >> 32) + (other >> 32)


cdef inline uint64_t next_below(uint64_t *state, uint64_t n) noexcept nogil:
    """Uniform in [0, n) for n >= 1, without bias: Lemire's multiply-shift with rejection."""
    cdef uint64_t u = next_u64(state)
    cdef uint64_t low = u * n
    cdef uint64_t threshold
    if low < n:
        threshold = (<uint64_t>0 - n) % n
        while low < threshold:
            u = next_u64(state)
            low = u * n
    return high_product(u, n)


cdef inline float next_normal(uint64_t *state) noexcept nogil:
    """Twelve uniforms less six (Irwin-Hall): mean 0, variance 1, within [-6, 6).

    Each addition rounds to float32, in order; the first, to zero, is exact.
    """
    cdef float total = 0.0
    cdef int _draw
    for _draw in range(12):
        total = total + next_single(state)
    return total - <float>6.0


# an uninitialised array of the length or shape `size`; errors call it `name`
cdef object new_array(name, size, dtype)


cdef class SampleRng:
    cdef uint64_t current

    @staticmethod
    cdef SampleRng start(uint64_t state)

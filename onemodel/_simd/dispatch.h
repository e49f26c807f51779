/* Loops over rows of pixels, once for the baseline processor and once for AVX2.
 *
 * A table of pointers holds one variant; dispatch.pyx picks the table when it is imported. All
 * variants give the same bytes: they differ in the width of their vectors and in nothing that
 * rounds (no fused multiply-add, no reassociation).
 */
#ifndef ONEMODEL_VECTOR_H
#define ONEMODEL_VECTOR_H

#include <stdint.h>
#include <string.h>

#include "feistel.h"
#include "cache_hint.h"

/* Rows of one image: `count` times `width` values, `stride` bytes apart, to rows of `padded`
 * floats one after another. `padded` is a multiple of 4, and nothing overlaps. Streamed, in stores
 * that go around the caches, the target stands on 16 bytes. */
typedef struct {
    const void *source;      /* floats, or bytes of which p * scale - shift is taken */
    int64_t stride;
    int bytes;
    float scale;
    float shift;
    int64_t width;
    int64_t count;
    float *target;
    int64_t padded;
    float pad;
    int non_temporal;
    const char *ahead;       /* what to ask for meanwhile: ahead_size bytes a row */
    int64_t ahead_stride;
    int64_t ahead_size;
} onemodel_rows;

typedef struct {
    const char *name;
    /* target[k] = source[k], with stores that go around the caches where the processor has
     * them; only store_fence orders them before what follows. No overlap. */
    void (*stream)(float *target, const float *source, int64_t count);
    /* The rows and their padding. */
    void (*store_rows)(const onemodel_rows *rows);
    /* Likewise, each value * gain + offset, each operation rounded. */
    void (*store_gain_offset)(const onemodel_rows *rows, float gain, float offset);
    /* target[k] = source[k] * gain + offset, each operation rounded; target may be source. */
    void (*gain_offset)(float *target, const float *source, int64_t count, float gain,
                        float offset);
    /* target[k] = source[k] * scale - shift, each operation rounded. */
    void (*convert)(float *target, const uint8_t *source, int64_t count, float scale,
                    float shift);
    /* target[k] = source[k] + sigma * (normal draw k after `state`, twelve words each); target
     * may be source. */
    void (*noise)(float *target, const float *source, int64_t count, uint64_t state,
                  float sigma);
    /* target[k] = source[count - 1 - k]; target may be source. */
    void (*reverse)(float *target, const float *source, int64_t count);
    /* target[k] = ((before[k] + after[k]) + (middle[k] + middle[k])) * scale. No overlap of the
     * target with the others. */
    void (*binomial)(float *target, const float *before, const float *middle,
                     const float *after, int64_t count, float scale);
    /* Pixels of three interleaved bytes, rows left to right or right to left, to three planes:
     * target[c][y][x] = source * scale[c] - shift[c], each operation rounded. non_temporal: use
     * stores that go around the caches where lines are whole. No overlap. */
    void (*planar3)(float *target, const uint8_t *source, int64_t height, int64_t width,
                    const float *scale, const float *shift, int mirrored, int non_temporal);
    /* target[x] = source[width - 1 - x] in pixels of three bytes. No overlap. */
    void (*mirror3)(uint8_t *target, const uint8_t *source, int64_t width);
    /* The indices at many positions of a permutation with n > 1; both may be the same memory. */
    void (*permute)(const onemodel_feistel *plan, const uint64_t *positions, uint64_t *indices,
                    int64_t count);
} onemodel_vector_table;

#if defined(__SSE2__) || defined(_M_X64)
#include <immintrin.h>
#define ONEMODEL_SSE2 1
#endif

#if defined(ONEMODEL_SSE2) && (defined(__GNUC__) || defined(__clang__))
#define ONEMODEL_AVX2 1
#endif

#if defined(__GNUC__) || defined(__clang__)
#define ONEMODEL_INLINE inline __attribute__((always_inline))
#else
#define ONEMODEL_INLINE inline
#endif

/* Loops that may run in place: a compiler that fears overlap would take its scalar version. */
#if defined(__clang__)
#define ONEMODEL_IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define ONEMODEL_IN_PLACE _Pragma("GCC ivdep")
#else
#define ONEMODEL_IN_PLACE
#endif

/* A byte as a float, exactly. WebAssembly's conversion is given the bits of 2^23 + value in its
 * stead: compilers know that a byte is not negative and take the conversion of unsigned words, which
 * no x86 processor has and a browser makes of eight instructions. */
static ONEMODEL_INLINE float onemodel_byte_as_float(uint8_t value) {
#ifdef __wasm__
    uint32_t bits = 0x4B000000u | value;
    float sum;
    memcpy(&sum, &bits, 4);
    return sum - 8388608.0f;
#else
    return (float)value;
#endif
}

#define ONEMODEL_VARIANT(name) name##_baseline
#define ONEMODEL_TARGET
#include "variant.h"
#undef ONEMODEL_VARIANT
#undef ONEMODEL_TARGET

#ifdef ONEMODEL_AVX2
#define ONEMODEL_WIDE 1
#define ONEMODEL_VARIANT(name) name##_avx2
#define ONEMODEL_TARGET __attribute__((target("avx2")))
#include "variant.h"
#undef ONEMODEL_VARIANT
#undef ONEMODEL_TARGET
#undef ONEMODEL_WIDE
#endif

/* Order all non_temporal stores before whatever the calling thread does next. */
static inline void onemodel_stream_fence(void) {
#ifdef ONEMODEL_SSE2
    _mm_sfence();
#endif
}

static inline int onemodel_has_avx2(void) {
#ifdef ONEMODEL_AVX2
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2");
#else
    return 0;
#endif
}

/* NULL where this build or this processor lacks the variant. */
static inline const onemodel_vector_table *onemodel_vector_variant(int wide) {
    if (!wide) return &vector_table_baseline;
#ifdef ONEMODEL_AVX2
    if (onemodel_has_avx2()) return &vector_table_avx2;
#endif
    return 0;
}

#endif

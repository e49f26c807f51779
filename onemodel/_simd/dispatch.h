/* Every loop, compiled once for the baseline processor and once for AVX2, and a struct of pointers
 * to the loops of each variant. README.md says how this works and how to add a loop.
 *
 * All variants give the same bytes: they differ in the width of their vectors and in nothing that
 * rounds (no fused multiply-add, no reassociation). */
#ifndef ONEMODEL_DISPATCH_H
#define ONEMODEL_DISPATCH_H

#include "cache_hint.h"
#include "compiler.h"
#include "feistel.h"
#include "pixel_value.h"
#include "splitmix64.h"

/* Rows of one image: `count` times `width` values, `stride` bytes apart, to rows of `padded` >=
 * `width` floats one after another. Nothing overlaps. */
typedef struct {
    const void *source; /* floats, or bytes of which p * scale - shift is taken */
    int64_t stride;
    int bytes;
    float scale;
    float shift;
    int64_t width;
    int64_t count;
    float *target;
    int64_t padded;
    float pad;
    int non_temporal;        /* if all rows of the target are 16-byte aligned; else ignored */
    const char *next_source; /* rows that are read after these: the cache gets a hint of each, of */
    int64_t next_stride;     /* its first next_size bytes, while one of these rows is made */
    int64_t next_size;
} onemodel_rows;

#define ONEMODEL_VARIANT(name) name##_baseline
#define ONEMODEL_TARGET
#include "variant.h"
#undef ONEMODEL_VARIANT
#undef ONEMODEL_TARGET

#ifdef ONEMODEL_AVX2
#define ONEMODEL_WIDE 1
#define ONEMODEL_VARIANT(name) name##_avx2
#define ONEMODEL_TARGET ONEMODEL_TARGET_AVX2
#include "variant.h"
#undef ONEMODEL_VARIANT
#undef ONEMODEL_TARGET
#undef ONEMODEL_WIDE
#endif

/* The lists of all headers: LOOP(name, parameters) for each loop. */
#define ONEMODEL_LOOPS(LOOP)         \
    ONEMODEL_NOISE_LOOPS(LOOP)       \
    ONEMODEL_PERMUTATION_LOOPS(LOOP) \
    ONEMODEL_RGB_LOOPS(LOOP)         \
    ONEMODEL_ROW_LOOPS(LOOP)         \
    ONEMODEL_VALUE_LOOPS(LOOP)

#define ONEMODEL_POINTER(loop, parameters) void (*loop) parameters;
#define ONEMODEL_BASELINE_LOOP(loop, parameters) .loop = loop##_baseline,
#define ONEMODEL_AVX2_LOOP(loop, parameters) .loop = loop##_avx2,

typedef struct {
    const char *name;
    ONEMODEL_LOOPS(ONEMODEL_POINTER)
} onemodel_loops;

static const onemodel_loops onemodel_baseline_loops = {
    .name = "baseline", ONEMODEL_LOOPS(ONEMODEL_BASELINE_LOOP)};

#ifdef ONEMODEL_AVX2
static const onemodel_loops onemodel_avx2_loops = {
    .name = "avx2", ONEMODEL_LOOPS(ONEMODEL_AVX2_LOOP)};
#endif

/* Order all non-temporal stores before whatever the calling thread does next. */
static inline void onemodel_store_fence(void) {
#ifdef ONEMODEL_SSE2
    _mm_sfence();
#endif
}

/* The loops of variant 0, baseline, or 1, AVX2; NULL where this build or this processor lacks it. */
static inline const onemodel_loops *onemodel_loops_of(int variant) {
    if (variant == 0) return &onemodel_baseline_loops;
#ifdef ONEMODEL_AVX2
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) return &onemodel_avx2_loops;
#endif
    return 0;
}

#endif

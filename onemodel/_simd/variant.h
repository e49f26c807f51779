/* One variant of every loop; dispatch.h includes this file once for each target. */

ONEMODEL_TARGET static void ONEMODEL_VARIANT(stream)(float *target, const float *source,
                                                     int64_t count) {
#ifdef ONEMODEL_SSE2
    if (((uintptr_t)target & 15) == 0) {
        /* The line that an earlier call left half full goes on here: it leaves whole. */
        for (; count >= 4 && ((uintptr_t)target & 63) != 0; count -= 4, target += 4, source += 4)
            _mm_stream_ps(target, _mm_loadu_ps(source));
        for (; count >= 16; count -= 16, target += 16, source += 16) {
#ifdef ONEMODEL_WIDE
            __m256 a = _mm256_loadu_ps(source);
            __m256 b = _mm256_loadu_ps(source + 8);
            _mm256_stream_ps(target, a);
            _mm256_stream_ps(target + 8, b);
#else
            __m128 a = _mm_loadu_ps(source);
            __m128 b = _mm_loadu_ps(source + 4);
            __m128 c = _mm_loadu_ps(source + 8);
            __m128 d = _mm_loadu_ps(source + 12);
            _mm_stream_ps(target, a);
            _mm_stream_ps(target + 4, b);
            _mm_stream_ps(target + 8, c);
            _mm_stream_ps(target + 12, d);
#endif
        }
        for (; count >= 4; count -= 4, target += 4, source += 4)
            _mm_stream_ps(target, _mm_loadu_ps(source));
    }
#endif
    if (count > 0) memcpy(target, source, (size_t)count * sizeof(float));
}

ONEMODEL_TARGET static void ONEMODEL_VARIANT(gain_offset)(float *target, const float *source,
                                                          int64_t count, float gain,
                                                          float offset) {
    ONEMODEL_IN_PLACE
    for (int64_t k = 0; k < count; k++) {
        float product = source[k] * gain;
        target[k] = product + offset;
    }
}

ONEMODEL_TARGET static void ONEMODEL_VARIANT(convert)(float *target, const uint8_t *source,
                                                      int64_t count, float scale, float shift) {
    ONEMODEL_IN_PLACE
    for (int64_t k = 0; k < count; k++) {
        float product = onemodel_byte_as_float(source[k]) * scale;
        target[k] = product - shift;
    }
}

#include "rows.h"
#include "noise.h"
#include "pixels.h"
#include "permutation.h"

static const onemodel_vector_table ONEMODEL_VARIANT(vector_table) = {
#ifdef ONEMODEL_WIDE
    "avx2",
#else
    "baseline",
#endif
    ONEMODEL_VARIANT(stream),
    ONEMODEL_VARIANT(store_rows),
    ONEMODEL_VARIANT(store_gain_offset),
    ONEMODEL_VARIANT(gain_offset),
    ONEMODEL_VARIANT(convert),
    ONEMODEL_VARIANT(noise),
    ONEMODEL_VARIANT(reverse),
    ONEMODEL_VARIANT(binomial),
    ONEMODEL_VARIANT(planar3),
    ONEMODEL_VARIANT(mirror3),
    ONEMODEL_VARIANT(permute),
};


/* Loops over a row of values, one result for each place; variant.h includes this file once a
 * variant. */

ONEMODEL_TARGET static void ONEMODEL_VARIANT(copy_non_temporal)(float *target,
                                                                const float *source,
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
    for (int64_t k = 0; k < count; k++) target[k] = onemodel_pixel_value(source[k], scale, shift);
}

ONEMODEL_TARGET static void ONEMODEL_VARIANT(reverse)(float *target, const float *source,
                                                      int64_t count) {
    int64_t left = 0;
    int64_t right = count;
    if (target != source) {
        for (; left < count; left++) target[left] = source[count - 1 - left];
        return;
    }
#ifdef ONEMODEL_SSE2
    for (; right - left >= 8; left += 4, right -= 4) {
        __m128 first = _mm_loadu_ps(target + left);
        __m128 last = _mm_loadu_ps(target + right - 4);
        _mm_storeu_ps(target + left, _mm_shuffle_ps(last, last, 0x1B));
        _mm_storeu_ps(target + right - 4, _mm_shuffle_ps(first, first, 0x1B));
    }
#endif
    for (; right - left >= 2; left++, right--) {
        float first = target[left];
        target[left] = target[right - 1];
        target[right - 1] = first;
    }
}

ONEMODEL_TARGET static void ONEMODEL_VARIANT(binomial)(float *target, const float *before,
                                                       const float *middle, const float *after,
                                                       int64_t count, float scale) {
    for (int64_t k = 0; k < count; k++) {
        float outer = before[k] + after[k];
        float inner = middle[k] + middle[k];
        float sum = outer + inner;
        target[k] = sum * scale;
    }
}

#define ONEMODEL_VALUE_LOOPS(LOOP)                                                             \
    /* target[k] = source[k], with non-temporal stores where the processor has them; only      \
     * store_fence orders them before what follows. No overlap. */                             \
    LOOP(copy_non_temporal, (float *target, const float *source, int64_t count))               \
    /* target[k] = source[k] * gain + offset, each operation rounded; target may be source */  \
    LOOP(gain_offset,                                                                          \
         (float *target, const float *source, int64_t count, float gain, float offset))        \
    /* target[k] = source[k] * scale - shift, each operation rounded */                        \
    LOOP(convert,                                                                              \
         (float *target, const uint8_t *source, int64_t count, float scale, float shift))      \
    /* target[k] = source[count - 1 - k]; target may be source */                              \
    LOOP(reverse, (float *target, const float *source, int64_t count))                         \
    /* target[k] = ((before[k] + after[k]) + (middle[k] + middle[k])) * scale. No overlap of   \
     * the target with the others. */                                                          \
    LOOP(binomial, (float *target, const float *before, const float *middle,                   \
                    const float *after, int64_t count, float scale))

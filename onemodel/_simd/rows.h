/* Rows of an image on their way to the batch: read, converted, scaled, padded and stored in one
 * go. variant.h includes this file once for each variant; `bytes`, `scaled` and `non_temporal` are
 * constants where rows_out is inlined. */

/* Four or eight values of the row from place k on, finished. */
#ifdef ONEMODEL_SSE2
#ifdef ONEMODEL_WIDE
ONEMODEL_TARGET static ONEMODEL_INLINE __m256 ONEMODEL_VARIANT(eight)(
    const char *source, int64_t k, int bytes, int scaled, __m256 scale, __m256 shift, __m256 gain,
    __m256 offset) {
    __m256 value;
    if (bytes) {
        __m128i eight = _mm_loadl_epi64((const __m128i *)(source + k));
        value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight));
        value = _mm256_sub_ps(_mm256_mul_ps(value, scale), shift);
    } else {
        value = _mm256_loadu_ps((const float *)source + k);
    }
    return scaled ? _mm256_add_ps(_mm256_mul_ps(value, gain), offset) : value;
}
#endif

ONEMODEL_TARGET static ONEMODEL_INLINE __m128 ONEMODEL_VARIANT(four)(
    const char *source, int64_t k, int bytes, int scaled, __m128 scale, __m128 shift, __m128 gain,
    __m128 offset) {
    __m128 value;
    if (bytes) {
        int32_t word;
        memcpy(&word, source + k, 4);
        __m128i four = _mm_cvtsi32_si128(word);
        four = _mm_unpacklo_epi8(four, _mm_setzero_si128());
        four = _mm_unpacklo_epi16(four, _mm_setzero_si128());
        value = _mm_cvtepi32_ps(four);
        value = _mm_sub_ps(_mm_mul_ps(value, scale), shift);
    } else {
        value = _mm_loadu_ps((const float *)source + k);
    }
    return scaled ? _mm_add_ps(_mm_mul_ps(value, gain), offset) : value;
}
#endif

ONEMODEL_TARGET static ONEMODEL_INLINE float ONEMODEL_VARIANT(one)(
    const char *source, int64_t k, int bytes, int scaled, float scale, float shift, float gain,
    float offset) {
    float value;
    if (bytes) {
        float product = onemodel_byte_as_float(((const uint8_t *)source)[k]) * scale;
        value = product - shift;
    } else {
        value = ((const float *)source)[k];
    }
    if (scaled) {
        float product = value * gain;
        value = product + offset;
    }
    return value;
}

ONEMODEL_TARGET static ONEMODEL_INLINE void ONEMODEL_VARIANT(rows_out)(
    const onemodel_rows *rows, int bytes, int scaled, int non_temporal, float gain, float offset) {
    const char *source = (const char *)rows->source;
    const char *ahead = rows->ahead;
    float *target = rows->target;
    int64_t width = rows->width, padded = rows->padded;
    float pad = rows->pad, scale = rows->scale, shift = rows->shift;
#ifdef ONEMODEL_SSE2
    int64_t whole = width & ~(int64_t)3;
    __m128 scale4 = _mm_set1_ps(scale), shift4 = _mm_set1_ps(shift);
    __m128 gain4 = _mm_set1_ps(gain), offset4 = _mm_set1_ps(offset), pad4 = _mm_set1_ps(pad);
#define ONEMODEL_PUT4(place, value) \
    (non_temporal ? _mm_stream_ps(place, value) : _mm_storeu_ps(place, value))
#define ONEMODEL_FOUR(k) \
    ONEMODEL_VARIANT(four)(source, k, bytes, scaled, scale4, shift4, gain4, offset4)
#ifdef ONEMODEL_WIDE
    __m256 scale8 = _mm256_set1_ps(scale), shift8 = _mm256_set1_ps(shift);
    __m256 gain8 = _mm256_set1_ps(gain), offset8 = _mm256_set1_ps(offset);
    __m256 pad8 = _mm256_set1_ps(pad);
#define ONEMODEL_PUT8(place, value) \
    (non_temporal ? _mm256_stream_ps(place, value) : _mm256_storeu_ps(place, value))
#define ONEMODEL_EIGHT(k) \
    ONEMODEL_VARIANT(eight)(source, k, bytes, scaled, scale8, shift8, gain8, offset8)
#endif
#endif
    for (int64_t row = 0; row < rows->count; row++) {
        int64_t k = 0;
        onemodel_prefetch_row(ahead, rows->ahead_size);
#ifdef ONEMODEL_SSE2
#ifdef ONEMODEL_WIDE
        if (((uintptr_t)target & 31) != 0 && whole > 0) { /* 32-byte stores want their place */
            ONEMODEL_PUT4(target, ONEMODEL_FOUR(0));
            k = 4;
        }
        for (; k + 16 <= whole; k += 16) {
            __m256 a = ONEMODEL_EIGHT(k);
            __m256 b = ONEMODEL_EIGHT(k + 8);
            ONEMODEL_PUT8(target + k, a);
            ONEMODEL_PUT8(target + k + 8, b);
        }
#endif
        for (; k < whole; k += 4) ONEMODEL_PUT4(target + k, ONEMODEL_FOUR(k));
        if (k < width) { /* the last pixels and the first of the padding share four floats */
            float last[4] = {pad, pad, pad, pad};
            for (int64_t rest = k; rest < width; rest++)
                last[rest - k] = ONEMODEL_VARIANT(one)(source, rest, bytes, scaled, scale, shift,
                                                       gain, offset);
            ONEMODEL_PUT4(target + k, _mm_loadu_ps(last));
            k += 4;
        }
#ifdef ONEMODEL_WIDE
        if (((uintptr_t)(target + k) & 31) != 0 && k < padded) {
            ONEMODEL_PUT4(target + k, pad4);
            k += 4;
        }
        for (; k + 8 <= padded; k += 8) ONEMODEL_PUT8(target + k, pad8);
#endif
        for (; k < padded; k += 4) ONEMODEL_PUT4(target + k, pad4);
#else
        for (; k < width; k++)
            target[k] = ONEMODEL_VARIANT(one)(source, k, bytes, scaled, scale, shift, gain,
                                              offset);
        for (; k < padded; k++) target[k] = pad;
#endif
        source += rows->stride;
        ahead += rows->ahead_stride;
        target += padded;
    }
#ifdef ONEMODEL_SSE2
#undef ONEMODEL_PUT4
#undef ONEMODEL_PUT8
#undef ONEMODEL_FOUR
#undef ONEMODEL_EIGHT
#endif
}

/* The constants: each combination becomes a loop of its own. */
ONEMODEL_TARGET static ONEMODEL_INLINE void ONEMODEL_VARIANT(rows_any)(const onemodel_rows *rows,
                                                                       int scaled, float gain,
                                                                       float offset) {
    if (rows->bytes && rows->non_temporal)
        ONEMODEL_VARIANT(rows_out)(rows, 1, scaled, 1, gain, offset);
    else if (rows->bytes)
        ONEMODEL_VARIANT(rows_out)(rows, 1, scaled, 0, gain, offset);
    else if (rows->non_temporal)
        ONEMODEL_VARIANT(rows_out)(rows, 0, scaled, 1, gain, offset);
    else
        ONEMODEL_VARIANT(rows_out)(rows, 0, scaled, 0, gain, offset);
}

ONEMODEL_TARGET static void ONEMODEL_VARIANT(store_rows)(const onemodel_rows *rows) {
    ONEMODEL_VARIANT(rows_any)(rows, 0, 0.0f, 0.0f);
}

ONEMODEL_TARGET static void ONEMODEL_VARIANT(store_gain_offset)(const onemodel_rows *rows,
                                                              float gain, float offset) {
    ONEMODEL_VARIANT(rows_any)(rows, 1, gain, offset);
}

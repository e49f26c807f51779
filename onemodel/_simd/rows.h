/* Rows of an image on their way to the batch: read, converted, scaled, padded and stored in one
 * loop. variant.h includes this file once a variant. `bytes`, `scaled` and `non_temporal` are
 * constants where store_rows_as is inlined. */

/* Values k to k + 7, k to k + 3 or k alone of the row at `source`, finished. */
#ifdef ONEMODEL_WIDE
ONEMODEL_TARGET static ONEMODEL_INLINE __m256 ONEMODEL_VARIANT(load8)(
    const char *source, int64_t k, int bytes, int scaled, __m256 scale, __m256 shift, __m256 gain,
    __m256 offset) {
    __m256 value;
    if (bytes)
        value = onemodel_pixel_value8(_mm_loadl_epi64((const __m128i *)(source + k)), scale, shift);
    else
        value = _mm256_loadu_ps((const float *)source + k);
    return scaled ? _mm256_add_ps(_mm256_mul_ps(value, gain), offset) : value;
}
#endif

#ifdef ONEMODEL_SSE2
ONEMODEL_TARGET static ONEMODEL_INLINE __m128 ONEMODEL_VARIANT(load4)(
    const char *source, int64_t k, int bytes, int scaled, __m128 scale, __m128 shift, __m128 gain,
    __m128 offset) {
    __m128 value;
    if (bytes) {
        int32_t four;
        memcpy(&four, source + k, 4);
        value = onemodel_pixel_value4(_mm_cvtsi32_si128(four), scale, shift);
    } else {
        value = _mm_loadu_ps((const float *)source + k);
    }
    return scaled ? _mm_add_ps(_mm_mul_ps(value, gain), offset) : value;
}
#endif

ONEMODEL_TARGET static ONEMODEL_INLINE float ONEMODEL_VARIANT(load1)(
    const char *source, int64_t k, int bytes, int scaled, float scale, float shift, float gain,
    float offset) {
    float value;
    if (bytes)
        value = onemodel_pixel_value(((const uint8_t *)source)[k], scale, shift);
    else
        value = ((const float *)source)[k];
    if (scaled) {
        float product = value * gain;
        value = product + offset;
    }
    return value;
}

/* A row whose padded width is a multiple of 4 is stored in vectors from its first float to its last;
 * of another, at most three floats at its end are stored one by one. */
ONEMODEL_TARGET static ONEMODEL_INLINE void ONEMODEL_VARIANT(store_rows_as)(
    const onemodel_rows *rows, int bytes, int scaled, int non_temporal, float gain, float offset) {
    const char *source = (const char *)rows->source;
    const char *next_source = rows->next_source;
    float *target = rows->target;
    int64_t width = rows->width, padded = rows->padded;
    float pad = rows->pad, scale = rows->scale, shift = rows->shift;
#define ONEMODEL_LOAD1(k) \
    ONEMODEL_VARIANT(load1)(source, k, bytes, scaled, scale, shift, gain, offset)
#ifdef ONEMODEL_SSE2
    int64_t whole = width & ~(int64_t)3, padded4 = padded & ~(int64_t)3;
    __m128 scale4 = _mm_set1_ps(scale), shift4 = _mm_set1_ps(shift);
    __m128 gain4 = _mm_set1_ps(gain), offset4 = _mm_set1_ps(offset), pad4 = _mm_set1_ps(pad);
#define ONEMODEL_LOAD4(k) \
    ONEMODEL_VARIANT(load4)(source, k, bytes, scaled, scale4, shift4, gain4, offset4)
#define ONEMODEL_STORE4(place, value) \
    (non_temporal ? _mm_stream_ps(place, value) : _mm_storeu_ps(place, value))
#endif
#ifdef ONEMODEL_WIDE
    __m256 scale8 = _mm256_set1_ps(scale), shift8 = _mm256_set1_ps(shift);
    __m256 gain8 = _mm256_set1_ps(gain), offset8 = _mm256_set1_ps(offset);
    __m256 pad8 = _mm256_set1_ps(pad);
#define ONEMODEL_LOAD8(k) \
    ONEMODEL_VARIANT(load8)(source, k, bytes, scaled, scale8, shift8, gain8, offset8)
#define ONEMODEL_STORE8(place, value) \
    (non_temporal ? _mm256_stream_ps(place, value) : _mm256_storeu_ps(place, value))
#endif
    for (int64_t row = 0; row < rows->count; row++) {
        int64_t k = 0;
        onemodel_prefetch_row(next_source, rows->next_size);
#ifdef ONEMODEL_SSE2
#ifdef ONEMODEL_WIDE
        /* of a 16-byte aligned row, one store that leaves the others 32-byte aligned */
        if (((uintptr_t)target & 16) != 0 && whole > 0) {
            ONEMODEL_STORE4(target, ONEMODEL_LOAD4(0));
            k = 4;
        }
        for (; k + 16 <= whole; k += 16) {
            __m256 a = ONEMODEL_LOAD8(k);
            __m256 b = ONEMODEL_LOAD8(k + 8);
            ONEMODEL_STORE8(target + k, a);
            ONEMODEL_STORE8(target + k + 8, b);
        }
#endif
        for (; k < whole; k += 4) ONEMODEL_STORE4(target + k, ONEMODEL_LOAD4(k));
        if (k < width && k < padded4) { /* the last pixels and the first of the padding */
            float last[4] = {pad, pad, pad, pad};
            for (int64_t rest = k; rest < width; rest++) last[rest - k] = ONEMODEL_LOAD1(rest);
            ONEMODEL_STORE4(target + k, _mm_loadu_ps(last));
            k += 4;
        }
#ifdef ONEMODEL_WIDE
        if (((uintptr_t)(target + k) & 16) != 0 && k < padded4) {
            ONEMODEL_STORE4(target + k, pad4);
            k += 4;
        }
        for (; k + 8 <= padded4; k += 8) ONEMODEL_STORE8(target + k, pad8);
#endif
        for (; k < padded4; k += 4) ONEMODEL_STORE4(target + k, pad4);
        if (!non_temporal)
            for (; k < padded; k++) target[k] = k < width ? ONEMODEL_LOAD1(k) : pad;
#else
        for (; k < width; k++) target[k] = ONEMODEL_LOAD1(k);
        for (; k < padded; k++) target[k] = pad;
#endif
        source += rows->stride;
        next_source += rows->next_stride;
        target += padded;
    }
#undef ONEMODEL_LOAD1
#ifdef ONEMODEL_SSE2
#undef ONEMODEL_LOAD4
#undef ONEMODEL_STORE4
#endif
#ifdef ONEMODEL_WIDE
#undef ONEMODEL_LOAD8
#undef ONEMODEL_STORE8
#endif
}

/* The constants: each combination becomes a loop of its own. Where rows are not 16-byte aligned,
 * ordinary stores. */
ONEMODEL_TARGET static ONEMODEL_INLINE void ONEMODEL_VARIANT(store_any_rows)(
    const onemodel_rows *rows, int scaled, float gain, float offset) {
    int aligned = rows->padded % 4 == 0 && ((uintptr_t)rows->target & 15) == 0;
    int non_temporal = rows->non_temporal && aligned;
    if (rows->bytes && non_temporal)
        ONEMODEL_VARIANT(store_rows_as)(rows, 1, scaled, 1, gain, offset);
    else if (rows->bytes)
        ONEMODEL_VARIANT(store_rows_as)(rows, 1, scaled, 0, gain, offset);
    else if (non_temporal)
        ONEMODEL_VARIANT(store_rows_as)(rows, 0, scaled, 1, gain, offset);
    else
        ONEMODEL_VARIANT(store_rows_as)(rows, 0, scaled, 0, gain, offset);
}

ONEMODEL_TARGET static void ONEMODEL_VARIANT(store_rows)(const onemodel_rows *rows) {
    ONEMODEL_VARIANT(store_any_rows)(rows, 0, 0.0f, 0.0f);
}

ONEMODEL_TARGET static void ONEMODEL_VARIANT(store_gain_offset)(const onemodel_rows *rows,
                                                                float gain, float offset) {
    ONEMODEL_VARIANT(store_any_rows)(rows, 1, gain, offset);
}

#define ONEMODEL_ROW_LOOPS(LOOP)                                             \
    /* the rows and their padding */                                         \
    LOOP(store_rows, (const onemodel_rows *rows))                            \
    /* likewise, each value * gain + offset, each operation rounded */       \
    LOOP(store_gain_offset, (const onemodel_rows *rows, float gain, float offset))

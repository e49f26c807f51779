/* Normal noise on a row of floats; variant.h includes this file once a variant. */

#ifdef ONEMODEL_WIDE
/* The generator's next state of four lanes, and its word but for the last multiplication. */
#define ONEMODEL_NEXT(state, z)                                                              \
    do {                                                                                     \
        __m256i cross, low;                                                                  \
        state = _mm256_add_epi64(state, increment);                                          \
        z = _mm256_xor_si256(state, _mm256_srli_epi64(state, 30));                           \
        cross = _mm256_mullo_epi32(z, first_swapped);                                        \
        cross = _mm256_add_epi32(cross, _mm256_slli_epi64(cross, 32));                       \
        cross = _mm256_and_si256(cross, _mm256_set1_epi64x(-(INT64_C(1) << 32)));            \
        low = _mm256_mul_epu32(z, first);                                                    \
        z = _mm256_add_epi32(low, cross);                                                    \
        z = _mm256_xor_si256(z, _mm256_srli_epi64(z, 27));                                   \
    } while (0)

/* 32 bits of each lane of two vectors: the lower halves, or the upper ones. */
#define ONEMODEL_HALVES(a, b, which) \
    _mm256_castps_si256(             \
        _mm256_shuffle_ps(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b), which))
#define ONEMODEL_LOWER 0x88
#define ONEMODEL_UPPER 0xDD
#endif

/* A normal draw is the sum of twelve uniforms less six. The uniforms' factor 2^-24 is applied
 * to their sum: a power of two commutes with rounding. Of a word only the upper 24 bits count. */
ONEMODEL_TARGET static void ONEMODEL_VARIANT(noise)(float *target, const float *source,
                                                    int64_t count, uint64_t state, float sigma) {
    int64_t k = 0;
#ifdef ONEMODEL_WIDE
    const __m256i increment = _mm256_set1_epi64x((int64_t)ONEMODEL_INCREMENT);
    const __m256i first = _mm256_set1_epi64x((int64_t)ONEMODEL_FIRST_FACTOR);
    const __m256i second = _mm256_set1_epi64x((int64_t)ONEMODEL_SECOND_FACTOR);
    const __m256i first_swapped = _mm256_shuffle_epi32(first, 0xB1);
    const __m256i second_lower = _mm256_set1_epi32((int32_t)ONEMODEL_SECOND_FACTOR);
    const __m256i second_upper = _mm256_set1_epi32((int32_t)(ONEMODEL_SECOND_FACTOR >> 32));
    const __m256i next_pixels = _mm256_set1_epi64x((int64_t)(84 * ONEMODEL_INCREMENT));
    /* pixels 0 1 4 5 and 2 3 6 7: ONEMODEL_HALVES puts the two back in order */
    __m256i even = _mm256_set_epi64x((int64_t)(state + 60 * ONEMODEL_INCREMENT),
                                     (int64_t)(state + 48 * ONEMODEL_INCREMENT),
                                     (int64_t)(state + 12 * ONEMODEL_INCREMENT), (int64_t)state);
    __m256i odd = _mm256_add_epi64(even, _mm256_set1_epi64x((int64_t)(24 * ONEMODEL_INCREMENT)));
    for (; k + 8 <= count; k += 8) {
        __m256 total = _mm256_setzero_ps();
        for (int draw = 0; draw < 12; draw++) {
            __m256i a, b, words, products;
            ONEMODEL_NEXT(even, a);
            ONEMODEL_NEXT(odd, b);
            /* of the last product only the upper half, and of that the upper 24 bits: it takes no
             * more than the halves of both vectors side by side */
            words = _mm256_add_epi32(
                _mm256_mullo_epi32(ONEMODEL_HALVES(a, b, ONEMODEL_LOWER), second_upper),
                _mm256_mullo_epi32(ONEMODEL_HALVES(a, b, ONEMODEL_UPPER), second_lower));
            products = ONEMODEL_HALVES(_mm256_mul_epu32(a, second), _mm256_mul_epu32(b, second),
                                       ONEMODEL_UPPER);
            words = _mm256_add_epi32(words, products);
            total = _mm256_add_ps(total, _mm256_cvtepi32_ps(_mm256_srli_epi32(words, 8)));
        }
        total = _mm256_mul_ps(total, _mm256_set1_ps(1.0f / 16777216.0f));
        total = _mm256_sub_ps(total, _mm256_set1_ps(6.0f));
        total = _mm256_mul_ps(_mm256_set1_ps(sigma), total);
        _mm256_storeu_ps(target + k, _mm256_add_ps(_mm256_loadu_ps(source + k), total));
        even = _mm256_add_epi64(even, next_pixels);
        odd = _mm256_add_epi64(odd, next_pixels);
    }
    state += 12 * (uint64_t)k * ONEMODEL_INCREMENT;
#endif
    for (; k < count; k++) {
        float total = 0.0f;
        float normal, product;
        for (int draw = 0; draw < 12; draw++) {
            state += ONEMODEL_INCREMENT;
            total += (float)(int32_t)(onemodel_mix_upper(state) >> 40);
        }
        normal = total * (1.0f / 16777216.0f);
        normal = normal - 6.0f;
        product = sigma * normal;
        target[k] = source[k] + product;
    }
}

#undef ONEMODEL_NEXT
#undef ONEMODEL_HALVES
#undef ONEMODEL_LOWER
#undef ONEMODEL_UPPER

#define ONEMODEL_NOISE_LOOPS(LOOP)                                                              \
    /* target[k] = source[k] + sigma * (normal draw k after `state`, twelve words each); target \
     * may be source */                                                                         \
    LOOP(noise, (float *target, const float *source, int64_t count, uint64_t state, float sigma))

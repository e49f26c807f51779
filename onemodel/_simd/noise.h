/* Normal noise on a row of floats; variant.h includes this file once a variant. */

#ifdef ONEMODEL_WIDE
/* z * factor modulo 2^64 in the high half of each lane; the low half is right only if `whole`. */
#define ONEMODEL_MULTIPLY(z, factor, swapped, whole)                                         \
    do {                                                                                     \
        __m256i cross = _mm256_mullo_epi32(z, swapped);                                      \
        __m256i low = _mm256_mul_epu32(z, factor);                                           \
        cross = _mm256_add_epi32(cross, _mm256_slli_epi64(cross, 32));                       \
        if (whole) cross = _mm256_and_si256(cross, _mm256_set1_epi64x(-(INT64_C(1) << 32))); \
        z = _mm256_add_epi32(low, cross);                                                    \
    } while (0)

/* The high half of the next word of four generators, right in its upper 24 bits. */
#define ONEMODEL_WORDS(state, z)                                                     \
    do {                                                                             \
        state = _mm256_add_epi64(state, increment);                                  \
        z = _mm256_xor_si256(state, _mm256_srli_epi64(state, 30));                   \
        ONEMODEL_MULTIPLY(z, first, first_swapped, 1);                               \
        z = _mm256_xor_si256(z, _mm256_srli_epi64(z, 27));                           \
        ONEMODEL_MULTIPLY(z, second, second_swapped, 0);                             \
    } while (0)
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
    const __m256i second_swapped = _mm256_shuffle_epi32(second, 0xB1);
    const __m256i next_pixels = _mm256_set1_epi64x((int64_t)(84 * ONEMODEL_INCREMENT));
    /* pixels 0 1 4 5 and 2 3 6 7: _mm256_shuffle_ps puts the two back in order */
    __m256i even = _mm256_set_epi64x((int64_t)(state + 60 * ONEMODEL_INCREMENT),
                                     (int64_t)(state + 48 * ONEMODEL_INCREMENT),
                                     (int64_t)(state + 12 * ONEMODEL_INCREMENT), (int64_t)state);
    __m256i odd = _mm256_add_epi64(even, _mm256_set1_epi64x((int64_t)(24 * ONEMODEL_INCREMENT)));
    for (; k + 8 <= count; k += 8) {
        __m256 total = _mm256_setzero_ps();
        for (int draw = 0; draw < 12; draw++) {
            __m256i a, b, words;
            ONEMODEL_WORDS(even, a);
            ONEMODEL_WORDS(odd, b);
            words = _mm256_castps_si256(_mm256_shuffle_ps(_mm256_castsi256_ps(a),
                                                          _mm256_castsi256_ps(b), 0xDD));
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

#undef ONEMODEL_WORDS
#undef ONEMODEL_MULTIPLY

#define ONEMODEL_NOISE_LOOPS(LOOP)                                                              \
    /* target[k] = source[k] + sigma * (normal draw k after `state`, twelve words each); target \
     * may be source */                                                                         \
    LOOP(noise, (float *target, const float *source, int64_t count, uint64_t state, float sigma))

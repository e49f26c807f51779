/* Loops of augmentations, one variant of each; variant.h includes this file. */

#define ONEMODEL_GAMMA UINT64_C(0x9E3779B97F4A7C15)
#define ONEMODEL_FIRST UINT64_C(0xBF58476D1CE4E5B9)
#define ONEMODEL_SECOND UINT64_C(0x94D049BB133111EB)

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
        state = _mm256_add_epi64(state, gamma);                                      \
        z = _mm256_xor_si256(state, _mm256_srli_epi64(state, 30));                   \
        ONEMODEL_MULTIPLY(z, first, first_swapped, 1);                               \
        z = _mm256_xor_si256(z, _mm256_srli_epi64(z, 27));                           \
        ONEMODEL_MULTIPLY(z, second, second_swapped, 0);                             \
    } while (0)
#endif

/* A normal draw is the sum of twelve uniforms less six. The uniforms' factor 2^-24 is applied
 * to their sum: a power of two commutes with rounding. SplitMix64's last step, z ^ (z >> 31),
 * is left out because it changes no bit above the 32nd. */
ONEMODEL_TARGET static void ONEMODEL_VARIANT(noise)(float *target, const float *source,
                                                    int64_t count, uint64_t state, float sigma) {
    int64_t k = 0;
#ifdef ONEMODEL_WIDE
    const __m256i gamma = _mm256_set1_epi64x((int64_t)ONEMODEL_GAMMA);
    const __m256i first = _mm256_set1_epi64x((int64_t)ONEMODEL_FIRST);
    const __m256i second = _mm256_set1_epi64x((int64_t)ONEMODEL_SECOND);
    const __m256i first_swapped = _mm256_shuffle_epi32(first, 0xB1);
    const __m256i second_swapped = _mm256_shuffle_epi32(second, 0xB1);
    const __m256i next_pixels = _mm256_set1_epi64x((int64_t)(84 * ONEMODEL_GAMMA));
    /* pixels 0 1 4 5 and 2 3 6 7: _mm256_shuffle_ps puts the two back in order */
    __m256i even = _mm256_set_epi64x((int64_t)(state + 60 * ONEMODEL_GAMMA),
                                     (int64_t)(state + 48 * ONEMODEL_GAMMA),
                                     (int64_t)(state + 12 * ONEMODEL_GAMMA), (int64_t)state);
    __m256i odd = _mm256_add_epi64(even, _mm256_set1_epi64x((int64_t)(24 * ONEMODEL_GAMMA)));
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
    state += 12 * (uint64_t)k * ONEMODEL_GAMMA;
#endif
    for (; k < count; k++) {
        float total = 0.0f;
        float normal, product;
        for (int draw = 0; draw < 12; draw++) {
            uint64_t z = state += ONEMODEL_GAMMA;
            z = (z ^ (z >> 30)) * ONEMODEL_FIRST;
            z = (z ^ (z >> 27)) * ONEMODEL_SECOND;
            total += (float)(int32_t)(z >> 40);
        }
        normal = total * (1.0f / 16777216.0f);
        normal = normal - 6.0f;
        product = sigma * normal;
        target[k] = source[k] + product;
    }
}

#undef ONEMODEL_WORDS
#undef ONEMODEL_MULTIPLY

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

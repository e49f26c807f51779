/* Loops over pixels of three interleaved bytes; variant.h includes this file once a variant. */

#ifdef ONEMODEL_WIDE
/* For each channel of 16 interleaved pixels, whose byte 3 * pixel + channel is in register
 * a, b or c: the order of its bytes, that order reversed, and which bytes b and c give. */
static const uint8_t planar3_masks[3][4][16] = {
    {{0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13},
     {13, 10, 7, 4, 1, 14, 11, 8, 5, 2, 15, 12, 9, 6, 3, 0},
     {0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0},
     {0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0}},
    {{1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15, 2, 5, 8, 11, 14},
     {14, 11, 8, 5, 2, 15, 12, 9, 6, 3, 0, 13, 10, 7, 4, 1},
     {128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128},
     {0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0}},
    {{2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0, 3, 6, 9, 12, 15},
     {15, 12, 9, 6, 3, 0, 13, 10, 7, 4, 1, 14, 11, 8, 5, 2},
     {0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0},
     {128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128, 0, 0, 128}},
};

/* One channel: of each row its whole groups of 16 pixels. */
ONEMODEL_TARGET static inline void ONEMODEL_VARIANT(channel3_groups)(
    float *target, const uint8_t *source, int64_t height, int64_t width, int channel, float scale,
    float shift, int mirrored, int non_temporal) {
    const uint8_t(*masks)[16] = planar3_masks[channel];
    const __m128i order = _mm_loadu_si128((const __m128i *)masks[mirrored ? 1 : 0]);
    const __m128i from_b = _mm_loadu_si128((const __m128i *)masks[2]);
    const __m128i from_c = _mm_loadu_si128((const __m128i *)masks[3]);
    const __m256 scales = _mm256_set1_ps(scale);
    const __m256 shifts = _mm256_set1_ps(shift);
    for (int64_t y = 0; y < height; y++, source += 3 * width, target += width) {
        for (int64_t x = 0; x + 16 <= width; x += 16) {
            const uint8_t *group = source + 3 * (mirrored ? width - 16 - x : x);
            __m128i a = _mm_loadu_si128((const __m128i *)group);
            __m128i b = _mm_loadu_si128((const __m128i *)(group + 16));
            __m128i c = _mm_loadu_si128((const __m128i *)(group + 32));
            __m128i bytes = _mm_blendv_epi8(_mm_blendv_epi8(a, b, from_b), c, from_c);
            bytes = _mm_shuffle_epi8(bytes, order);
            __m256 low = onemodel_pixel_value8(bytes, scales, shifts);
            __m256 high = onemodel_pixel_value8(_mm_srli_si128(bytes, 8), scales, shifts);
            if (non_temporal) {
                _mm256_stream_ps(target + x, low);
                _mm256_stream_ps(target + x + 8, high);
            } else {
                _mm256_storeu_ps(target + x, low);
                _mm256_storeu_ps(target + x + 8, high);
            }
        }
    }
}
#endif

/* Channel by channel: the source is in L1, and one run of stores at a time goes faster than three
 * side by side. */
ONEMODEL_TARGET static void ONEMODEL_VARIANT(planar3)(float *target, const uint8_t *source,
                                                      int64_t height, int64_t width,
                                                      const float *scale, const float *shift,
                                                      int mirrored, int non_temporal) {
    if (!mirrored) { /* then the rows are one long row */
        width *= height;
        height = 1;
    }
    /* A cache line of which only a part is stored so costs a read of memory: whole lines or none. */
    if (((uintptr_t)target & 63) != 0 || width % 16 != 0) non_temporal = 0;
    for (int channel = 0; channel < 3; channel++) {
        const float scale1 = scale[channel], shift1 = shift[channel];
        int64_t start = 0;
#ifdef ONEMODEL_WIDE
        /* constants, so that each case becomes a loop of its own */
        if (mirrored && non_temporal)
            ONEMODEL_VARIANT(channel3_groups)(target, source, height, width, channel, scale1,
                                              shift1, 1, 1);
        else if (mirrored)
            ONEMODEL_VARIANT(channel3_groups)(target, source, height, width, channel, scale1,
                                              shift1, 1, 0);
        else if (non_temporal)
            ONEMODEL_VARIANT(channel3_groups)(target, source, height, width, channel, scale1,
                                              shift1, 0, 1);
        else
            ONEMODEL_VARIANT(channel3_groups)(target, source, height, width, channel, scale1,
                                              shift1, 0, 0);
        start = width & ~(int64_t)15;
#endif
        const uint8_t *pixels = source + channel;
        for (int64_t y = 0; y < height; y++, pixels += 3 * width, target += width) {
            if (mirrored) {
                for (int64_t x = start; x < width; x++)
                    target[x] = onemodel_pixel_value(pixels[3 * (width - 1 - x)], scale1, shift1);
            } else {
                for (int64_t x = start; x < width; x++)
                    target[x] = onemodel_pixel_value(pixels[3 * x], scale1, shift1);
            }
        }
    }
}

ONEMODEL_TARGET static void ONEMODEL_VARIANT(mirror3)(uint8_t *target, const uint8_t *source,
                                                      int64_t width) {
    int64_t x = 0;
#ifdef ONEMODEL_WIDE
    /* Five pixels of 16 bytes: the load starts one byte early and the store ends one byte
     * late, both inside the row while a sixth pixel is left; the next store puts the byte right. */
    const __m128i order =
        _mm_setr_epi8(13, 14, 15, 10, 11, 12, 7, 8, 9, 4, 5, 6, 1, 2, 3, 0);
    for (; x + 6 <= width; x += 5) {
        const uint8_t *group = source + 3 * (width - 5 - x) - 1;
        __m128i bytes = _mm_loadu_si128((const __m128i *)group);
        _mm_storeu_si128((__m128i *)(target + 3 * x), _mm_shuffle_epi8(bytes, order));
    }
#endif
    for (; x < width; x++) {
        const uint8_t *pixel = source + 3 * (width - 1 - x);
        target[3 * x] = pixel[0];
        target[3 * x + 1] = pixel[1];
        target[3 * x + 2] = pixel[2];
    }
}

#define ONEMODEL_RGB_LOOPS(LOOP)                                                                \
    /* Rows of pixels, each left to right or right to left, to three planes:                    \
     * target[c][y][x] = source * scale[c] - shift[c], each operation rounded. non_temporal: in \
     * such stores where cache lines are whole. No overlap. */                                  \
    LOOP(planar3, (float *target, const uint8_t *source, int64_t height, int64_t width,         \
                   const float *scale, const float *shift, int mirrored, int non_temporal))     \
    /* target[x] = source[width - 1 - x] in pixels. No overlap. */                              \
    LOOP(mirror3, (uint8_t *target, const uint8_t *source, int64_t width))

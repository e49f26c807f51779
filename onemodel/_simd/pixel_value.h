/* What a uint8 pixel p is as a float: p * scale - shift, the product and the difference rounded to
 * float32. Every loop that converts pixels uses one of these, so all of them give the same bits. */
#ifndef ONEMODEL_PIXEL_VALUE_H
#define ONEMODEL_PIXEL_VALUE_H

#include "compiler.h"

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

static ONEMODEL_INLINE float onemodel_pixel_value(uint8_t pixel, float scale, float shift) {
    float product = onemodel_byte_as_float(pixel) * scale;
    return product - shift;
}

#ifdef ONEMODEL_SSE2
/* Of the four pixels in the low bytes. */
static ONEMODEL_INLINE __m128 onemodel_pixel_value4(__m128i pixels, __m128 scale, __m128 shift) {
    pixels = _mm_unpacklo_epi8(pixels, _mm_setzero_si128());
    pixels = _mm_unpacklo_epi16(pixels, _mm_setzero_si128());
    return _mm_sub_ps(_mm_mul_ps(_mm_cvtepi32_ps(pixels), scale), shift);
}
#endif

#ifdef ONEMODEL_AVX2
/* Of the eight pixels in the low bytes. */
ONEMODEL_TARGET_AVX2 static ONEMODEL_INLINE __m256 onemodel_pixel_value8(__m128i pixels,
                                                                         __m256 scale,
                                                                         __m256 shift) {
    __m256 value = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(pixels));
    return _mm256_sub_ps(_mm256_mul_ps(value, scale), shift);
}
#endif

#endif

/* Ceiling of the lines workload: gather in shuffled order, gain and offset, pad, in one pass. */
#include "common.h"

typedef struct {
    const void *pixels;          /* one buffer: float32, or uint8 for the byte kernels */
    const int64_t *offsets;      /* first pixel of each image in it */
    const int32_t *widths;
    float *const *outputs;       /* `buffers` outputs, used in turn, 64-byte aligned */
    int32_t *const *indices;     /* per output: dataset indices of the batch */
    int32_t *const *real_widths; /* per output: widths before padding */
    int64_t count;
    int32_t height, batch, multiple, buffers;
    float gain_low, gain_span, offset_low, offset_span, pad, scale, shift;
    uint64_t seed;
} lines_job;

/* One image: `next` is the source of the image that follows, for kernels that prefetch. */
typedef struct {
    const void *source, *next;
    float *out;
    int32_t height, width, padded, next_width;
    float gain, offset, pad, scale, shift;
} line;

typedef void (*line_kernel)(const line *);

INLINE void float_rows(const line *job)
{
    const float *source = job->source;
    float *out = job->out, gain = job->gain, offset = job->offset, pad = job->pad;
    int32_t width = job->width, padded = job->padded;
    for (int32_t y = 0; y < job->height; y++, source += width, out += padded) {
        for (int32_t x = 0; x < width; x++)
            out[x] = source[x] * gain + offset;
        for (int32_t x = width; x < padded; x++)
            out[x] = pad;
    }
}

INLINE void byte_rows(const line *job)
{
    const uint8_t *source = job->source;
    float *out = job->out, gain = job->gain, offset = job->offset, pad = job->pad;
    float scale = job->scale, shift = job->shift;
    int32_t width = job->width, padded = job->padded;
    for (int32_t y = 0; y < job->height; y++, source += width, out += padded) {
        for (int32_t x = 0; x < width; x++)
            out[x] = ((float)source[x] * scale - shift) * gain + offset;
        for (int32_t x = width; x < padded; x++)
            out[x] = pad;
    }
}

static void float_plain(const line *job) { float_rows(job); }
static void byte_plain(const line *job) { byte_rows(job); }

#if HAVE_X86
AVX2 static void float_plain_avx2(const line *job) { float_rows(job); }
AVX2 static void byte_plain_avx2(const line *job) { byte_rows(job); }

/* The vector kernels below need rows that start on 16 bytes: a padded width that is a multiple of
 * four. They write every output line front to back, so write-combining buffers leave full. A row's
 * last pixels go through four floats on the stack: nothing behind the image is read. */

INLINE __m128 float_tail(const float *source, int32_t rest, __m128 gain, __m128 offset, float pad)
{
    float four[4] = {pad, pad, pad, pad};
    float g = _mm_cvtss_f32(gain), o = _mm_cvtss_f32(offset);
    for (int32_t i = 0; i < rest; i++)
        four[i] = source[i] * g + o;
    return _mm_loadu_ps(four);
}

INLINE void store4(float *out, __m128 value, int stream)
{
    if (stream)
        _mm_stream_ps(out, value);
    else
        _mm_store_ps(out, value);
}

INLINE void float_rows_sse2(const line *job, int stream, int prefetch)
{
    const float *source = job->source;
    const char *next = job->next;
    float *out = job->out;
    __m128 gain = _mm_set1_ps(job->gain), offset = _mm_set1_ps(job->offset);
    __m128 pad = _mm_set1_ps(job->pad);
    int32_t width = job->width, padded = job->padded, full = width & ~3;
    int32_t ahead = job->next_width * 4;
    for (int32_t y = 0; y < job->height; y++, source += width, out += padded, next += ahead) {
        int32_t x = 0;
        if (prefetch)
            for (int32_t byte = 0; byte < ahead; byte += 64)
                PREFETCH(next + byte);
        for (; x + 16 <= full; x += 16)
            for (int32_t k = 0; k < 16; k += 4)
                store4(out + x + k,
                       _mm_add_ps(_mm_mul_ps(_mm_loadu_ps(source + x + k), gain), offset), stream);
        for (; x < full; x += 4)
            store4(out + x, _mm_add_ps(_mm_mul_ps(_mm_loadu_ps(source + x), gain), offset), stream);
        if (x < width) {
            store4(out + x, float_tail(source + x, width - x, gain, offset, job->pad), stream);
            x += 4;
        }
        for (; x < padded; x += 4)
            store4(out + x, pad, stream);
    }
}

#define SSE2_LINE(name, stream, prefetch) \
    static void name(const line *job) { float_rows_sse2(job, stream, prefetch); }
SSE2_LINE(float_sse2, 0, 0)
SSE2_LINE(float_sse2_prefetch, 0, 1)
SSE2_LINE(float_sse2_stream, 1, 0)
SSE2_LINE(float_sse2_stream_prefetch, 1, 1)

#define STORE8(out, value) \
    do { if (stream) _mm256_stream_ps(out, value); else _mm256_store_ps(out, value); } while (0)

/* 32-byte stores want 32-byte rows: where a row starts on 16, four floats go first. */
AVX2 INLINE void float_rows_avx2(const line *job, int stream, int prefetch)
{
    const float *source = job->source;
    const char *next = job->next;
    float *out = job->out;
    __m256 gain = _mm256_set1_ps(job->gain), offset = _mm256_set1_ps(job->offset);
    __m256 pad = _mm256_set1_ps(job->pad);
    __m128 gain4 = _mm256_castps256_ps128(gain), offset4 = _mm256_castps256_ps128(offset);
    __m128 pad4 = _mm256_castps256_ps128(pad);
    int32_t width = job->width, padded = job->padded, full = width & ~3;
    int32_t ahead = job->next_width * 4;
    for (int32_t y = 0; y < job->height; y++, source += width, out += padded, next += ahead) {
        int32_t x = 0;
        if (prefetch)
            for (int32_t byte = 0; byte < ahead; byte += 64)
                PREFETCH(next + byte);
        if (((uintptr_t)out & 31) && full) {
            store4(out, _mm_add_ps(_mm_mul_ps(_mm_loadu_ps(source), gain4), offset4), stream);
            x = 4;
        }
        for (; x + 16 <= full; x += 16) {
            __m256 a = _mm256_loadu_ps(source + x), b = _mm256_loadu_ps(source + x + 8);
            STORE8(out + x, _mm256_add_ps(_mm256_mul_ps(a, gain), offset));
            STORE8(out + x + 8, _mm256_add_ps(_mm256_mul_ps(b, gain), offset));
        }
        for (; x < full; x += 4)
            store4(out + x, _mm_add_ps(_mm_mul_ps(_mm_loadu_ps(source + x), gain4), offset4),
                   stream);
        if (x < width) {
            store4(out + x, float_tail(source + x, width - x, gain4, offset4, job->pad), stream);
            x += 4;
        }
        if (((uintptr_t)(out + x) & 31) && x < padded) {
            store4(out + x, pad4, stream);
            x += 4;
        }
        for (; x + 8 <= padded; x += 8)
            STORE8(out + x, pad);
        if (x < padded)
            store4(out + x, pad4, stream);
    }
}

#define AVX2_LINE(name, stream, prefetch) \
    AVX2 static void name(const line *job) { float_rows_avx2(job, stream, prefetch); }
AVX2_LINE(float_avx2, 0, 0)
AVX2_LINE(float_avx2_prefetch, 0, 1)
AVX2_LINE(float_avx2_stream, 1, 0)
AVX2_LINE(float_avx2_stream_prefetch, 1, 1)

INLINE __m128 byte_tail(const uint8_t *source, int32_t rest, const line *job)
{
    float four[4] = {job->pad, job->pad, job->pad, job->pad};
    for (int32_t i = 0; i < rest; i++)
        four[i] = ((float)source[i] * job->scale - job->shift) * job->gain + job->offset;
    return _mm_loadu_ps(four);
}

INLINE __m128 byte4(__m128i words, __m128 scale, __m128 shift, __m128 gain, __m128 offset)
{
    __m128 value = _mm_sub_ps(_mm_mul_ps(_mm_cvtepi32_ps(words), scale), shift);
    return _mm_add_ps(_mm_mul_ps(value, gain), offset);
}

INLINE void byte_rows_sse2(const line *job, int stream, int prefetch)
{
    const uint8_t *source = job->source;
    const char *next = job->next;
    float *out = job->out;
    __m128 gain = _mm_set1_ps(job->gain), offset = _mm_set1_ps(job->offset);
    __m128 scale = _mm_set1_ps(job->scale), shift = _mm_set1_ps(job->shift);
    __m128 pad = _mm_set1_ps(job->pad);
    __m128i zero = _mm_setzero_si128();
    int32_t width = job->width, padded = job->padded, full = width & ~3;
    int32_t ahead = job->next_width;
    for (int32_t y = 0; y < job->height; y++, source += width, out += padded, next += ahead) {
        int32_t x = 0;
        if (prefetch)
            for (int32_t byte = 0; byte < ahead; byte += 64)
                PREFETCH(next + byte);
        for (; x + 16 <= full; x += 16) {
            __m128i bytes = _mm_loadu_si128((const __m128i *)(source + x));
            __m128i low = _mm_unpacklo_epi8(bytes, zero), high = _mm_unpackhi_epi8(bytes, zero);
            __m128i four[4] = {_mm_unpacklo_epi16(low, zero), _mm_unpackhi_epi16(low, zero),
                               _mm_unpacklo_epi16(high, zero), _mm_unpackhi_epi16(high, zero)};
            for (int k = 0; k < 4; k++)
                store4(out + x + 4 * k, byte4(four[k], scale, shift, gain, offset), stream);
        }
        for (; x < full; x += 4) {
            int32_t word;
            memcpy(&word, source + x, 4);
            __m128i bytes = _mm_unpacklo_epi8(_mm_cvtsi32_si128(word), zero);
            store4(out + x, byte4(_mm_unpacklo_epi16(bytes, zero), scale, shift, gain, offset),
                   stream);
        }
        if (x < width) {
            store4(out + x, byte_tail(source + x, width - x, job), stream);
            x += 4;
        }
        for (; x < padded; x += 4)
            store4(out + x, pad, stream);
    }
}

#define SSE2_BYTE(name, stream, prefetch) \
    static void name(const line *job) { byte_rows_sse2(job, stream, prefetch); }
SSE2_BYTE(byte_sse2, 0, 0)
SSE2_BYTE(byte_sse2_prefetch, 0, 1)
SSE2_BYTE(byte_sse2_stream, 1, 0)
SSE2_BYTE(byte_sse2_stream_prefetch, 1, 1)

AVX2 INLINE void byte_rows_avx2(const line *job, int stream, int prefetch)
{
    const uint8_t *source = job->source;
    const char *next = job->next;
    float *out = job->out;
    __m256 gain = _mm256_set1_ps(job->gain), offset = _mm256_set1_ps(job->offset);
    __m256 scale = _mm256_set1_ps(job->scale), shift = _mm256_set1_ps(job->shift);
    __m256 pad = _mm256_set1_ps(job->pad);
    __m128 gain4 = _mm256_castps256_ps128(gain), offset4 = _mm256_castps256_ps128(offset);
    __m128 scale4 = _mm256_castps256_ps128(scale), shift4 = _mm256_castps256_ps128(shift);
    __m128 pad4 = _mm256_castps256_ps128(pad);
    int32_t width = job->width, padded = job->padded, full = width & ~3;
    int32_t ahead = job->next_width;
    for (int32_t y = 0; y < job->height; y++, source += width, out += padded, next += ahead) {
        int32_t x = 0, word;
        if (prefetch)
            for (int32_t byte = 0; byte < ahead; byte += 64)
                PREFETCH(next + byte);
        if (((uintptr_t)out & 31) && full) {
            memcpy(&word, source, 4);
            store4(out, byte4(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(word)), scale4, shift4, gain4,
                              offset4), stream);
            x = 4;
        }
        for (; x + 8 <= full; x += 8) {
            __m256i words = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(source + x)));
            __m256 value = _mm256_sub_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(words), scale), shift);
            STORE8(out + x, _mm256_add_ps(_mm256_mul_ps(value, gain), offset));
        }
        if (x < full) {
            memcpy(&word, source + x, 4);
            store4(out + x, byte4(_mm_cvtepu8_epi32(_mm_cvtsi32_si128(word)), scale4, shift4, gain4,
                                  offset4), stream);
            x += 4;
        }
        if (x < width) {
            store4(out + x, byte_tail(source + x, width - x, job), stream);
            x += 4;
        }
        if (((uintptr_t)(out + x) & 31) && x < padded) {
            store4(out + x, pad4, stream);
            x += 4;
        }
        for (; x + 8 <= padded; x += 8)
            STORE8(out + x, pad);
        if (x < padded)
            store4(out + x, pad4, stream);
    }
}

#define AVX2_BYTE(name, stream, prefetch) \
    AVX2 static void name(const line *job) { byte_rows_avx2(job, stream, prefetch); }
AVX2_BYTE(byte_avx2, 0, 0)
AVX2_BYTE(byte_avx2_prefetch, 0, 1)
AVX2_BYTE(byte_avx2_stream, 1, 0)
AVX2_BYTE(byte_avx2_stream_prefetch, 1, 1)
#endif

typedef struct {
    const char *name;
    line_kernel run;
    int item, vector, stream, avx2; /* bytes a pixel, rows on 16 bytes needed, stores, CPU need */
} line_entry;

static const line_entry entries[] = {
    {"float32 plain", float_plain, 4, 0, 0, 0},
    {"uint8 plain", byte_plain, 1, 0, 0, 0},
#if HAVE_X86
    {"float32 plain, AVX2 flags", float_plain_avx2, 4, 0, 0, 1},
    {"float32 SSE2", float_sse2, 4, 1, 0, 0},
    {"float32 SSE2, prefetch", float_sse2_prefetch, 4, 1, 0, 0},
    {"float32 SSE2, streaming", float_sse2_stream, 4, 1, 1, 0},
    {"float32 SSE2, streaming, prefetch", float_sse2_stream_prefetch, 4, 1, 1, 0},
    {"float32 AVX2", float_avx2, 4, 1, 0, 1},
    {"float32 AVX2, prefetch", float_avx2_prefetch, 4, 1, 0, 1},
    {"float32 AVX2, streaming", float_avx2_stream, 4, 1, 1, 1},
    {"float32 AVX2, streaming, prefetch", float_avx2_stream_prefetch, 4, 1, 1, 1},
    {"uint8 plain, AVX2 flags", byte_plain_avx2, 1, 0, 0, 1},
    {"uint8 SSE2", byte_sse2, 1, 1, 0, 0},
    {"uint8 SSE2, prefetch", byte_sse2_prefetch, 1, 1, 0, 0},
    {"uint8 SSE2, streaming", byte_sse2_stream, 1, 1, 1, 0},
    {"uint8 SSE2, streaming, prefetch", byte_sse2_stream_prefetch, 1, 1, 1, 0},
    {"uint8 AVX2", byte_avx2, 1, 1, 0, 1},
    {"uint8 AVX2, prefetch", byte_avx2_prefetch, 1, 1, 0, 1},
    {"uint8 AVX2, streaming", byte_avx2_stream, 1, 1, 1, 1},
    {"uint8 AVX2, streaming, prefetch", byte_avx2_stream_prefetch, 1, 1, 1, 1},
#endif
};

/* Name of kernel `number`, or NULL where there is none or this CPU cannot run it. */
const char *lines_kernel(int number)
{
    if (number < 0 || number >= (int)(sizeof entries / sizeof entries[0]))
        return 0;
#if HAVE_X86
    if (entries[number].avx2 && !__builtin_cpu_supports("avx2"))
        return "";
#endif
    return entries[number].name;
}

enum { MOST = 4096 }; /* largest batch; the caller checks */

static void lines_step(const lines_job *job, const line_entry *entry, int64_t step)
{
    int64_t per_epoch = job->count / job->batch, epoch = step / per_epoch;
    int64_t index[MOST], within = step % per_epoch;
    float gain[MOST], offset[MOST];
    int32_t buffer = (int32_t)(step % job->buffers), widest = 0;
    permutation order = permutation_of(job->count, derive(job->seed, epoch, 0, 0, 101));
    const char *pixels = job->pixels;
    line image = {.height = job->height, .pad = job->pad, .scale = job->scale,
                  .shift = job->shift};
    for (int32_t slot = 0; slot < job->batch; slot++) {
        uint64_t state = derive(job->seed, epoch, within, slot, 1);
        int64_t at = permutation_at(&order, within * job->batch + slot);
        index[slot] = at;
        gain[slot] = job->gain_low + job->gain_span * next_single(&state);
        offset[slot] = job->offset_low + job->offset_span * next_single(&state);
        job->indices[buffer][slot] = (int32_t)at;
        job->real_widths[buffer][slot] = job->widths[at];
        widest = job->widths[at] > widest ? job->widths[at] : widest;
    }
    image.padded = (widest + job->multiple - 1) / job->multiple * job->multiple;
    image.out = job->outputs[buffer];
    line_kernel run = entry->run;
    if (entry->vector && image.padded % 4)
        run = entry->item == 4 ? float_plain : byte_plain;
    for (int32_t slot = 0; slot < job->batch; slot++) {
        int64_t next = index[slot + 1 < job->batch ? slot + 1 : slot];
        image.source = pixels + job->offsets[index[slot]] * entry->item;
        image.next = pixels + job->offsets[next] * entry->item;
        image.width = job->widths[index[slot]];
        image.next_width = job->widths[next];
        image.gain = gain[slot];
        image.offset = offset[slot];
        run(&image);
        image.out += (int64_t)image.padded * job->height;
    }
#if HAVE_X86
    if (entry->stream)
        _mm_sfence();
#endif
}

static void lines_thread(const void *job, int kernel, int64_t first, int64_t steps, int thread,
                         int threads)
{
    for (int64_t step = first + thread; step < first + steps; step += threads)
        lines_step(job, &entries[kernel], step);
}

/* Builds the batches of global steps first .. first + steps - 1, shared out among threads. */
void lines_run(const lines_job *job, int kernel, int64_t first, int64_t steps, int threads)
{
    run_threads(lines_thread, job, kernel, first, steps, threads);
}

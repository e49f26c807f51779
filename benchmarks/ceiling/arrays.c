/* Ceiling of the arrays workload: shuffled gather of uint8 HWC images, a flip by each row's own
 * key, and (p * scale - shift) into float32 CHW, in one pass. */
#include "common.h"

typedef struct {
    const uint8_t *pixels; /* [count, height, width, 3] */
    float *const *outputs; /* `buffers` outputs [batch, 3, height, width], 64-byte aligned */
    int64_t count;
    int32_t height, width, batch, buffers;
    float scale[3], shift[3];
    uint64_t seed;
    int32_t stream; /* the stream number of the flip's draws */
} arrays_job;

typedef struct {
    const uint8_t *source, *next;
    float *out;
    const float *scale, *shift;
    const float (*table)[256];
    int32_t height, width, flip;
} picture;

typedef void (*picture_kernel)(const picture *);

/* What a first version looks like: three strided reads a pixel. */
INLINE void interleaved(const picture *job)
{
    int64_t plane = (int64_t)job->height * job->width;
    int32_t width = job->width;
    for (int32_t channel = 0; channel < 3; channel++) {
        float scale = job->scale[channel], shift = job->shift[channel];
        const uint8_t *source = job->source + channel;
        float *out = job->out + channel * plane;
        for (int32_t y = 0; y < job->height; y++, source += 3 * width, out += width) {
            if (job->flip)
                for (int32_t x = 0; x < width; x++)
                    out[x] = (float)source[3 * (width - 1 - x)] * scale - shift;
            else
                for (int32_t x = 0; x < width; x++)
                    out[x] = (float)source[3 * x] * scale - shift;
        }
    }
}

static void plain(const picture *job) { interleaved(job); }

/* A table of 256 results for each channel: same bits, no arithmetic left in the loop. */
static void tabled(const picture *job)
{
    int64_t plane = (int64_t)job->height * job->width;
    int32_t width = job->width, step = job->flip ? -3 : 3;
    const uint8_t *row = job->source + (job->flip ? 3 * (width - 1) : 0);
    float *out = job->out;
    for (int32_t y = 0; y < job->height; y++, row += 3 * width, out += width) {
        const uint8_t *source = row;
        for (int32_t x = 0; x < width; x++, source += step) {
            out[x] = job->table[0][source[0]];
            out[x + plane] = job->table[1][source[1]];
            out[x + 2 * plane] = job->table[2][source[2]];
        }
    }
}

#if HAVE_X86
AVX2 static void plain_avx2(const picture *job) { interleaved(job); }

INLINE void prefetch_row(const picture *job, int32_t y)
{
    const uint8_t *next = job->next + (int64_t)y * 3 * job->width;
    for (int32_t byte = 0; byte < 3 * job->width; byte += 64)
        PREFETCH(next + byte);
}

/* De-interleave with unpack instructions alone, which every x86-64 has: four rounds in which the
 * halves of 48 bytes are dealt like cards sort red, green and blue apart. */
INLINE void deal(__m128i a[3])
{
    for (int round = 0; round < 4; round++) {
        __m128i x = _mm_unpacklo_epi8(a[0], _mm_unpackhi_epi64(a[1], a[1]));
        __m128i y = _mm_unpacklo_epi8(_mm_unpackhi_epi64(a[0], a[0]), a[2]);
        __m128i z = _mm_unpacklo_epi8(a[1], _mm_unpackhi_epi64(a[2], a[2]));
        a[0] = x;
        a[1] = y;
        a[2] = z;
    }
}

INLINE void rows_sse2(const picture *job, int stream, int prefetch)
{
    int64_t plane = (int64_t)job->height * job->width;
    int32_t width = job->width;
    const uint8_t *row = job->source;
    float *out = job->out;
    __m128i zero = _mm_setzero_si128();
    for (int32_t y = 0; y < job->height; y++, row += 3 * width, out += width) {
        if (prefetch)
            prefetch_row(job, y);
        for (int32_t x = 0; x < width; x += 16) {
            const uint8_t *source = row + 3 * (job->flip ? width - 16 - x : x);
            __m128i bytes[3];
            for (int k = 0; k < 3; k++)
                bytes[k] = _mm_loadu_si128((const __m128i *)(source + 16 * k));
            deal(bytes);
            for (int channel = 0; channel < 3; channel++) {
                __m128i low = _mm_unpacklo_epi8(bytes[channel], zero);
                __m128i high = _mm_unpackhi_epi8(bytes[channel], zero);
                __m128 scale = _mm_set1_ps(job->scale[channel]);
                __m128 shift = _mm_set1_ps(job->shift[channel]);
                __m128i words[4] = {_mm_unpacklo_epi16(low, zero), _mm_unpackhi_epi16(low, zero),
                                    _mm_unpacklo_epi16(high, zero),
                                    _mm_unpackhi_epi16(high, zero)};
                for (int k = 0; k < 4; k++) {
                    __m128i four = job->flip ? _mm_shuffle_epi32(words[3 - k], 0x1B) : words[k];
                    __m128 value = _mm_sub_ps(_mm_mul_ps(_mm_cvtepi32_ps(four), scale), shift);
                    float *to = out + channel * plane + x + 4 * k;
                    if (stream)
                        _mm_stream_ps(to, value);
                    else
                        _mm_store_ps(to, value);
                }
            }
        }
    }
}

/* Eight pixels of one channel: two overlapping loads fill the halves of a register (nothing beyond
 * the pixels is read), and one byte shuffle spreads the channel's bytes to eight integers. */
AVX2 INLINE void eight(const picture *job, int channel, int32_t y, int32_t x, __m256i spread,
                       __m256 scale, __m256 shift, int stream)
{
    int32_t from = job->flip ? job->width - 8 - x : x, first = job->flip ? 8 : 0;
    const uint8_t *source = job->source + 3 * ((int64_t)y * job->width + from);
    float *out = job->out + ((int64_t)channel * job->height + y) * job->width + x;
    __m128i low = _mm_loadu_si128((const __m128i *)(source + first));
    __m128i high = _mm_loadu_si128((const __m128i *)(source + 8 - first));
    __m256i pixels = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    __m256i words = _mm256_shuffle_epi8(pixels, spread);
    __m256 value = _mm256_sub_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(words), scale), shift);
    if (stream)
        _mm256_stream_ps(out, value);
    else
        _mm256_store_ps(out, value);
}

AVX2 INLINE void rows_avx2(const picture *job, int stream, int prefetch)
{
    int32_t width = job->width;
    __m256i spread[3];
    __m256 scale[3], shift[3];
    for (int channel = 0; channel < 3; channel++) {
        int8_t mask[32];
        for (int k = 0; k < 32; k++) {
            int pixel = k / 4, from = job->flip ? 7 - pixel : pixel;
            mask[k] = k % 4 ? -1 : (int8_t)(3 * from + channel - (from >= 4 ? 8 : 0));
        }
        spread[channel] = _mm256_loadu_si256((const __m256i *)mask);
        scale[channel] = _mm256_set1_ps(job->scale[channel]);
        shift[channel] = _mm256_set1_ps(job->shift[channel]);
    }
    if (!stream) {
        for (int32_t y = 0; y < job->height; y++) {
            if (prefetch)
                prefetch_row(job, y);
            for (int32_t x = 0; x < width; x += 16) /* 16 pixels: a full line in each plane */
                for (int channel = 0; channel < 3; channel++)
                    for (int half = 0; half < 16; half += 8)
                        eight(job, channel, y, x + half, spread[channel], scale[channel],
                              shift[channel], 0);
        }
        return;
    }
    /* Streaming stores want one plane after the other: to three planes in turn, 4 KiB apart here,
     * they run a third slower. The source is in the first cache after the first plane. */
    for (int channel = 0; channel < 3; channel++)
        for (int32_t y = 0; y < job->height; y++) {
            if (prefetch && channel == 0)
                prefetch_row(job, y);
            for (int32_t x = 0; x < width; x += 8)
                eight(job, channel, y, x, spread[channel], scale[channel], shift[channel], 1);
        }
}

static void sse2(const picture *job) { rows_sse2(job, 0, 0); }
static void sse2_prefetch(const picture *job) { rows_sse2(job, 0, 1); }
static void sse2_stream(const picture *job) { rows_sse2(job, 1, 0); }
static void sse2_stream_prefetch(const picture *job) { rows_sse2(job, 1, 1); }
AVX2 static void avx2(const picture *job) { rows_avx2(job, 0, 0); }
AVX2 static void avx2_prefetch(const picture *job) { rows_avx2(job, 0, 1); }
AVX2 static void avx2_stream(const picture *job) { rows_avx2(job, 1, 0); }
AVX2 static void avx2_stream_prefetch(const picture *job) { rows_avx2(job, 1, 1); }
#endif

typedef struct {
    const char *name;
    picture_kernel run;
    int vector, stream, avx2; /* width a multiple of 16 needed, streaming stores, CPU need */
} picture_entry;

static const picture_entry entries[] = {
    {"plain", plain, 0, 0, 0},
    {"table", tabled, 0, 0, 0},
#if HAVE_X86
    {"plain, AVX2 flags", plain_avx2, 0, 0, 1},
    {"SSE2", sse2, 1, 0, 0},
    {"SSE2, prefetch", sse2_prefetch, 1, 0, 0},
    {"SSE2, streaming", sse2_stream, 1, 1, 0},
    {"SSE2, streaming, prefetch", sse2_stream_prefetch, 1, 1, 0},
    {"AVX2", avx2, 1, 0, 1},
    {"AVX2, prefetch", avx2_prefetch, 1, 0, 1},
    {"AVX2, streaming", avx2_stream, 1, 1, 1},
    {"AVX2, streaming, prefetch", avx2_stream_prefetch, 1, 1, 1},
#endif
};

/* Name of kernel `number`; NULL behind the last one, "" where this CPU cannot run it. */
const char *arrays_kernel(int number)
{
    if (number < 0 || number >= (int)(sizeof entries / sizeof entries[0]))
        return 0;
#if HAVE_X86
    if (entries[number].avx2 && !__builtin_cpu_supports("avx2"))
        return "";
#endif
    return entries[number].name;
}

static void arrays_thread(const void *argument, int kernel, int64_t first, int64_t steps,
                          int thread, int threads)
{
    const arrays_job *job = argument;
    const picture_entry *entry = &entries[kernel];
    int64_t per_epoch = job->count / job->batch;
    int64_t bytes = 3ll * job->height * job->width;
    float table[3][256];
    for (int channel = 0; channel < 3; channel++)
        for (int p = 0; p < 256; p++)
            table[channel][p] = (float)p * job->scale[channel] - job->shift[channel];
    picture image = {.scale = job->scale, .shift = job->shift, .table = table,
                     .height = job->height, .width = job->width};
    picture_kernel run = entry->vector && job->width % 16 ? plain : entry->run;
    for (int64_t step = first + thread; step < first + steps; step += threads) {
        int64_t epoch = step / per_epoch, within = step % per_epoch;
        permutation order = permutation_of(job->count, derive(job->seed, epoch, 0, 0, 101));
        int64_t position = within * job->batch;
        image.out = job->outputs[step % job->buffers];
        image.next = job->pixels + permutation_at(&order, position) * bytes;
        for (int32_t slot = 0; slot < job->batch; slot++) {
            uint64_t state = derive(job->seed, epoch, within, slot, job->stream);
            image.flip = next_single(&state) < 0.5f;
            image.source = image.next;
            if (slot + 1 < job->batch)
                image.next = job->pixels + permutation_at(&order, position + slot + 1) * bytes;
            run(&image);
            image.out += bytes;
        }
#if HAVE_X86
        if (entry->stream)
            _mm_sfence();
#endif
    }
}

/* Builds the batches of global steps first .. first + steps - 1, shared out among threads. */
void arrays_run(const arrays_job *job, int kernel, int64_t first, int64_t steps, int threads)
{
    run_threads(arrays_thread, job, kernel, first, steps, threads);
}

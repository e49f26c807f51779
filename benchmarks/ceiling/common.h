/* What every ceiling shares: the generator, the seed derivation, the permutation, threads.
 *
 * Plain C, written from docs/specification.md and not from the kernels, so that a figure measured
 * against it says what the machine can do with the same bytes as output.
 */
#ifndef ONEMODEL_CEILING_COMMON_H
#define ONEMODEL_CEILING_COMMON_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define HAVE_X86 1
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))
#else
#define HAVE_X86 0
#endif

#define INLINE static inline __attribute__((always_inline))
#define PREFETCH(address) __builtin_prefetch((address), 0, 0)

INLINE uint64_t mix(uint64_t x)
{
    x += 0x9E3779B97F4A7C15ull;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

INLINE uint64_t derive(uint64_t seed, uint64_t epoch, uint64_t step, uint64_t slot, uint64_t stream)
{
    uint64_t h = mix(seed ^ 0xD1B54A32D192ED03ull);
    h = mix(h + epoch);
    h = mix(h + step);
    h = mix(h + slot);
    return mix(h + stream);
}

/* The next NextSingle of a SampleRng with the state *state. */
INLINE float next_single(uint64_t *state)
{
    uint64_t u = mix(*state);
    *state += 0x9E3779B97F4A7C15ull;
    return (float)(u >> 40) * (1.0f / 16777216.0f);
}

typedef struct {
    uint64_t n, key[4], mask;
    int half;
} permutation;

INLINE permutation permutation_of(uint64_t n, uint64_t key)
{
    permutation p;
    int bits = n > 1 ? 64 - __builtin_clzll(n - 1) : 0;
    p.n = n;
    p.half = (bits + 1) / 2;
    p.mask = p.half ? (~0ull >> (64 - p.half)) : 0;
    for (int round = 0; round < 4; round++)
        p.key[round] = key ^ ((uint64_t)round * 0x632BE59BD9B4E019ull);
    return p;
}

/* One walk of the Feistel network: bijective on 2^(2 half) values, so it may leave [0, n). */
INLINE uint64_t permutation_walk(const permutation *p, uint64_t x)
{
    uint64_t left = x >> p->half, right = x & p->mask;
    for (int round = 0; round < 4; round++) {
        uint64_t next = left ^ (mix(right ^ p->key[round]) & p->mask);
        left = right;
        right = next;
    }
    return (left << p->half) | right;
}

INLINE uint64_t permutation_at(const permutation *p, uint64_t x)
{
    if (p->n <= 1)
        return 0;
    do
        x = permutation_walk(p, x);
    while (x >= p->n);
    return x;
}

/* Calls work(job, kernel, thread, threads) on each of `threads` threads and waits for all. */
typedef void (*thread_work)(const void *job, int kernel, int64_t first, int64_t steps, int thread,
                            int threads);
void run_threads(thread_work work, const void *job, int kernel, int64_t first, int64_t steps,
                 int threads);

#endif

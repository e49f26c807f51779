/* Ceiling of KeyedPermutation.take: positions first, first + 1, ... to their values. */
#include "common.h"

/* The take loop as one writes it: one position after the other. */
void permutation_take(uint64_t n, uint64_t key, int64_t first, int64_t count, int64_t *out)
{
    permutation p = permutation_of(n, key);
    for (int64_t i = 0; i < count; i++)
        out[i] = (int64_t)permutation_at(&p, (uint64_t)(first + i));
}

/* The same a block at a time: all walk once without a branch, then those that left [0, n) are put
 * side by side and walk again, until none is astray. The processor no longer guesses whether a
 * walk stays inside (wrong every other time at worst), and the loops hold nothing but arithmetic,
 * so the compiler makes vectors of them. */
INLINE void take_blocks(uint64_t n, uint64_t key, int64_t first, int64_t count, int64_t *out)
{
    enum { BLOCK = 256 };
    int16_t place[BLOCK + 1];
    uint64_t value[BLOCK + 1];
    permutation p = permutation_of(n, key);
    for (int64_t start = 0; start < count; start += BLOCK) {
        int64_t size = count - start < BLOCK ? count - start : BLOCK, astray = 0;
        int64_t *block = out + start;
        for (int64_t i = 0; i < size; i++)
            block[i] = (int64_t)permutation_walk(&p, (uint64_t)(first + start + i));
        for (int64_t i = 0; i < size; i++) {
            place[astray] = (int16_t)i;
            value[astray] = (uint64_t)block[i];
            astray += (uint64_t)block[i] >= n;
        }
        while (astray) {
            int64_t still = 0;
            for (int64_t i = 0; i < astray; i++)
                value[i] = permutation_walk(&p, value[i]);
            for (int64_t i = 0; i < astray; i++) {
                uint64_t x = value[i];
                int16_t at = place[i];
                block[at] = (int64_t)x;
                place[still] = at;
                value[still] = x;
                still += x >= n;
            }
            astray = still;
        }
    }
}

void permutation_take_blocks(uint64_t n, uint64_t key, int64_t first, int64_t count, int64_t *out)
{
    if (n <= 1)
        permutation_take(n, key, first, count, out);
    else
        take_blocks(n, key, first, count, out);
}

#if HAVE_X86
AVX2 static void take_blocks_avx2(uint64_t n, uint64_t key, int64_t first, int64_t count,
                                  int64_t *out)
{
    take_blocks(n, key, first, count, out);
}
#endif

/* Returns 0, having done nothing, where this CPU has no AVX2. */
int permutation_take_avx2(uint64_t n, uint64_t key, int64_t first, int64_t count, int64_t *out)
{
#if HAVE_X86
    if (__builtin_cpu_supports("avx2") && n > 1) {
        take_blocks_avx2(n, key, first, count, out);
        return 1;
    }
#else
    (void)n, (void)key, (void)first, (void)count, (void)out;
#endif
    return 0;
}

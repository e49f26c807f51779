/* The keyed permutation's network, for feistel.pxd and for the loops over many positions. */
#ifndef ONEMODEL_FEISTEL_H
#define ONEMODEL_FEISTEL_H

#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define ONEMODEL_FEISTEL_INLINE inline __attribute__((always_inline))
#else
#define ONEMODEL_FEISTEL_INLINE inline
#endif

typedef struct {
    uint64_t n;
    uint64_t mask;          /* 2^half - 1 */
    int half;               /* ceil(bits / 2) where bits = ceil(log2 n) */
    uint64_t round_keys[4]; /* key ^ round * constant */
} onemodel_feistel;

static ONEMODEL_FEISTEL_INLINE uint64_t onemodel_feistel_mix(uint64_t x) {
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* One pass of the network: a bijection of [0, 2^(2 half)). Two rounds a line, no swap. */
static ONEMODEL_FEISTEL_INLINE uint64_t onemodel_feistel_rounds(const onemodel_feistel *plan,
                                                                uint64_t x) {
    uint64_t left = x >> plan->half, right = x & plan->mask;
    left ^= onemodel_feistel_mix(right ^ plan->round_keys[0]) & plan->mask;
    right ^= onemodel_feistel_mix(left ^ plan->round_keys[1]) & plan->mask;
    left ^= onemodel_feistel_mix(right ^ plan->round_keys[2]) & plan->mask;
    right ^= onemodel_feistel_mix(left ^ plan->round_keys[3]) & plan->mask;
    return (left << plan->half) | right;
}

#endif

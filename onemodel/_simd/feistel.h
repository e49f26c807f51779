/* The keyed permutation of [0, n): its struct, its set-up, one position and the way back.
 *
 * Construction: a balanced Feistel network of four rounds with SplitMix64's mixer as the round
 * function, restricted to [0, n) by cycle walking (J. Black, P. Rogaway, "Ciphers with arbitrary
 * finite domains", CT-RSA 2002). It is a bijection for every key and needs no table. It shuffles;
 * it does not encrypt. */
#ifndef ONEMODEL_FEISTEL_H
#define ONEMODEL_FEISTEL_H

#include "splitmix64.h"

typedef struct {
    uint64_t n;
    uint64_t mask;          /* 2^half - 1 */
    int half;               /* ceil(bits / 2) where bits = ceil(log2 n) */
    uint64_t round_keys[4]; /* key ^ round * constant */
} onemodel_feistel;

static inline void onemodel_feistel_set(onemodel_feistel *plan, uint64_t n, uint64_t key) {
    int bits = 0; /* (n - 1).bit_length(): exact, where a logarithm is not */
    for (uint64_t rest = n > 0 ? n - 1 : 0; rest > 0; rest >>= 1) bits++;
    plan->n = n;
    plan->half = (bits + 1) / 2;
    plan->mask = (UINT64_C(1) << plan->half) - 1;
    for (uint64_t k = 0; k < 4; k++)
        plan->round_keys[k] = key ^ (k * UINT64_C(0x632BE59BD9B4E019));
}

/* What round k makes of one half. */
static ONEMODEL_INLINE uint64_t onemodel_feistel_round(const onemodel_feistel *plan, int k,
                                                       uint64_t half) {
    return onemodel_mix64(half ^ plan->round_keys[k]) & plan->mask;
}

/* The four rounds once: a bijection of [0, 2^(2 half)). Two rounds make up for each other's swap. */
static ONEMODEL_INLINE uint64_t onemodel_feistel_rounds(const onemodel_feistel *plan, uint64_t x) {
    uint64_t left = x >> plan->half, right = x & plan->mask;
    left ^= onemodel_feistel_round(plan, 0, right);
    right ^= onemodel_feistel_round(plan, 1, left);
    left ^= onemodel_feistel_round(plan, 2, right);
    right ^= onemodel_feistel_round(plan, 3, left);
    return (left << plan->half) | right;
}

/* The same backwards. */
static ONEMODEL_INLINE uint64_t onemodel_feistel_rounds_back(const onemodel_feistel *plan,
                                                             uint64_t x) {
    uint64_t left = x >> plan->half, right = x & plan->mask;
    right ^= onemodel_feistel_round(plan, 3, left);
    left ^= onemodel_feistel_round(plan, 2, right);
    right ^= onemodel_feistel_round(plan, 1, left);
    left ^= onemodel_feistel_round(plan, 0, right);
    return (left << plan->half) | right;
}

/* Where `position` in [0, n) goes; 0 where n <= 1. */
static inline uint64_t onemodel_permute(const onemodel_feistel *plan, uint64_t position) {
    uint64_t x = position;
    if (plan->n <= 1) return 0;
    do x = onemodel_feistel_rounds(plan, x);
    while (x >= plan->n);
    return x;
}

/* The position in [0, n) that goes to `index`; 0 where n <= 1. */
static inline uint64_t onemodel_unpermute(const onemodel_feistel *plan, uint64_t index) {
    uint64_t x = index;
    if (plan->n <= 1) return 0;
    do x = onemodel_feistel_rounds_back(plan, x);
    while (x >= plan->n);
    return x;
}

#endif

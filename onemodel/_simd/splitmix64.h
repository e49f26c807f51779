/* SplitMix64: its increment, its two factors and its mixer. docs/specification.md, section "Random
 * numbers", says what is made of them. */
#ifndef ONEMODEL_SPLITMIX64_H
#define ONEMODEL_SPLITMIX64_H

#include "compiler.h"

#define ONEMODEL_INCREMENT UINT64_C(0x9E3779B97F4A7C15)
#define ONEMODEL_FIRST_FACTOR UINT64_C(0xBF58476D1CE4E5B9)
#define ONEMODEL_SECOND_FACTOR UINT64_C(0x94D049BB133111EB)

/* The mixer without its last step, which leaves the upper 31 bits as they are. */
static ONEMODEL_INLINE uint64_t onemodel_mix_upper(uint64_t z) {
    z = (z ^ (z >> 30)) * ONEMODEL_FIRST_FACTOR;
    return (z ^ (z >> 27)) * ONEMODEL_SECOND_FACTOR;
}

/* The output of a state that has its increment: a bijection of the 64-bit words. */
static ONEMODEL_INLINE uint64_t onemodel_mix_state(uint64_t state) {
    uint64_t z = onemodel_mix_upper(state);
    return z ^ (z >> 31);
}

/* The output that follows the state x. */
static ONEMODEL_INLINE uint64_t onemodel_mix64(uint64_t x) {
    return onemodel_mix_state(x + ONEMODEL_INCREMENT);
}

/* The next output; the state moves on. */
static ONEMODEL_INLINE uint64_t onemodel_next_u64(uint64_t *state) {
    *state += ONEMODEL_INCREMENT;
    return onemodel_mix_state(*state);
}

/* Leave the state where so many calls of onemodel_next_u64 would. */
static ONEMODEL_INLINE void onemodel_skip_u64(uint64_t *state, uint64_t draws) {
    *state += draws * ONEMODEL_INCREMENT;
}

#endif

/* One word that threads change in turn: the compare-and-swap that locks are made of.
 *
 * Without threads (a browser) the compiler turns these into plain reads and writes. */
#ifndef ONEMODEL_ATOMICS_H
#define ONEMODEL_ATOMICS_H

#include <stdint.h>

#ifdef _MSC_VER
#include <windows.h>
#include <intrin.h>
static inline int onemodel_swap_if(uint32_t *word, uint32_t expected, uint32_t desired) {
    return (uint32_t)_InterlockedCompareExchange((volatile long *)word, (long)desired,
                                                 (long)expected) == expected;
}
static inline uint32_t onemodel_read(const uint32_t *word) {
    return *(const volatile uint32_t *)word;
}
static inline void onemodel_write(uint32_t *word, uint32_t value) {
    _InterlockedExchange((volatile long *)word, (long)value);
}
static inline void onemodel_yield(void) { SwitchToThread(); }
#else
#include <sched.h>
static inline int onemodel_swap_if(uint32_t *word, uint32_t expected, uint32_t desired) {
    return __atomic_compare_exchange_n(word, &expected, desired, 0, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}
static inline uint32_t onemodel_read(const uint32_t *word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}
static inline void onemodel_write(uint32_t *word, uint32_t value) {
    __atomic_store_n(word, value, __ATOMIC_RELEASE);
}
static inline void onemodel_yield(void) { sched_yield(); }
#endif

#endif

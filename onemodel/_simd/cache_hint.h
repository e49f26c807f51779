/* A hint that memory will be read soon: it changes when bytes arrive and never what they are. */
#ifndef ONEMODEL_CACHE_HINT_H
#define ONEMODEL_CACHE_HINT_H

#include <stdint.h>

/* At most this much of a row: past that the processor sees the pattern by itself. */
#define ONEMODEL_HINT_BYTES 4096

static inline void onemodel_prefetch_row(const char *row, int64_t size) {
#if defined(__GNUC__) || defined(__clang__)
    if (size > ONEMODEL_HINT_BYTES) size = ONEMODEL_HINT_BYTES;
    for (int64_t k = 0; k < size; k += 64) __builtin_prefetch(row + k, 0, 3);
#else
    (void)row;
    (void)size;
#endif
}

#endif

/* The permutation of many positions; variant.h includes this file once a variant.
 *
 * A block at a time: all walk once, then those that left [0, n) are put together and walk on. No
 * branch depends on a value, and the loops hold nothing but arithmetic, so compilers make vectors of
 * them and the processor guesses nothing. */

enum { ONEMODEL_VARIANT(BLOCK) = 256 };

ONEMODEL_TARGET static void ONEMODEL_VARIANT(permute)(const onemodel_feistel *plan,
                                                      const uint64_t *positions, uint64_t *indices,
                                                      int64_t count) {
    const onemodel_feistel local = *plan; /* which no store changes */
    uint64_t block[ONEMODEL_VARIANT(BLOCK)], walking[ONEMODEL_VARIANT(BLOCK)];
    int32_t places[ONEMODEL_VARIANT(BLOCK)];
    while (count > 0) {
        int64_t size = count < ONEMODEL_VARIANT(BLOCK) ? count : ONEMODEL_VARIANT(BLOCK);
        int64_t left = 0;
        /* A position that another thread moved after it was checked counts as 0: from outside of
         * [0, n) a walk may go in a circle. */
        for (int64_t k = 0; k < size; k++) {
            uint64_t x = positions[k];
            block[k] = x < local.n ? x : 0;
        }
        for (int64_t k = 0; k < size; k++) block[k] = onemodel_feistel_rounds(&local, block[k]);
        for (int64_t k = 0; k < size; k++) {
            places[left] = (int32_t)k;
            walking[left] = block[k];
            left += block[k] >= local.n;
        }
        while (left > 0) {
            int64_t still = 0;
            for (int64_t k = 0; k < left; k++)
                walking[k] = onemodel_feistel_rounds(&local, walking[k]);
            for (int64_t k = 0; k < left; k++) {
                uint64_t x = walking[k];
                int32_t place = places[k];
                block[place] = x;
                places[still] = place;
                walking[still] = x;
                still += x >= local.n;
            }
            left = still;
        }
        memcpy(indices, block, (size_t)size * sizeof(uint64_t));
        positions += size;
        indices += size;
        count -= size;
    }
}

#define ONEMODEL_PERMUTATION_LOOPS(LOOP)                                                        \
    /* the indices at many positions of a permutation with n > 1; both may be the same memory */ \
    LOOP(permute, (const onemodel_feistel *plan, const uint64_t *positions, uint64_t *indices,  \
                   int64_t count))

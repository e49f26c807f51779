"""Draws with replacement, for kernels."""

from libc.stdint cimport int64_t, uint64_t


# Write one index for each of `count` slots; `prefix` is derive_prefix(seed, epoch, step), and the
# arrays are those of draw_indices.
cdef void draw_slots(
    const double *cumulative, const int64_t *starts, const int64_t *sizes, int64_t last,
    uint64_t prefix, int64_t *target, int64_t count
) noexcept nogil

# The same for the table and the total of fill_alias_table.
cdef void draw_weighted_slots(
    const uint64_t *table, uint64_t n, uint64_t total, uint64_t prefix, int64_t *target,
    int64_t count
) noexcept nogil

"""Draws with replacement: those of the mixing and of the weighted sampler.

Source: docs/specification.md, section "Samplers", mixing and weighted.
"""

from libc.stdint cimport int64_t, uint64_t

from onemodel._memory.arrays cimport CONTIGUOUS, SHORT_LOOP, WRITABLE, Array, array_of
from onemodel._random.rng cimport derive_prefix, derive_suffix, next_below, next_double
from onemodel._random.streams cimport MIXING_STREAM, WEIGHTED_STREAM

__all__ = ["draw_indices", "draw_weighted", "fill_alias_table"]


def draw_indices(
    cumulative, starts, sizes, uint64_t seed, uint64_t epoch, uint64_t step, out
):
    """Fill ``out`` with one index for each slot, drawn with replacement.

    Args:
        cumulative: float64 [sources], the running share of the sources that take part.
        starts, sizes: int64 [sources]; source i has the indices starts[i] .. +sizes[i] - 1, at
            least one.
    """
    cdef Array shares, first, length, filled
    array_of(cumulative, b"d", 1, CONTIGUOUS, &shares)
    array_of(starts, b"q", 1, CONTIGUOUS, &first)
    array_of(sizes, b"q", 1, CONTIGUOUS, &length)
    array_of(out, b"q", 1, WRITABLE, &filled)
    cdef int64_t last = shares.size - 1
    cdef uint64_t prefix = derive_prefix(seed, epoch, step)
    cdef const double *share = <const double *>shares.data
    cdef const int64_t *start = <const int64_t *>first.data
    cdef const int64_t *size = <const int64_t *>length.data
    cdef int64_t *target = <int64_t *>filled.data
    if last < 0 or first.size != last + 1 or length.size != last + 1:
        raise ValueError("cumulative, starts and sizes must describe the same sources")
    if filled.size * shares.size < SHORT_LOOP:
        draw_slots(share, start, size, last, prefix, target, filled.size)
    else:
        with nogil:
            draw_slots(share, start, size, last, prefix, target, filled.size)


cdef void draw_slots(
    const double *cumulative, const int64_t *starts, const int64_t *sizes, int64_t last,
    uint64_t prefix, int64_t *target, int64_t count
) noexcept nogil:
    cdef int64_t slot, source, rest, half
    cdef uint64_t state
    cdef double u
    for slot in range(count):
        state = derive_suffix(prefix, <uint64_t>slot, MIXING_STREAM)
        u = next_double(&state)
        # The first source whose running share is above u, else the last one. By halves, and
        # without a branch on what is compared: no processor can guess it.
        source, rest = 0, last
        while rest > 0:
            half = (rest + 1) >> 1
            source += half * (not cumulative[source + half - 1] > u)
            rest -= half
        target[slot] = starts[source] + <int64_t>next_below(&state, <uint64_t>sizes[source])


def fill_alias_table(amounts, table):
    """Fill ``table``, uint64 [n, 2]: of each column the threshold, and the alias above it.

    Args:
        amounts: uint64 [n], n >= 1, at least one above 0; n times the largest is below 2**63.

    Returns:
        The sum of the amounts: the thresholds' range.
    """
    cdef Array given, filled
    array_of(amounts, b"Q", 1, CONTIGUOUS, &given)
    array_of(table, b"Q", 2, WRITABLE, &filled)
    cdef const uint64_t *amount = <const uint64_t *>given.data
    cdef uint64_t *column = <uint64_t *>filled.data
    cdef int64_t n = given.size
    cdef int64_t light = -1, heavy = -1, following
    cdef uint64_t total = 0
    cdef uint64_t rest
    cdef int64_t k
    if filled.size != 2 * given.size:
        raise ValueError("table must have a row for each amount")
    with nogil:
        for k in range(n):
            total += amount[k]
        for k in range(n):
            column[2 * k], column[2 * k + 1] = total, <uint64_t>k
        light = next_column(amount, n, light, total, False)
        heavy = next_column(amount, n, heavy, total, True)
        rest = amount[heavy] * <uint64_t>n if heavy < n else 0
        while heavy < n:
            if rest > total:
                column[2 * light] = amount[light] * <uint64_t>n
                column[2 * light + 1] = <uint64_t>heavy
                rest -= total - column[2 * light]
                light = next_column(amount, n, light, total, False)
                continue
            column[2 * heavy] = rest
            following = next_column(amount, n, heavy, total, True)
            if following < n:
                column[2 * heavy + 1] = <uint64_t>following
                rest = amount[following] * <uint64_t>n - (total - rest)
            heavy = following
    return total


cdef int64_t next_column(
    const uint64_t *amount, int64_t n, int64_t column, uint64_t total, bint heavy
) noexcept nogil:
    """The next column after this one that has more than the mean amount, or not; else n."""
    column += 1
    while column < n and (amount[column] * <uint64_t>n > total) != heavy:
        column += 1
    return column


def draw_weighted(
    table, uint64_t total, uint64_t seed, uint64_t epoch, uint64_t step, out
):
    """Fill ``out`` with one index for each slot, drawn with the weights of an alias table."""
    cdef Array columns, filled
    array_of(table, b"Q", 2, CONTIGUOUS, &columns)
    array_of(out, b"q", 1, WRITABLE, &filled)
    cdef uint64_t n = <uint64_t>(columns.size // 2)
    cdef uint64_t prefix = derive_prefix(seed, epoch, step)
    cdef const uint64_t *column = <const uint64_t *>columns.data
    cdef int64_t *target = <int64_t *>filled.data
    if n == 0 or total == 0:
        raise ValueError("table must have a column")
    if filled.size < SHORT_LOOP:
        draw_weighted_slots(column, n, total, prefix, target, filled.size)
    else:
        with nogil:
            draw_weighted_slots(column, n, total, prefix, target, filled.size)


cdef void draw_weighted_slots(
    const uint64_t *table, uint64_t n, uint64_t total, uint64_t prefix, int64_t *target,
    int64_t count
) noexcept nogil:
    cdef int64_t slot
    cdef uint64_t state, column
    for slot in range(count):
        state = derive_suffix(prefix, <uint64_t>slot, WEIGHTED_STREAM)
        column = next_below(&state, n)
        if next_below(&state, total) >= table[2 * column]:
            column = table[2 * column + 1]
        target[slot] = <int64_t>column

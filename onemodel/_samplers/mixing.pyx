"""The draws of the mixing sampler.

Source: docs/specification.md, section "Samplers", mixing.
"""

from libc.stdint cimport int64_t, uint64_t

from onemodel._memory.arrays cimport CONTIGUOUS, SHORT_LOOP, WRITABLE, Array, array_of
from onemodel._random.rng cimport derive_prefix, derive_suffix, next_below, next_double
from onemodel._random.streams cimport MIXING_STREAM

__all__ = ["draw_indices"]


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
    cdef int64_t slot, source
    cdef uint64_t state
    cdef double u
    for slot in range(count):
        state = derive_suffix(prefix, <uint64_t>slot, MIXING_STREAM)
        u = next_double(&state)
        source = 0
        while source < last and not cumulative[source] > u:
            source += 1
        target[slot] = starts[source] + <int64_t>next_below(&state, <uint64_t>sizes[source])

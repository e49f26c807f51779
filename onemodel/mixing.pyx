"""The draws of the mixing sampler.

Source: docs/specification.md, section "Samplers", mixing.
"""

from libc.stdint cimport int64_t, uint64_t

from onemodel.arrays cimport CONTIGUOUS, WRITABLE, Array, array_of
from onemodel.rng cimport (
    MIXING_STREAM, derive_prefix, derive_suffix, next_below, next_double,
)

__all__ = ["draw_indices"]


def draw_indices(
    cumulative, starts, sizes, uint64_t seed, uint64_t epoch, uint64_t step, out
):
    """Fill ``out`` with one index for each slot, drawn with replacement.

    Args:
        cumulative: float64 [sources], the running share of the sources that take part.
        starts, sizes: int64 [sources]; source i has the indices starts[i] .. +sizes[i] - 1.
    """
    cdef Array shares, first, length, filled
    array_of(cumulative, b"d", 1, CONTIGUOUS, &shares)
    array_of(starts, b"q", 1, CONTIGUOUS, &first)
    array_of(sizes, b"q", 1, CONTIGUOUS, &length)
    array_of(out, b"q", 1, WRITABLE, &filled)
    cdef const double *share = <const double *>shares.data
    cdef int64_t slot, source
    cdef int64_t last = shares.size - 1
    cdef uint64_t prefix = derive_prefix(seed, epoch, step)
    cdef uint64_t state
    cdef double u
    if last < 0 or first.size != last + 1 or length.size != last + 1:
        raise ValueError("cumulative, starts and sizes must describe the same sources")
    with nogil:
        for slot in range(filled.size):
            state = derive_suffix(prefix, <uint64_t>slot, MIXING_STREAM)
            u = next_double(&state)
            source = 0
            while source < last and not share[source] > u:
                source += 1
            (<int64_t *>filled.data)[slot] = (<const int64_t *>first.data)[source] + <int64_t>(
                next_below(&state, <uint64_t>(<const int64_t *>length.data)[source])
            )

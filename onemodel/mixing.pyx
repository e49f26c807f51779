"""The draws of the mixing sampler.

Source: docs/specification.md, section "Samplers", mixing.
"""

from libc.stdint cimport int64_t, uint64_t

from onemodel.rng cimport (
    MIXING_STREAM, derive_prefix, derive_suffix, next_below, next_double,
)

__all__ = ["draw_indices"]


def draw_indices(
    const double[::1] cumulative not None, const int64_t[::1] starts not None,
    const int64_t[::1] sizes not None, uint64_t seed, uint64_t epoch, uint64_t step,
    int64_t[::1] out not None,
):
    """Fill ``out`` with one index for each slot, drawn with replacement.

    Args:
        cumulative: float64 [sources], the running share of the sources that take part.
        starts, sizes: int64 [sources]; source i has the indices starts[i] .. +sizes[i] - 1.
    """
    cdef int64_t slot, source
    cdef int64_t last = cumulative.shape[0] - 1
    cdef uint64_t prefix = derive_prefix(seed, epoch, step)
    cdef uint64_t state
    cdef double u
    if last < 0 or starts.shape[0] != last + 1 or sizes.shape[0] != last + 1:
        raise ValueError("cumulative, starts and sizes must describe the same sources")
    with nogil:
        for slot in range(out.shape[0]):
            state = derive_suffix(prefix, <uint64_t>slot, MIXING_STREAM)
            u = next_double(&state)
            source = 0
            while source < last and not cumulative[source] > u:
                source += 1
            out[slot] = starts[source] + <int64_t>next_below(&state, <uint64_t>sizes[source])

"""Choose the loops for this processor: baseline everywhere, AVX2 where it is found.

The choice changes how fast a batch is made and never its bytes; the tests run every variant
against the baseline.
"""

from onemodel._memory.arrays cimport STRIDED, WRITABLE, Array, array_of

__all__ = ["select", "selected", "store_rows", "variants"]


cdef extern from "dispatch.h":
    const Loops *loops_of "onemodel_loops_of"(int variant) noexcept nogil
    void onemodel_store_fence() noexcept nogil


cdef void store_fence() noexcept nogil:
    onemodel_store_fence()


def variants():
    """Return the names of the variants that this build and this processor can run.

    >>> variants()[0]
    'baseline'
    """
    return tuple(
        loops_of(variant).name.decode() for variant in range(2) if loops_of(variant) is not NULL
    )


def selected():
    """Return the name of the variant in use."""
    return loops.name.decode()


def select(name):
    """Use the named variant from now on: for tests and measurements.

    Raises:
        ValueError: if this build or this processor lacks it.
    """
    global loops
    for variant in range(2):
        if loops_of(variant) is not NULL and loops_of(variant).name.decode() == name:
            loops = loops_of(variant)
            return
    raise ValueError(f"name must be one of {variants()}, got {name!r}")


def store_rows(
    source, out, float pad, float scale=1.0, float shift=0.0, gain_offset=None,
    bint non_temporal=False,
):
    """Fill ``out`` from ``source``: the loop that writes batches, for tests and measurements.

    Args:
        source: float32 or uint8 [H, W], W contiguous; of bytes, ``p * scale - shift`` is taken.
        out: float32 [H, padded], C-contiguous, padded >= W; columns from W on become ``pad``.
        gain_offset: (gain, offset) to apply to each value, or None.
        non_temporal: use such stores where the rows of ``out`` are 16-byte aligned.

    Raises:
        ValueError: if the arrays do not fit.
    """
    cdef Array given, filled
    cdef Rows rows
    cdef float gain, offset
    rows.bytes = source.itemsize == 1
    array_of(source, c"B" if rows.bytes else c"f", 2, STRIDED, &given)
    array_of(out, b"f", 2, WRITABLE, &filled)
    if (
        given.shape[0] != filled.shape[0]
        or given.shape[1] > filled.shape[1]
        or (given.shape[1] > 1 and given.strides[1] != source.itemsize)
    ):
        raise ValueError("source must have contiguous rows that fit in those of out")
    rows.source, rows.stride = given.data, given.strides[0]
    rows.scale, rows.shift = scale, shift
    rows.count, rows.width = given.shape[0], given.shape[1]
    rows.target, rows.padded = <float *>filled.data, filled.shape[1]
    rows.pad, rows.non_temporal = pad, non_temporal
    rows.next_source, rows.next_stride, rows.next_size = NULL, 0, 0
    if gain_offset is None:
        loops.store_rows(&rows)
    else:
        gain, offset = gain_offset
        loops.store_gain_offset(&rows, gain, offset)
    store_fence()


*_, best = variants()
select(best)

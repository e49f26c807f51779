"""Choose the row loops for this processor: baseline everywhere, AVX2 where it is found.

The choice changes how fast a batch is made and never its bytes; the tests run every variant
against the baseline.
"""

__all__ = ["select", "selected", "variants"]


cdef extern from "dispatch.h":
    const LoopTable *loop_variant "onemodel_vector_variant"(int wide) noexcept nogil
    void onemodel_stream_fence() noexcept nogil


cdef void store_fence() noexcept nogil:
    onemodel_stream_fence()


def variants():
    """Return the names of the variants that this build and this processor can run.

    >>> variants()[0]
    'baseline'
    """
    return tuple(
        loop_variant(wide).name.decode() for wide in range(2) if loop_variant(wide) is not NULL
    )


def selected():
    """Return the name of the variant in use."""
    return table.name.decode()


def select(name):
    """Use the named variant from now on: for tests and measurements.

    Raises:
        ValueError: if this build or this processor lacks it.
    """
    global table
    for wide in range(2):
        if loop_variant(wide) is not NULL and loop_variant(wide).name.decode() == name:
            table = loop_variant(wide)
            return
    raise ValueError(f"name must be one of {variants()}, got {name!r}")


*_, best = variants()
select(best)

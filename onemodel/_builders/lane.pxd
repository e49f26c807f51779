"""What a native lane gives to the engine: a batch as memory, and later as Python objects."""

from libc.stdint cimport int64_t, uint64_t

from onemodel._builders.indices cimport IndexPlan
from onemodel._memory.pool cimport BufferPool, Header

cdef enum:
    MOST_BUFFERS = 16           # of one batch; what has more is built by the reference path

    BUILT = 0
    NEEDS_PYTHON = 1            # the reference path must build this step, or say what is wrong


# A finished batch that no Python object stands for yet. Whoever holds it calls `finish` or `drop`.
ctypedef struct NativeBatch:
    Header *buffers[MOST_BUFFERS]
    uint64_t epoch
    uint64_t step
    uint64_t first_slot
    int64_t rows                # slots of the global batch
    int64_t count               # slots of this shard
    int64_t channels            # of images
    int64_t height
    int64_t padded_width        # of images
    int64_t columns             # sum of the widths of images
    int64_t symbols             # sum of the target lengths
    void *owner                 # a reference to what `finish` and `drop` let go, or NULL


cdef class Lane:
    """Builds the batches of one loader; it is shared by all of its threads."""

    cdef readonly IndexPlan plan
    cdef BufferPool pool
    cdef int buffers            # of one batch
    cdef bint holds_objects     # whether NativeBatch.owner is used: `drop` then takes the GIL

    # Build global step g into `batch`. On NEEDS_PYTHON nothing is left in it.
    cdef int build(self, uint64_t g, NativeBatch *batch) noexcept nogil

    # Hand the buffers over to arrays, on the consumer's thread.
    cdef object finish(self, NativeBatch *batch)

    # Give the buffers of a batch that nobody will take back to the pool.
    cdef void drop(self, NativeBatch *batch) noexcept nogil

    cdef bint rent(self, NativeBatch *batch, int number, int64_t size) noexcept nogil

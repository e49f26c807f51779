"""The columns of a dataset as kernels see them."""

from libc.stdint cimport int32_t, int64_t, uint32_t

from onemodel._memory.lock cimport read_word, write_word
from onemodel._memory.mapped_pages cimport page_waits

cdef enum:
    BATCHES_THAT_ASK = 64


cdef class Columns:
    """A whole image dataset in flat arrays, checked once."""
    cdef readonly int64_t count
    cdef readonly int64_t channels
    cdef readonly int64_t height
    cdef readonly object arrays     # by name, read-only; keeps the memory below alive
    cdef bint bytes                 # uint8 pixels, else float32
    cdef const char *pixels
    cdef const int64_t *offsets     # of image i, in elements
    cdef const int64_t *widths
    cdef const int32_t *targets
    cdef const int64_t *target_offsets
    cdef const int32_t *labels
    cdef const float *scale         # per channel, for uint8 pixels
    cdef const float *shift
    cdef bint mapped                # the pixels are a memory-mapped file
    cdef uint32_t waits_seen        # for pages, by this process, when a batch was last begun
    cdef uint32_t left_to_ask       # how many batches ask for their pages at once

    cdef int check_each(self, int64_t count, int64_t elements) except -1


cdef inline bint waits_for_pages(Columns columns) noexcept nogil:
    """Whether a batch should ask for all of its pages before it reads one.

    That costs as much as a batch where the file is in memory. So only the next batches do it
    after this process has waited for a page. Of several threads none needs an exact count.
    """
    if not columns.mapped:
        return False
    cdef uint32_t waits = <uint32_t>page_waits()
    if waits != read_word(&columns.waits_seen):
        write_word(&columns.waits_seen, waits)
        write_word(&columns.left_to_ask, BATCHES_THAT_ASK)
    cdef uint32_t left = read_word(&columns.left_to_ask)
    if left > 0:
        write_word(&columns.left_to_ask, left - 1)
    return left > 0

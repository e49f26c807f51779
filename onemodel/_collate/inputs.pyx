"""Gather what a batch is made of: from samples, or from a dataset in flat columns.

Everything is checked here; the pass that follows reads pointers without the GIL.
"""

from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free
from libc.string cimport memmove, memset

from onemodel._batch.notes import note_slot
from onemodel._common.describe import shown
from onemodel._memory.arrays cimport CONTIGUOUS, Array, array_of
from onemodel._memory.mapped_pages cimport will_need
from onemodel._simd.cache_hint cimport prefetch_row
from onemodel.datasets.columns cimport Columns, waits_for_pages
from onemodel.datasets.sample cimport Sample, is_resolved

__all__ = ["CollateInputs", "from_columns", "from_samples", "gather_samples"]

cdef enum:
    INT32_LIMIT = 0x7FFFFFFF
    AHEAD = 8                   # samples whose memory is hinted at before they are looked at
    HOT_BYTES = 128             # of a Sample: what collation looks at stands in front


cdef class CollateInputs:
    """The slots of one batch; made by ``from_samples`` and ``from_columns``."""

    def __dealloc__(self):
        free(self.inputs.slots)

    @property
    def count(self):
        """How many slots there are."""
        return self.inputs.count

    @property
    def channels(self):
        """C of every image; 0 where there is none."""
        return self.inputs.channels

    @property
    def height(self):
        """H of every image; 0 where there is none."""
        return self.inputs.height

    @property
    def widest(self):
        """The largest width; 0 where there is no image."""
        return self.inputs.widest

    @property
    def columns(self):
        """The sum of the widths."""
        return self.inputs.columns

    @property
    def symbols(self):
        """The sum of the target lengths."""
        return self.inputs.symbols

    @property
    def longest(self):
        """The largest target length; 0 where there is no target."""
        return self.inputs.longest

    def narrow(self, int64_t first, int64_t count):
        """Keep ``count`` slots from ``first`` on. ``widest`` and ``longest`` stay those of all.

        Raises:
            IndexError: if there are not so many.
        """
        if first < 0 or count < 0 or first > self.inputs.count - count:
            raise IndexError("first and count must be slots")
        narrow(&self.inputs, first, count)

    def width(self, int64_t slot):
        """The width of the image of a slot, from 0 on."""
        if not 0 <= slot < self.inputs.count:
            raise IndexError("slot must be one of the batch")
        return self.inputs.slots[slot].image.width


def gather_samples(list dataset not None, key):
    """Return ``[dataset[i] for i in key.indices]``, with int64 indices.

    The objects lie anywhere in memory: a hint goes to the processor before the turn of each.

    Raises:
        IndexError: if an index is not in [0, len(dataset)), with a note of the slot.
    """
    cdef int64_t k, index, ahead
    cdef Array given
    array_of(key.indices, b"q", 1, CONTIGUOUS, &given)
    cdef const int64_t *indices = <const int64_t *>given.data
    cdef list gathered = []
    for k in range(given.size):
        if k + AHEAD < given.size:
            ahead = indices[k + AHEAD]
            if 0 <= ahead < len(dataset):
                prefetch_row(<const char *>PyList_GET_ITEM(dataset, ahead), HOT_BYTES)
        index = indices[k]
        if not 0 <= index < len(dataset):
            raise index_error(index, len(dataset), key, k)
        gathered.append(dataset[index])
    return gathered


def from_samples(samples, key):
    """Return the CollateInputs of a list of samples, one for each of ``key.indices`` (int64).

    Raises:
        TypeError, ValueError: naming the slot and dataset index of a sample that does not fit.
    """
    cdef list listed
    try:
        listed = list(samples)           # our own: the caller may change theirs
    except TypeError as error:
        raise TypeError(f"samples must be a list of samples, got {shown(samples)}") from error
    cdef CollateInputs made = CollateInputs.__new__(CollateInputs)
    cdef Inputs *inputs = &made.inputs
    cdef Sample sample
    cdef Slot *slot
    cdef int64_t k, count = len(listed)
    cdef uint64_t first_slot = key.first_slot
    cdef Array given
    array_of(key.indices, b"q", 1, CONTIGUOUS, &given)
    cdef const int64_t *indices = <const int64_t *>given.data
    if count != given.size:
        raise ValueError(f"samples must be {given.size}, as the indices, got {count}")
    if not allocate(inputs, count):
        raise MemoryError(f"no memory for {count} slots")
    made.owner = listed
    for k in range(count):
        if not isinstance(listed[k], Sample):
            raise TypeError(
                f"{sample_label(first_slot + k, indices[k])} must be an onemodel.Sample, "
                f"got {type(listed[k]).__name__}"
            )
        if type(listed[k]) is not Sample:
            listed[k] = (<Sample>listed[k]).plain()
        sample = <Sample>listed[k]
        wrong = None if is_resolved(sample) else sample.resolve()
        if wrong is not None:
            raise type(wrong)(f"{sample_label(first_slot + k, indices[k])}: {wrong}")
        if k == 0:
            inputs.channels, inputs.height = sample.channels, sample.height
        elif sample.channels != inputs.channels or sample.height != inputs.height:
            raise ValueError(
                f"{sample_label(first_slot + k, indices[k])}: image must have "
                f"C={inputs.channels} and H={inputs.height} as the batch's first, got shape "
                f"{list(sample.image.shape)}"
            )
        slot = &inputs.slots[k]
        slot.image = sample.source
        slot.target = sample.target_data
        slot.target_length = sample.target_length
        slot.label = sample.label_value
        if not add_totals(inputs, slot, indices[k]):
            raise limits_error(slot, indices[k])
    return made


def from_columns(Columns columns not None, key):
    """Return the CollateInputs of the images at ``key.indices``, with no object for each.

    Raises:
        IndexError: if an index is not in [0, n), with a note of the slot.
    """
    cdef CollateInputs made = CollateInputs.__new__(CollateInputs)
    cdef int64_t wrong, index
    cdef Array given
    array_of(key.indices, b"q", 1, CONTIGUOUS, &given)
    cdef const int64_t *indices = <const int64_t *>given.data
    made.owner = columns
    wrong = point_at_columns(columns, indices, given.size, &made.inputs)
    if wrong == -2:
        raise MemoryError(f"no memory for {given.size} slots")
    if wrong >= 0:
        index = indices[wrong]
        if not 0 <= index < columns.count:
            raise index_error(index, columns.count, key, wrong)
        raise limits_error(&made.inputs.slots[wrong], index)
    return made


cdef int64_t point_at_columns(
    Columns columns, const int64_t *indices, int64_t count, Inputs *inputs
) noexcept nogil:
    cdef int64_t k, index, row
    cdef int64_t size = 1 if columns.bytes else 4
    cdef bint ask = waits_for_pages(columns)
    cdef Slot *slot
    if not allocate(inputs, count):
        return -2
    inputs.channels, inputs.height = columns.channels, columns.height
    inputs.bytes = columns.bytes
    inputs.scale, inputs.shift = columns.scale, columns.shift
    for k in range(count):
        index = indices[k]
        if not 0 <= index < columns.count:
            return k
        slot = &inputs.slots[k]
        row = columns.widths[index] * size
        slot.image.pixels = columns.pixels + columns.offsets[index] * size
        slot.image.plane_stride = row * columns.height
        slot.image.row_stride = row
        slot.image.column_stride = size
        slot.image.width = columns.widths[index]
        if ask:
            will_need(slot.image.pixels, row * columns.height * columns.channels)
        slot.target_length = columns.target_offsets[index + 1] - columns.target_offsets[index]
        if slot.target_length:
            slot.target = &columns.targets[columns.target_offsets[index]]
        slot.label = columns.labels[index]
        if not add_totals(inputs, slot, index):
            return k
    return -1


cdef bint allocate(Inputs *inputs, int64_t count) noexcept nogil:
    """Start anew with `count` slots, all zero; False where there is no memory."""
    memset(inputs, 0, sizeof(Inputs))
    inputs.slots = <Slot *>calloc(count + 1, sizeof(Slot))
    inputs.count = count
    return inputs.slots != NULL


cdef bint add_totals(Inputs *inputs, Slot *slot, int64_t index) noexcept nogil:
    """Count a slot in; False where one of its numbers does not fit in a batch's int32."""
    if index > INT32_LIMIT or slot.image.width > INT32_LIMIT or slot.target_length > INT32_LIMIT:
        return False
    slot.index = <int32_t>index
    inputs.widest = max(inputs.widest, slot.image.width)
    inputs.columns += slot.image.width
    inputs.symbols += slot.target_length
    inputs.longest = max(inputs.longest, slot.target_length)
    return True


cdef void narrow(Inputs *inputs, int64_t first, int64_t count) noexcept nogil:
    cdef int64_t k
    memmove(inputs.slots, inputs.slots + first, count * sizeof(Slot))
    memset(inputs.slots + count, 0, sizeof(Slot))
    inputs.count, inputs.columns, inputs.symbols = count, 0, 0
    for k in range(count):
        inputs.columns += inputs.slots[k].image.width
        inputs.symbols += inputs.slots[k].target_length


cdef object limits_error(const Slot *slot, int64_t index):
    for name, value in (
        ("index", index), ("width", slot.image.width), ("target's length", slot.target_length)
    ):
        if value > INT32_LIMIT:
            return ValueError(f"{name} must be in [0, 2**31), got {value}: batches hold int32")


cdef object index_error(int64_t index, int64_t count, key, int64_t position):
    error = IndexError(f"index must be in [0, {count}), got {index}")
    note_slot(error, key, position, index)
    return error


cdef str sample_label(uint64_t slot, int64_t index):
    return f"sample at slot {slot} (dataset index {index})"

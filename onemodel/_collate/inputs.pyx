"""Gather what a batch is made of: from samples, or from a dataset in flat columns.

This is the door of collation: everything is checked here, and the pass that follows reads
pointers without the GIL.
"""

from cpython.list cimport PyList_GET_ITEM
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free

from onemodel._memory.arrays cimport CONTIGUOUS, Array, array_of
from onemodel._simd.cache_hint cimport prefetch_row
from onemodel.datasets.columns cimport Columns
from onemodel.datasets.sample cimport Sample

__all__ = ["CollateInputs", "from_columns", "from_samples", "pick"]

cdef enum:
    INT32_LIMIT = 0x7FFFFFFF
    AHEAD = 8                   # samples asked for before they are looked at
    HOT_BYTES = 128             # of a Sample: what collation looks at stands in front


cdef class CollateInputs:
    """The slots of one batch; made by ``from_samples`` and ``from_columns``."""

    def __dealloc__(self):
        free(self.slots)

    cdef int allocate(self, int64_t count) except -1:
        # one more than there are, all zero: what follows the last slot can be looked at
        self.slots = <Slot *>calloc(count + 1, sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError(f"no memory for {count} slots")
        self.count = count
        return 0


def pick(list dataset not None, indices, uint64_t first_slot):
    """Return ``[dataset[i] for i in indices]``.

    The objects lie anywhere in memory: each is asked for before its turn comes.

    Args:
        indices: int64 array, contiguous; index k is that of slot ``first_slot + k``.

    Raises:
        IndexError: if an index is not in [0, len(dataset)), with a note of the slot.
    """
    cdef int64_t k, index, ahead
    cdef Array given
    array_of(indices, b"q", 1, CONTIGUOUS, &given)
    cdef const int64_t *places = <const int64_t *>given.data
    cdef list picked = []
    for k in range(given.size):
        if k + AHEAD < given.size:
            ahead = places[k + AHEAD]
            if 0 <= ahead < len(dataset):
                prefetch_row(<const char *>PyList_GET_ITEM(dataset, ahead), HOT_BYTES)
        index = places[k]
        if not 0 <= index < len(dataset):
            raise outside(index, len(dataset), first_slot + k)
        picked.append(dataset[index])
    return picked


def from_samples(samples, indices, uint64_t first_slot):
    """Return the CollateInputs of a list of samples.

    Raises:
        TypeError, ValueError: naming the slot and dataset index of a sample that does not fit.
    """
    cdef list listed = list(samples)     # our own: the caller may change theirs
    cdef CollateInputs inputs = CollateInputs.__new__(CollateInputs)
    cdef Sample sample
    cdef Slot *slot
    cdef int64_t k, count = len(listed)
    cdef Array given
    array_of(indices, b"q", 1, CONTIGUOUS, &given)
    cdef const int64_t *places = <const int64_t *>given.data
    if count != given.size:
        raise ValueError(f"samples must be {given.size}, as the indices, got {count}")
    inputs.allocate(count)
    inputs.owner = listed
    for k in range(count):
        if not isinstance(listed[k], Sample):
            raise TypeError(
                f"{place(first_slot + k, places[k])} must be an onemodel.Sample, "
                f"got {type(listed[k]).__name__}"
            )
        sample = <Sample>listed[k]
        wrong = sample.resolve() if not sample.resolved else None
        if wrong is not None:
            raise type(wrong)(f"{place(first_slot + k, places[k])}: {wrong}")
        if k == 0:
            inputs.channels, inputs.height = sample.channels, sample.height
        elif sample.channels != inputs.channels or sample.height != inputs.height:
            raise ValueError(
                f"{place(first_slot + k, places[k])}: image must have C={inputs.channels} and "
                f"H={inputs.height} as the batch's first, got shape {list(sample.image.shape)}"
            )
        slot = &inputs.slots[k]
        slot.image = sample.source
        slot.target = sample.target_data
        slot.target_length = sample.target_length
        slot.label = sample.label_value
        slot.index = checked_index(places[k])
        measure(inputs, slot)
    return inputs


def from_columns(Columns columns not None, indices, uint64_t first_slot):
    """Return the CollateInputs of the images at ``indices``, without a Python object for each.

    Raises:
        IndexError: if an index is not in [0, n), with a note of the slot.
    """
    cdef CollateInputs inputs = CollateInputs.__new__(CollateInputs)
    cdef int64_t k, index, row
    cdef int64_t size = 1 if columns.bytes else 4
    cdef Slot *slot
    cdef Array given
    array_of(indices, b"q", 1, CONTIGUOUS, &given)
    inputs.allocate(given.size)
    inputs.owner = columns
    inputs.channels, inputs.height = columns.channels, columns.height
    inputs.bytes = columns.bytes
    inputs.scale, inputs.shift = columns.scale, columns.shift
    for k in range(inputs.count):
        index = (<const int64_t *>given.data)[k]
        if not 0 <= index < columns.count:
            raise outside(index, columns.count, first_slot + k)
        slot = &inputs.slots[k]
        row = columns.widths[index] * size
        slot.image.pixels = columns.pixels + columns.offsets[index] * size
        slot.image.plane_stride = row * columns.height
        slot.image.row_stride = row
        slot.image.column_stride = size
        slot.image.width = columns.widths[index]
        slot.target_length = columns.target_offsets[index + 1] - columns.target_offsets[index]
        if slot.target_length:
            slot.target = &columns.targets[columns.target_offsets[index]]
        slot.label = columns.labels[index]
        slot.index = checked_index(index)
        measure(inputs, slot)
    return inputs


cdef object outside(int64_t index, int64_t count, uint64_t slot):
    error = IndexError(f"index must be in [0, {count}), got {index}")
    error.add_note(f"slot {slot}, dataset index {index}")
    return error


cdef int32_t checked_index(int64_t index) except? -1:
    if not 0 <= index <= INT32_LIMIT:
        raise ValueError(f"index must be in [0, 2**31), got {index}: a batch's indices are int32")
    return <int32_t>index


cdef int measure(CollateInputs inputs, const Slot *slot) except -1:
    inputs.widest = max(inputs.widest, slot.image.width)
    inputs.columns += slot.image.width
    inputs.symbols += slot.target_length
    if slot.image.width > INT32_LIMIT or slot.target_length > INT32_LIMIT:
        raise ValueError("widths and target lengths must be below 2**31: batches hold int32")
    return 0


cdef str place(uint64_t slot, int64_t index):
    return f"sample at slot {slot} (dataset index {index})"

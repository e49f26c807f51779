"""The native lane of the sample face: columns or a list of samples to a collated batch.

Source: docs/specification.md, sections "Collation" and "Delivery". The bytes are those of
``ImageBatchCollator``, whose loops these are.
"""

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.ref cimport Py_INCREF, Py_XDECREF, PyObject
from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport free, malloc

from onemodel._collate.collate cimport (
    BatchShape,
    CollateSettings,
    batch_arrays,
    collate_native,
    image_bytes,
    integer_bytes,
    rounded_up,
    settings_of,
    target_count,
)
from onemodel._collate.inputs cimport (
    Inputs, Slot, add_totals, allocate, narrow, point_at_columns,
)
from onemodel._memory.pool cimport Block, exceeds_cache, header_memory
from onemodel._builders.indices cimport IndexPlan
from onemodel._builders.lane cimport BUILT, NEEDS_PYTHON, Lane, NativeBatch
from onemodel._random.rng cimport derive_prefix
from onemodel._simd.cache_hint cimport prefetch_row
from onemodel._simd.float_mode cimport default_float_mode, restore_float_mode
from onemodel.augment.protocol cimport Chain
from onemodel.datasets.columns cimport Columns
from onemodel.datasets.sample cimport Sample, is_resolved

from onemodel._batch.caught import caught
from onemodel._collate.image_batch import ImageBatch

__all__ = ["image_lane"]

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX

cdef enum:
    INT32_LIMIT = 0x7FFFFFFF
    AHEAD = 8                   # samples whose memory is hinted at before they are looked at
    HOT_BYTES = 128             # of a Sample: what collation looks at comes first
    IMAGES = 0                  # numbers of buffers
    INTEGERS = 1


cdef class ImageLane(Lane):
    cdef Columns columns        # or else
    cdef list samples
    cdef int64_t length         # of samples
    cdef Chain chain
    cdef CollateSettings settings
    cdef int64_t width_multiple
    cdef int64_t width          # of every batch; 0 where the widest image decides
    cdef bint whole             # whether the global batch decides
    cdef int64_t target_multiple        # 0 where targets are concatenated
    cdef int label_words
    cdef uint64_t seed
    cdef uint64_t steps_per_epoch
    cdef int64_t rank
    cdef int64_t world

    cdef int build(self, uint64_t g, NativeBatch *batch) noexcept nogil:
        cdef Inputs inputs
        cdef int64_t rows, first, end
        cdef int status = NEEDS_PYTHON
        cdef uint64_t mode
        cdef int64_t *indices = <int64_t *>malloc(self.plan.batch_size * sizeof(int64_t))
        batch.epoch, batch.step = g // self.steps_per_epoch, g % self.steps_per_epoch
        batch.buffers[IMAGES] = batch.buffers[INTEGERS] = NULL
        batch.owner = NULL
        if indices == NULL:
            return NEEDS_PYTHON
        inputs.slots = NULL
        mode = default_float_mode()
        rows = self.plan.fill(batch.epoch, batch.step, indices)
        first, end = self.rank * rows // self.world, (self.rank + 1) * rows // self.world
        batch.rows, batch.first_slot = rows, <uint64_t>first
        if end > first and self.point_at_part(indices, rows, first, end, &inputs, batch):
            status = self.collate(&inputs, batch)
        restore_float_mode(mode)
        if status != BUILT:
            self.drop(batch)
        free(inputs.slots)
        free(indices)
        return status

    cdef bint point_at_part(
        self, const int64_t *indices, int64_t rows, int64_t first, int64_t end, Inputs *inputs,
        NativeBatch *batch
    ) noexcept nogil:
        """Point at this shard's images, by way of all where the global batch decides the shape."""
        if not self.whole:
            return self.point(indices + first, end - first, inputs, batch)
        if not self.point(indices, rows, inputs, batch):
            return False
        narrow(inputs, first, end - first)
        return True

    cdef bint point(
        self, const int64_t *indices, int64_t count, Inputs *inputs, NativeBatch *batch
    ) noexcept nogil:
        """Point at each image; False where one is not as it must be."""
        cdef bint fine
        if self.columns is not None:
            return point_at_columns(self.columns, indices, count, inputs) == -1
        if not allocate(inputs, count):
            return False
        with gil:
            fine = self.point_at_samples(indices, count, inputs, batch)
        return fine

    cdef bint point_at_samples(
        self, const int64_t *indices, int64_t count, Inputs *inputs, NativeBatch *batch
    ) noexcept:
        cdef list samples = self.samples
        cdef list held = []     # until the batch is taken: samples may go meanwhile
        cdef Sample sample
        cdef Slot *slot
        cdef int64_t k, index
        for k in range(count):
            # each time: what resolves a sample is the user's, and other threads run meanwhile
            if PyList_GET_SIZE(samples) != self.length:
                return False
            if k + AHEAD < count and 0 <= indices[k + AHEAD] < self.length:
                prefetch_row(<const char *>PyList_GET_ITEM(samples, indices[k + AHEAD]), HOT_BYTES)
            index = indices[k]
            if not 0 <= index < self.length or type(samples[index]) is not Sample:
                return False
            sample = <Sample>samples[index]
            try:
                if not is_resolved(sample) and sample.resolve() is not None:
                    return False
                held.append(sample)
            except BaseException as error:
                caught.error = error
                return False
            if k == 0:
                inputs.channels, inputs.height = sample.channels, sample.height
            elif sample.channels != inputs.channels or sample.height != inputs.height:
                return False
            slot = &inputs.slots[k]
            slot.image = sample.source
            slot.target = sample.target_data
            slot.target_length = sample.target_length
            slot.label = sample.label_value
            if not add_totals(inputs, slot, index):
                return False
        Py_INCREF(held)
        batch.owner = <void *>held
        return True

    cdef int collate(self, const Inputs *inputs, NativeBatch *batch) noexcept nogil:
        cdef BatchShape shape
        shape.padded_width, shape.target_columns = self.width, 0
        shape.label_words = self.label_words
        if not self.width:
            shape.padded_width = rounded_up(inputs.widest, self.width_multiple)
        if self.target_multiple:
            shape.target_columns = rounded_up(max(inputs.longest, 1), self.target_multiple)
        cdef double rows = 4.0 * inputs.count
        cdef double size = rows * inputs.channels * inputs.height * shape.padded_width
        if (
            inputs.widest > shape.padded_width
            or shape.padded_width > INT32_LIMIT
            or shape.target_columns > INT32_LIMIT
            or max(size, rows * shape.target_columns) > <double>(PY_SSIZE_T_MAX // 2)
        ):
            return NEEDS_PYTHON
        batch.count, batch.channels, batch.height = inputs.count, inputs.channels, inputs.height
        batch.padded_width, batch.columns = shape.padded_width, inputs.columns
        batch.symbols = target_count(inputs, &shape)
        if not (
            self.rent(batch, INTEGERS, integer_bytes(inputs.count, batch.symbols, &shape))
            and self.rent(batch, IMAGES, image_bytes(inputs, shape.padded_width))
        ):
            return NEEDS_PYTHON
        if not collate_native(
            inputs, &self.settings, &shape, exceeds_cache(self.pool),
            derive_prefix(self.seed, batch.epoch, batch.step), batch.first_slot,
            <int32_t *>header_memory(batch.buffers[INTEGERS]),
            <float *>header_memory(batch.buffers[IMAGES]),
        ):
            return NEEDS_PYTHON
        return BUILT

    cdef object finish(self, NativeBatch *batch):
        cdef BatchShape shape
        shape.padded_width, shape.label_words = batch.padded_width, self.label_words
        shape.target_columns = batch.symbols // batch.count if self.target_multiple else 0
        cdef int64_t pixels = batch.count * batch.channels * batch.height * batch.padded_width
        cdef Block images = self.pool.own(
            batch.buffers[IMAGES], pixels * <int64_t>sizeof(float)
        )
        cdef Block integers = self.pool.own(
            batch.buffers[INTEGERS], integer_bytes(batch.count, batch.symbols, &shape)
        )
        if batch.owner != NULL:
            Py_XDECREF(<PyObject *>batch.owner)
        arrays = batch_arrays(
            images, integers, batch.count, batch.channels, batch.height, batch.symbols, &shape
        )
        return ImageBatch(
            epoch=batch.epoch,
            step=batch.step,
            real_columns=batch.columns,
            global_step=batch.epoch * self.steps_per_epoch + batch.step,
            global_rows=batch.rows,
            world=self.world,
            **arrays,
        )


def image_lane(columns, samples, collate, IndexPlan plan, builder):
    """Return the lane of a collator whose augmentations are native.

    Args:
        columns: a ``Columns``, or None where ``samples``, a list of ``Sample``, is given.
        collate: an ``ImageBatchCollator`` with a chain.
        plan: the sampler's.
        builder: the ``StepBuilder``.
    """
    cdef ImageLane lane = ImageLane.__new__(ImageLane)
    lane.pool, lane.buffers = collate.pool, 2
    lane.plan, lane.columns, lane.samples = plan, columns, samples
    lane.length = builder.length
    lane.chain = collate.chain
    lane.settings = settings_of(lane.chain, collate.pad_value)
    lane.width_multiple = collate.width_multiple
    pad_to = collate.pad_to
    lane.whole = pad_to == "global" and builder.shard[1] > 1
    lane.width = pad_to if isinstance(pad_to, int) else 0
    lane.target_multiple = collate.target_multiple if collate.targets == "padded" else 0
    lane.label_words = 2 if collate.label_dtype == "int64" else 1
    lane.seed, lane.steps_per_epoch = builder.seed, builder.steps_per_epoch
    lane.rank, lane.world = builder.shard
    return lane

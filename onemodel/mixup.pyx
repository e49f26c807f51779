"""Mixup and CutMix: a batch's images and labels blended with those of partner rows.

Source: docs/transforms.md. Mixup: Zhang et al., ICLR 2018; CutMix: Yun et al., ICCV 2019. What is
changed: partners stand in small blocks of the global batch, so that shards of whole blocks give
the rows of the unsharded batch; every row has a weight of its own; the weights' distribution is
limited to what exact arithmetic can draw.
"""

from libc.math cimport sqrt
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from onemodel.batch_rng cimport BatchRng, rows_rng
from onemodel.checks import integer
from onemodel.rng cimport SampleRng, next_below, next_double
from onemodel.rows cimport address, in_order
from onemodel.rows import rebuild
from onemodel.structure import field_of, name_of, put, take

__all__ = ["CutMix", "Mixup"]

cdef enum:
    LARGEST_POWER = 16


ctypedef struct Blend:
    int64_t partner             # a row of this shard
    float weight                # of the row itself
    float rest                  # of its partner: 1 - weight
    int64_t top                 # CutMix: the partner's pixels are in rows [top, bottom)
    int64_t bottom
    int64_t left
    int64_t right


cdef double draw_weight(uint64_t *state, int power) noexcept nogil:
    """Beta(1 / power, 1 / power) by Joehnk's method: products, a sum and a quotient."""
    cdef double u, x, y, total
    cdef int _power
    while True:
        u = next_double(state)
        x = u
        for _power in range(1, power):
            x = x * u
        u = next_double(state)
        y = u
        for _power in range(1, power):
            y = y * u
        total = x + y
        if 0 < total <= 1:
            return x / total


cdef int64_t draw_partner(
    uint64_t *state, int64_t row, int64_t rows, uint64_t first_slot, uint64_t block
) noexcept nogil:
    """A row among those of this shard whose global slots share the row's block."""
    cdef int64_t into = <int64_t>((first_slot + <uint64_t>row) % block)
    cdef int64_t low = max(row - into, 0)
    cdef int64_t high = min(row - into + <int64_t>block, rows)
    return low + <int64_t>next_below(state, <uint64_t>(high - low))


cdef int power_of(alpha) except -1:
    """The k with alpha == 1 / k."""
    cdef int k
    for k in range(1, LARGEST_POWER + 1):
        if alpha == 1.0 / k:
            return k
    raise ValueError(
        f"alpha must be 1 / k for an integer k in [1, {LARGEST_POWER}] (1.0, 0.5, 1 / 3, 0.25, "
        f"0.2, ..., 0.1, ..., 0.0625), got {alpha!r}"
    )


cdef class Blending:
    """What Mixup and CutMix share: fields, partners, and the blend of the labels."""

    cdef int power
    cdef int64_t span           # of a block
    cdef readonly double alpha
    cdef readonly object key
    cdef readonly object label_key
    cdef readonly dict arguments

    def __init__(self, alpha=1.0, block=8, key=None, label_key=None):
        self.power = power_of(alpha)
        self.alpha = alpha
        self.span = integer("block", block, 1, 1 << 31)
        self.key = key
        self.label_key = label_key
        self.arguments = {
            "alpha": self.alpha, "block": self.span, "key": key, "label_key": label_key
        }

    @property
    def block(self):
        """How many consecutive global slots a row's partner is chosen from."""
        return self.span

    def __repr__(self):
        shown = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{type(self).__name__}({shown})"

    def __reduce__(self):
        return rebuild, (type(self), self.arguments)

    def __call__(self, SampleRng rng not None, batch):
        """Return the batch with its images and labels blended; the given arrays stay.

        Raises:
            TypeError, ValueError: if the arrays are not as the class describes.
        """
        cdef BatchRng generators = rows_rng(rng)
        image_field = field_of(batch, self.key, 0)
        label_field = field_of(batch, self.label_key, 1)
        if image_field == label_field:
            raise ValueError(f"key and label_key must differ, got {image_field!r} for both")
        images = self.checked_images(in_order(take(batch, image_field)))
        labels = in_order(take(batch, label_field))
        if labels.dtype != np.float32 or labels.ndim == 0:
            raise TypeError(
                f"{name_of(label_field)}, the labels, must be float32 rows (OneHot makes them), "
                f"got {labels.dtype} {list(labels.shape)}"
            )
        if len(images) != len(labels):
            raise ValueError(
                f"images and labels must have as many rows, got {len(images)} and {len(labels)}"
            )
        blended_images = generators.rent(images.shape, images.dtype)
        blended_labels = generators.rent(labels.shape, labels.dtype)
        cdef int64_t rows = len(images)
        cdef uint64_t *states = generators.row_states(rows)
        cdef Blend *blends = <Blend *>malloc((rows + 1) * sizeof(Blend))
        if blends == NULL:
            raise MemoryError(f"no memory for {rows} rows")
        cdef const float *label_rows = <const float *>address(labels)
        cdef float *label_target = <float *>address(blended_labels)
        cdef int64_t label_width = labels.size // rows if rows else 0
        cdef int64_t height = images.shape[images.ndim - 2] if images.ndim > 1 else 1
        cdef int64_t width = images.shape[images.ndim - 1]
        if images.dtype == np.uint8:
            height, width = images.shape[1], images.shape[2]
        cdef int64_t k
        try:
            with nogil:
                for k in range(rows):
                    self.draw(
                        &states[k], k, rows, generators.first_slot, height, width, &blends[k]
                    )
                    weigh(
                        label_rows + k * label_width,
                        label_rows + blends[k].partner * label_width,
                        label_target + k * label_width, label_width, &blends[k],
                    )
            if images.size:
                self.blend_images(images, blended_images, blends)
        finally:
            free(blends)
        batch = put(batch, image_field, blended_images)
        return put(batch, label_field, blended_labels)

    cdef object checked_images(self, images):
        return images

    cdef void draw(
        self, uint64_t *state, int64_t row, int64_t rows, uint64_t first_slot, int64_t height,
        int64_t width, Blend *blend
    ) noexcept nogil:
        blend.partner = draw_partner(state, row, rows, first_slot, <uint64_t>self.span)
        blend.weight = <float>draw_weight(state, self.power)
        blend.rest = <float>1.0 - blend.weight

    cdef int blend_images(self, images, result, const Blend *blends) except -1:
        return 0


cdef void weigh(
    const float *own, const float *partner, float *target, int64_t count, const Blend *blend
) noexcept nogil:
    """own * weight + partner * rest; each product and the sum round to float32."""
    cdef float weight = blend.weight
    cdef float rest = blend.rest
    cdef float first, second
    cdef int64_t k
    for k in range(count):
        first = own[k] * weight
        second = partner[k] * rest
        target[k] = first + second


cdef class Mixup(Blending):
    """Each row blended with a partner's: ``x * w + x[partner] * (1 - w)``, labels alike.

    A row's partner is a row of the same block of ``block`` consecutive slots of the global
    batch, itself included, among those that stand in this shard. So shards whose size is a
    multiple of block give the rows of the unsharded batch; a block that a shard's edge cuts
    chooses among fewer.

    Draws, for each row from its own generator: the partner, ``next_int(rows of the block)``;
    then w ~ Beta(alpha, alpha): with k = 1 / alpha repeat x = ``next_double`` to the k, y =
    ``next_double`` to the k, until 0 < x + y <= 1; w = x / (x + y) in float64, rounded to float32.

    Args:
        alpha: 1 / k for an integer k in [1, 16], such as 1.0, 0.5, 0.2 or 0.1.
        block: slots of the global batch that exchange, in [1, 2**31).
        key: which array holds the images, float32 rows of any shape; None for the first.
        label_key: which array holds the labels, float32 rows (see OneHot); None for the second.

    >>> import numpy as np
    >>> from onemodel.rng import SampleRng
    >>> x, y = np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32)
    >>> mixed, labels = Mixup(alpha=0.2)(SampleRng(0), (x, y))
    >>> np.array_equal(mixed, labels)
    True
    """

    cdef object checked_images(self, images):
        if images.dtype != np.float32 or images.ndim == 0:
            raise TypeError(
                "images must be float32 rows (Normalize makes them), got "
                f"{images.dtype} {list(images.shape)}"
            )
        return images

    cdef int blend_images(self, images, result, const Blend *blends) except -1:
        cdef const float *source = <const float *>address(images)
        cdef float *target = <float *>address(result)
        cdef int64_t rows = len(images)
        cdef int64_t size = images.size // rows
        cdef int64_t k
        with nogil:
            for k in range(rows):
                weigh(
                    source + k * size, source + blends[k].partner * size, target + k * size,
                    size, &blends[k],
                )
        return 0


cdef class CutMix(Blending):
    """A box of each image replaced by a partner's; labels blended by the area that is left.

    Partners are chosen as in Mixup. The box has the centre (cy, cx), covers rows
    [cy - h // 2, cy + h // 2) and columns likewise, cut off at the image's edges. The row's
    weight is the share of pixels outside it: (H * W - area) / (H * W) in float64, rounded to
    float32.

    Draws, for each row from its own generator: partner and w as in Mixup; h = int(H * r) and
    w' = int(W * r) with r = sqrt(1 - w) in float64, where w is not rounded to float32; then cy =
    ``next_int(H)`` and cx = ``next_int(W)``.

    Args:
        alpha, block, key, label_key: as for Mixup; images are uint8 [H, W, C] or [H, W], or
            float32 [C, H, W] or [H, W].

    >>> import numpy as np
    >>> from onemodel.rng import SampleRng
    >>> x, y = np.zeros((8, 4, 4, 3), np.uint8), np.eye(8, dtype=np.float32)
    >>> CutMix()(SampleRng(0), (x, y))[1].sum(axis=1).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    cdef object checked_images(self, images):
        if images.dtype not in (np.uint8, np.float32):
            raise TypeError(
                f"images must be uint8 [H, W, C] or float32 [C, H, W], got {images.dtype}"
            )
        if images.ndim not in (3, 4) or 0 in images.shape[1:]:
            raise ValueError(
                f"images must be of rank 2 or 3 and have pixels, got rows of shape "
                f"{images.shape[1:]}"
            )
        return images

    cdef void draw(
        self, uint64_t *state, int64_t row, int64_t rows, uint64_t first_slot, int64_t height,
        int64_t width, Blend *blend
    ) noexcept nogil:
        blend.partner = draw_partner(state, row, rows, first_slot, <uint64_t>self.span)
        cdef double ratio = sqrt(1.0 - draw_weight(state, self.power))
        cdef double tall = <double>height * ratio
        cdef double wide = <double>width * ratio
        cdef int64_t half_height = <int64_t>tall // 2
        cdef int64_t half_width = <int64_t>wide // 2
        cdef int64_t y = <int64_t>next_below(state, <uint64_t>height)
        cdef int64_t x = <int64_t>next_below(state, <uint64_t>width)
        blend.top = max(y - half_height, 0)
        blend.bottom = min(y + half_height, height)
        blend.left = max(x - half_width, 0)
        blend.right = min(x + half_width, width)
        cdef int64_t area = (blend.bottom - blend.top) * (blend.right - blend.left)
        cdef double pixels = <double>(height * width)
        cdef double outside = <double>(height * width - area)
        blend.weight = <float>(outside / pixels)
        blend.rest = <float>1.0 - blend.weight

    cdef int blend_images(self, images, result, const Blend *blends) except -1:
        cdef const char *source = address(images)
        cdef char *target = address(result)
        cdef int64_t rows = len(images)
        cdef int64_t row_bytes = images.nbytes // rows
        cdef bint interleaved = images.dtype == np.uint8
        cdef int64_t last = images.ndim - 1
        cdef int64_t height = images.shape[1] if interleaved else images.shape[last - 1]
        cdef int64_t width = images.shape[2] if interleaved else images.shape[last]
        cdef int64_t size = row_bytes // (height * width) if interleaved else 4
        cdef int64_t plane_bytes = height * width * size
        cdef int64_t k, plane, y, place
        with nogil:
            for k in range(rows):
                memcpy(target + k * row_bytes, source + k * row_bytes, <size_t>row_bytes)
                for plane in range(row_bytes // plane_bytes):
                    for y in range(blends[k].top, blends[k].bottom):
                        place = plane * plane_bytes + (y * width + blends[k].left) * size
                        memcpy(
                            target + k * row_bytes + place,
                            source + blends[k].partner * row_bytes + place,
                            <size_t>((blends[k].right - blends[k].left) * size),
                        )
        return 0

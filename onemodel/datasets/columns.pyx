"""An image dataset in flat columns: a batch is made of them without an object for each sample."""

cimport cython
from libc.stdint cimport int32_t, int64_t

from types import MappingProxyType

import numpy as np

from onemodel._common.arrays import image_text, is_masked, read_only
from onemodel._common.integers import check_integer
from onemodel._memory.arrays cimport CONTIGUOUS, Array, array_of
from onemodel.datasets._table.mapped import MappedArray, portable, restored

__all__ = ["Columns"]

cdef enum:
    INT32_LIMIT = 0x7FFFFFFF


cdef class Columns:
    """A whole image dataset in flat arrays, checked once.

    A dataset of your own that has an attribute ``columns`` of this class is collated from it:
    without a Python object for each sample, and without the GIL. Image i is planar
    [channels, height, widths[i]] and begins at ``pixels[offsets[i]]``; images may lie anywhere in
    ``pixels``, in any order, also one over another.

    The pixels are not copied: they must not change while the dataset is in use. All other arrays
    are copied, so what was checked is what is read. ``arrays`` shows all of them by name,
    read-only. A pickle holds them by value, memory-mapped pixels by path and position.

    Args:
        pixels: uint8 or float32 [elements], contiguous and aligned.
        offsets: int64 [n + 1]; image i begins at element ``offsets[i]``, and ``offsets[n]`` is
            where the last one ends.
        widths: int64 [n], each in [1, 2**31), n at least 1.
        targets: int32 [symbols]; target i is ``targets[target_offsets[i]:target_offsets[i + 1]]``.
        target_offsets: int64 [n + 1] from 0 to ``len(targets)``, never falling.
        labels: int32 [n].
        channels: of every image, in [1, 2**31).
        height: of every image, in [1, 2**31).
        scale: float32 [channels]; a uint8 pixel p becomes ``p * scale - shift``.
        shift: likewise.

    Raises:
        TypeError: if a column is not a NumPy array.
        ValueError: if a column has another dtype, length or range; the message names it, and the
            first image that does not fit.

    >>> import numpy as np
    >>> columns = Columns(
    ...     pixels=np.arange(6, dtype=np.uint8),
    ...     offsets=np.array([0, 2, 6]),
    ...     widths=np.array([1, 2]),
    ...     targets=np.array([7, 8, 9], np.int32),
    ...     target_offsets=np.array([0, 1, 3]),
    ...     labels=np.zeros(2, np.int32),
    ...     channels=1,
    ...     height=2,
    ...     scale=np.ones(1, np.float32),
    ...     shift=np.zeros(1, np.float32),
    ... )
    >>> columns.count, columns.arrays["offsets"].tolist()
    (2, [0, 2, 6])
    """

    @cython.embedsignature.format("c")
    def __init__(
        self, pixels, offsets, widths, targets, target_offsets, labels, channels, height, scale,
        shift,
    ):
        cdef Array found
        cdef int64_t elements
        if self.arrays is not None:
            raise TypeError("Columns are made once and cannot be changed; make others")
        cdef int64_t checked_channels = check_integer("channels", channels, 1, 2**31)
        cdef int64_t checked_height = check_integer("height", height, 1, 2**31)
        given_widths = copied("widths", widths, np.int64)
        count = len(given_widths)
        if count == 0:
            raise ValueError("widths must be of at least 1 image, got 0")
        given_labels = copied("labels", labels, np.int32, count)
        arrays = {
            "pixels": pixel_column(pixels),
            "offsets": copied("offsets", offsets, np.int64, count + 1),
            "widths": given_widths,
            "targets": copied("targets", targets, np.int32),
            "target_offsets": copied("target_offsets", target_offsets, np.int64, count + 1),
            "labels": given_labels,
            "scale": copied("scale", scale, np.float32, checked_channels),
            "shift": copied("shift", shift, np.float32, checked_channels),
        }
        self.channels, self.height = checked_channels, checked_height
        self.bytes = arrays["pixels"].dtype == np.uint8
        array_of(arrays["pixels"], c"B" if self.bytes else c"f", 1, CONTIGUOUS, &found)
        self.pixels, elements = <const char *>found.data, found.size
        array_of(arrays["offsets"], b"q", 1, CONTIGUOUS, &found)
        self.offsets = <const int64_t *>found.data
        array_of(arrays["widths"], b"q", 1, CONTIGUOUS, &found)
        self.widths = <const int64_t *>found.data
        array_of(arrays["targets"], b"i", 1, CONTIGUOUS, &found)
        self.targets = <const int32_t *>found.data
        array_of(arrays["target_offsets"], b"q", 1, CONTIGUOUS, &found)
        self.target_offsets = <const int64_t *>found.data
        array_of(given_labels, b"i", 1, CONTIGUOUS, &found)
        self.labels = <const int32_t *>found.data
        array_of(arrays["scale"], b"f", 1, CONTIGUOUS, &found)
        self.scale = <const float *>found.data
        array_of(arrays["shift"], b"f", 1, CONTIGUOUS, &found)
        self.shift = <const float *>found.data
        self.check_each(count, elements)
        if self.target_offsets[count] != len(arrays["targets"]):
            raise ValueError(
                f"targets must hold {self.target_offsets[count]} symbols, "
                f"got {len(arrays['targets'])}"
            )
        self.mapped = type(portable(arrays["pixels"])) is MappedArray
        self.arrays = MappingProxyType(arrays)
        self.count = count          # last: of columns that were refused there are none

    cdef int check_each(self, int64_t count, int64_t elements) except -1:
        """Check that every image lies inside of the pixels, and every target inside of the targets.

        By division where a product could wrap.
        """
        cdef int64_t plane = self.channels * self.height    # below 2**62
        cdef int64_t last = count - 1
        cdef int64_t k, width, offset
        if self.target_offsets[0] != 0:
            raise ValueError(f"target_offsets[0] must be 0, got {self.target_offsets[0]}")
        for k in range(count):
            width, offset = self.widths[k], self.offsets[k]
            if not 1 <= width <= INT32_LIMIT:
                raise ValueError(f"widths[{k}] must be in [1, 2**31), got {width}")
            if not 0 <= offset <= elements or width > (elements - offset) // plane:
                raise ValueError(
                    f"offsets[{k}] must be in [0, {elements} - {plane} * {width}], the pixels less "
                    f"channels * height * widths[{k}], got {offset}"
                )
            if self.target_offsets[k + 1] < self.target_offsets[k]:
                raise ValueError(
                    f"target_offsets must not fall, got {self.target_offsets[k + 1]} at {k + 1}"
                )
        if self.offsets[count] != self.offsets[last] + plane * self.widths[last]:
            raise ValueError(
                f"offsets[{count}] must be {self.offsets[last] + plane * self.widths[last]}, "
                f"where the last image ends, got {self.offsets[count]}"
            )
        return 0

    def __len__(self):
        return self.count

    def __repr__(self):
        if self.arrays is None:
            return f"{type(self).__name__}(not initialised)"
        return (
            f"{type(self).__name__}({self.count} images, {self.channels} channels, height "
            f"{self.height}, {self.arrays['pixels'].dtype})"
        )

    def __reduce__(self):
        if self.arrays is None:
            raise TypeError(f"{type(self).__name__}.__init__ must call Columns.__init__")
        arrays = {name: portable(array) for name, array in self.arrays.items()}
        made_by = type(self), arrays, self.channels, self.height
        return remake, made_by, self.__getstate__()


cdef object copied(name, values, dtype, length=None):
    """Return a read-only copy of a flat column, in native byte order."""
    if not isinstance(values, np.ndarray) or is_masked(values):
        raise TypeError(f"columns must be NumPy arrays, got {image_text(values)} for {name}")
    values = np.asarray(values)
    kind = np.dtype(dtype)
    shape = f"[{'n' if length is None else length}]"
    # NumPy's own integer has 32 bits on some platforms and 64 on others
    fits = values.dtype.kind in "iu" if kind.kind == "i" else values.dtype.newbyteorder("=") == kind
    if not fits or values.ndim != 1 or (length is not None and len(values) != length):
        raise ValueError(f"{name} must be {kind} {shape}, got {image_text(values)}")
    if kind.kind == "i" and values.size:
        low, high = int(values.min()), int(values.max())
        if low < np.iinfo(kind).min or high > np.iinfo(kind).max:
            raise ValueError(f"{name} must fit in {kind}, got {low} to {high}")
    copy = np.array(values, dtype, order="C", copy=True)
    copy.flags.writeable = False
    return copy


cdef object pixel_column(values):
    """Return a read-only view of the pixels, which are not copied."""
    if not isinstance(values, np.ndarray) or is_masked(values):
        raise TypeError(f"columns must be NumPy arrays, got {image_text(values)} for pixels")
    values = np.asarray(values)
    if (
        values.dtype not in (np.uint8, np.float32)
        or values.ndim != 1
        or not values.flags.c_contiguous
        or not values.flags.aligned
    ):
        raise ValueError(
            "pixels must be uint8 or float32 [elements], contiguous and aligned, "
            f"got {image_text(values)}"
        )
    return read_only(values)


def remake(kind, arrays, channels, height):
    """Return the ``kind`` of columns that these arrays make: how a pickle is read."""
    made = kind.__new__(kind)
    Columns.__init__(
        made, **{name: restored(array) for name, array in arrays.items()},
        channels=channels, height=height,
    )
    return made

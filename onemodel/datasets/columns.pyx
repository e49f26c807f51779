"""Columns."""

cimport cython
from libc.stdint cimport int32_t, int64_t

import numpy as np

from onemodel._common.array_checks import check_columns
from onemodel._memory.arrays cimport CONTIGUOUS, Array, array_of

__all__ = ["Columns"]


cdef class Columns:
    """A whole image dataset in flat arrays: image i has the elements from ``offsets[i]`` on.

    Args:
        pixels: uint8 or float32 [total]; image i is planar [channels, height, widths[i]].
        offsets: int64 [n + 1], rising by ``channels * height * widths[i]`` from 0.
        widths: int64 [n], at least 1.
        targets: int32 [total]; target_offsets: int64 [n + 1], never falling, from 0.
        labels: int32 [n].
        channels, height: at least 1.
        scale, shift: float32 [channels]; a uint8 pixel p becomes ``p * scale - shift``.

    Raises:
        TypeError, ValueError: if the arrays do not describe one dataset.
    """

    @cython.embedsignature.format("c")
    def __init__(
        self, pixels, offsets, widths, targets, target_offsets, labels, channels, height, scale,
        shift,
    ):
        cdef Array found
        cdef int64_t size
        arrays = (pixels, offsets, widths, targets, target_offsets, labels, scale, shift)
        if self.arrays is not None:
            raise TypeError("Columns are made once")
        for each in arrays:         # other buffers may move while somebody looks at them
            if not isinstance(each, np.ndarray):
                raise TypeError(f"columns must be NumPy arrays, got {type(each).__name__}")
        self.channels, self.height = channels, height
        self.bytes = pixels.dtype.kind == "u"
        array_of(pixels, c"B" if self.bytes else c"f", 1, CONTIGUOUS, &found)
        self.pixels, size = <const char *>found.data, found.size
        array_of(offsets, b"q", 1, CONTIGUOUS, &found)
        self.offsets = <const int64_t *>found.data
        array_of(widths, b"q", 1, CONTIGUOUS, &found)
        self.widths = <const int64_t *>found.data
        array_of(targets, b"i", 1, CONTIGUOUS, &found)
        self.targets = <const int32_t *>found.data
        array_of(target_offsets, b"q", 1, CONTIGUOUS, &found)
        self.target_offsets = <const int64_t *>found.data
        array_of(labels, b"i", 1, CONTIGUOUS, &found)
        self.labels = <const int32_t *>found.data
        array_of(scale, b"f", 1, CONTIGUOUS, &found)
        self.scale = <const float *>found.data
        array_of(shift, b"f", 1, CONTIGUOUS, &found)
        self.shift = <const float *>found.data
        check_columns(
            size, offsets, widths, targets, target_offsets, len(labels), self.channels,
            self.height, scale, shift
        )
        self.arrays = arrays
        self.count = len(labels)    # last: of columns that were refused there are none

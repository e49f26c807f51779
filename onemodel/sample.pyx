"""One training sample: an image, its target symbols, its label."""

from cpython.buffer cimport PyBUF_RECORDS_RO, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t

import numpy as np

from onemodel.checks import int32

__all__ = ["Sample"]


cdef class Sample:
    """What ``dataset[i]`` gives on the sample face; it cannot be changed.

    The arguments are kept as they are and checked when a batch is made of them, so that an error
    can say which slot and which dataset index it concerns.

    Args:
        image: float32 array [C, H, W], W >= 1, any strides; it is read and never written.
        target: integers that fit in int32, any length; for CTC, 0 is usually the blank.
        label: an integer that fits in int32.

    >>> import numpy as np
    >>> Sample(np.zeros((1, 32, 100), np.float32), target=[3, 1, 4], label=7)
    Sample(image=float32 [1, 32, 100], target of 3, label=7)
    """

    def __init__(self, image, target=(), label=0):
        if self.resolved:       # __init__ called again: the buffer belongs to the old image
            raise TypeError("a Sample cannot be changed; make another")
        self.image = image
        self.target = target
        self.label = label

    def __dealloc__(self):
        if self.resolved:
            PyBuffer_Release(&self.image_buffer)

    def __reduce__(self):
        return type(self), (self.image, self.target, self.label)

    def __repr__(self):
        image = self.image
        described = (
            f"{image.dtype} {list(image.shape)}"
            if isinstance(image, np.ndarray)
            else type(image).__name__
        )
        try:
            length = len(self.target)
        except TypeError:
            length = repr(self.target)
        return f"Sample(image={described}, target of {length}, label={self.label!r})"

    cdef object resolve(self):
        """Look the pixels, symbols and label up once; return what is wrong, or None.

        An error comes back without the sample's place, which the caller knows.
        """
        cdef Py_buffer view
        cdef const int32_t[::1] symbols
        cdef int32_t label
        if self.resolved:
            return None
        if not isinstance(self.image, np.ndarray):
            return TypeError(f"image must be a NumPy array, got {type(self.image).__name__}")
        if self.image.dtype != np.float32 or not self.image.dtype.isnative:
            return TypeError(f"image must be float32, got {self.image.dtype}")
        if self.image.ndim != 3:
            return ValueError(f"image must have shape [C, H, W], got {list(self.image.shape)}")
        if 0 in self.image.shape:
            return ValueError(
                f"image must have C, H and W of at least 1, got {list(self.image.shape)}"
            )
        try:
            target = np.asarray(self.target)
        except (TypeError, ValueError, OverflowError) as error:
            return TypeError(f"target must be integers: {error}, got {self.target!r}")
        if target.ndim != 1:
            return ValueError(f"target must have one dimension, got shape {target.shape}")
        if target.size and (target.dtype.kind not in "iu" or holds_bool(self.target)):
            return TypeError(f"target must be integers that fit in int32, got {self.target!r}")
        if target.size and not (-(2**31) <= target.min() and target.max() < 2**31):
            return ValueError(
                f"target must fit in int32, got {int(target.min())} to {int(target.max())}"
            )
        try:
            label = int32("label", self.label)
        except (TypeError, ValueError) as error:
            return error
        kept = np.ascontiguousarray(target, np.int32)
        symbols = kept
        # kernels read whole floats: an image at an odd address is copied, once
        image = self.image if self.image.flags.aligned else self.image.copy()
        PyObject_GetBuffer(image, &view, PyBUF_RECORDS_RO)
        if self.resolved:       # another thread was faster
            PyBuffer_Release(&view)
            return None
        self.image_buffer = view
        self.channels, self.height = view.shape[0], view.shape[1]
        self.source.pixels = <const char *>view.buf
        self.source.plane_stride = view.strides[0]
        self.source.row_stride = view.strides[1]
        self.source.column_stride = view.strides[2]
        self.source.width = view.shape[2]
        self.symbols = kept
        self.target_data = &symbols[0] if symbols.shape[0] else NULL
        self.target_length = symbols.shape[0]
        self.label_value = label
        self.resolved = True
        return None


cdef bint holds_bool(target):
    """An integer array made of a list does not show that True stood in it."""
    if isinstance(target, np.ndarray):
        return False
    return any(isinstance(each, (bool, np.bool_)) for each in target)

"""One training sample: an image, its target symbols, its label."""

cimport cython
from cpython.buffer cimport PyBUF_RECORDS_RO, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t

from onemodel._common.array_checks import image_text, sample_fields
from onemodel._memory.arrays cimport CONTIGUOUS, Array, array_of

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

    @cython.embedsignature.format("c")
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
        try:
            length = len(self.target)
        except TypeError:
            length = repr(self.target)
        return f"Sample(image={image_text(self.image)}, target of {length}, label={self.label!r})"

    cdef object resolve(self):
        """Look the pixels, symbols and label up once; return what is wrong, or None.

        An error comes back without the sample's place, which the caller knows.
        """
        cdef Py_buffer view
        cdef Array symbols
        cdef int32_t label
        if self.resolved:
            return None
        fields = sample_fields(self.image, self.target, self.label)
        if type(fields) is not tuple:
            return fields
        kept, label = <tuple>fields
        array_of(kept, b"i", 1, CONTIGUOUS, &symbols)
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
        self.target_data = <const int32_t *>symbols.data if symbols.size else NULL
        self.target_length = symbols.size
        self.label_value = label
        self.resolved = True
        return None

"""One training sample: an image, its target symbols, its label."""

cimport cython
from cpython.buffer cimport PyBUF_RECORDS_RO, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int32_t

import numpy as np

from onemodel._common.arrays import as_c_contiguous, image_text, is_masked, read_only
from onemodel._common.describe import shown as text_of
from onemodel._common.integers import check_int32
from onemodel._common.overrides import is_own
from onemodel._memory.arrays cimport CONTIGUOUS, Array, array_of
from onemodel._memory.lock cimport lock, unlock, write_word

__all__ = ["Sample"]

cdef object ndarray = np.ndarray
cdef object FLOAT32 = np.dtype(np.float32)
cdef object INT32 = np.dtype(np.int32)


cdef class Sample:
    """What ``dataset[i]`` gives on the sample face; it cannot be changed.

    An array is kept without a copy, and ``image`` and ``target`` show it as a read-only view of
    the base class; a list of symbols is kept as a tuple. So no edit through a sample can change a
    dataset. The arguments are checked when a batch is made of the sample, so that an error can
    say which slot and which dataset index it concerns. A pickle holds the arguments and what a
    subclass added.

    Args:
        image: float32 array [C, H, W], W >= 1, any strides; it is read and never written.
        target: integers that fit in int32, any length; for CTC, 0 is usually the blank.
        label: an integer that fits in int32.

    >>> import numpy as np
    >>> image = np.zeros((1, 32, 100), np.float32)
    >>> sample = Sample(image, target=[3, 1, 4], label=7)
    >>> sample
    Sample(image=float32 [1, 32, 100], target of 3, label=7)
    >>> sample.image.flags.writeable, image.flags.writeable
    (False, True)
    """

    @cython.embedsignature.format("c")
    def __init__(self, image, target=(), label=0):
        if self.made:
            raise TypeError("a Sample cannot be changed; make another")
        self.image = shown(image)
        self.target = tuple(target) if isinstance(target, list) else shown(target)
        self.label = label
        self.made = True

    def __dealloc__(self):
        if self.resolved:
            PyBuffer_Release(&self.image_buffer)

    def __reduce__(self):
        return remake, (type(self), self.image, self.target, self.label), self.__getstate__()

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
        if is_resolved(self):
            return None
        if not self.made:
            return TypeError(f"{type(self).__name__}.__init__ must call Sample.__init__")
        wrong = image_fault(self.image)
        if wrong is not None:
            return wrong
        if self.looked_up is None:
            fields = target_and_label(self.target, self.label)
            if type(fields) is not tuple:
                return fields
        else:
            fields = self.looked_up
        kept, label = <tuple>fields
        array_of(kept, b"i", 1, CONTIGUOUS, &symbols)
        # kernels read whole floats: an image at an odd address is copied, once
        image = self.image if self.image.flags.aligned else as_c_contiguous(self.image)
        PyObject_GetBuffer(image, &view, PyBUF_RECORDS_RO)
        lock(&self.lock)
        if self.resolved:       # another thread was faster
            unlock(&self.lock)
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
        write_word(&self.resolved, 1)
        unlock(&self.lock)
        return None

    cdef Sample plain(self):
        """Return the sample that kernels may read: what a subclass that overrides a field gives."""
        if type(self) is Sample or is_own(self, Sample, "image", "target", "label"):
            return self
        seen = <object>self             # as Python sees the fields
        return Sample(seen.image, seen.target, seen.label)

    cdef Sample with_image(self, image):
        """Return a Sample with another image; target and label are not looked up again."""
        cdef Sample made = Sample(image, self.target, self.label)
        # what is wrong with this one is found, where it matters, in the new one
        if self.resolve() is None:
            made.looked_up = self.symbols, self.label_value
        return made


def remake(kind, image, target, label):
    """Return the ``kind`` of sample that these fields make: how a pickle is read."""
    made = kind.__new__(kind)
    Sample.__init__(made, image, target, label)
    return made


cdef object shown(value):
    """Return what a sample shows of a field: of an array a read-only view, else the value."""
    if type(value) is ndarray:
        if not value.flags.writeable:
            return value
        view = value.view()
        view.flags.writeable = False
        return view
    if not isinstance(value, ndarray) or is_masked(value):
        return value
    return read_only(value)


cdef object image_fault(image):
    """Return what is wrong with a sample's image, or None."""
    if not isinstance(image, ndarray) or is_masked(image):
        return TypeError(f"image must be a NumPy array, got {image_text(image)}")
    if image.dtype != FLOAT32:
        return TypeError(f"image must be float32, got {image.dtype}")
    if image.ndim != 3:
        return ValueError(f"image must have shape [C, H, W], got {list(image.shape)}")
    if 0 in image.shape:
        return ValueError(f"image must have C, H and W of at least 1, got {list(image.shape)}")
    return None


cdef object target_and_label(target, label):
    """Return a sample's target and label as a batch holds them, or what is wrong with one."""
    if is_masked(target):
        return TypeError("target must be integers without a mask, got a masked array")
    try:
        symbols = np.asarray(target)
    except (TypeError, ValueError, OverflowError) as error:
        return TypeError(f"target must be integers: {error}, got {text_of(target)}")
    if symbols.ndim != 1:
        return ValueError(f"target must have one dimension, got shape {symbols.shape}")
    if symbols.dtype != INT32:
        if symbols.size and (symbols.dtype.kind not in "iu" or holds_bool(target)):
            return TypeError(f"target must be integers that fit in int32, got {text_of(target)}")
        if symbols.size and not (symbols.min() >= -(2**31) and symbols.max() < 2**31):
            return ValueError(
                f"target must fit in int32, got {int(symbols.min())} to {int(symbols.max())}"
            )
        symbols = symbols.astype(INT32)
    try:
        return as_c_contiguous(symbols), check_int32("label", label)
    except (TypeError, ValueError) as error:
        return error


cdef bint holds_bool(target):
    """Return whether True stood in a list, which an integer array made of it does not show."""
    if isinstance(target, np.ndarray):
        return False
    for each in target:
        if isinstance(each, (bool, np.bool_)):
            return True
    return False

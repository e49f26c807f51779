"""Arrays as kernels see them: checked once, then a pointer and a shape.

Not typed memoryviews: what Cython generates for those is larger than all of the loops together,
and counts in a browser. The array must be kept for as long as its memory is looked at.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_STRIDES, PyBUF_WRITABLE
from cpython.pycapsule cimport PyCapsule_GetPointer


cdef enum:
    CONTIGUOUS = PyBUF_C_CONTIGUOUS
    WRITABLE = PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE
    STRIDED = PyBUF_STRIDES
    ANY_RANK = -1

    # Loops over fewer elements keep the GIL: to get it back may take a sleep.
    SHORT_LOOP = 4096


cdef extern from "arrays.h":
    ctypedef struct Array "onemodel_array":
        void *data
        Py_ssize_t size
        Py_ssize_t shape[4]
        Py_ssize_t strides[4]

    # kinds: b"f" float32, b"d" float64, b"i" int32, b"q" int64, b"Q" uint64, b"B" uint8
    int array_of "onemodel_array_of"(
        object array, char kind, int rank, int flags, Array *found
    ) except -1

    # the same, and hold the buffer in `view` until PyBuffer_Release
    int hold_array "onemodel_hold_array"(
        object array, char kind, int rank, int flags, Array *found, Py_buffer *view
    ) except -1


# The head of what NumPy's `__array_struct__` points at, a part of its array interface: written
# out so that NumPy is no build dependency.
ctypedef struct ArrayStruct:
    int two
    int rank
    char kind
    int item_bytes
    int flags
    Py_ssize_t *shape
    Py_ssize_t *strides
    char *data


cdef inline char *address(array) except NULL:
    """Where the first item of an np.ndarray lies, whatever its dtype and whether it may be written.

    A memoryview would do for most arrays; those of dates or unknown fields export none. A subclass
    may answer what it likes: hand over what np.asarray gives.
    """
    capsule = array.__array_struct__
    return (<ArrayStruct *>PyCapsule_GetPointer(capsule, NULL)).data

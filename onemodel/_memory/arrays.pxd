"""Arrays as kernels see them: checked once, then a pointer and a shape.

Not typed memoryviews: what Cython generates for those is larger than all of the loops together,
and counts in a browser. The array must be kept for as long as its memory is looked at.
"""

from cpython.buffer cimport PyBUF_C_CONTIGUOUS, PyBUF_STRIDES, PyBUF_WRITABLE


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

"""Where an array's first element lies, whatever its dtype and whether it may be written.

The buffer interface would do for most arrays; those of dates or of fields export none.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer


# The first fields of NumPy's PyArrayInterface, a struct that is part of its public protocol.
ctypedef struct ArrayStruct:
    int two
    int rank
    char kind
    int itemsize
    int flags
    Py_ssize_t *shape
    Py_ssize_t *strides
    char *data


cdef inline char *address_of(array) except NULL:
    """Of an array of the base class: a subclass may lie here too."""
    capsule = array.__array_struct__
    return (<ArrayStruct *>PyCapsule_GetPointer(capsule, NULL)).data

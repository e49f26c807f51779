"""Keyed permutations of [0, n): random access, an inverse, no table.

Source: docs/specification.md, section "Keyed permutation"; construction in feistel.pxd.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t

from onemodel.arrays cimport ANY_RANK, CONTIGUOUS, WRITABLE, Array, array_of
from onemodel.feistel cimport feistel, permute, unpermute

from operator import index as index_of

from onemodel.array_checks import positions_of, room_for
from onemodel.checks import TWO_63, integer, uint64

__all__ = ["KeyedPermutation"]

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX


cdef class KeyedPermutation:
    """The permutation of [0, n) that ``key`` names; making one costs the same for every n.

    Args:
        n: how many positions, in [1, 2**63).
        key: integer in [0, 2**64).

    >>> permutation = KeyedPermutation(5, 42)
    >>> sorted(permutation)
    [0, 1, 2, 3, 4]
    >>> permutation.inverse(permutation[3])
    3
    """

    @cython.embedsignature.format("c")
    def __init__(self, n, key):
        cdef uint64_t count = integer("n", n, 1, TWO_63)
        cdef uint64_t checked = uint64("key", key)
        feistel(&self.plan, count, checked)
        self.key = checked

    @property
    def n(self):
        """How many positions there are: ``len`` without the platform's limit."""
        return self.plan.n

    def __len__(self):
        if self.plan.n > <uint64_t>PY_SSIZE_T_MAX:
            raise OverflowError(f"n {self.plan.n} does not fit in len() here; read .n")
        return <Py_ssize_t>self.plan.n

    def __repr__(self):
        return f"KeyedPermutation(n={self.plan.n}, key={self.key:#018x})"

    def __reduce__(self):
        return KeyedPermutation, (self.plan.n, self.key)

    def __getitem__(self, position):
        """Return the index at ``position`` in [0, n); an IndexError outside, also if negative."""
        return permute(&self.plan, self.inside("position", position))

    def __iter__(self):
        cdef uint64_t position
        for position in range(self.plan.n):
            yield permute(&self.plan, position)

    def inverse(self, index):
        """Return the position whose index is ``index``, in [0, n)."""
        return unpermute(&self.plan, self.inside("index", index))

    def take(self, positions, out=None):
        """Return the indices at many positions: int64, in the shape of ``positions``.

        Args:
            positions: array of integers in [0, n), any shape.
            out: C-contiguous int64 array of that shape to fill and return.

        Raises:
            IndexError: if a position is outside [0, n); ``out`` is then left as it was.
        """
        cdef Array given, filled
        cdef int64_t k
        wanted = positions_of(positions, out, self.plan.n)
        array_of(wanted, b"q", ANY_RANK, CONTIGUOUS, &given)
        cdef const int64_t *source = <const int64_t *>given.data
        for k in range(given.size):
            if source[k] < 0 or <uint64_t>source[k] >= self.plan.n:
                raise IndexError(f"position must be in [0, {self.plan.n}), got {source[k]}")
        out = room_for(out, wanted.shape)
        array_of(out, b"q", ANY_RANK, WRITABLE, &filled)
        cdef int64_t *target = <int64_t *>filled.data
        with nogil:
            for k in range(given.size):
                target[k] = <int64_t>permute(&self.plan, <uint64_t>source[k])
        return out

    cdef uint64_t inside(self, name, value) except? 0:
        if isinstance(value, bool) or not hasattr(value, "__index__"):
            raise TypeError(f"{name} must be an integer, got {value!r}")
        checked = index_of(value)
        if not 0 <= checked < self.plan.n:
            raise IndexError(f"{name} must be in [0, {self.plan.n}), got {checked}")
        return checked

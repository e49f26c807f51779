"""Keyed permutations of [0, n): random access, an inverse, no table.

Source: docs/specification.md, section "Keyed permutation"; construction in feistel.h.
"""

cimport cython
from libc.stdint cimport int64_t, uint64_t
from libc.string cimport memset

from onemodel._memory.arrays cimport ANY_RANK, CONTIGUOUS, SHORT_LOOP, WRITABLE, Array, array_of
from onemodel._random.rng cimport derive64, new_array
from onemodel._simd.feistel cimport Feistel, feistel, permute, unpermute
from onemodel._simd.dispatch cimport loops

from operator import index as index_of

import numpy as np

from onemodel._common.describe import shown
from onemodel._common.arrays import check_out
from onemodel._common.integers import TWO_63, check_integer, check_uint64
from onemodel._random.positions import position_error, positions_of, slice_of

__all__ = ["KeyedPermutation", "keyed_order"]

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX


cdef void permute_all(
    const Feistel *plan, const uint64_t *positions, uint64_t *indices, int64_t count
) noexcept:
    if plan.n <= 1:
        memset(indices, 0, count * sizeof(uint64_t))
    elif count < SHORT_LOOP:
        loops.permute(plan, positions, indices, count)
    else:
        with nogil:
            loops.permute(plan, positions, indices, count)


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
    >>> permutation[1:4].tolist() == list(permutation)[1:4]
    True
    """

    @cython.embedsignature.format("c")
    def __init__(self, n, key):
        if self.key is not None:
            raise TypeError("a KeyedPermutation cannot be changed; make another")
        cdef uint64_t count = check_integer("n", n, 1, TWO_63)
        cdef uint64_t checked = check_uint64("key", key)
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
        """Return the index at ``position`` in [0, n); an IndexError outside, also if negative.

        Of a slice: an array of the indices at its positions, int64. It is cut to [0, n) and its
        ends may count from n down, as in all of Python's slices.
        """
        if isinstance(position, slice):
            return self.sliced(position)
        return permute(&self.plan, self.inside("position", position))

    def __iter__(self):
        return map(self.__getitem__, range(self.n))

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
        cdef uint64_t outside = 0
        wanted = positions_of(positions, out, self.plan.n)
        array_of(wanted, b"q", ANY_RANK, CONTIGUOUS, &given)
        cdef const uint64_t *source = <const uint64_t *>given.data
        for k in range(given.size):
            outside |= source[k] >= self.plan.n     # a negative one as well
        if outside:
            raise position_error(wanted, self.n)
        out = check_out(out, wanted.shape, np.int64)
        array_of(out, b"q", ANY_RANK, WRITABLE, &filled)
        permute_all(&self.plan, source, <uint64_t *>filled.data, given.size)
        return out

    cdef object sliced(self, positions):
        cdef Array filled
        cdef int64_t k
        cdef uint64_t first, step
        first, step, count = slice_of(positions, self.n)
        out = new_array("the number of positions", count, np.int64)
        array_of(out, b"q", 1, WRITABLE, &filled)
        cdef uint64_t *indices = <uint64_t *>filled.data
        for k in range(filled.size):
            indices[k] = first + <uint64_t>k * step
        permute_all(&self.plan, indices, indices, filled.size)
        return out

    cdef uint64_t inside(self, name, value) except? 0:
        try:
            checked = None if isinstance(value, (bool, np.bool_)) else index_of(value)
        except TypeError:
            checked = None
        if checked is None:
            raise TypeError(f"{name} must be an integer, got {shown(value)}")
        if not 0 <= checked < self.plan.n:
            raise IndexError(f"{name} must be in [0, {self.plan.n}), got {shown(checked)}")
        return checked


def keyed_order(
    uint64_t n, uint64_t seed, uint64_t epoch, uint64_t step, uint64_t stream
):
    """Return the permutation of [0, n) with the key ``derive(seed, epoch, step, 0, stream)``.

    Its arguments were checked before; n is in [1, 2**63).
    """
    cdef KeyedPermutation made = KeyedPermutation.__new__(KeyedPermutation)
    cdef uint64_t key = derive64(seed, epoch, step, 0, stream)
    feistel(&made.plan, n, key)
    made.key = key
    return made

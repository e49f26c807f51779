"""The one generator of the library: SplitMix64, its draws, and the seed derivation.

Source: docs/specification.md, section "Random numbers". Kernels use the inline functions of
rng.pxd; this file is their Python face and the array loops.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t, uint32_t, uint64_t

import numbers
import threading
from math import isfinite

import numpy as np

from onemodel._memory.arrays cimport ANY_RANK, WRITABLE, Array, array_of
from onemodel._common.describe import shown
from onemodel._common.integers import (
    TWO_63, TWO_64, check_integer, check_shape, check_uint64,
)
from onemodel._simd.feistel cimport Feistel, feistel, permute
from onemodel._simd.float_mode cimport default_float_mode, restore_float_mode

__all__ = ["SampleRng", "check_coordinates", "derive", "mix", "slot_rng"]


def mix(x):
    """Return SplitMix64's output for the state ``x``: a bijection of [0, 2**64).

    >>> hex(mix(0))
    '0xe220a8397b1dcdaf'
    """
    return mix64(check_uint64("x", x))


def derive(seed, epoch, step, slot, stream):
    """Return the state in [0, 2**64) of the generator for these coordinates.

    Every coordinate is hashed, so neighbouring runs, steps and slots share nothing. The library
    uses the streams of ``onemodel._random.streams``; those from 1000 on are free.

    Raises:
        TypeError, ValueError: if an argument is not an integer in [0, 2**64).

    >>> hex(derive(42, 1, 2, 3, 4))
    '0xde89cf4a90b00915'
    """
    return derive64(
        check_uint64("seed", seed),
        check_uint64("epoch", epoch),
        check_uint64("step", step),
        check_uint64("slot", slot),
        check_uint64("stream", stream),
    )


def check_coordinates(steps, seed, epoch, step):
    """Return the (seed, epoch, step) of a batch as ints; step must be in [0, steps).

    Raises:
        TypeError, ValueError: naming the one that is out of range.
    """
    if type(seed) is int and type(epoch) is int and type(step) is int and (
        0 <= seed < TWO_64 and 0 <= epoch < TWO_64 and 0 <= step < steps
    ):
        return seed, epoch, step    # the loader's own, as every batch asks with them
    return (
        check_uint64("seed", seed),
        check_uint64("epoch", epoch),
        check_integer("step", step, 0, steps),
    )


def slot_rng(uint64_t seed, uint64_t epoch, uint64_t step, uint64_t slot, uint64_t stream):
    """Return ``SampleRng(derive(...))`` of coordinates that were checked before."""
    return SampleRng.start(derive64(seed, epoch, step, slot, stream))


cdef enum:
    SMALL_SIZE = 1 << 20        # an array of which no platform refuses


cdef object new_array(name, size, dtype):
    """An uninitialised array of the length or shape ``size``, which errors call ``name``."""
    if type(size) is int and 0 <= size < SMALL_SIZE:    # as every batch asks
        return np.empty(size, dtype)
    shape = check_shape(size, name)
    try:
        return np.empty(shape, dtype)
    except ValueError:              # more bytes than addresses
        raise ValueError(
            f"{name} must be of an array that this platform can address, got {shown(size)}"
        ) from None
    except MemoryError:
        raise MemoryError(f"no memory for an array of {name} {shown(size)}") from None


cdef bint is_number(value) except *:
    """Whether a value other than a float or an int may be read by float()."""
    if isinstance(value, (bool, str, bytes, bytearray)) or getattr(value, "ndim", 0):
        return False
    if isinstance(value, (numbers.Complex, np.ma.MaskedArray, np.bool_)):
        return isinstance(value, numbers.Real)
    return True


cdef double finite(name, value) except? -1:
    """A number as a finite float64."""
    if type(value) is not float and type(value) is not int and not is_number(value):
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(
            f"{name} must be finite in float64, got a {type(value).__name__} beyond it"
        ) from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {shown(value)}") from None
    if not isfinite(number):
        raise ValueError(f"{name} must be finite, got {number}")
    return number


cdef class SampleRng:
    """SplitMix64 from a given state: the same draws on every platform and NumPy version.

    The scalar draws define the stream; element k of an array draw is the k-th scalar draw.
    One generator is for one thread.

    Args:
        state: integer in [0, 2**64), for example what ``derive`` returns.

    >>> rng = SampleRng(0)
    >>> hex(rng.next_u64())
    '0xe220a8397b1dcdaf'
    >>> rng.next_int(6)
    2
    >>> rng.random(2)
    array([0.02643377, 0.97088198])
    """

    @cython.embedsignature.format("c")
    def __init__(self, state):
        self.current = check_uint64("state", state)

    @staticmethod
    cdef SampleRng start(uint64_t state):
        """The constructor for kernels: no Python integer, no check."""
        cdef SampleRng rng = SampleRng.__new__(SampleRng)
        rng.current = state
        return rng

    @property
    def state(self):
        """The state, an integer in [0, 2**64): ``SampleRng(rng.state)`` draws what is to come."""
        return self.current

    def __repr__(self):
        return f"SampleRng({self.current:#018x})"

    def __reduce__(self):
        return SampleRng, (self.current,)

    def next_u64(self):
        """Return the next integer in [0, 2**64)."""
        return next_u64(&self.current)

    def next_single(self):
        """Return a float in [0, 1) that is a multiple of 2**-24, so exact in float32."""
        return next_single(&self.current)

    def next_double(self):
        """Return a float in [0, 1) that is a multiple of 2**-53."""
        return next_double(&self.current)

    def next_int(self, n):
        """Return an unbiased integer in [0, n), for n in [1, 2**64)."""
        cdef uint64_t bound = check_integer("n", n, 1, 1 << 64)
        return next_below(&self.current, bound)

    def next_normal(self):
        """Return the sum of twelve ``next_single`` in float32, less 6: mean 0, variance 1."""
        cdef uint64_t mode = default_float_mode()
        cdef float value = next_normal(&self.current)
        restore_float_mode(mode)
        return value

    def random(self, size=None, dtype=np.float64):
        """Return uniform floats in [0, 1): ``next_double``, or ``next_single`` for float32.

        Args:
            size: None for a Python float, else the array's length or shape.
            dtype: float64 or float32.

        Raises:
            TypeError, ValueError: naming the argument that does not fit.
        """
        cdef Array flat
        cdef int64_t k
        try:
            kind = np.dtype(dtype)
        except Exception:           # NumPy's own are of several kinds
            raise TypeError(f"dtype must be float64 or float32, got {shown(dtype)}") from None
        if kind == np.float64:
            if size is None:
                return next_double(&self.current)
            values = new_array("size", size, np.float64)
            array_of(values, b"d", ANY_RANK, WRITABLE, &flat)
            with nogil:
                for k in range(flat.size):
                    (<double *>flat.data)[k] = next_double(&self.current)
        elif kind == np.float32:
            if size is None:
                return next_single(&self.current)
            values = new_array("size", size, np.float32)
            array_of(values, b"f", ANY_RANK, WRITABLE, &flat)
            with nogil:
                for k in range(flat.size):
                    (<float *>flat.data)[k] = next_single(&self.current)
        else:
            raise TypeError(f"dtype must be float64 or float32, got {kind}")
        return values

    def uniform(self, low=0.0, high=1.0, size=None):
        """Return ``low + (high - low) * next_double()`` in float64, elementwise.

        Raises:
            TypeError: if low or high is not a number; text and complex numbers are none.
            ValueError: if low or high is not finite, or their difference is not.
        """
        cdef uint64_t mode
        cdef double value, start = finite("low", low), end = finite("high", high)
        mode = default_float_mode()
        cdef double span = end - start
        restore_float_mode(mode)
        if not isfinite(span):
            raise ValueError(f"high - low must be finite, got low {low} and high {high}")
        if size is None:
            mode = default_float_mode()
            value = start + span * next_double(&self.current)
            restore_float_mode(mode)
            return value
        values = new_array("size", size, np.float64)
        cdef Array flat
        cdef int64_t k
        array_of(values, b"d", ANY_RANK, WRITABLE, &flat)
        mode = default_float_mode()
        with nogil:
            for k in range(flat.size):
                (<double *>flat.data)[k] = start + span * next_double(&self.current)
        restore_float_mode(mode)
        return values

    def integers(self, low, high=None, size=None):
        """Return unbiased int64 integers in [low, high), or in [0, low) where high is None.

        Raises:
            ValueError: unless -2**63 <= low < high <= 2**63 and high - low < 2**64.
        """
        if high is None:
            low, high = 0, low
        low = check_integer("low", low, -TWO_63, TWO_63)
        high = check_integer("high", high, -TWO_63, TWO_63 + 1)
        cdef uint64_t span = check_integer("high - low", high - low, 1, 1 << 64)
        cdef uint64_t start = low & 0xFFFFFFFFFFFFFFFF
        if size is None:
            return <int64_t>(start + next_below(&self.current, span))
        values = new_array("size", size, np.int64)
        cdef Array flat
        cdef int64_t k
        array_of(values, b"q", ANY_RANK, WRITABLE, &flat)
        with nogil:
            for k in range(flat.size):
                # modulo 2^64 and back to signed: low + draw without an overflow
                (<int64_t *>flat.data)[k] = <int64_t>(start + next_below(&self.current, span))
        return values

    def standard_normal(self, size=None):
        """Return ``next_normal`` draws: a Python float, or a float32 array of shape ``size``."""
        if size is None:
            return self.next_normal()
        values = new_array("size", size, np.float32)
        cdef Array flat
        cdef int64_t k
        array_of(values, b"f", ANY_RANK, WRITABLE, &flat)
        cdef uint64_t mode = default_float_mode()
        with nogil:
            for k in range(flat.size):
                (<float *>flat.data)[k] = next_normal(&self.current)
        restore_float_mode(mode)
        return values

    def permutation(self, n):
        """Return the keyed permutation of [0, n) whose key is ``next_u64``: int64 [n].

        Raises:
            ValueError: unless n is in [0, 2**63).
        """
        cdef Feistel plan
        cdef int64_t k
        values = new_array("n", check_integer("n", n, 0, TWO_63), np.int64)
        cdef Array flat
        array_of(values, b"q", 1, WRITABLE, &flat)
        feistel(&plan, <uint64_t>flat.size, next_u64(&self.current))
        with nogil:
            for k in range(flat.size):
                (<int64_t *>flat.data)[k] = <int64_t>permute(&plan, <uint64_t>k)
        return values

    def generator(self):
        """Return a ``numpy.random.Generator`` that draws from this very state.

        Its raw 64-bit draws are ``next_u64``, its doubles ``next_double``; both objects move the
        one state on. What NumPy makes of them is NumPy's and may change with its version.
        """
        return np.random.Generator(SharedBits(self))


# NumPy's numpy/random/bitgen.h, which is part of its stable C interface: written out so that
# NumPy is no build dependency.
ctypedef struct bitgen_t:
    void *state
    uint64_t (*next_uint64)(void *) noexcept nogil
    uint32_t (*next_uint32)(void *) noexcept nogil
    double (*next_double)(void *) noexcept nogil
    uint64_t (*next_raw)(void *) noexcept nogil


cdef uint64_t bits_u64(void *state) noexcept nogil:
    return next_u64(<uint64_t *>state)


cdef uint32_t bits_u32(void *state) noexcept nogil:
    return <uint32_t>(next_u64(<uint64_t *>state) >> 32)


cdef double bits_double(void *state) noexcept nogil:
    return next_double(<uint64_t *>state)


cdef class SharedBits:
    """The bit generator that numpy.random.Generator asks for: a capsule and a lock."""

    cdef SampleRng rng
    cdef bitgen_t bits
    cdef readonly object capsule
    cdef readonly object lock

    @cython.embedsignature.format("c")
    def __init__(self, SampleRng rng not None):
        self.rng = rng
        self.lock = threading.Lock()
        self.bits.state = &rng.current
        self.bits.next_uint64 = bits_u64
        self.bits.next_uint32 = bits_u32
        self.bits.next_double = bits_double
        self.bits.next_raw = bits_u64
        self.capsule = PyCapsule_New(&self.bits, "BitGenerator", NULL)

"""The keyed permutation as inline primitives for other kernels.

Construction: a balanced Feistel network of four rounds with SplitMix64's mixer as the round
function, restricted to [0, n) by cycle walking (J. Black, P. Rogaway, "Ciphers with arbitrary
finite domains", CT-RSA 2002). It is a bijection for every key and needs no table. It shuffles;
it does not encrypt.
"""

from libc.stdint cimport uint64_t

from onemodel._random.rng cimport mix64

cdef extern from "feistel.h":
    ctypedef struct Feistel "onemodel_feistel":
        uint64_t n
        uint64_t mask
        int half
        uint64_t round_keys[4]

    uint64_t feistel_rounds "onemodel_feistel_rounds"(const Feistel *, uint64_t) noexcept nogil


cdef inline void feistel(Feistel *plan, uint64_t n, uint64_t key) noexcept nogil:
    cdef int bits = 0
    cdef int round_number
    cdef uint64_t rest = n - 1 if n > 0 else 0
    while rest:                 # bits = (n - 1).bit_length(): exact, where a logarithm is not
        bits += 1
        rest >>= 1
    plan.n = n
    plan.half = (bits + 1) >> 1
    plan.mask = (<uint64_t>1 << plan.half) - 1
    for round_number in range(4):
        plan.round_keys[round_number] = key ^ (
            <uint64_t>round_number * <uint64_t>0x632BE59BD9B4E019
        )


cdef inline uint64_t permute(const Feistel *plan, uint64_t position) noexcept nogil:
    """Where `position` in [0, n) goes; 0 where n <= 1."""
    cdef uint64_t x = position
    if plan.n <= 1:
        return 0
    x = feistel_rounds(plan, x)
    while x >= plan.n:
        x = feistel_rounds(plan, x)
    return x


cdef inline uint64_t unpermute(const Feistel *plan, uint64_t index) noexcept nogil:
    """The position that `permute` sends to `index`: the rounds backwards, walking likewise."""
    cdef uint64_t x = index
    cdef uint64_t left, right
    if plan.n <= 1:
        return 0
    while True:
        left = x >> plan.half
        right = x & plan.mask
        right ^= mix64(left ^ plan.round_keys[3]) & plan.mask
        left ^= mix64(right ^ plan.round_keys[2]) & plan.mask
        right ^= mix64(left ^ plan.round_keys[1]) & plan.mask
        left ^= mix64(right ^ plan.round_keys[0]) & plan.mask
        x = (left << plan.half) | right
        if x < plan.n:
            return x

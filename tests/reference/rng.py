"""Random numbers. Source: section 2 of the normative text, "Random numbers".

Array draws are decision 11 of the design: element k of an array is the k-th scalar draw, in C
order, under NumPy's names.
"""

import math

import numpy as np

WORD = 2**64
GOLDEN_GAMMA = 0x9E3779B97F4A7C15
SEED_SALT = 0xD1B54A32D192ED03

STREAM_TRANSFORM = 0
STREAM_AUGMENTATION = 1
STREAM_EPOCH_ORDER = 101
STREAM_MIXING = 102
STREAM_BUCKET_SHUFFLE = 103
STREAM_BUCKET_PLACEMENT = 104
STREAM_BUCKET_SLOTS = 105
STREAM_WEIGHTED = 106
STREAM_WEIGHTED_ORDER = 107
STREAM_BUDGET_GROUP = 108
STREAM_BUDGET_PLACEMENT = 109


def mix(x):
    """One SplitMix64 step on `x`, taken as the state before the increment."""
    z = (x + GOLDEN_GAMMA) % WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % WORD
    return z ^ (z >> 31)


def derive(seed, epoch, step, slot, stream):
    """The state of the generator that belongs to one coordinate of the run."""
    h = mix(seed ^ SEED_SALT)
    for value in (epoch, step, slot, stream):
        h = mix((h + value) % WORD)
    return h


class SampleRng:
    """SplitMix64 with the draws of the normative text."""

    def __init__(self, state):
        self.state = state

    def next_u64(self):
        result = mix(self.state)
        self.state = (self.state + GOLDEN_GAMMA) % WORD
        return result

    def next_single(self):
        return (self.next_u64() >> 40) / 2**24

    def next_double(self):
        return (self.next_u64() >> 11) / 2**53

    def next_int(self, n):
        """An integer in [0, n), without bias."""
        m = self.next_u64() * n
        if m % WORD < n:
            threshold = (WORD - n) % n
            while m % WORD < threshold:
                m = self.next_u64() * n
        return m >> 64

    def next_normal(self):
        total = np.float32(0)
        for _ in range(12):
            total = total + np.float32(self.next_single())
        return float(total - np.float32(6))

    def random(self, size=None, dtype=np.float64):
        draw = self.next_single if np.dtype(dtype) == np.float32 else self.next_double
        return _draw(draw, size, dtype)

    def uniform(self, low=0.0, high=1.0, size=None):
        low, high = float(low), float(high)
        return _draw(lambda: low + (high - low) * self.next_double(), size, np.float64)

    def integers(self, low, high=None, size=None):
        if high is None:
            low, high = 0, low
        return _draw(lambda: low + self.next_int(high - low), size, np.int64)

    def standard_normal(self, size=None):
        return _draw(self.next_normal, size, np.float32)

    def permutation(self, n):
        from .permutation import KeyedPermutation

        permutation = KeyedPermutation(n, self.next_u64())
        return np.array([permutation[p] for p in range(n)], dtype=np.int64)


def _draw(draw, size, dtype):
    """`draw` once for no size, otherwise once per element in C order."""
    if size is None:
        return draw()
    shape = tuple(size) if np.iterable(size) else (size,)
    return np.array([draw() for _ in range(math.prod(shape))], dtype=dtype).reshape(shape)

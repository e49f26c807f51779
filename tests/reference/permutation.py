"""The keyed permutation. Source: section 3 of the normative text, "Keyed permutation".

Decision 2 of the design: the number of bits is the exact integer `(n - 1).bit_length()`. The
inverse is not in the text; it runs the four Feistel rounds backwards and walks the same cycle the
other way.
"""

from .rng import WORD, mix

ROUND_CONSTANT = 0x632BE59BD9B4E019


class KeyedPermutation:
    """A bijection of [0, n) that needs no table."""

    def __init__(self, n, key):
        self.n = n
        self.key = key
        bits = (n - 1).bit_length() if n > 1 else 0
        self.half = (bits + 1) // 2
        self.mask = 2**self.half - 1

    def __len__(self):
        return self.n

    def __getitem__(self, position):
        if self.n <= 1:
            return 0
        x = position
        while True:
            left, right = x >> self.half, x & self.mask
            for number in range(4):
                left, right = right, left ^ self._round(right, number)
            x = (left << self.half) | right
            if x < self.n:
                return x

    def inverse(self, index):
        if self.n <= 1:
            return 0
        x = index
        while True:
            left, right = x >> self.half, x & self.mask
            for number in reversed(range(4)):
                left, right = right ^ self._round(left, number), left
            x = (left << self.half) | right
            if x < self.n:
                return x

    def take(self, positions):
        return [self[position] for position in positions]

    def _round(self, right, number):
        return mix(right ^ self.key ^ (number * ROUND_CONSTANT % WORD)) & self.mask

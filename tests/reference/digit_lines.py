"""Text lines of handwritten digits. Source: the docstring of `onemodel/datasets/digits.py`.

Pixel by pixel in Python integers. The glyphs are data and not code, so they are read from the
package's own file: beside these tests, or where the package is installed.
"""

import sys
from pathlib import Path

import numpy as np

from .collate import Sample
from .rng import SampleRng, derive

PLACES = [Path(__file__).parents[2], *map(Path, sys.path)]
STREAM_DIGIT_LINES = 7


def digits_file():
    paths = (place / "onemodel" / "data" / "digits.npz" for place in PLACES)
    return next(path for path in paths if path.is_file())


def border(size):
    return (size + 15) // 16


def ceil_div(value, divisor):
    return -(-value // divisor)


def weights(own, pixel):
    """The (cell, weight) pairs of a pixel: bilinear, and nothing outside of the 8 cells."""
    cell, rest = divmod((2 * pixel + 1) * 8 - own, 2 * own)
    second = (64 * rest + own) // (2 * own)
    pairs = ((cell, 64 - second), (cell + 1, second))
    return [(c, weight) for c, weight in pairs if 0 <= c < 8]


class DigitLines:
    """Line i, drawn from `SampleRng(Derive(seed, 0, i, 0, 7))`."""

    def __init__(self, count, *, seed=0, digits=(3, 12), height=32):
        self.count = count
        self.seed = seed
        self.least, self.most = digits
        self.height = height
        with np.load(digits_file()) as file:
            self.pixels = file["pixels"].tolist()
            self.labels = file["labels"].tolist()

    def __len__(self):
        return self.count

    def span(self, glyph, own):
        """The pixel columns [left, stop) of a glyph's ink at its own height."""
        inked = [x for x in range(8) if any(row[x] for row in self.pixels[glyph])]
        return inked[0] * own // 8, ceil_div((inked[-1] + 1) * own, 8)

    def __getitem__(self, index):
        rng = SampleRng(derive(self.seed, 0, index, 0, STREAM_DIGIT_LINES))
        height = self.height

        count = self.least + rng.next_int(self.most - self.least + 1)
        small = 3 * height // 5
        size = small + rng.next_int(4 * height // 5 - small + 1)
        slant = rng.next_int(9) - 2
        spacing = rng.next_int(size // 4 + 1) - size // 16
        left = border(size) + rng.next_int(height // 4 + 1)
        right = border(size) + rng.next_int(height // 4 + 1)
        digits = []
        for _ in range(count):
            glyph = rng.next_int(len(self.labels))
            own = size - rng.next_int(size // 8 + 1)
            gap = spacing + rng.next_int(size // 8 + 1) - size // 16
            digits.append((glyph, own, gap))
        weight = rng.next_int(5)
        ink = 160 + rng.next_int(96)

        room = height - size - 2 * border(size)
        rise = rng.next_int(room + 1)
        step = max(1, height // 32)
        upright = {}
        pen = left
        for glyph, own, gap in digits:
            rise = min(max(rise + rng.next_int(2 * step + 1) - step, 0), room)
            start, stop = self.span(glyph, own)
            edge = border(own)
            for y in range(-edge, own + edge):
                for x in range(start - edge, stop + edge):
                    value = sum(
                        self.pixels[glyph][row][column] * down * across
                        for row, down in weights(own, y)
                        for column, across in weights(own, x)
                    )
                    place = (height - rise - own - edge + y, pen + x - start)
                    upright[place] = max(upright.get(place, 0), value)
            pen += stop - start + gap
        upright_width = pen - digits[-1][2] + right
        width = upright_width + ceil_div(abs(slant) * (height - 1), 16)

        image = np.zeros((1, height, width), dtype=np.float32)
        for y in range(height):
            whole, part = divmod(slant * (height - 1 - y) if slant >= 0 else -slant * y, 16)
            for x in range(width):
                here = upright.get((y, x - whole), 0)
                before = upright.get((y, x - whole - 1), 0)
                u = ((16 - part) * here + part * before) // 256
                level = min(max((u - 896 - 128 * weight) * ink // 1536, 0), ink)
                image[0, y, x] = level / 256
        return Sample(image, tuple(self.labels[glyph] + 1 for glyph, _, _ in digits), 0)

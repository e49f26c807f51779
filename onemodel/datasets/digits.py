"""Text lines of real handwritten digits, line i the same on every machine.

Construction, in integers throughout; `//` rounds down and every draw is `NextInt` of the line's
own generator, `SampleRng(Derive(seed, 0, i, 0, 7))`. With `height` H and `digits` (least, most):

1. count = least + NextInt(most - least + 1)
2. size = 3H//5 + NextInt(4H//5 - 3H//5 + 1), the height of the digits in pixels
3. slant = NextInt(9) - 2, in sixteenths of a pixel a row
4. spacing = NextInt(size//4 + 1) - size//16
5. left, then right margin = border(size) + NextInt(H//4 + 1), where border(s) = (s + 15)//16
6. for each digit: glyph = NextInt(1797); own = size - NextInt(size//8 + 1), its own height;
   gap = spacing + NextInt(size//8 + 1) - size//16, the space behind it
7. weight = NextInt(5), ink = 160 + NextInt(96)
8. rise = NextInt(H - size - 2 border(size) + 1); for each digit rise moves by
   NextInt(2 step + 1) - step with step = max(1, H//32), and is kept in the range of its first draw

Steps 1 to 6 fix the width. A glyph's ink spans the columns [first, stop) of its 8; scaled to
`own`, that is [first own//8, ceil(stop own / 8)). The pen starts at the left margin and moves by
that span, and between digits by the gap. The width is where the pen ends, plus the right margin,
plus ceil(|slant| (H - 1) / 16).

**Scaling.** Bilinear between cell centres, zero outside of the 8 x 8 cells, on the pixels from
-border(own) to own + border(own) - 1 down, and as far around the ink's span across. Pixel r lies
at ((2r + 1) 8 - own) / (2 own) cells; with cell index c and remainder f its weights are
w = (64 f + own)//(2 own) on cell c + 1 and 64 - w on cell c. A value is at most 16 * 64 * 64.
Digits that overlap keep the larger value. The box stands `rise` pixels above the bottom.

**Slant.** Row r moves right by slant (H - 1 - r) sixteenths of a pixel, or by -slant r if slant is
negative: a whole number of pixels and f sixteenths, v = (16 - f) value + f (value to the left).

**Ink.** u = v//256 is in 0..4096. level = clip((u - 896 - 128 weight) ink // 1536, 0, ink): the
counts of the source are coverage of a black-and-white scan, so a ramp around half coverage gives
back its strokes with soft edges, and the weight says how broad the pen is. The pixel is
level / 256, exact in float32.
"""

from __future__ import annotations

import functools
import io
import itertools
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onemodel._common.describe import shown
from onemodel._common.integers import check_integer, check_uint64
from onemodel._random.rng import SampleRng, derive
from onemodel._random.streams import DIGIT_LINES_STREAM
from onemodel.datasets.made_once import MadeOnce
from onemodel.datasets.sample import Sample

#: The range of `height`: below it digits are not legible, above it they are only blurred.
HEIGHTS = (8, 1024)
#: The most digits a line may have.
MOST_DIGITS = 1024

_CELLS = 8
_UNIT = 64


class _Glyphs(NamedTuple):
    """The digits of the data file, with what the layout needs as plain integers."""

    pixels: NDArray[np.int32]  # [1797, 8, 8], 0..16
    labels: tuple[int, ...]
    first: tuple[int, ...]  # the ink's columns are [first, stop)
    stop: tuple[int, ...]


class _Layout(NamedTuple):
    """What steps 1 to 6 of the construction decide."""

    size: int
    slant: int
    glyphs: list[int]
    sizes: list[int]
    pens: list[int]  # where each digit's ink starts, before the slant
    upright_width: int  # of the line before the slant
    width: int


class DigitLines(MadeOnce):
    """A dataset of text lines composed of 1,797 real handwritten digits.

    Line i is a pure function of `(seed, i, digits, height)`: the same pixels on every machine,
    whatever was read before and from however many threads. The digits are the test part of UCI's
    "Optical Recognition of Handwritten Digits" (CC BY 4.0, see `onemodel/data/README.md`).

    `lines[i]` is a `Sample`:

    - `image` float32 [1, height, W_i], 0 is paper, ink is at most 255/256, every value a multiple
      of 1/256;
    - `target` int32 [number of digits], each digit plus one, so that 0 stays free for CTC's blank;
    - `label` 0.

    Args:
        count: number of lines, at least 1 and below 2**31.
        seed: in [0, 2**64); it is not the loader's seed, which orders and augments the lines.
        digits: the least and the most digits of a line, 1 <= least <= most <= 1024.
        height: of every line, in pixels, in [8, 1024].

    Raises:
        TypeError, ValueError: an argument out of its range; the message names it, the range and
            the value.
        IndexError: `lines[i]` with i outside [-count, count).

    >>> lines = DigitLines(1000, seed=0)
    >>> len(lines), lines[0].image.shape[:2], lines[0].image.dtype.name
    (1000, (1, 32), 'float32')
    >>> lines[0].image.shape[2] == int(lines.widths[0])
    True
    >>> [int(symbol) - 1 for symbol in lines[0].target]
    [3, 8, 1, 0, 9, 2, 1, 9]
    """

    _own = frozenset(
        {
            "_count",
            "_seed",
            "_least",
            "_most",
            "_height",
            "_widths",
            "_small",
            "_tall",
            "_weights",
        }
    )

    def __init__(
        self, count: int, *, seed: int = 0, digits: tuple[int, int] = (3, 12), height: int = 32
    ) -> None:
        self._begin()
        checked_count = check_integer("count", count, 1, 2**31)
        checked_seed = check_uint64("seed", seed)
        try:
            least, most = digits
        except (TypeError, ValueError):
            raise ValueError(f"digits must be a pair (least, most), got {shown(digits)}") from None
        least = check_integer("digits[0]", least, 1, MOST_DIGITS + 1)
        most = check_integer("digits[1]", most, least, MOST_DIGITS + 1)
        self._height = check_integer("height", height, HEIGHTS[0], HEIGHTS[1] + 1)
        self._count, self._seed = checked_count, checked_seed
        self._least, self._most = least, most
        self._widths: NDArray[np.int64] | None = None
        self._small, self._tall = 3 * self._height // 5, 4 * self._height // 5
        self._weights = {
            own: _scaling_weights(own)
            for own in range(self._small - self._small // 8, self._tall + 1)
        }

    def _recipe(self) -> tuple[Any, ...]:
        digits = (self._least, self._most)
        return _fill, self._count, self._seed, digits, self._height

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return (
            f"DigitLines({self._count}, seed={self._seed}, digits=({self._least}, {self._most}), "
            f"height={self._height})"
        )

    def __getitem__(self, index: int) -> Sample:
        try:
            position = check_integer("index", index, -self._count, self._count) % self._count
        except ValueError as error:
            raise IndexError(str(error)) from None
        rng = self._generator(position)
        layout = self._layout(rng)
        levels = self._draw(layout, rng)
        image = levels.astype(np.float32)
        image *= np.float32(1 / 256)
        labels = _glyphs().labels
        target = np.array([labels[glyph] + 1 for glyph in layout.glyphs], dtype=np.int32)
        return Sample(image[np.newaxis], target)

    @property
    def widths(self) -> NDArray[np.int64]:
        """The width of every line, int64 [count], read-only; no pixel is drawn for it.

        For `BucketedSampler`, and to know a batch's memory beforehand. Worked out at the first
        use, some 100,000 lines a second, and kept.
        """
        if self._widths is None:
            widths = np.empty(self._count, dtype=np.int64)
            for index in range(self._count):
                widths[index] = self._layout(self._generator(index)).width
            widths.flags.writeable = False
            self._widths = widths
        return self._widths

    def _generator(self, index: int) -> SampleRng:
        """Return the generator of one line: its index is the step of the derivation."""
        return SampleRng(derive(self._seed, 0, index, 0, DIGIT_LINES_STREAM))

    def _layout(self, rng: SampleRng) -> _Layout:
        """Take steps 1 to 6: all that the width depends on."""
        next_int = rng.next_int
        glyphs = _glyphs()
        count = self._least + next_int(self._most - self._least + 1)
        size = self._small + next_int(self._tall - self._small + 1)
        slant = next_int(9) - 2
        jitter, tight = size // 8 + 1, size // 16
        spacing = next_int(size // 4 + 1) - tight
        left = _border(size) + next_int(self._height // 4 + 1)
        right = _border(size) + next_int(self._height // 4 + 1)

        chosen, sizes, pens = [], [], []
        pen, gap = left, 0
        for _ in range(count):
            glyph = next_int(len(glyphs.labels))
            own = size - next_int(jitter)
            pen += gap
            chosen.append(glyph)
            sizes.append(own)
            pens.append(pen)
            pen += _ceil_div(glyphs.stop[glyph] * own, _CELLS) - glyphs.first[glyph] * own // _CELLS
            gap = spacing + next_int(jitter) - tight
        upright_width = pen + right
        lean = _ceil_div(abs(slant) * (self._height - 1), 16)
        return _Layout(size, slant, chosen, sizes, pens, upright_width, upright_width + lean)

    def _draw(self, layout: _Layout, rng: SampleRng) -> NDArray[np.int32]:
        """Take steps 7 and 8 and draw: levels 0..255, int32 [height, width]."""
        height, size = self._height, layout.size
        next_int = rng.next_int
        weight = next_int(5)
        ink = 160 + next_int(96)
        room = height - size - 2 * _border(size)
        rise = next_int(room + 1)
        step = max(1, height // 32)

        glyphs = _glyphs()
        upright = np.zeros((height, layout.upright_width), dtype=np.int32)
        for glyph, own, pen in zip(layout.glyphs, layout.sizes, layout.pens, strict=True):
            rise = min(max(rise + next_int(2 * step + 1) - step, 0), room)
            border = _border(own)
            left = glyphs.first[glyph] * own // _CELLS
            stop = _ceil_div(glyphs.stop[glyph] * own, _CELLS)
            down, across = self._weights[own]
            # Row 0 of the weights is pixel -border, hence the shift by it of both ends.
            box = down @ (glyphs.pixels[glyph] @ across[:, left : stop + 2 * border])
            area = upright[
                height - rise - box.shape[0] : height - rise,
                pen - border : pen - border + box.shape[1],
            ]
            np.maximum(area, box, out=area)

        level = _slanted(upright, layout)
        level >>= 8
        level -= 896 + 128 * weight
        level *= ink
        level //= 1536
        return np.clip(level, 0, ink, out=level)


def _fill(made: DigitLines, count: int, seed: int, digits: tuple[int, int], height: int) -> None:
    """Make ``made`` from its pickled arguments."""
    DigitLines.__init__(made, count, seed=seed, digits=digits, height=height)


def _slanted(upright: NDArray[np.int32], layout: _Layout) -> NDArray[np.int32]:
    """Move each row right by its sixteenths of a pixel; values come out 16 times larger."""
    height, width = upright.shape
    steps = range(height - 1, -1, -1) if layout.slant >= 0 else range(height)
    wholes, parts = zip(*(divmod(abs(layout.slant) * step, 16) for step in steps), strict=True)
    part = np.array(parts, dtype=np.int32)[:, np.newaxis]
    shifted = np.zeros((height, width + 1), dtype=np.int32)
    np.multiply(upright, 16 - part, out=shifted[:, :width])
    shifted[:, 1:] += upright * part

    # Neighbouring rows mostly move by the same number of whole pixels: one copy for each such run.
    result = np.zeros((height, layout.width + 1), dtype=np.int32)
    row = 0
    for whole, run in itertools.groupby(wholes):
        stop = row + len(list(run))
        result[row:stop, whole : whole + width + 1] = shifted[row:stop]
        row = stop
    # The last column is empty: where a row moves by the most there is no part of a pixel left.
    return result[:, : layout.width]


@functools.cache
def _glyphs() -> _Glyphs:
    """Read the data file, once a process."""
    content = resources.files("onemodel.data").joinpath("digits.npz").read_bytes()
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        pixels, labels = file["pixels"].astype(np.int32), file["labels"]
    inked = pixels.any(axis=1)
    return _Glyphs(
        pixels,
        tuple(labels.tolist()),
        tuple(inked.argmax(axis=1).tolist()),
        tuple((_CELLS - inked[:, ::-1].argmax(axis=1)).tolist()),
    )


def _scaling_weights(own: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Bilinear weights of 8 cells on `own` pixels and a border: [pixels, 8] and its transpose."""
    border = _border(own)
    weights = np.zeros((own + 2 * border, _CELLS), dtype=np.int32)
    for row in range(own + 2 * border):
        cell, rest = divmod((2 * (row - border) + 1) * _CELLS - own, 2 * own)
        second = (_UNIT * rest + own) // (2 * own)
        if 0 <= cell < _CELLS:
            weights[row, cell] = _UNIT - second
        if 0 <= cell + 1 < _CELLS:
            weights[row, cell + 1] = second
    return weights, np.ascontiguousarray(weights.T)


def _border(size: int) -> int:
    """Half a cell, rounded up: as far as bilinear ink reaches beyond a glyph."""
    return (size + 15) // 16


def _ceil_div(value: int, divisor: int) -> int:
    return -(-value // divisor)

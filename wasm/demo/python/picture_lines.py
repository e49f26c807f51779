"""A picture as a dataset of text lines of height 32, by integer arithmetic throughout."""

import hashlib

import numpy as np

import onemodel as om

HEIGHT = 32
LONGEST = 400  # of a piece, in its own pixels
MOST = 4096  # pieces


class PictureLines:
    """Pieces of a picture in reading order, as float32 [1, 32, W_i]; 0 is paper.

    A page of text is cut into its words. Where there are no text lines to be found, as in a
    photograph, it is cut into bands of uneven pieces. Piece i has label i and no target.

    Args:
        rgba: uint8 [H, W, 4], the decoded picture.
    """

    def __init__(self, rgba):
        gray = gray_on_white(rgba)
        # Tells whether two machines decoded the picture to the same pixels.
        self.sha256 = hashlib.sha256(f"{gray.shape}".encode() + gray.tobytes()).hexdigest()
        light_on_dark = 2 * int(gray.sum(dtype=np.int64)) < 255 * gray.size
        ink = gray if light_on_dark else 255 - gray
        threshold = int(ink.min()) + (int(ink.max()) - int(ink.min())) // 3
        self.pieces = words(ink, threshold)
        self.is_text = bool(self.pieces)
        self.pieces = (self.pieces or bands(ink))[:MOST]
        self.widths = np.array([piece.shape[1] for piece in self.pieces], dtype=np.int64)

    def __len__(self):
        return len(self.pieces)

    def __getitem__(self, index):
        image = om.image.gray8_to_planar(self.pieces[index], 0.0, 1.0)
        return om.Sample(image, label=index)


def gray_on_white(rgba):
    """Lay the picture on white paper and weigh its colours: uint8 [H, W]."""
    gray = np.empty(rgba.shape[:2], dtype=np.uint8)
    for top in range(0, len(rgba), 256):  # in strips, to stay small in memory
        strip = rgba[top : top + 256].astype(np.int32)
        alpha = strip[..., 3:]
        colour = (strip[..., :3] * alpha + 255 * (255 - alpha) + 127) // 255
        # The luma of ITU-R BT.601 in sixteen binary places, halves up.
        weighed = colour @ np.array([19595, 38470, 7471], dtype=np.int32)
        gray[top : top + 256] = (weighed + 32768) >> 16
    return gray


def words(ink, threshold):
    """Cut text into words of height 32; an empty list if it does not look like text."""
    height, width = ink.shape
    rows = (ink > threshold).sum(axis=1) > width // 400
    lines = runs(rows, gap=2, least=6)
    if any(stop - first > max(200, height // 2) for first, stop in lines):
        return []
    pieces = []
    for first, stop in lines:
        margin = (stop - first) // 8 + 1
        line = scaled(ink[max(0, first - margin) : stop + margin])
        for left, right in runs((line > threshold).any(axis=0), gap=5, least=4):
            left, right = max(0, left - 3), min(right + 3, line.shape[1])
            starts = range(left, right, LONGEST)
            pieces += [line[:, start : min(start + LONGEST, right)] for start in starts]
    return [np.ascontiguousarray(piece) for piece in pieces if piece.shape[1] >= 4]


def bands(ink):
    """Cut anything into bands of at least 32 rows, and those into pieces of uneven width."""
    height = max(HEIGHT, -(-len(ink) // 12))
    pieces = []
    for top in range(0, max(1, len(ink) - height // 2), height):
        band = scaled(ink[top : top + height])
        left = 0
        while left < band.shape[1]:
            right = left + 64 + 53 * len(pieces) % 129
            pieces.append(np.ascontiguousarray(band[:, left:right]))
            left = right
    return pieces


def runs(flags, gap, least):
    """List the spans [first, stop) of set flags, joined over short gaps, short ones left out."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    joined = []
    for first, stop in edges.reshape(-1, 2).tolist():
        if joined and first - joined[-1][1] <= gap:
            joined[-1][1] = stop
        else:
            joined.append([first, stop])
    return [(first, stop) for first, stop in joined if stop - first >= least]


def scaled(pixels):
    """Scale to height 32, the width in proportion."""
    height, width = pixels.shape
    columns = max(1, (2 * width * HEIGHT + height) // (2 * height))
    return resized(resized(pixels, HEIGHT).T, columns).T


def resized(pixels, count):
    """Make `count` rows of the rows, each the mean of all that it covers, halves up."""
    old = len(pixels)
    # In units where an old row is `count` long and a new one `old`, every border is whole.
    sums = np.zeros((old + 1, pixels.shape[1]), dtype=np.int64)
    np.cumsum(pixels, axis=0, out=sums[1:])
    whole, part = np.divmod(np.arange(count + 1, dtype=np.int64) * old, count)
    last = np.minimum(whole, old - 1)
    area = np.diff(sums[whole] * count + part[:, np.newaxis] * pixels[last], axis=0)
    return ((2 * area + old) // (2 * old)).astype(np.uint8)

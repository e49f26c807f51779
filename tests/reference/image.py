"""Image helpers. Source: section 6 of the normative text, "Image helpers".

Decision 6 of the design: `scale = 1 / (255 * std)`, `shift = mean / std`, then
`pixel * scale - shift`, and each operation rounds to float32.
"""

import numpy as np


def gray8_to_planar(pixels, mean, std):
    """A uint8 image [H, W] as float32 [1, H, W]."""
    return _plane(pixels, mean, std)[np.newaxis]


def rgb8_to_planar(pixels, mean, std):
    """An interleaved uint8 image [H, W, 3] as float32 [3, H, W]."""
    return np.stack([_plane(pixels[:, :, c], mean[c], std[c]) for c in range(3)])


def _plane(pixels, mean, std):
    mean, std = np.float32(mean), np.float32(std)
    scale = np.float32(1) / (np.float32(255) * std)
    shift = mean / std
    height, width = pixels.shape
    plane = np.empty((height, width), dtype=np.float32)
    for y in range(height):
        for x in range(width):
            plane[y, x] = np.float32(pixels[y, x]) * scale - shift
    return plane

"""The native augmentations. Source: docs/augmentations.md.

Each class is called as `augmentation(rng, image)` and edits a float32 array [C, H, W] in place, or
as `transform(rng, sample)` and returns a new sample. Pixel arithmetic is elementwise on float32
arrays: NumPy rounds each operation and fuses none.
"""

import numpy as np

from .collate import Sample

F = np.float32


def draw_range(rng, bounds):
    """A float32 in a float range."""
    low, high = (float(bound) for bound in bounds)
    return F(low) + F(high - low) * F(rng.next_single())


def draw_integer(rng, bounds):
    """An integer in an integer range, both ends included."""
    low, high = bounds
    return low + rng.next_int(high - low + 1)


class GainOffset:
    def __init__(self, gain=(0.8, 1.2), offset=(-0.1, 0.1)):
        self.gain, self.offset = gain, offset

    def __call__(self, rng, image):
        gain = draw_range(rng, self.gain)
        offset = draw_range(rng, self.offset)
        image[...] = image * gain + offset


class Noise:
    def __init__(self, sigma=0.05):
        self.sigma = F(sigma)

    def __call__(self, rng, image):
        normal = np.array([rng.next_normal() for _ in range(image.size)], F).reshape(image.shape)
        image[...] = image + self.sigma * normal


class Invert:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, rng, image):
        if rng.next_single() < self.p:
            image[...] = F(1) - image


class Erase:
    def __init__(self, count=1, size=(4, 16), fill=0.0):
        self.count, self.size, self.fill = count, size, F(fill)

    def __call__(self, rng, image):
        _, image_height, image_width = image.shape
        for _ in range(self.count):
            height = draw_integer(rng, self.size)
            width = draw_integer(rng, self.size)
            top = rng.next_int(image_height) - height // 2
            left = rng.next_int(image_width) - width // 2
            for row in range(image_height):
                for column in range(image_width):
                    if top <= row < top + height and left <= column < left + width:
                        image[:, row, column] = self.fill


class HorizontalFlip:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, rng, image):
        if rng.next_single() < self.p:
            image[...] = image[:, :, ::-1].copy()


class Shift:
    def __init__(self, dx=(-2, 2), dy=(0, 0), fill=0.0):
        self.dx, self.dy, self.fill = dx, dy, F(fill)

    def __call__(self, rng, image):
        dx = draw_integer(rng, self.dx)
        dy = draw_integer(rng, self.dy)
        _, height, width = image.shape
        before = image.copy()
        for row in range(height):
            for column in range(width):
                inside = 0 <= row - dy < height and 0 <= column - dx < width
                image[:, row, column] = before[:, row - dy, column - dx] if inside else self.fill


class Blur:
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, rng, image):
        if rng.next_single() < self.p:
            across = np.pad(image, ((0, 0), (0, 0), (1, 1)), mode="edge")
            sums = (across[:, :, :-2] + across[:, :, 2:]) + (image + image)
            down = np.pad(sums, ((0, 0), (1, 1), (0, 0)), mode="edge")
            total = (down[:, :-2] + down[:, 2:]) + (sums + sums)
            image[...] = total * F(0.0625)


def resize_side(image, axis, count):
    """The image with `count` pixels along an axis."""
    length = image.shape[axis]
    if count == length:
        return image
    image = np.moveaxis(image, axis, 0)
    pixels = []
    for j in range(count):
        position = max((2 * j + 1) * length - count, 0)
        before = position // (2 * count)
        if before >= length - 1:
            pixels.append(image[length - 1])
        else:
            weight = F(position % (2 * count)) / F(2 * count)
            a, b = image[before], image[before + 1]
            pixels.append(a + (b - a) * weight)
    return np.moveaxis(np.array(pixels, F), 0, axis)


def resize(image, height, width):
    return np.ascontiguousarray(resize_side(resize_side(image, 1, height), 2, width))


class StretchWidth:
    def __init__(self, low=0.9, high=1.1):
        self.bounds = (low, high)

    def __call__(self, rng, sample):
        factor = draw_range(rng, self.bounds)
        _, height, width = sample.image.shape
        width = max(1, int(F(width) * factor + F(0.5)))
        return Sample(resize(sample.image, height, width), sample.target, sample.label)


class ResizeHeight:
    def __init__(self, height, keep_aspect=True):
        self.height, self.keep_aspect = height, keep_aspect

    def __call__(self, rng, sample):
        _, height, width = sample.image.shape
        if self.keep_aspect:
            width = max(1, (2 * width * self.height + height) // (2 * height))
        return Sample(resize(sample.image, self.height, width), sample.target, sample.label)

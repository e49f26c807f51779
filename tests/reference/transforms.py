"""The transforms of the array face. Source: `docs/transforms.md`, each section by its name.

Every function takes the generators of the rows, one `SampleRng` a row, and the rows; it draws
from them in the written order and returns new arrays. One row after another, one operation of
float32 or float64 at a time.
"""

import math

import numpy as np

from .rng import SampleRng, derive

ROW_STREAM = 2
SINGLE = np.float32


def row_generators(seed, epoch, step, first_slot, rows):
    """The generators that the rows of a batch start with."""
    return [
        SampleRng(derive(seed, epoch, step, first_slot + row, ROW_STREAM)) for row in range(rows)
    ]


def planes_of(image):
    """A view [C, H, W] of one image: uint8 is [H, W, C], float32 is [C, H, W]; C may lack."""
    if image.ndim == 2:
        return image[None]
    return image.transpose(2, 0, 1) if image.dtype == np.uint8 else image


def flip(generators, images, p):
    """RandomHorizontalFlip."""
    result = images.copy()
    for rng, image in zip(generators, result, strict=True):
        if float(rng.next_single()) < p:
            for plane in planes_of(image):
                for line in plane:
                    line[:] = [line[len(line) - 1 - x] for x in range(len(line))]
    return result


def crop(generators, images, padding, size=None):
    """RandomCrop."""
    rows = []
    for rng, image in zip(generators, images, strict=True):
        planes = planes_of(image)
        channels, tall, wide = planes.shape
        height, width = (tall, wide) if size is None else size
        top = rng.next_int(tall + 2 * padding - height + 1)
        left = rng.next_int(wide + 2 * padding - width + 1)
        padded = np.zeros((channels, tall + 2 * padding, wide + 2 * padding), image.dtype)
        padded[:, padding : padding + tall, padding : padding + wide] = planes
        window = padded[:, top : top + height, left : left + width]
        if image.ndim == 2:
            window = window[0]
        elif image.dtype == np.uint8:
            window = window.transpose(1, 2, 0)
        rows.append(window)
    return np.stack(rows)


def cutout(generators, images, size):
    """Cutout."""
    result = images.copy()
    for rng, image in zip(generators, result, strict=True):
        planes = planes_of(image)
        _, height, width = planes.shape
        top = rng.next_int(height) - size // 2
        left = rng.next_int(width) - size // 2
        for y in range(max(top, 0), min(top + size, height)):
            for x in range(max(left, 0), min(left + size, width)):
                planes[:, y, x] = 0
    return result


def normalize(images, mean, std):
    """Normalize: no draws."""
    rows = []
    for image in images:
        planes = planes_of(image)
        channels = len(planes)
        means = [mean] * channels if np.ndim(mean) == 0 else mean
        deviations = [std] * channels if np.ndim(std) == 0 else std
        if len(means) == 1:
            means = list(means) * channels
        if len(deviations) == 1:
            deviations = list(deviations) * channels
        new = np.empty(planes.shape, SINGLE)
        for channel in range(channels):
            m, s = SINGLE(means[channel]), SINGLE(deviations[channel])
            pixels = planes[channel].astype(SINGLE)
            if image.dtype == np.uint8:
                scale = SINGLE(1) / (SINGLE(255) * s)
                shift = m / s
                product = pixels * scale
                new[channel] = product - shift
            else:
                centred = pixels - m
                new[channel] = centred / s
        flat = image.ndim == 2 and image.dtype != np.uint8
        rows.append(new[0] if flat else new)
    return np.stack(rows)


def partner(rng, row, rows, first_slot, block):
    """The row that row `row` is blended with."""
    start = (first_slot + row) // block * block
    candidates = [k for k in range(rows) if start <= first_slot + k < start + block]
    return candidates[rng.next_int(len(candidates))]


def beta(rng, alpha):
    """A draw of Beta(alpha, alpha), float64, for alpha = 1 / k."""
    power = round(1 / alpha)
    while True:
        u = rng.next_double()
        x = u
        for _ in range(power - 1):
            x = x * u
        u = rng.next_double()
        y = u
        for _ in range(power - 1):
            y = y * u
        if 0 < x + y <= 1:
            return x / (x + y)


def blended(own, other, weight):
    rest = SINGLE(1) - weight
    first = own * weight
    second = other * rest
    return first + second


def mixup(generators, images, labels, alpha, block=8, first_slot=0):
    """Mixup."""
    new_images, new_labels = images.copy(), labels.copy()
    for row, rng in enumerate(generators):
        other = partner(rng, row, len(images), first_slot, block)
        weight = SINGLE(beta(rng, alpha))
        new_images[row] = blended(images[row], images[other], weight)
        new_labels[row] = blended(labels[row], labels[other], weight)
    return new_images, new_labels


def cutmix(generators, images, labels, alpha, block=8, first_slot=0):
    """CutMix."""
    new_images, new_labels = images.copy(), labels.copy()
    for row, rng in enumerate(generators):
        other = partner(rng, row, len(images), first_slot, block)
        ratio = math.sqrt(1.0 - beta(rng, alpha))
        target, source = planes_of(new_images[row]), planes_of(images[other])
        _, height, width = target.shape
        half_height = int(height * ratio) // 2
        half_width = int(width * ratio) // 2
        y, x = rng.next_int(height), rng.next_int(width)
        top, bottom = max(y - half_height, 0), min(y + half_height, height)
        left, right = max(x - half_width, 0), min(x + half_width, width)
        target[:, top:bottom, left:right] = source[:, top:bottom, left:right]
        area = (bottom - top) * (right - left)
        weight = SINGLE((height * width - area) / (height * width))
        new_labels[row] = blended(labels[row], labels[other], weight)
    return new_images, new_labels


def one_hot(labels, classes):
    """OneHot: no draws."""
    rows = np.zeros((len(labels), classes), SINGLE)
    for row, label in enumerate(labels):
        rows[row, int(label)] = 1
    return rows

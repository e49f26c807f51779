"""The answers that every ceiling must give before it is timed, in NumPy and plain integers.

Written from the specification; slow and short on purpose.
"""

from __future__ import annotations

import numpy as np

MASK = (1 << 64) - 1


def mix(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def derive(seed: int, epoch: int, step: int, slot: int, stream: int) -> int:
    h = mix(seed ^ 0xD1B54A32D192ED03)
    for value in (epoch, step, slot, stream):
        h = mix((h + value) & MASK)
    return h


def singles(state: int, count: int) -> list[np.float32]:
    """Return the first `count` draws of NextSingle of SampleRng(state)."""
    states = [(state + k * 0x9E3779B97F4A7C15) & MASK for k in range(count)]
    return [np.float32((mix(each) >> 40) / 2**24) for each in states]


def permuted(n: int, key: int, position: int) -> int:
    if n <= 1:
        return 0
    half = ((n - 1).bit_length() + 1) // 2
    mask, x = (1 << half) - 1, position
    while True:
        left, right = x >> half, x & mask
        for number in range(4):
            mixed = mix(right ^ key ^ ((number * 0x632BE59BD9B4E019) & MASK)) & mask
            left, right = right, left ^ mixed
        x = (left << half) | right
        if x < n:
            return x


def shuffled(n: int, batch: int, seed: int, step: int) -> tuple[int, int, list[int]]:
    """Return the epoch, the step in it and the indices of one shuffled, drop-last batch."""
    epoch, within = divmod(step, n // batch)
    key = derive(seed, epoch, 0, 0, 101)
    return epoch, within, [permuted(n, key, within * batch + j) for j in range(batch)]


def lines_batch(images, batch, multiple, seed, step, gain, offset, mean=0.5, std=0.5):
    """Return images, widths and indices of one batch of lines, by the reference path."""
    epoch, within, indices = shuffled(len(images), batch, seed, step)
    widths = np.array([images[i].shape[1] for i in indices], np.int32)
    widest = -(-int(widths.max()) // multiple) * multiple
    out = np.zeros((batch, 1, images[0].shape[0], widest), np.float32)
    scale = np.float32(1) / (np.float32(255) * np.float32(std))
    for slot, index in enumerate(indices):
        first, second = singles(derive(seed, epoch, within, slot, 1), 2)
        pixels = images[index]
        if pixels.dtype == np.uint8:
            pixels = pixels.astype(np.float32) * scale - np.float32(mean) / np.float32(std)
        g = np.float32(gain[0]) + np.float32(gain[1] - gain[0]) * first
        o = np.float32(offset[0]) + np.float32(offset[1] - offset[0]) * second
        out[slot, 0, :, : widths[slot]] = pixels * g + o
    return {"images": out, "widths": widths, "indices": np.array(indices, np.int32)}


def arrays_batch(pixels, batch, seed, step, mean, std, stream=0):
    """Return the images of one flipped, normalised batch, by the reference path."""
    epoch, within, indices = shuffled(len(pixels), batch, seed, step)
    rows = pixels[indices]
    flips = [singles(derive(seed, epoch, within, j, stream), 1)[0] < 0.5 for j in range(batch)]
    rows[flips] = rows[flips, :, ::-1]
    mean, std = np.float32(mean), np.float32(std)
    values = rows.astype(np.float32) * (np.float32(1) / (np.float32(255) * std)) - mean / std
    return np.ascontiguousarray(values.transpose(0, 3, 1, 2))


def close(name: str, got: np.ndarray, wanted: np.ndarray) -> None:
    """Raise where the two differ by more than a few roundings of float32."""
    if got.shape != wanted.shape or not np.allclose(got, wanted, rtol=0, atol=1e-6):
        raise AssertionError(f"{name}: not the reference's values")


def equal(name: str, got: np.ndarray, wanted: np.ndarray) -> None:
    """Raise where the two differ in a byte: what is timed must be the right work."""
    got, wanted = np.ascontiguousarray(got), np.ascontiguousarray(wanted)
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        raise AssertionError(f"{name}: {got.dtype}{got.shape}, not {wanted.dtype}{wanted.shape}")
    if got.tobytes() != wanted.tobytes():
        count = int(np.count_nonzero(got != wanted))
        raise AssertionError(f"{name}: {count} of {got.size} values differ from the reference")

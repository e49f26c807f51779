"""The NumPy loops that a careful user would write, to be measured against.

Both keep their scratch memory, draw all parameters of a batch at once and write each pixel of the
batch once; the variant with preallocated output also reuses the batch itself, which no training
loop can do that keeps a batch while it asks for the next.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import workloads as work


class NumpyLines:
    """Gather, gain and offset, pad; `reuse` writes into one preallocated batch."""

    def __init__(self, data: work.Lines, *, reuse: bool) -> None:
        self.images, self.targets, self.reuse = data.images, data.targets, reuse
        self.widths = data.widths
        self.byte = data.images[0].dtype == np.uint8
        widest = -(-int(self.widths.max()) // work.MULTIPLE) * work.MULTIPLE
        self.scratch = np.empty(work.HEIGHT * widest, np.float32)
        self.output = np.zeros(work.BATCH * work.HEIGHT * widest, np.float32)
        std = np.float32(work.STD)
        self.scale = np.float32(1) / (np.float32(255) * std)
        self.shift = np.float32(work.MEAN) / std

    def build(self, indices: np.ndarray, gains: np.ndarray, offsets: np.ndarray) -> dict:
        """Return the batch of these indices with these parameters."""
        widths = self.widths[indices]
        widest = -(-int(widths.max()) // work.MULTIPLE) * work.MULTIPLE
        shape = (len(indices), 1, work.HEIGHT, widest)
        if self.reuse:
            batch = self.output[: np.prod(shape)].reshape(shape)
            batch.fill(0.0)  # faster than 128 narrow slices of padding
        else:
            batch = np.zeros(shape, np.float32)  # fresh pages come zeroed: no pass for the padding
        for slot, index in enumerate(indices):
            image = self.images[index]
            scratch = self.scratch[: image.size].reshape(image.shape)
            if self.byte:
                np.multiply(image, self.scale, out=scratch)
                np.subtract(scratch, self.shift, out=scratch)
                np.multiply(scratch, gains[slot], out=scratch)
            else:
                np.multiply(image, gains[slot], out=scratch)
            np.add(scratch, offsets[slot], out=batch[slot, 0, :, : image.shape[1]])
        targets = [self.targets[index] for index in indices]
        return {
            "images": batch,
            "widths": widths,
            "targets": np.concatenate(targets),
            "target_lengths": np.array([len(each) for each in targets], np.int32),
            "indices": indices,
        }

    def stream(self) -> Iterator[dict]:
        """Yield batches for ever, in a new order and with new parameters each epoch."""
        rng = np.random.default_rng(work.SEED)
        while True:
            order = rng.permutation(len(self.images)).astype(np.int32)
            for start in range(0, len(order) - work.BATCH + 1, work.BATCH):
                gains = rng.uniform(*work.GAIN, work.BATCH).astype(np.float32)
                offsets = rng.uniform(*work.OFFSET, work.BATCH).astype(np.float32)
                yield self.build(order[start : start + work.BATCH], gains, offsets)


class NumpyArrays:
    """Gather, flip by row, normalise to CHW; `reuse` writes into one preallocated batch.

    Made planar while the values are bytes, in blocks that stay in the cache: nearly twice the
    speed of one expression over the whole batch.
    """

    BLOCK = 32

    def __init__(self, pixels: np.ndarray, batch: int, *, reuse: bool) -> None:
        self.pixels, self.batch, self.reuse = pixels, batch, reuse
        _, height, width, channels = pixels.shape
        self.rows = np.empty((batch, height, width, channels), np.uint8)
        self.planes = np.empty((self.BLOCK, channels, height, width), np.uint8)
        self.output = np.empty((batch, channels, height, width), np.float32)
        mean, std = np.float32(work.MEANS), np.float32(work.STDS)
        self.scale = (np.float32(1) / (np.float32(255) * std)).reshape(3, 1, 1)
        self.shift = (mean / std).reshape(3, 1, 1)

    def build(self, indices: np.ndarray, flips: np.ndarray) -> np.ndarray:
        """Return the batch of these indices, those rows flipped whose `flips` is True."""
        rows = np.take(self.pixels, indices, axis=0, out=self.rows, mode="clip")
        output = self.output if self.reuse else np.empty_like(self.output)
        for start in range(0, len(rows), self.BLOCK):
            block = slice(start, start + self.BLOCK)
            flipped, planes = flips[block], self.planes[: len(rows[block])]
            planes[...] = rows[block].transpose(0, 3, 1, 2)
            planes[flipped] = planes[flipped, ..., ::-1]
            np.multiply(planes, self.scale, out=output[block])
            np.subtract(output[block], self.shift, out=output[block])
        return output

    def stream(self) -> Iterator[np.ndarray]:
        """Yield batches for ever, in a new order and with new flips each epoch."""
        rng = np.random.default_rng(work.SEED)
        while True:
            order = rng.permutation(len(self.pixels))
            for start in range(0, len(order) - self.batch + 1, self.batch):
                yield self.build(order[start : start + self.batch], rng.random(self.batch) < 0.5)

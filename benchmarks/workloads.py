"""The data that every contender gets, the same in each run, and how a NumPy loop handles it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SEED = 42
HEIGHT, BATCH, MULTIPLE, PREFETCH = 32, 128, 4, 8
GAIN, OFFSET = (0.8, 1.2), (-0.1, 0.1)
MEAN, STD = 0.5, 0.5
"""For uint8 lines: brings 0..255 to -1..1 in the pass that also applies gain and offset."""
MEANS, STDS = (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)
"""For arrays: the channel statistics that CIFAR-10 is normalised with by custom."""


@dataclass
class Lines:
    """Ragged text-line-like images [height, width_i], with a target of 1 to 12 symbols each."""

    images: list[np.ndarray]
    targets: list[np.ndarray]

    @property
    def widths(self) -> np.ndarray:
        """Widths as int32."""
        return np.array([each.shape[1] for each in self.images], np.int32)

    @property
    def pixels(self) -> np.ndarray:
        """All pixels end to end, row by row."""
        return np.concatenate([each.ravel() for each in self.images])


def lines(dtype: type, count: int = 2048) -> Lines:
    """Return `count` images of height 32 and width 64 to 256, float32 in [0, 1) or uint8."""
    rng = np.random.default_rng(SEED)
    widths = rng.integers(64, 257, count)
    images = [
        rng.random((HEIGHT, width), dtype=np.float32)
        if dtype is np.float32
        else rng.integers(0, 256, (HEIGHT, width), dtype=np.uint8)
        for width in widths
    ]
    targets = [rng.integers(1, 11, rng.integers(1, 13)).astype(np.int32) for _ in widths]
    return Lines(images, targets)


def pictures(count: int = 50_000) -> np.ndarray:
    """Return uint8 images [count, 32, 32, 3]."""
    return np.random.default_rng(SEED).integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)

"""Peers on the arrays workload, each as its users would write it well."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import workloads as work
from benchmarks.harness import Contender, Measure, streamed
from benchmarks.numpy_loops import NumpyArrays
from benchmarks.peers_lines import epochs


class TorchPictures:
    """A dataset of batches: PyTorch's `__getitems__`, so that no Python runs per image."""

    def __init__(self, pixels: np.ndarray) -> None:
        import torch

        self.pixels = torch.from_numpy(pixels)
        std = torch.tensor(work.STDS)
        self.scale = (1 / (255 * std)).view(3, 1, 1)
        self.shift = (torch.tensor(work.MEANS) / std).view(3, 1, 1)

    def __len__(self) -> int:
        return len(self.pixels)

    def __getitems__(self, indices: list[int]) -> Any:
        import torch

        planes = self.pixels[torch.tensor(indices)].permute(0, 3, 1, 2).contiguous()
        flips = (torch.rand(len(indices)) < 0.5).view(-1, 1, 1, 1)
        return torch.where(flips, planes.flip(-1), planes).mul(self.scale).sub_(self.shift)


def same(batch: Any) -> Any:
    """Hand over what `__getitems__` built: it is a batch already."""
    return batch


def torch_start(
    pixels: np.ndarray, batch: int, workers: int, openmp: int = 1
) -> Callable[[], Measure]:
    def begin() -> Measure:
        import torch
        from torch.utils.data import DataLoader

        def stream() -> Iterator[Any]:
            torch.set_num_threads(openmp)
            return epochs(
                DataLoader(
                    TorchPictures(pixels),
                    batch_size=batch,
                    shuffle=True,
                    drop_last=True,
                    collate_fn=same,
                    num_workers=workers,
                    persistent_workers=workers > 0,
                    prefetch_factor=work.PREFETCH // workers if workers else None,
                )
            )

        return streamed(stream, lambda batch: None)

    return begin


def spdl_start(pixels: np.ndarray, batch: int, threads: int) -> Callable[[], Measure]:
    def begin() -> Measure:
        from spdl.pipeline import PipelineBuilder

        def indices() -> Iterator[np.ndarray]:
            rng = np.random.default_rng(work.SEED)
            while True:
                order = rng.permutation(len(pixels))
                for start in range(0, len(order) - batch + 1, batch):
                    yield order[start : start + batch]

        def build(chosen: np.ndarray) -> np.ndarray:
            loop = NumpyArrays(pixels[:1], batch, reuse=False)
            loop.pixels = pixels
            return loop.build(chosen, np.random.default_rng(chosen[:4]).random(batch) < 0.5)

        def stream() -> Iterator[Any]:
            pipeline = (
                PipelineBuilder()
                .add_source(indices())
                .pipe(build, concurrency=threads)
                .add_sink(work.PREFETCH)
                .build(num_threads=threads)
            )
            with pipeline.auto_stop():
                yield from pipeline.get_iterator()

        return streamed(stream, lambda batch: None)

    return begin


def numba_start(pixels: np.ndarray, batch: int) -> Callable[[], Measure]:
    def begin() -> Measure:
        import numba

        @numba.njit(nogil=True)
        def fill(pixels, chosen, flips, scale, shift, out):
            height, width = pixels.shape[1], pixels.shape[2]
            for slot in range(len(chosen)):
                image = pixels[chosen[slot]]
                for channel in range(3):
                    for y in range(height):
                        for x in range(width):
                            at = width - 1 - x if flips[slot] else x
                            value = np.float32(image[y, at, channel])
                            out[slot, channel, y, x] = value * scale[channel] - shift[channel]

        std = np.float32(work.STDS)
        scale, shift = np.float32(1) / (np.float32(255) * std), np.float32(work.MEANS) / std
        out = np.zeros((batch, 3, *pixels.shape[1:3]), np.float32)

        def stream() -> Iterator[Any]:
            rng = np.random.default_rng(work.SEED)
            while True:
                order = rng.permutation(len(pixels))
                for start in range(0, len(order) - batch + 1, batch):
                    chosen = order[start : start + batch]
                    fill(pixels, chosen, rng.random(batch) < 0.5, scale, shift, out)
                    yield out

        next(stream())  # compile
        return streamed(stream, lambda batch: None)

    return begin


def contenders(pixels: np.ndarray, batch: int, *, quick: bool) -> list[Contender]:
    counts = (0, 2) if quick else (0, 1, 2)
    found = [
        Contender("PyTorch DataLoader, __getitems__", "peer", torch_start(pixels, batch, n), n)
        for n in counts
    ]
    found.append(
        Contender(
            "PyTorch DataLoader, two OpenMP threads", "peer", torch_start(pixels, batch, 0, 2), 2
        )
    )
    found += [
        Contender("SPDL pipeline, NumPy", "peer", spdl_start(pixels, batch, n), n)
        for n in counts
        if n
    ]
    found.append(Contender("numba kernel, one hot batch", "kernel", numba_start(pixels, batch)))
    return found

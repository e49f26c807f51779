"""Peers on the lines workload, each as its users would write it well.

They draw their own order and parameters with their own generators, so their batches are of the
same kind and size and not the same bytes.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import workloads as work
from benchmarks.harness import Contender, Measure, streamed


def decoded(image: np.ndarray) -> np.ndarray:
    """Return float32 pixels: normalised where the stored ones are bytes."""
    if image.dtype != np.uint8:
        return image
    return image.astype(np.float32) * np.float32(1 / (255 * work.STD)) - np.float32(
        work.MEAN / work.STD
    )


class TorchLines:
    """A map-style dataset: an augmented tensor and its target for each index."""

    def __init__(self, data: work.Lines) -> None:
        self.images, self.targets = data.images, data.targets

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        import torch

        gain = work.GAIN[0] + (work.GAIN[1] - work.GAIN[0]) * torch.rand(()).item()
        offset = work.OFFSET[0] + (work.OFFSET[1] - work.OFFSET[0]) * torch.rand(()).item()
        image = torch.from_numpy(decoded(self.images[index]))
        return image.mul(gain).add_(offset), torch.from_numpy(self.targets[index])


def torch_collate(samples: list[tuple[Any, Any]]) -> dict[str, Any]:
    """Pad to the widest image; CTC targets end to end."""
    import torch

    images, targets = zip(*samples, strict=True)
    widths = torch.tensor([image.shape[1] for image in images], dtype=torch.int32)
    widest = -(-int(widths.max()) // work.MULTIPLE) * work.MULTIPLE
    batch = torch.zeros(len(images), 1, work.HEIGHT, widest)
    for slot, image in enumerate(images):
        batch[slot, 0, :, : image.shape[1]] = image
    lengths = torch.tensor([len(target) for target in targets], dtype=torch.int32)
    return {
        "images": batch,
        "widths": widths,
        "targets": torch.cat(targets),
        "target_lengths": lengths,
    }


class TorchNumpyLines(TorchLines):
    """The same in NumPy, whose calls on small arrays cost less than PyTorch's."""

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        image = decoded(self.images[index]) * np.float32(random.uniform(*work.GAIN))
        image += np.float32(random.uniform(*work.OFFSET))
        return image, self.targets[index]


def torch_numpy_collate(samples: list[tuple[Any, Any]]) -> dict[str, Any]:
    import torch

    return {name: torch.from_numpy(array) for name, array in grain_collate(samples).items()}


def epochs(loader: Any) -> Iterator[Any]:
    while True:
        yield from loader


def torch_start(
    dataset: TorchLines, collate: Callable[..., Any], workers: int
) -> Callable[[], Measure]:
    def begin() -> Measure:
        import torch
        from torch.utils.data import DataLoader

        def stream() -> Iterator[Any]:
            torch.set_num_threads(1)  # in its favour: each call here is too small to share out
            return epochs(
                DataLoader(
                    dataset,
                    batch_size=work.BATCH,
                    shuffle=True,
                    drop_last=True,
                    collate_fn=collate,
                    num_workers=workers,
                    persistent_workers=workers > 0,
                    prefetch_factor=work.PREFETCH // workers if workers else None,
                )
            )

        return streamed(stream, lambda batch: None)

    return begin


def grain_gain_offset(pair: Any, rng: np.random.Generator) -> Any:
    """Change gain and offset of one image, as Grain's random map."""
    gain, offset = rng.uniform(*work.GAIN), rng.uniform(*work.OFFSET)
    image = decoded(pair[0]) * np.float32(gain)
    image += np.float32(offset)
    return image, pair[1]


def grain_collate(samples: Any) -> dict[str, np.ndarray]:
    images, targets = zip(*samples, strict=True)
    widths = np.array([image.shape[1] for image in images], np.int32)
    widest = -(-int(widths.max()) // work.MULTIPLE) * work.MULTIPLE
    batch = np.zeros((len(images), 1, work.HEIGHT, widest), np.float32)
    for slot, image in enumerate(images):
        batch[slot, 0, :, : image.shape[1]] = image
    lengths = np.array([len(target) for target in targets], np.int32)
    return {
        "images": batch,
        "widths": widths,
        "targets": np.concatenate(targets),
        "target_lengths": lengths,
    }


def grain_start(data: work.Lines, threads: int) -> Callable[[], Measure]:
    def begin() -> Measure:
        import grain

        pairs = list(zip(data.images, data.targets, strict=True))

        def stream() -> Iterator[Any]:
            dataset = (
                grain.MapDataset.source(pairs)
                .shuffle(seed=work.SEED)
                .repeat()
                .random_map(grain_gain_offset, seed=work.SEED)
                .batch(work.BATCH, drop_remainder=True, batch_fn=grain_collate)
            )
            options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=work.PREFETCH)
            return iter(dataset.to_iter_dataset(options))

        return streamed(stream, lambda batch: None)

    return begin


def whole_batch(data: work.Lines, chosen: np.ndarray, rng: np.random.Generator) -> Any:
    """Make a batch of these indices in one call, for loaders that are handed batches of indices."""
    gains = rng.uniform(*work.GAIN, len(chosen)).astype(np.float32)
    offsets = rng.uniform(*work.OFFSET, len(chosen)).astype(np.float32)
    samples = []
    for slot, index in enumerate(chosen):
        image = decoded(data.images[index]) * gains[slot]
        image += offsets[slot]
        samples.append((image, data.targets[index]))
    return grain_collate(samples)


def grain_batches_start(data: work.Lines, threads: int) -> Callable[[], Measure]:
    def begin() -> Measure:
        import grain

        def stream() -> Iterator[Any]:
            dataset = (
                grain.MapDataset.range(len(data.images))
                .shuffle(seed=work.SEED)
                .repeat()
                .batch(work.BATCH, drop_remainder=True)
                .random_map(lambda chosen, rng: whole_batch(data, chosen, rng), seed=work.SEED)
            )
            options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=work.PREFETCH)
            return iter(dataset.to_iter_dataset(options))

        return streamed(stream, lambda batch: None)

    return begin


def spdl_start(data: work.Lines, threads: int) -> Callable[[], Measure]:
    def begin() -> Measure:
        from spdl.pipeline import PipelineBuilder

        def indices() -> Iterator[np.ndarray]:
            rng = np.random.default_rng(work.SEED)
            while True:
                order = rng.permutation(len(data.images))
                for start in range(0, len(order) - work.BATCH + 1, work.BATCH):
                    yield order[start : start + work.BATCH]

        def build(chosen: np.ndarray) -> dict[str, np.ndarray]:
            return whole_batch(data, chosen, np.random.default_rng(chosen))

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


def numba_kernel() -> Callable[..., None]:
    """Return the pass of the C loop as a numba user would write it, compiled without the GIL."""
    import numba

    @numba.njit(nogil=True)
    def fill(pixels, starts, widths, chosen, gains, offsets, scale, shift, batch):
        for slot in range(len(chosen)):
            width, at = widths[chosen[slot]], starts[chosen[slot]]
            gain, offset = gains[slot], offsets[slot]
            for y in range(batch.shape[1]):
                for x in range(width):
                    value = np.float32(pixels[at + x]) * scale - shift
                    batch[slot, y, x] = value * gain + offset
                for x in range(width, batch.shape[2]):
                    batch[slot, y, x] = np.float32(0)
                at += width

    return fill


def numba_start(data: work.Lines) -> Callable[[], Measure]:
    def begin() -> Measure:
        fill = numba_kernel()
        pixels, widths = data.pixels, data.widths
        starts = np.concatenate([[0], np.cumsum(widths[:-1].astype(np.int64) * work.HEIGHT)])
        byte = pixels.dtype == np.uint8
        scale = np.float32(1 / (255 * work.STD) if byte else 1)
        shift = np.float32(work.MEAN / work.STD if byte else 0)
        memory = np.zeros(work.BATCH * work.HEIGHT * 256, np.float32)

        def stream() -> Iterator[Any]:
            rng = np.random.default_rng(work.SEED)
            while True:
                order = rng.permutation(len(widths))
                for start in range(0, len(order) - work.BATCH + 1, work.BATCH):
                    chosen = order[start : start + work.BATCH]
                    widest = -(-int(widths[chosen].max()) // work.MULTIPLE) * work.MULTIPLE
                    shape = (len(chosen), work.HEIGHT, widest)
                    batch = memory[: np.prod(shape)].reshape(shape)
                    gains = rng.uniform(*work.GAIN, len(chosen)).astype(np.float32)
                    offsets = rng.uniform(*work.OFFSET, len(chosen)).astype(np.float32)
                    fill(pixels, starts, widths, chosen, gains, offsets, scale, shift, batch)
                    yield batch

        next(stream())  # compile
        return streamed(stream, lambda batch: None)

    return begin


def contenders(data: work.Lines, *, quick: bool) -> list[Contender]:
    counts = (0, 2) if quick else (0, 1, 2)
    torch_kinds = {
        "PyTorch DataLoader": (TorchLines(data), torch_collate),
        "PyTorch DataLoader, NumPy inside": (TorchNumpyLines(data), torch_numpy_collate),
    }
    found = [
        Contender(name, "peer", torch_start(*kind, count), count)
        for name, kind in torch_kinds.items()
        for count in counts
    ]
    found += [
        Contender(name, "peer", start(data, count), count)
        for name, start in {
            "Grain MapDataset": grain_start,
            "Grain MapDataset, a batch in one map": grain_batches_start,
        }.items()
        for count in counts
    ]
    found += [
        Contender("SPDL pipeline", "peer", spdl_start(data, count), count)
        for count in counts
        if count
    ]
    found.append(Contender("numba kernel, one hot batch", "kernel", numba_start(data)))
    return found

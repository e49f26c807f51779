"""Batched arrays: 50,000 uint8 images 32x32x3, shuffled, flipped by row, normalised to CHW."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import peers_arrays, reference
from benchmarks import workloads as work
from benchmarks.ceiling import ArraysCeiling, CeilingMissingError
from benchmarks.harness import Contender, Measure, compare, counted, streamed
from benchmarks.lines import missing
from benchmarks.numpy_loops import NumpyArrays
from benchmarks.report import Table


def ceilings(pixels: np.ndarray, batch: int) -> list[Contender]:
    """Return one contender a kernel and thread count, in eight buffers and in one."""
    made: dict[int, ArraysCeiling] = {}

    def ceiling(buffers: int) -> ArraysCeiling:
        if buffers not in made:
            made[buffers] = ArraysCeiling(
                pixels, batch, mean=work.MEANS, std=work.STDS, seed=work.SEED, buffers=buffers
            )
        return made[buffers]

    def start(kernel: int, threads: int, buffers: int) -> Callable[[], Measure]:
        def begin() -> Measure:
            loop = ceiling(buffers)
            for step in (0, len(pixels) // batch + 1):  # of two epochs
                loop.run(kernel, step, 1, 1)
                wanted = reference.arrays_batch(
                    pixels, batch, work.SEED, step, work.MEANS, work.STDS
                )
                reference.equal("images", loop.built(step), wanted)
            return counted(lambda steps: loop.run(kernel, 0, steps, threads), 12_800 // batch)

        return begin

    try:
        kernels = ceiling(8).kernels()
    except CeilingMissingError as error:
        return [missing("C loop", error)]
    found = [
        Contender(f"C loop, {name}", "ceiling", start(number, threads, 8), threads)
        for threads in (1, 2)
        for name, number in kernels.items()
    ]
    found += [
        Contender(f"C loop, one hot buffer, {name}", "one buffer", start(number, 1, 1), 1)
        for name, number in kernels.items()
        if "flags" not in name
    ]
    return found


def numpy_loops(pixels: np.ndarray, batch: int) -> list[Contender]:
    def start(reuse: bool) -> Callable[[], Measure]:
        def begin() -> Measure:
            loop = NumpyArrays(pixels, batch, reuse=reuse)
            _, within, indices = reference.shuffled(len(pixels), batch, work.SEED, 0)
            keys = [reference.derive(work.SEED, 0, within, slot, 0) for slot in range(batch)]
            flips = np.array([reference.singles(key, 1)[0] < 0.5 for key in keys])
            wanted = reference.arrays_batch(pixels, batch, work.SEED, 0, work.MEANS, work.STDS)
            reference.equal("images", loop.build(np.array(indices), flips), wanted)
            return streamed(loop.stream, lambda batch: None)

        return begin

    return [
        Contender("NumPy loop, one preallocated batch", "numpy", start(True)),
        Contender("NumPy loop, fresh batches", "numpy", start(False)),
    ]


def python_transform(rng: Any, arrays: Any) -> Any:
    """Flip by row and normalise in NumPy, as a user's own whole-batch callable does."""
    rows = arrays[0] if isinstance(arrays, tuple) else arrays
    std = np.float32(work.STDS)
    scale, shift = np.float32(1) / (np.float32(255) * std), np.float32(work.MEANS) / std
    planes = np.ascontiguousarray(rows.transpose(0, 3, 1, 2))
    flips = rng.random(len(rows)) < 0.5
    planes[flips] = planes[flips, ..., ::-1]
    values = planes * scale.reshape(3, 1, 1)
    values -= shift.reshape(3, 1, 1)
    return (values, *arrays[1:]) if isinstance(arrays, tuple) else values


def onemodel_loader(
    pixels: np.ndarray, batch: int, native: bool, workers: Any, prefetch: Any = work.PREFETCH
) -> Any:
    """Return the loader with the native transforms or with a callable in NumPy."""
    import onemodel as om

    labels = np.random.default_rng(work.SEED).integers(0, 10, len(pixels)).astype(np.int64)
    transform: Any = python_transform
    if native:
        transform = om.Compose([
            om.transforms.RandomHorizontalFlip(),
            om.transforms.Normalize(work.MEANS, work.STDS),
        ])  # fmt: skip
    return om.DataLoader(
        om.ArrayDataset(pixels, labels), batch, shuffle=True, drop_last=True,
        transform=transform, seed=work.SEED, workers=workers, prefetch=prefetch,
    )  # fmt: skip


def onemodel_contenders(pixels: np.ndarray, batch: int) -> list[Contender]:
    def start(native: bool, workers: int) -> Callable[[], Measure]:
        def begin() -> Measure:
            loader = onemodel_loader(pixels, batch, native, workers)
            check_onemodel(loader, pixels, batch, native)

            def stream() -> Iterator[Any]:
                return iter(loader.steps(0))

            return streamed(stream, lambda batch: None, close_loader=loader.close)

        return begin

    return [
        Contender(f"onemodel, {kind} transform", "onemodel", start(native, workers), workers)
        for kind, native in (("Python", False), ("native", True))
        for workers in (0, 1, 2)
    ]


def check_onemodel(loader: Any, pixels: np.ndarray, batch: int, native: bool) -> None:
    """Raise unless the images are of the right kind and, where native, the reference's."""
    images = loader[0][0]
    if images.shape != (batch, 3, 32, 32) or images.dtype != np.float32:
        raise AssertionError(f"images are {images.dtype}{images.shape}")
    if native:
        check_native(pixels, batch, images)


def check_native(pixels: np.ndarray, batch: int, images: np.ndarray) -> None:
    """Raise unless each row is its dataset row, flipped or not, normalised to the last bit."""
    _, _, indices = reference.shuffled(len(pixels), batch, work.SEED, 0)
    std = np.float32(work.STDS)
    values = pixels[indices].astype(np.float32) * (np.float32(1) / (np.float32(255) * std))
    values = (values - np.float32(work.MEANS) / std).transpose(0, 3, 1, 2)
    straight = (images == values).all(axis=(1, 2, 3))
    flipped = (images == values[..., ::-1]).all(axis=(1, 2, 3))
    if not (straight | flipped).all() or not straight.any() or not flipped.any():
        raise AssertionError("rows are not the dataset's rows, flipped or straight")


def run(*, rounds: int, seconds: float, quick: bool, only: list[str]) -> list[Table]:
    """Time batches of 512 and of 64; return a table each."""
    pixels = work.pictures()
    tables = []
    for batch in (512, 64):
        contenders = [
            *ceilings(pixels, batch),
            *numpy_loops(pixels, batch),
            *peers_arrays.contenders(pixels, batch, quick=quick),
            *onemodel_contenders(pixels, batch),
        ]
        title = (
            f"Arrays: {len(pixels):,} uint8 images 32x32x3, batch {batch}, shuffled, flipped by"
            " row, normalised to float32 CHW"
        )
        results = compare(contenders, rounds=rounds, seconds=seconds, only=only)
        tables.append(Table(f"arrays-{batch}", title, results))
    return tables

"""The rows that `python -m benchmarks.against` times: onemodel alone, by its public names.

Each row starts like a contender and gives a rate, so that a row of another checkout can be timed
with the same lines. Names are of the form "part: what".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import arrays, lines, plans, workers
from benchmarks import workloads as work
from benchmarks.harness import Contender, Measure, counted, streamed

Start = Callable[[], Measure]

pictures = functools.cache(work.pictures)
line_data = functools.cache(work.lines)


def rows() -> dict[str, Start]:
    """Return how to start each row, by name."""
    found: dict[str, Start] = {}
    for dtype in (np.float32, np.uint8):
        data, name = line_data(dtype), np.dtype(dtype).name
        found |= named(f"lines {name}", lines.onemodel_contenders(data))
        for kind in ("table", "samples"):
            found |= named(f"lines {name}", passes(workers.line_ways(data, kind, True)))
    for batch in (512, 64):
        found |= named(f"arrays {batch}", arrays.onemodel_contenders(pictures(), batch))
        found |= named(f"arrays {batch}", passes(workers.array_ways(pictures(), batch)))
    for n in plans.SIZES:
        found |= named("plans", plans.rates(n))
        found |= named("plans", plans.starts(n, quick=True), inverse=True)
    found |= bucketed()
    found |= helpers()
    found |= augmentations()
    found |= transforms()
    return found


def named(part: str, contenders: list[Contender], inverse: bool = False) -> dict[str, Start]:
    """Return the starts of onemodel's contenders; those of latencies as calls a second."""

    def inverted(start: Start) -> Start:
        def begin() -> Measure:
            measure = start()
            return lambda seconds: 1 / measure(seconds)

        return begin

    return {
        f"{part}: {each.name.removeprefix('onemodel').lstrip(', ')}"
        + (f", workers {each.threads}" if part != "plans" else ""): inverted(each.start)
        if inverse
        else each.start
        for each in contenders
        if each.group == "onemodel"
    }


def passes(contenders: list[Contender]) -> list[Contender]:
    return [each for each in contenders if each.name.endswith("passes")]


def bucketed() -> dict[str, Start]:
    """Return the rows of the bucketed sampler: indices of batches, and the plan of an epoch."""

    def lengths(n: int) -> np.ndarray:
        return np.random.default_rng(work.SEED).integers(64, 257, n).astype(np.int32)

    def indices() -> Measure:
        import onemodel as om

        sampler = om.BucketedSampler(lengths(10**6), 128)
        sampler.batch_indices(work.SEED, 0, 0)

        def run(count: int) -> None:
            for step in range(count):
                sampler.batch_indices(work.SEED, 0, step)

        return counted(run, 1000)

    def plan() -> Measure:
        import onemodel as om

        sampler, epochs = om.BucketedSampler(lengths(10**5), 128), iter(range(10**9))

        def run(count: int) -> None:
            for _ in range(count):
                sampler.batch_indices(work.SEED, next(epochs), 0)

        return counted(run, 1)

    return {
        "plans: BucketedSampler.batch_indices, n 1,000,000": indices,
        "plans: BucketedSampler, plan of an epoch, n 100,000": plan,
    }


def helpers() -> dict[str, Start]:
    """Return the rows of the image helpers: one picture a call."""

    def gray(out: bool) -> Start:
        def begin() -> Measure:
            import onemodel as om

            pixels = line_data(np.uint8).images[0]
            target = np.empty((1, *pixels.shape), np.float32) if out else None
            return repeated(lambda: om.image.gray8_to_planar(pixels, 0.5, 0.5, target))

        return begin

    def rgb(size: int) -> Start:
        def begin() -> Measure:
            import onemodel as om

            rng = np.random.default_rng(work.SEED)
            pixels = rng.integers(0, 256, (size, size, 3), np.uint8)
            target = np.empty((3, size, size), np.float32)
            return repeated(lambda: om.image.rgb8_to_planar(pixels, work.MEANS, work.STDS, target))

        return begin

    return {
        "image: gray8_to_planar, a line": gray(False),
        "image: gray8_to_planar, a line, out": gray(True),
        "image: rgb8_to_planar, 32x32, out": rgb(32),
        "image: rgb8_to_planar, 256x256, out": rgb(256),
    }


def repeated(call: Callable[[], Any], count: int = 100) -> Measure:
    """Return the measure of a short call."""

    def run(times: int) -> None:
        for _ in range(times):
            call()

    return counted(run, count)


def endless(loader: Any, consume: Callable[[Any], None]) -> Measure:
    def stream() -> Iterator[Any]:
        return iter(loader.steps(0))

    return streamed(stream, consume, close_loader=loader.close)


def augmentations() -> dict[str, Start]:
    """Return the rows of each augmentation through a loader over the table, without workers.

    Those that change a sample's shape run as the transform of a list of samples.
    """

    def inside(make: Callable[[Any], Any], dtype: type, count: int = 0) -> Start:
        def begin() -> Measure:
            import onemodel as om

            dataset = lines.onemodel_dataset(line_data(dtype), "table")
            loader = om.DataLoader(
                dataset,
                sampler=om.ShuffledSampler(len(dataset), work.BATCH),
                collate=om.ImageBatchCollator(
                    width_multiple=work.MULTIPLE, augment=make(om.augment)
                ),
                seed=work.SEED,
                workers=count,
            )
            return endless(loader, lambda batch: batch.release())

        return begin

    def before(make: Callable[[Any], Any]) -> Start:
        def begin() -> Measure:
            import onemodel as om

            loader = om.DataLoader(
                lines.onemodel_dataset(line_data(np.float32), "samples"), work.BATCH,
                shuffle=True, drop_last=True, transform=make(om.augment),
                collate=om.ImageBatchCollator(width_multiple=work.MULTIPLE), seed=work.SEED,
            )  # fmt: skip
            return endless(loader, lambda batch: batch.release())

        return begin

    made: dict[str, Callable[[Any], Any]] = {
        "none": lambda augment: None,
        "GainOffset": lambda augment: augment.GainOffset(work.GAIN, work.OFFSET),
        "Noise": lambda augment: augment.Noise(0.1),
        "Invert": lambda augment: augment.Invert(0.5),
        "Erase": lambda augment: augment.Erase(2, (4, 12)),
        "Blur": lambda augment: augment.Blur(0.5),
        "Shift": lambda augment: augment.Shift((-3, 3), (-2, 2)),
        "HorizontalFlip": lambda augment: augment.HorizontalFlip(0.5),
    }
    found = {
        f"augment: {name}, {np.dtype(dtype).name}": inside(make, dtype)
        for name, make in made.items()
        for dtype in (np.float32, np.uint8)
    }
    found["augment: Noise, float32, workers 2"] = inside(made["Noise"], np.float32, 2)
    found["augment: StretchWidth"] = before(lambda augment: augment.StretchWidth(0.8, 1.2))
    found["augment: ResizeHeight"] = before(lambda augment: augment.ResizeHeight(24))
    return found


def transforms() -> dict[str, Start]:
    """Return the rows of the transforms of arrays through a loader, without workers."""

    def start(make: Callable[[Any], Any]) -> Start:
        def begin() -> Measure:
            import onemodel as om

            labels = np.random.default_rng(work.SEED).integers(0, 10, len(pictures()))
            transform = make(om.transforms)
            loader = om.DataLoader(
                om.ArrayDataset(pictures(), labels), 512, shuffle=True, drop_last=True,
                transform=om.Compose(transform) if transform else None, seed=work.SEED,
            )  # fmt: skip
            return endless(loader, lambda batch: None)

        return begin

    def normal(module: Any) -> Any:
        return module.Normalize(work.MEANS, work.STDS)

    made: dict[str, Callable[[Any], list[Any]]] = {
        "none": lambda module: [],
        "Normalize": lambda module: [normal(module)],
        "RandomCrop, Normalize": lambda module: [module.RandomCrop(padding=4), normal(module)],
        "Cutout, Normalize": lambda module: [module.Cutout(8), normal(module)],
        "RandomCrop, RandomHorizontalFlip, Normalize": lambda module: [
            module.RandomCrop(padding=4), module.RandomHorizontalFlip(), normal(module),
        ],
        "Normalize, OneHot, Mixup": lambda module: [
            normal(module), module.OneHot(10), module.Mixup(),
        ],
        "Normalize, OneHot, CutMix": lambda module: [
            normal(module), module.OneHot(10), module.CutMix(),
        ],
    }  # fmt: skip
    return {f"transforms: {name}": start(make) for name, make in made.items()}

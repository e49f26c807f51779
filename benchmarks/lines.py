"""Ragged text lines: 2,048 images of height 32, batch 128, a gain and an offset for each image.

Two tables, float32 and uint8. Each has the C ceilings, the NumPy loops, the peers and onemodel in
each way its users can hold their data: a list of samples with a Python callable or a native
augmentation, and a columnar table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import peers_lines, reference
from benchmarks import workloads as work
from benchmarks.ceiling import CeilingMissingError, LinesCeiling
from benchmarks.harness import Contender, Measure, compare, counted, streamed
from benchmarks.numpy_loops import NumpyLines
from benchmarks.report import Table

CHUNK = 40
"""Batches in one call of a C loop: long enough to forget the call, short enough for the clock."""


def ceilings(data: work.Lines) -> list[Contender]:
    """Return one contender a kernel and thread count, in eight buffers and in one."""
    made: dict[int, LinesCeiling] = {}

    def ceiling(buffers: int) -> LinesCeiling:
        if buffers not in made:
            made[buffers] = LinesCeiling(
                data.pixels, data.widths, work.HEIGHT, work.BATCH, seed=work.SEED,
                buffers=buffers, multiple=work.MULTIPLE, gain=work.GAIN, offset=work.OFFSET,
                mean=work.MEAN, std=work.STD,
            )  # fmt: skip
        return made[buffers]

    def start(kernel: int, threads: int, buffers: int) -> Callable[[], Measure]:
        def begin() -> Measure:
            loop = ceiling(buffers)
            for step in (0, 17):  # of two epochs
                loop.run(kernel, step, 1, 1)
                wanted = reference.lines_batch(
                    data.images, work.BATCH, work.MULTIPLE, work.SEED, step,
                    work.GAIN, work.OFFSET, work.MEAN, work.STD,
                )  # fmt: skip
                for name, array in loop.built(step).items():
                    reference.equal(name, array, wanted[name])
            return counted(lambda steps: loop.run(kernel, 0, steps, threads), CHUNK)

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
        # One hot output is a bound of another kind: shown, never divided by.
        Contender(f"C loop, one hot buffer, {name}", "one buffer", start(number, 1, 1), 1)
        for name, number in kernels.items()
        if "flags" not in name
    ]
    return found


def missing(name: str, error: Exception) -> Contender:
    """Return a contender that is skipped with this error's text."""

    def start() -> Measure:
        raise error

    return Contender(name, "ceiling", start, 1)


def numpy_loops(data: work.Lines) -> list[Contender]:
    def start(reuse: bool) -> Callable[[], Measure]:
        def begin() -> Measure:
            loop = NumpyLines(data, reuse=reuse)
            check_numpy(loop, data)
            return streamed(loop.stream, lambda batch: None)

        return begin

    return [
        Contender("NumPy loop, one preallocated batch", "numpy", start(True)),
        Contender("NumPy loop, fresh batches", "numpy", start(False)),
    ]


def check_numpy(loop: NumpyLines, data: work.Lines) -> None:
    """Raise unless the loop gives the reference's bytes for the reference's parameters."""
    _, within, indices = reference.shuffled(len(data.images), work.BATCH, work.SEED, 0)
    keys = [reference.derive(work.SEED, 0, within, slot, 1) for slot in range(work.BATCH)]
    draws = np.array([reference.singles(key, 2) for key in keys], np.float32)
    spans = [np.float32(high - low) for low, high in (work.GAIN, work.OFFSET)]
    gains = np.float32(work.GAIN[0]) + spans[0] * draws[:, 0]
    offsets = np.float32(work.OFFSET[0]) + spans[1] * draws[:, 1]
    wanted = reference.lines_batch(
        data.images, work.BATCH, work.MULTIPLE, work.SEED, 0, work.GAIN, work.OFFSET,
        work.MEAN, work.STD,
    )  # fmt: skip
    reference.equal("images", loop.build(np.array(indices), gains, offsets)["images"],
                    wanted["images"])  # fmt: skip


def python_gain_offset(rng: Any, image: np.ndarray) -> None:
    """Change gain and offset in place, as a user's own callable does.

    Python's floats round to float32 once, where the native augmentation rounds each operation.
    """
    image *= 0.8 + 0.4 * rng.next_single()
    image += -0.1 + 0.2 * rng.next_single()


def onemodel_dataset(data: work.Lines, kind: str) -> Any:
    """Return the images as a list of samples or as an ImageTable."""
    import onemodel as om

    byte = data.images[0].dtype == np.uint8
    pairs = zip(data.images, data.targets, strict=True)
    if kind == "samples":
        if byte:
            return [
                om.Sample(om.image.gray8_to_planar(image, work.MEAN, work.STD), target)
                for image, target in pairs
            ]
        return [om.Sample(image[None], target) for image, target in pairs]
    from onemodel.datasets import ImageTable

    if byte:
        return ImageTable.from_arrays(
            data.images, targets=data.targets,
            mean=work.MEAN, std=work.STD,
        )  # fmt: skip
    return ImageTable.from_samples([om.Sample(image[None], target) for image, target in pairs])


def onemodel_loader(
    data: work.Lines, kind: str, native: bool, workers: Any, prefetch: Any = work.PREFETCH
) -> Any:
    """Return the loader over a list of "samples" or a "table", native or with a callable."""
    import onemodel as om

    augment = (
        om.augment.GainOffset(gain=work.GAIN, offset=work.OFFSET) if native else python_gain_offset
    )
    dataset = onemodel_dataset(data, kind)
    return om.DataLoader(
        dataset,
        sampler=om.ShuffledSampler(len(dataset), work.BATCH),
        collate=om.ImageBatchCollator(width_multiple=work.MULTIPLE, augment=augment),
        seed=work.SEED,
        workers=workers,
        prefetch=prefetch,
    )


def check_onemodel(loader: Any, data: work.Lines, native: bool) -> None:
    """Raise unless the loader gives the reference's bytes, or values where Python changes them."""
    wanted = reference.lines_batch(
        data.images, work.BATCH, work.MULTIPLE, work.SEED, 17, work.GAIN, work.OFFSET,
        work.MEAN, work.STD,
    )  # fmt: skip
    batch = loader[17]
    for name, array in wanted.items():
        same = reference.equal if native or name != "images" else reference.close
        same(name, getattr(batch, name), array)
    batch.release()


def onemodel_contenders(data: work.Lines) -> list[Contender]:
    def start(kind: str, native: bool, workers: int) -> Callable[[], Measure]:
        def begin() -> Measure:
            loader = onemodel_loader(data, kind, native, workers)
            check_onemodel(loader, data, native)

            def stream() -> Iterator[Any]:
                return iter(loader.steps(0))

            return streamed(stream, lambda batch: batch.release(), close_loader=loader.close)

        return begin

    names = {
        ("samples", False): "onemodel, list of samples, Python augmentation",
        ("samples", True): "onemodel, list of samples, native augmentation",
        ("table", True): "onemodel, ImageTable, native augmentation",
    }
    return [
        Contender(name, "onemodel", start(*key, workers), workers)
        for key, name in names.items()
        for workers in (0, 1, 2)
    ]


def run(*, rounds: int, seconds: float, quick: bool, only: list[str]) -> list[Table]:
    """Time both pixel types; return a table each."""
    tables = []
    for dtype in (np.float32, np.uint8):
        name = np.dtype(dtype).name
        data = work.lines(dtype)
        contenders = [
            *ceilings(data),
            *numpy_loops(data),
            *peers_lines.contenders(data, quick=quick),
            *onemodel_contenders(data),
        ]
        title = (
            f"Lines, {name}: {len(data.images):,} images of height {work.HEIGHT} and width 64-256,"
            f" batch {work.BATCH}, gain and offset for each image"
        )
        results = compare(contenders, rounds=rounds, seconds=seconds, only=only)
        tables.append(Table(f"lines-{name}", title, results))
    return tables

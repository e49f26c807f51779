"""The table of canonical batches, and what its configurations mean: loaders of plain values."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel import augment, transforms
from onemodel._collate.collator import ImageBatchCollator
from onemodel._random.rng import SampleRng, mix
from onemodel._samplers.bucketing import BucketedSampler
from onemodel._samplers.budget import BudgetSampler
from onemodel._samplers.samplers import MixingSampler, Sampler, SequentialSampler, ShuffledSampler
from onemodel._samplers.weighted import WeightedSampler
from onemodel._simd.float_mode import DefaultFloatMode
from onemodel.datasets import ArrayDataset, DigitLines, ImageTable
from onemodel.datasets.sample import Sample
from onemodel.loader import DataLoader

__all__ = ["canonical", "make_loader"]


def canonical() -> dict[str, Any]:
    """Read the shipped table: "algorithm", the specification's version, and "configurations"."""
    path = resources.files("onemodel.data").joinpath("canonical.json")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def make_loader(configuration: dict[str, Any]) -> DataLoader:
    """Make the loader that a configuration of the table describes."""
    dataset = _dataset(**configuration["dataset"])
    collate = None
    if configuration["collate"] is not None:
        options = dict(configuration["collate"])
        collate = ImageBatchCollator(augment=_compose(options.pop("augment")), **options)
    return DataLoader(
        dataset,
        sampler=_sampler(dataset, **configuration["sampler"]),
        transform=_compose(configuration["transform"]),
        collate=collate,
        seed=configuration["seed"],
        workers=configuration["workers"],
        shard=tuple(configuration["shard"]),
    )


def _dataset(kind: str, **options: Any) -> Any:
    if kind == "synthetic lines":
        return SyntheticLines(**options)
    if kind == "faint lines":
        return FaintLines(**options)
    if kind == "faint lines in a float32 table":
        return ImageTable.from_samples(FaintLines(**options), dtype=np.float32)
    if kind == "digit lines":
        return DigitLines(**options)
    if kind == "digit lines in a uint8 table":
        return ImageTable.from_samples(DigitLines(**options), dtype=np.uint8, std=256 / 255)
    if kind == "arrays":
        return synthetic_arrays(**options)
    if kind == "faint arrays":
        return faint_arrays(**options)
    raise ValueError(f"dataset must be one of the known kinds, got {kind!r}")


def _sampler(dataset: Any, kind: str, **options: Any) -> Sampler:
    if kind == "sequential":
        return SequentialSampler(len(dataset), **options)
    if kind == "shuffled":
        return ShuffledSampler(len(dataset), **options)
    if kind == "mixing":
        return MixingSampler(**options)
    if kind == "bucketed":
        return BucketedSampler(dataset.widths, **options)
    if kind == "weighted":
        return WeightedSampler(**options)
    if kind == "budget":
        return BudgetSampler(dataset.widths, **options)
    raise ValueError(f"sampler must be one of the known kinds, got {kind!r}")


def _compose(parts: list[dict[str, Any]]) -> Callable[..., Any] | None:
    """Put callables in a row: the native ones by their class's name, and those of this file."""
    made = [_callable(**part) for part in parts]
    return transforms.Compose(made) if made else None


def _callable(kind: str, **options: Any) -> Callable[..., Any]:
    if kind in _PLAIN:
        return _PLAIN[kind]
    pairs = {name: tuple(v) if isinstance(v, list) else v for name, v in options.items()}
    for module in (augment, transforms):
        if kind in module.__all__:
            made: Callable[..., Any] = getattr(module, kind)(**pairs)
            return made
    raise ValueError(f"kind must be a native augmentation or transform, got {kind!r}")


class SyntheticLines:
    """Ragged images of noise: sample i is drawn from `SampleRng(mix(i))`, one channel.

    In this order: width 3 + NextInt(9); target length 1 + NextInt(5) and that many symbols
    1 + NextInt(10); label NextInt(10); then height x width values NextSingle, row by row.
    """

    def __init__(self, count: int, height: int) -> None:
        self._samples = [_synthetic_line(index, height) for index in range(count)]
        self.widths = np.array([s.image.shape[2] for s in self._samples], dtype=np.int64)

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int) -> Sample:
        return self._samples[index]


class FaintLines(SyntheticLines):
    """The same images times 2**-135: subnormal numbers, which some threads take for 0.

    They are made in float64: NumPy's vectors of float32 on 32-bit ARM know no subnormal numbers.
    """

    def __init__(self, count: int, height: int) -> None:
        super().__init__(count, height)
        with DefaultFloatMode():
            self._samples = [
                Sample(_times(each.image, 2.0**-135), each.target, each.label)
                for each in self._samples
            ]


def _times(values: NDArray[Any], factor: float) -> NDArray[np.float32]:
    return (values * np.float64(factor)).astype(np.float32)


def _synthetic_line(index: int, height: int) -> Sample:
    rng = SampleRng(mix(index))
    width = 3 + rng.next_int(9)
    target = [1 + rng.next_int(10) for _ in range(1 + rng.next_int(5))]
    label = rng.next_int(10)
    image = rng.random((1, height, width), dtype=np.float32)
    return Sample(image, target, label)


def synthetic_arrays(count: int) -> ArrayDataset:
    """Rows of "x", uint8 [count, 4, 5, 3], element k being 37 k mod 251, and "y", their numbers."""
    x = (np.arange(count * 60, dtype=np.int64) * 37 % 251).astype(np.uint8)
    return ArrayDataset({"x": x.reshape(count, 4, 5, 3), "y": np.arange(count, dtype=np.int32)})


def faint_arrays(count: int) -> ArrayDataset:
    """Make the same elements of "x" times 2**-140, in float32 [count, 3, 4, 5]."""
    arrays = synthetic_arrays(count).arrays
    with DefaultFloatMode():
        x = _times(arrays["x"], 2.0**-140)
    return ArrayDataset({"x": x.reshape(count, 3, 4, 5), "y": arrays["y"]})


def crop_left(rng: SampleRng, sample: Sample) -> Sample:
    """Cut up to half of the columns off on the left; the label counts them."""
    cut = rng.next_int(sample.image.shape[2] // 2 + 1)
    return Sample(sample.image[:, :, cut:], sample.target, cut)


def plain_gain(rng: SampleRng, image: NDArray[np.float32]) -> None:
    """Multiply by 0.5 + NextSingle: an augmentation that is a Python callable."""
    image *= np.float32(0.5) + np.float32(rng.next_single())


def flip_and_scale(rng: SampleRng, arrays: dict[str, Any]) -> dict[str, Any]:
    """Draw a flip and a gain a row, noise an element, and an order of the rows; also a "z"."""
    count = len(arrays["y"])
    x = arrays["x"].astype(np.float32)
    flipped = rng.integers(0, 2, size=count).astype(bool)
    x[flipped] = x[flipped, :, ::-1]
    x *= rng.random(count, dtype=np.float32).reshape(-1, 1, 1, 1)
    x += rng.standard_normal(x.shape)
    return {
        "x": x,
        "y": arrays["y"][rng.permutation(count)],
        "z": rng.uniform(-1.0, 1.0, size=count),
    }


_PLAIN: dict[str, Callable[..., Any]] = {
    "crop left": crop_left,
    "plain gain": plain_gain,
    "flip and scale": flip_and_scale,
}

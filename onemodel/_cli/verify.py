"""The proof on one's own machine: canonical batches, recomputed and compared by digest.

`onemodel/data/canonical.json` holds configurations, and for some global steps of each the SHA-256
of the batch. The digests were computed by the pure-Python reference implementations of onemodel's
repository (`tools/make_canonical.py`), never by the compiled kernels; so equal digests say that
this machine, with this compiler, NumPy and number of threads, follows the specification.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel import augment, transforms
from onemodel._batch.digest import digest
from onemodel._cli.exit_codes import DIFFERENT, SAME
from onemodel._cli.machine import versions
from onemodel._cli.report import compare, make_report, read_report
from onemodel._collate.collator import ImageBatchCollator
from onemodel._random.rng import SampleRng, mix
from onemodel._samplers.bucketing import BucketedSampler
from onemodel._samplers.samplers import MixingSampler, Sampler, SequentialSampler, ShuffledSampler
from onemodel.datasets import ArrayDataset, DigitLines, ImageTable
from onemodel.datasets.sample import Sample
from onemodel.loader import DataLoader

__all__ = ["Result", "add_arguments", "results", "run", "verify"]

HELP = "prove that this machine gives the canonical batches"
DESCRIPTION = (
    "Recompute the digests of canonical batches and compare each with the shipped one. "
    "Exit code 1 if any differs."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object instead: platform, Python, NumPy, compiler if it is known, "
        "vectors in use, version of the algorithm; of each batch both digests and whether they "
        "are the same",
    )
    choice.add_argument(
        "--compare",
        metavar="FILE",
        help="compare with another machine instead: FILE is what `onemodel verify --json` printed "
        "there. Says which batches differ; exit code 1 if any does",
    )


def run(parsed: argparse.Namespace) -> int:
    """Recompute all batches, print what came, and return the exit code."""
    if parsed.compare is not None:
        return _run_compare(Path(parsed.compare))
    found = []
    for result in results():
        found.append(result)
        if not parsed.json:
            print(_line(result))
    same = sum(result.same for result in found)
    if parsed.json:
        print(json.dumps(_report(found), indent=1))
    else:
        print(f"{same} of {len(found)} batches are the same, byte for byte. {versions()}")
    return SAME if same == len(found) else DIFFERENT


def _line(result: Result) -> str:
    name = f"{result.configuration}, step {result.step}"
    if result.same:
        return f"same       {result.found[:16]}  {name}"
    return f"DIFFERENT  {result.found[:64]}  {name}, expected {result.expected[:16]}"


def _run_compare(path: Path) -> int:
    there = read_report(path)  # before the work, not after it
    here = _report(results())
    differences = compare(here, there)
    if here["algorithm"] != there.get("algorithm"):
        print(
            f"{path}: algorithm {there.get('algorithm')!r}, here {here['algorithm']!r}: "
            "their batches are meant to differ"
        )
    for each in differences:
        print(
            f"DIFFERENT  {each.configuration}, step {each.step}: here {each.here[:64] or 'none'}, "
            f"there {each.there[:64] or 'none'}"
        )
    total = len(differences) + sum(
        (batch["configuration"], batch["step"]) not in {each[:2] for each in differences}
        for batch in here["batches"]
    )
    of = there["machine"]
    machine = f"{of.get('platform')}, {of.get('python')}, NumPy {of.get('numpy')}"
    print(f"{total - len(differences)} of {total} batches are the same as on {machine}")
    return DIFFERENT if differences else SAME


def _report(found: Iterable[Result]) -> dict[str, Any]:
    batches = ({**vars(result), "same": result.same} for result in found)
    return make_report(canonical()["algorithm"], batches)


@dataclass(frozen=True)
class Result:
    """One line of the proof.

    Attributes:
        configuration: its name.
        step: the global step.
        expected: the canonical digest, 64 hexadecimal digits.
        found: this machine's digest, or the error that building the batch raised.
    """

    configuration: str
    step: int
    expected: str
    found: str

    @property
    def same(self) -> bool:
        """Whether the batch is the canonical one, byte for byte."""
        return self.found == self.expected


def verify() -> list[Result]:
    """Recompute every canonical batch; a few seconds.

    Never raises for a batch that differs or cannot be built: the result says so.

    >>> all(result.same for result in verify())
    True
    """
    return list(results())


def results() -> Iterator[Result]:
    """Recompute the canonical batches one by one, for showing each as it comes."""
    for configuration in canonical()["configurations"]:
        for step, expected in configuration["digests"].items():
            try:
                found = _digest(configuration, int(step))
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            yield Result(configuration["name"], int(step), expected, found)


def canonical() -> dict[str, Any]:
    """Read the shipped table: "algorithm", the specification's version, and "configurations"."""
    path = resources.files("onemodel.data").joinpath("canonical.json")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def _digest(configuration: dict[str, Any], step: int) -> str:
    """Build the batch of one global step, through the ring if the configuration has workers."""
    with make_loader(configuration) as loader:
        if not configuration["workers"]:
            return digest(loader[step])
        return digest(next(iter(loader.steps(step, step + 3))))


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
    if kind == "digit lines":
        return DigitLines(**options)
    if kind == "digit lines in a uint8 table":
        return ImageTable.from_samples(DigitLines(**options), dtype=np.uint8, std=256 / 255)
    if kind == "arrays":
        return synthetic_arrays(**options)
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

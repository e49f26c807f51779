"""One step built part by part, by the reference path: what each part gave, and the batch.

A trace is compared with another one to name the part of a pipeline that differs first. The parts
are wrapped and not imitated: the loader's own builders call them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.structure import map_leaves, row_count
from onemodel._builders.array_builder import ArrayBatchBuilder
from onemodel._builders.foreign_dataset import gives_many
from onemodel._builders.sample_builder import SampleBatchBuilder
from onemodel._builders.step_builder import BatchBuilder, StepBuilder
from onemodel._common.compose import Compose
from onemodel._common.describe import describe
from onemodel._common.overrides import is_own
from onemodel._memory.pool import BufferPool
from onemodel.datasets import Items
from onemodel.datasets.sample import Sample
from onemodel.loader import DataLoader

__all__ = ["Recorder", "Stage", "Trace", "arrays_of", "build_traced", "fingerprint"]

#: SplitMix64 adds this to its state for each draw; its inverse counts them.
GAMMA = 0x9E3779B97F4A7C15
DRAWS = pow(GAMMA, -1, 2**64)


class Stage(NamedTuple):
    """What one part gave for one slot."""

    part: str  # "dataset Words", "transform train.noise"
    slot: int | None  # in the global batch; None where it is the whole batch's
    draws: int | None  # that the part took from its generator
    value: str  # the fingerprint of what it gave


class Trace(NamedTuple):
    """A step: its stages in order, and the arrays of its batch, by the text that reaches each."""

    step: int
    first_slot: int
    indices: list[int]
    stages: list[Stage]
    arrays: dict[str, NDArray[Any]]
    error: str | None


class Recorder:
    """Writes down what each part gives; a subclass looks around after each of them."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.indices: list[int] = []  # of this shard
        self.first_slot = 0

    def begin(self, part: str, position: int | None) -> None:
        """Note that a part will run, for the slot at ``position`` of the shard or for all."""

    def end(self, part: str, position: int | None) -> None:
        """Note that it has run."""

    def add(self, part: str, position: int | None, draws: int | None, value: Any) -> None:
        """Write down what a part gave."""
        slot = None if position is None else self.first_slot + position
        rows = _rows(value) if slot is None else None
        if rows is None:
            self.stages.append(Stage(part, slot, draws, fingerprint(value)))
            return
        if draws is not None:
            self.stages.append(Stage(part, None, draws, ""))
        for row, each in enumerate(rows):
            self.stages.append(Stage(part, self.first_slot + row, None, each))


def build_traced(loader: DataLoader, g: int, recorder: Recorder | None = None) -> Trace:
    """Build global step g of ``loader`` on this thread, without ``device=``."""
    recorder = Recorder() if recorder is None else recorder
    batch, error = _traced_builder(loader, recorder).entry(g)
    arrays = {} if error is not None else arrays_of(batch)
    text = None if error is None else f"{type(error).__name__}: {error}"
    return Trace(g, recorder.first_slot, recorder.indices, recorder.stages, arrays, text)


def arrays_of(batch: Any) -> dict[str, NDArray[Any]]:
    """Return copies of all arrays of a batch, by the expression that reaches each."""
    arrays: dict[str, NDArray[Any]] = {}

    def copy(leaf: Any, name: str) -> Any:
        on_cpu = leaf.cpu() if hasattr(leaf, "cpu") and hasattr(leaf, "dim") else leaf
        array = np.array(on_cpu, copy=True)
        arrays[name] = np.array(fingerprint(leaf)) if array.dtype.hasobject else array
        return leaf

    map_leaves(batch, copy)
    return arrays


def fingerprint(value: Any) -> str:
    """Return a text that differs where two values differ, and is the same in every process.

    >>> fingerprint({"x": np.zeros(2)}) == fingerprint({"x": np.zeros(2)})
    True
    """
    result = hashlib.sha256()
    _feed(result, value)
    return result.hexdigest()[:16]


def _feed(result: Any, value: Any) -> None:
    if isinstance(value, Sample):
        value = ("Sample", value.image, np.asarray(value.target), value.label)
    if isinstance(value, dict):
        for name, each in value.items():
            result.update(repr(name).encode())
            _feed(result, each)
    elif isinstance(value, tuple | list):
        result.update(f"{len(value)} items".encode())
        for each in value:
            _feed(result, each)
    elif isinstance(value, bytes | str | int | float | complex | np.generic | None):
        result.update(repr(value).encode())
    elif hasattr(value, "__array__") or hasattr(value, "__array_interface__"):
        array = np.asarray(value)
        result.update(f"{array.dtype} {array.shape}".encode())
        result.update(repr(array.tolist()).encode() if array.dtype.hasobject else array.tobytes())
    else:
        result.update(type(value).__qualname__.encode())  # of what it holds nothing is known


def _rows(value: Any) -> list[str] | None:
    """Return a fingerprint for each row of a batch of arrays; None of anything else."""
    try:
        count = row_count(value)
        arrays = [np.asarray(each) for each in _flat(value)]
    except (TypeError, ValueError):
        return None
    return [fingerprint([array[row] for array in arrays]) for row in range(count)]


def _flat(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, tuple) else (value,)


# The parts, wrapped


def _traced_builder(loader: DataLoader, recorder: Recorder) -> StepBuilder:
    own = loader._builder
    transform = None if loader.transform is None else _Transform(loader.transform, recorder)
    builder: BatchBuilder
    if loader.collate is not None:
        if transform is not None:
            transform.each = True
        dataset = _items(loader.dataset, recorder)
        builder = SampleBatchBuilder(dataset, transform, _Collate(loader.collate, recorder))
    else:
        inner = own.builder
        assert isinstance(inner, ArrayBatchBuilder)
        rows: Any
        if inner.reader is not None:
            rows = _items(loader.dataset, recorder)
        else:
            rows = _Rows(loader.dataset, inner.read, recorder)
        builder = ArrayBatchBuilder(rows, transform, BufferPool())
    sampler = _Sampler(loader, recorder)
    return StepBuilder(loader.dataset, sampler, builder, loader.seed, loader.shard)


def _items(dataset: Any, recorder: Recorder) -> Any:
    """Return the dataset with its reads written down; of ``Items`` those of what it adapts."""
    if not is_own(dataset, Items, "read"):
        return (_ManyItems if gives_many(dataset) else _Items)(dataset, recorder)
    transform = None
    if dataset.transform is not None:
        transform = _Transform(dataset.transform, recorder)
        transform.each = True
    return Items(
        _items(dataset.dataset, recorder),
        transform=transform,
        sample=dataset.sample,
        on_error=dataset.on_error,
        substitutes=dataset.substitutes,
        index_field=dataset.index_field,
    )


class _Sampler:
    def __init__(self, loader: DataLoader, recorder: Recorder) -> None:
        self.sampler, self.recorder = loader.sampler, recorder
        self.rank, self.world = loader.shard
        self.steps_per_epoch = loader.steps_per_epoch
        self.batch_size = self.sampler.batch_size

    def __repr__(self) -> str:
        return repr(self.sampler)

    def batch_indices(self, seed: int, epoch: int, step: int) -> Any:
        recorder, part = self.recorder, f"sampler {type(self.sampler).__name__}"
        recorder.begin(part, None)
        indices = self.sampler.batch_indices(seed, epoch, step)
        recorder.end(part, None)
        listed = np.asarray(indices).tolist()
        count = len(listed)
        recorder.first_slot = first = self.rank * count // self.world
        recorder.indices = listed[first : (self.rank + 1) * count // self.world]
        recorder.stages += [Stage(part, slot, None, str(each)) for slot, each in enumerate(listed)]
        return indices


class _Items:
    """A dataset of single items; its reads come in the order of the slots."""

    def __init__(self, dataset: Any, recorder: Recorder) -> None:
        self.dataset, self.recorder = dataset, recorder
        self.part = f"dataset {type(dataset).__name__}"
        self.reads = 0

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        position, self.reads = self.reads, self.reads + 1
        self.recorder.begin(self.part, position)
        item = self.dataset[index]
        self.recorder.end(self.part, position)
        self.recorder.add(self.part, position, None, item)
        return item


class _ManyItems(_Items):
    def __getitems__(self, indices: list[int]) -> list[Any]:
        self.recorder.begin(self.part, None)
        items = list(self.dataset.__getitems__(indices))
        self.recorder.end(self.part, None)
        for position, item in enumerate(items):
            self.recorder.add(self.part, position, None, item)
        return items


class _Rows:
    """A dataset of arrays, read as its builder reads it."""

    def __init__(self, dataset: Any, read: Callable[[Any], Any], recorder: Recorder) -> None:
        self.dataset, self.read, self.recorder = dataset, read, recorder
        self.part = f"dataset {type(dataset).__name__}"

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, indices: NDArray[np.int64]) -> Any:
        self.recorder.begin(self.part, None)
        batch = self.read(indices)
        self.recorder.end(self.part, None)
        self.recorder.add(self.part, None, None, batch)
        return batch


class _Transform:
    """A transform, part after part where it is a Compose."""

    def __init__(self, transform: Callable[..., Any], recorder: Recorder) -> None:
        self.parts: tuple[Callable[..., Any], ...] = (transform,)
        if is_own(transform, Compose, "__call__", "parts"):
            self.parts = transform.parts
        self.recorder = recorder
        self.each = False  # called for each slot, and not for the batch
        self.calls = 0

    def __call__(self, rng: Any, value: Any) -> Any:
        position = self.calls if self.each else None
        self.calls += 1
        for each in self.parts:
            part = f"transform {describe(each)}"
            before = rng.state
            self.recorder.begin(part, position)
            result = each(rng, value)
            self.recorder.end(part, position)
            value = value if result is None else result
            self.recorder.add(part, position, _draws(before, rng.state), value)
        return value


class _Collate:
    def __init__(self, collate: Callable[..., Any], recorder: Recorder) -> None:
        self.collate, self.recorder = collate, recorder
        augment = getattr(collate, "augment", None)
        self.part = f"collate {describe(type(collate)) if augment else describe(collate)}"
        if augment is not None:
            self.part += f", whose augment is {describe(augment)}"

    def __call__(self, samples: list[Any], key: Any) -> Any:
        self.recorder.begin(self.part, None)
        batch = self.collate(samples, key)
        self.recorder.end(self.part, None)
        return batch


def _draws(before: int, after: int) -> int | None:
    """Return how many draws lie between two states; None where it was not drawing."""
    count = (after - before) * DRAWS % 2**64
    return count if count < 2**40 else None

"""The batch builder of the sample face: a key and a dataset to a collated batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import length_hint
from typing import Any, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.key import BatchKey, checked_key
from onemodel._batch.notes import note_slot
from onemodel._builders.foreign_dataset import gives_many
from onemodel._builders.items import ItemReader
from onemodel._collate.collator import ImageBatchCollator
from onemodel._collate.image_batch import ImageBatch
from onemodel._collate.inputs import gather_samples
from onemodel._common.describe import describe
from onemodel._common.overrides import bound, is_own
from onemodel._random.rng import SampleRng, slot_rng
from onemodel._random.streams import TRANSFORM_STREAM
from onemodel.datasets import Items
from onemodel.datasets._items.items import Run, Substitute
from onemodel.datasets.columns import Columns
from onemodel.datasets.image_table import ImageTable
from onemodel.datasets.sample import Sample

__all__ = ["ColumnCollator", "SampleBatchBuilder", "columns_of", "takes_columns"]


@runtime_checkable
class ColumnCollator(Protocol):
    """A collator that makes the same batch from a dataset's columns as from its samples."""

    def __call__(self, samples: list[Sample], key: BatchKey) -> Any:
        """Return the batch of ``samples``."""

    def from_columns(self, columns: Columns, key: BatchKey) -> Any:
        """Return the batch of the images at ``key.indices``."""


class SampleBatchBuilder:
    """Fetch the samples of a batch, transform each with its slot's generator, collate them.

    Args:
        dataset: ``dataset[i]`` gives a ``Sample``; one that has ``__getitems__(indices)`` is
            asked for a whole batch. A dataset with ``columns`` is read without one object a
            sample where no transform needs them.
        transform: ``transform(rng, sample) -> Sample``, stream 0, or None.
        collate: ``collate(samples, key) -> batch``; a ``ColumnCollator`` is handed the columns.
            One whose ``pad_to`` is "global" gets the samples of ``key.whole()``.
        run: how ``Items`` read several items at once; None for one after another.
    """

    def __init__(
        self,
        dataset: Any,
        transform: Callable[[SampleRng, Sample], Sample] | None,
        collate: Callable[[list[Sample], BatchKey], Any],
        run: Run | None = None,
    ) -> None:
        self.dataset = dataset
        self.transform = transform
        self.collate = collate
        # read once, as a lane does: what is put in its place later changes no batch
        self._call_collate = bound(collate, "__call__")
        self.columns = columns_of(dataset)
        pad_to = getattr(collate, "pad_to", None)
        self._reads_whole = isinstance(pad_to, str) and pad_to == "global"
        self.reader = ItemReader(dataset, run) if is_own(dataset, Items, "read") else None
        self._build_columns: Callable[[BatchKey], Any] | None = None
        if transform is None and self.columns is not None and takes_columns(collate):
            self._build_columns = partial(collate.from_columns, self.columns)

    def build(self, key: BatchKey) -> Any:
        """Return the batch of ``key``; nothing of its samples is kept."""
        if self._build_columns is not None:
            return self._build_columns(key)
        read = key.whole() if self._reads_whole else key
        substitutes: tuple[Substitute, ...] = ()
        if self.reader is not None:
            samples, indices, substitutes = self.reader.read(read)
            key, substitutes = _part(key, read is not key, indices, substitutes)
            read = read._replace(indices=indices)
        else:
            samples = self._fetch(read)
        if self.transform is not None:
            self._transform_each(samples, read)
        batch = self._call_collate(samples, key)
        if substitutes and isinstance(batch, ImageBatch):
            batch.substitutes = substitutes
        return batch

    def _fetch(self, key: BatchKey) -> list[Any]:
        dataset = self.dataset
        if type(dataset) is list:
            return gather_samples(dataset, checked_key(key))
        indices = key.indices.tolist()
        if gives_many(dataset):
            samples = list(dataset.__getitems__(indices))
            if len(samples) != len(indices):
                raise ValueError(
                    f"dataset.__getitems__ must return {len(indices)} samples, got {len(samples)}"
                )
            return samples
        pending = iter(indices)
        try:
            return [dataset[index] for index in pending]
        except BaseException as error:
            position = len(indices) - length_hint(pending) - 1
            note_slot(error, key, position, indices[position])
            raise

    def _transform_each(self, samples: list[Any], key: BatchKey) -> None:
        transform = self.transform
        assert transform is not None
        for position, sample in enumerate(samples):
            slot = key.first_slot + position
            try:
                result = transform(
                    slot_rng(key.seed, key.epoch, key.step, slot, TRANSFORM_STREAM), sample
                )
                if not isinstance(result, Sample):
                    raise TypeError(
                        f"transform must return a Sample, got {type(result).__name__} "
                        f"from {describe(transform)}"
                    )
            except BaseException as error:
                note_slot(error, key, position, key.indices[position])
                raise
            samples[position] = result


def _part(
    key: BatchKey,
    is_whole: bool,
    indices: NDArray[np.int64],
    substitutes: tuple[Substitute, ...],
) -> tuple[BatchKey, tuple[Substitute, ...]]:
    """Return the key with the indices that were read in the end, and its own substitutes.

    ``is_whole`` says that all of the global batch was read, and not only the key's part.
    """
    if not is_whole:
        return key._replace(indices=indices), substitutes
    first, end = key.first_slot, key.first_slot + len(key.indices)
    return (
        key._replace(indices=indices[first:end], global_indices=indices),
        tuple(each for each in substitutes if first <= each.slot < end),
    )


def columns_of(dataset: Any) -> Columns | None:
    """Return the columns that say the same as ``dataset[i]``, or None.

    They are taken from the dataset's class: a wrapper that delegates attributes, or a table whose
    ``__getitem__`` is overridden, gives other samples than its columns.
    """
    kind = type(dataset)
    if isinstance(dataset, ImageTable) and not is_own(dataset, ImageTable, "__getitem__"):
        return None
    if not hasattr(kind, "columns") and "columns" not in getattr(dataset, "__dict__", {}):
        return None
    columns = dataset.columns
    return columns if isinstance(columns, Columns) else None


def takes_columns(collate: Any) -> TypeGuard[ColumnCollator]:
    """Return whether ``collate.from_columns`` says the same as ``collate(samples, key)``.

    A class that overrides the call and inherits ``from_columns`` says something else.

    >>> from onemodel import ImageBatchCollator
    >>> class Counting(ImageBatchCollator):
    ...     def __call__(self, samples, key):
    ...         return len(samples)
    >>> takes_columns(ImageBatchCollator()), takes_columns(Counting())
    (True, False)
    """
    if not isinstance(collate, ColumnCollator):
        return False
    own = getattr(collate, "__dict__", {})
    for kind in type(collate).__mro__:  # whichever of the two comes first decides
        if "from_columns" in kind.__dict__:
            ours = kind is not ImageBatchCollator or is_own(collate, kind, "__call__")
            return ours and "from_columns" not in own  # ours may have been patched
        if "__call__" in kind.__dict__:
            return False
    return False  # from_columns is an attribute that a wrapper delegates

"""The batch builder of the sample face: a key and a dataset to a collated batch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import length_hint
from typing import Any

import numpy as np

from onemodel._collate.collator import ImageBatchCollator
from onemodel._collate.inputs import pick
from onemodel._common.batch_key import BatchKey
from onemodel._common.describe import describe
from onemodel._random.rng import SampleRng, slot_rng
from onemodel.datasets.columns import Columns
from onemodel.datasets.sample import Sample

__all__ = ["SampleBatchBuilder"]

TRANSFORM_STREAM = 0


class SampleBatchBuilder:
    """Fetch the samples of a batch, transform each with its slot's generator, collate them.

    Args:
        dataset: ``dataset[i]`` gives a ``Sample``; one that has ``__getitems__(indices)`` is
            asked for a whole batch. A dataset with ``columns`` is read without one object a
            sample where no transform needs them.
        transform: ``transform(rng, sample) -> Sample``, stream 0, or None.
        collate: ``collate(samples, key) -> batch``.
    """

    def __init__(
        self,
        dataset: Any,
        transform: Callable[[SampleRng, Sample], Sample] | None,
        collate: Callable[[list[Sample], BatchKey], Any],
    ) -> None:
        self._dataset = dataset
        self._transform = transform
        self._collate = collate
        self._build_columns: Callable[[BatchKey], Any] | None = None
        columns = getattr(dataset, "columns", None)
        if (
            transform is None
            and isinstance(collate, ImageBatchCollator)
            and isinstance(columns, Columns)
        ):
            self._build_columns = partial(collate.from_columns, columns)

    def build(self, key: BatchKey) -> Any:
        """Return the batch of ``key``; nothing of its samples is kept."""
        if self._build_columns is not None:
            return self._build_columns(key)
        samples = self._fetch(key)
        if self._transform is not None:
            self._transform_each(samples, key)
        return self._collate(samples, key)

    def _fetch(self, key: BatchKey) -> list[Any]:
        dataset = self._dataset
        if type(dataset) is list:
            return pick(dataset, np.ascontiguousarray(key.indices, np.int64), key.first_slot)
        indices = key.indices.tolist()
        if hasattr(dataset, "__getitems__"):
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
            slot = len(indices) - length_hint(pending) - 1
            error.add_note(f"slot {key.first_slot + slot}, dataset index {indices[slot]}")
            raise

    def _transform_each(self, samples: list[Any], key: BatchKey) -> None:
        transform = self._transform
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
                error.add_note(f"slot {slot}, dataset index {key.indices[position]}")
                raise
            samples[position] = result

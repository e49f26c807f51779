"""The batch builder of the array face: a key and a dataset to a transformed batch.

The reference path gathers the rows and then calls each part of the transform on the whole batch.
Where the dataset is an ``ArrayDataset`` and the transform begins with native row transforms,
these run inside the gather, each row while it is in L1; the bytes are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.key import BatchKey
from onemodel._batch.notes import note
from onemodel._batch.structure import Field, Structure, field_of, own_arrays, row_count, take
from onemodel._builders.foreign_dataset import asked, batch_reader
from onemodel._builders.items import ItemReader, stack_items
from onemodel._common.compose import Compose
from onemodel._common.describe import describe
from onemodel._common.overrides import is_own
from onemodel._memory.pool import BufferPool
from onemodel._random.batch_rng import BatchRng
from onemodel.datasets import Items
from onemodel.datasets._items.items import Run
from onemodel.datasets.arrays import ArrayDataset
from onemodel.datasets.gather import gather_rows
from onemodel.transforms.one_hot import OneHot
from onemodel.transforms.protocol import NativeTransform, RowChain

__all__ = ["ArrayBatchBuilder"]

Transform = Callable[..., Any]


class _Plan(NamedTuple):
    """What runs inside the gather, and what is called afterwards."""

    chain: RowChain | None
    field: Field
    rest: tuple[Transform, ...]


class ArrayBatchBuilder:
    """Gather the rows of a batch and transform it as a whole.

    Args:
        dataset: an ``ArrayDataset``; or any object whose ``dataset[indices]``, indices an int64
            array, gives a batch; or one with ``__getitems__(list)``, whose result is a batch or,
            as in PyTorch, a list of samples. A batch is an array, a tuple or a dict of arrays.
        transform: ``transform(rng, batch) -> batch`` (or None for an edit in place); ``rng`` is
            a ``BatchRng``. None for no transform.
        pool: where the batches' memory comes from and returns to.
        run: how ``Items`` read several items at once; None for one after another.

    Raises:
        TypeError, ValueError: if a native transform does not accept the dataset's arrays.
    """

    def __init__(
        self,
        dataset: Any,
        transform: Transform | None,
        pool: BufferPool,
        run: Run | None = None,
    ) -> None:
        self.dataset = dataset
        self.pool = pool
        if transform is None:
            parts: tuple[Transform, ...] = ()
        else:
            parts = transform.parts if is_own(transform, Compose, "__call__") else (transform,)
        # a subclass that overrides what indexing means is asked, and not looked through
        self._own = is_own(dataset, ArrayDataset, "__getitem__", "map_fields")
        self.plan = _plan(dataset, parts) if self._own else _Plan(None, None, parts)
        self.reader = ItemReader(dataset, run) if is_own(dataset, Items, "read") else None
        if self.reader is None:
            self.read = dataset.__getitem__ if self._own else batch_reader(dataset)

    @property
    def is_native(self) -> bool:
        """Whether building takes nothing but gathering and native row transforms."""
        return self._own and not self.plan.rest

    def build(self, key: BatchKey) -> Structure:
        """Return the batch of ``key``.

        Raises:
            ValueError: if the dataset or a part of the transform gives another number of rows
                than the key has indices; the error names it, with epoch and step.
        """
        indices = np.ascontiguousarray(key.indices, np.int64)
        rng = BatchRng(key.seed, key.epoch, key.step, key.first_slot)
        rng.use_pool(self.pool)
        if self._own:
            batch = self._gather(rng, indices)
        elif self.reader is not None:
            items = self.reader.read(key._replace(indices=indices))
            batch = stack_items(items.items, items.indices, self.pool)
            _check_rows("dataset", self.dataset, batch, key)
        else:
            batch = own_arrays(self.read(indices), views_only=True)
            _check_rows("dataset", self.dataset, batch, key)
        for part in self.plan.rest:
            result = part(rng, batch)
            if result is not None:
                batch = result
            _check_rows("transform", part, batch, key)
        return batch

    def _gather(self, rng: BatchRng, indices: NDArray[np.int64]) -> Structure:
        chain, fused, _ = self.plan
        rows = len(indices)

        def made(field: Field, array: NDArray[Any]) -> NDArray[Any]:
            if chain is not None and field == fused:
                result = self.pool.rent((rows, *chain.shape), chain.dtype)
                chain.run(rng, array, indices, result, self.pool.exceeds_cache)
                return result
            result = self.pool.rent((rows, *array.shape[1:]), array.dtype)
            return gather_rows(array, indices, result, self.pool.exceeds_cache)

        return self.dataset.map_fields(made)


def _plan(dataset: ArrayDataset, parts: tuple[Transform, ...]) -> _Plan:
    """Take the leading row transforms of one field out of the parts.

    A OneHot of another field among them draws nothing and touches nothing that they read, so it
    may as well come after them.
    """
    arrays = dataset.arrays
    field: Field = None
    fused: list[NativeTransform] = []
    later: list[Transform] = []
    position = 0
    for part in parts:
        if is_own(part, NativeTransform, "__call__"):
            own = field_of(arrays, part.key, 0)
            if fused and own != field:
                break
            if own in [field_of(arrays, one.key, 1) for one in later if isinstance(one, OneHot)]:
                break
            field = own
            fused.append(part)
        elif is_own(part, OneHot, "__call__"):
            if fused and field_of(arrays, part.key, 1) == field:
                break
            later.append(part)
        else:
            break
        position += 1
    source = take(arrays, field) if fused else None
    if source is None or not (source[0].flags.c_contiguous and source.flags.aligned):
        return _Plan(None, None, parts)
    chain = RowChain(fused, source.dtype, source.shape[1:])
    return _Plan(chain, field, (*later, *parts[position:]))


def _check_rows(role: str, culprit: Any, batch: Structure, key: BatchKey) -> None:
    """Raise if the batch has not as many rows as the key asks for."""
    kind: type[Exception] = ValueError
    try:
        rows = row_count(batch)
        if rows == len(key.indices):
            return
        wrong = f"{len(key.indices)} rows in epoch {key.epoch}, step {key.step}, got {rows}"
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        wrong = f"arrays of rows in epoch {key.epoch}, step {key.step}: {error}"
    name = describe(culprit) if role == "transform" else type(culprit).__name__
    refusal = kind(f"{role} {name} must return {wrong}")
    if role == "dataset":
        note(refusal, asked(len(key.indices)))
    raise refusal

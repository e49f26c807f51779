"""From a global step to its batch: the pure function that everything else delivers."""

from __future__ import annotations

import sys
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.caught import take_caught
from onemodel._batch.key import BatchKey
from onemodel._batch.notes import note_step
from onemodel._batch.structure import map_arrays
from onemodel._builders.indices import are_indices
from onemodel._common.describe import describe, shown
from onemodel._simd.float_mode import DefaultFloatMode

__all__ = ["BatchBuilder", "StepBuilder"]


class BatchBuilder(Protocol):
    """Turns a key into a batch; there is one for samples and one for arrays."""

    def build(self, key: BatchKey) -> Any:
        """Return the batch of ``key``, a pure function of it and the dataset."""


class StepBuilder:
    """Builds the batch of any global step, on any thread.

    It holds all that a batch depends on and nothing of the loader, so that worker threads, which
    hold it, keep no loader alive.

    Args:
        dataset: only its length is looked at.
        sampler: which indices make a batch.
        builder: what makes the batch of a key.
        seed: integer in [0, 2**64).
        shard: (rank, world).
    """

    def __init__(
        self, dataset: Any, sampler: Any, builder: BatchBuilder, seed: int, shard: tuple[int, int]
    ) -> None:
        self.dataset = dataset
        self.length = dataset_length(dataset)
        self.sampler = sampler
        self.steps_per_epoch: int = sampler.steps_per_epoch
        # read once, as a lane does: what is put in its place later changes no batch
        self._batch_indices = sampler.batch_indices
        self.builder = builder
        self.seed = seed
        self.shard = shard

    def key(self, g: int) -> BatchKey:
        """Return the key of global step g: which rows, and which generators.

        Raises:
            ValueError: if the dataset has another length than at first.
            TypeError, ValueError, IndexError: if the sampler gives indices that are none.
        """
        return self._shard_of(self._global_key(g))

    def _global_key(self, g: int) -> BatchKey:
        self.check_length()
        epoch, step = divmod(g, self.steps_per_epoch)
        indices = self._batch_indices(self.seed, epoch, step)
        indices = _check_batch_indices(indices, self.length, self.sampler)
        world = self.shard[1]
        return BatchKey(self.seed, epoch, step, 0, indices, g, len(indices), indices, world)

    def _shard_of(self, key: BatchKey) -> BatchKey:
        rank, world = self.shard
        if world == 1:
            return key
        rows = len(key.indices)
        first, end = rank * rows // world, (rank + 1) * rows // world
        return key._replace(first_slot=first, indices=key.indices[first:end])

    def build(self, g: int) -> Any:
        """Return the batch of global step g; what is raised is noted with its place."""
        epoch, step = divmod(g, self.steps_per_epoch)
        key = whole = BatchKey(self.seed, epoch, step, 0, _NONE, g)
        interrupt = take_caught()
        try:
            if interrupt is not None and not isinstance(interrupt, Exception):
                raise interrupt  # a Ctrl-C does not wait for the build
            with DefaultFloatMode():
                whole = self._global_key(g)
                key = self._shard_of(whole)
                if len(key.indices) == 0 < len(whole.indices):
                    batch = self._build_empty(key, whole)
                else:
                    batch = self.builder.build(key)
            if interrupt is not None:
                raise interrupt  # no error of the data: that would have come again
            return batch
        except BaseException as error:
            note_step(error, key)
            raise

    def _build_empty(self, key: BatchKey, whole: BatchKey) -> Any:
        """Return the batch of a shard that a short last batch leaves without rows.

        Its arrays have no rows and the shapes of other batches' rows, so that ranks agree: it is
        the global batch's first row, made as this shard's, and cut away. Datasets and transforms
        are not asked for nothing, which many can't give.
        """
        one = self.builder.build(key._replace(indices=whole.indices[:1]))
        cut = getattr(type(one), "without_rows", None)
        if cut is not None:
            return cut(one)
        if isinstance(one, dict | tuple | np.ndarray):
            return map_arrays(one, lambda array: array[:0])
        return self.builder.build(key)  # of a batch of the user's own class nothing is known

    def entry(self, g: int) -> tuple[Any, BaseException | None]:
        """Return (batch, None), or (None, what building it raised): for whom may not raise."""
        try:
            return self.build(g), None
        except (StopIteration, StopAsyncIteration) as error:
            # Raised from __next__ it would end the loop as if the run were over.
            wrapped = RuntimeError(
                f"{type(error).__name__} was raised while building global step {g}"
            )
            wrapped.__cause__ = error
            return None, wrapped
        except BaseException as error:
            return None, error

    def check_length(self) -> None:
        """Raise a ValueError if the dataset's length is another one now."""
        length = _length(self.dataset)
        if length != self.length:
            raise ValueError(
                f"dataset must keep its length of {self.length} items, which it had when the "
                f"loader was made, got {length}"
            )


_NONE: NDArray[np.int64] = np.empty(0, np.int64)


def dataset_length(dataset: Any) -> int:
    """Return the dataset's length, at least 1."""
    try:
        length = _length(dataset)
    except TypeError:
        raise TypeError(f"dataset must have a len, got {type(dataset).__name__}") from None
    if length < 1:
        raise ValueError(f"dataset must have at least one item, got {length}")
    return length


def _length(dataset: Any) -> int:
    try:
        return len(dataset)
    except OverflowError:
        # `len` gives no more than fits in a pointer: 2**31 - 1 in a browser.
        bits = sys.maxsize.bit_length()
        raise ValueError(
            f"len(dataset) must be in [1, 2**{bits}) in a Python of {bits + 1} bits, "
            f"got {shown(type(dataset).__len__(dataset))}"
        ) from None


def _check_batch_indices(indices: Any, length: int, sampler: Any) -> NDArray[np.int64]:
    try:
        values = np.asarray(indices)
    except ValueError as error:  # a ragged list
        raise TypeError(f"sampler must return integers [B], got {shown(indices)}") from error
    if (
        values.dtype == np.int64
        and values.ndim == 1
        and values.flags.c_contiguous
        and are_indices(values, length)
    ):
        return values
    if values.ndim != 1 or values.dtype.kind not in "iu":
        raise TypeError(
            f"sampler must return integers [B], got {values.dtype} {list(values.shape)} "
            f"from {describe(sampler)}"
        )
    if values.size and not (values.min() >= 0 and values.max() < length):
        raise IndexError(
            f"sampler must return indices in [0, {length}), got {int(values.min())} to "
            f"{int(values.max())} from {describe(sampler)}"
        )
    return values.astype(np.int64)

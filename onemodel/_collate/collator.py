"""Ragged images to one padded batch, for CTC training.

Source: docs/specification.md, section "Collation".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from onemodel._collate import collate
from onemodel._collate.inputs import CollateInputs, from_columns, from_samples
from onemodel._common.batch_key import BatchKey
from onemodel._common.compose import Compose
from onemodel._common.describe import describe
from onemodel._common.integers import check_integer
from onemodel._memory.pool import BufferPool
from onemodel._random.rng import SampleRng
from onemodel.augment.protocol import Chain, NativeAugmentation
from onemodel.datasets.columns import Columns
from onemodel.datasets.sample import Sample

__all__ = ["ImageBatch", "ImageBatchCollator"]


class ImageBatch:
    """A padded batch of images with its CTC targets.

    Attributes:
        images: float32 [B, C, H, Wp]; each image at the left, the rest of its rows padding.
        widths: int32 [B], the real widths.
        targets: int32 [sum], every target one after another, the layout of CTC losses.
        target_lengths: int32 [B].
        labels: int32 [B].
        indices: int32 [B], the dataset index of each slot.
        epoch, step: where the batch stands in the run.
        real_columns: the sum of the widths.

    ``release()``, or leaving ``with batch:``, drops the batch's arrays. Their memory is used
    again when nobody else holds them: an array that you took out stays yours.
    """

    FIELDS = ("images", "widths", "targets", "target_lengths", "labels", "indices")
    __slots__ = (*FIELDS, "epoch", "real_columns", "step")

    images: NDArray[np.float32]
    widths: NDArray[np.int32]
    targets: NDArray[np.int32]
    target_lengths: NDArray[np.int32]
    labels: NDArray[np.int32]
    indices: NDArray[np.int32]
    epoch: int
    step: int
    real_columns: int

    def __init__(
        self,
        images: NDArray[np.float32],
        widths: NDArray[np.int32],
        targets: NDArray[np.int32],
        target_lengths: NDArray[np.int32],
        labels: NDArray[np.int32],
        indices: NDArray[np.int32],
        epoch: int,
        step: int,
        real_columns: int,
    ) -> None:
        self.images = images
        self.widths = widths
        self.targets = targets
        self.target_lengths = target_lengths
        self.labels = labels
        self.indices = indices
        self.epoch = epoch
        self.step = step
        self.real_columns = real_columns

    def __getattr__(self, name: str) -> Any:
        # reached only where a slot is empty
        if name in ImageBatch.FIELDS:
            raise RuntimeError(
                f"the batch of epoch {self.epoch}, step {self.step} was released: "
                f"take {name} before release()"
            )
        raise AttributeError(f"ImageBatch has no attribute {name!r}")

    def arrays(self) -> dict[str, Any]:
        """Return the six arrays by name, in the order of the digest."""
        return {name: getattr(self, name) for name in self.FIELDS}

    def map(self, function: Callable[[Any], Any]) -> ImageBatch:
        """Return a batch whose arrays are ``function(array)``: tensors, or arrays on a device."""
        return ImageBatch(
            **{name: function(array) for name, array in self.arrays().items()},
            epoch=self.epoch,
            step=self.step,
            real_columns=self.real_columns,
        )

    @property
    def padding_waste(self) -> float:
        """The part of the columns that is padding, in [0, 1)."""
        columns = len(self.widths) * self.images.shape[3]
        return 1.0 - self.real_columns / columns if columns else 0.0

    def release(self) -> None:
        """Drop the arrays; a second call does nothing."""
        for name in self.FIELDS:
            try:
                delattr(self, name)
            except AttributeError:
                return

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def __len__(self) -> int:
        return len(self.images)

    def __repr__(self) -> str:
        try:
            described = f"images={list(self.images.shape)}, targets={len(self.targets)}"
        except RuntimeError:
            described = "released"
        return f"ImageBatch(epoch={self.epoch}, step={self.step}, {described})"


class ImageBatchCollator:
    """Pad a batch's images to one width and put its targets one after another.

    Args:
        width_multiple: the padded width is the widest image's, rounded up to a multiple of this.
        pad_value: finite number for the columns right of an image, rounded to float32.
        augment: ``augment(rng, image)`` edits a float32 copy [C, H, W] of one image in place and
            returns None or that array; ``rng`` is the slot's own ``SampleRng``, stream 1.
            Native augmentations (``onemodel.augment``, also in ``Compose``) run without the GIL
            in the pass that makes the batch. The array is lent for the call.
        pool: where the batches' memory comes from; None for a pool of its own.

    Raises:
        TypeError, ValueError: naming the argument that does not fit.
    """

    def __init__(
        self,
        *,
        width_multiple: int = 1,
        pad_value: float = 0.0,
        augment: Callable[[SampleRng, NDArray[np.float32]], Any] | None = None,
        pool: BufferPool | None = None,
    ) -> None:
        self.width_multiple = check_integer("width_multiple", width_multiple, 1, 2**31)
        self.pad_value = _pad_value(pad_value)
        if augment is not None and not callable(augment):
            raise TypeError(f"augment must be callable(rng, image) or None, got {augment!r}")
        if pool is not None and not isinstance(pool, BufferPool):
            raise TypeError(f"pool must be a BufferPool or None, got {pool!r}")
        self.augment = augment
        self.pool = BufferPool() if pool is None else pool
        self._chain = _native_chain(augment)

    def __call__(self, samples: Iterable[Sample], key: BatchKey) -> ImageBatch:
        """Return the batch of ``samples``, one for each of ``key.indices``.

        Raises:
            TypeError, ValueError: naming slot and dataset index of a sample that does not fit.
        """
        indices = np.ascontiguousarray(key.indices, np.int64)
        return self._collate(from_samples(samples, indices, key.first_slot), key)

    def from_columns(self, columns: Columns, key: BatchKey) -> ImageBatch:
        """Return the batch of a columnar dataset, without a Python object for each sample."""
        indices = np.ascontiguousarray(key.indices, np.int64)
        return self._collate(from_columns(columns, indices, key.first_slot), key)

    def _collate(self, inputs: CollateInputs, key: BatchKey) -> ImageBatch:
        count = inputs.count
        multiple = self.width_multiple
        padded = -(-inputs.widest // multiple) * multiple
        if padded >= 2**31:
            raise ValueError(f"the padded width must be below 2**31, got {padded}")
        where = (key.seed, key.epoch, key.step, key.first_slot)
        if self._chain is not None:
            images, integers = collate.collate(
                inputs, self.pool, padded, self.pad_value, self._chain, *where
            )
        else:
            assert self.augment is not None  # of nothing there is a chain
            images, integers = collate.collate_each(
                inputs, self.pool, padded, self.pad_value, self.augment, *where
            )
        return ImageBatch(
            images,
            integers[:count],
            integers[4 * count :],
            integers[count : 2 * count],
            integers[2 * count : 3 * count],
            integers[3 * count : 4 * count],
            key.epoch,
            key.step,
            inputs.columns,
        )

    def __repr__(self) -> str:
        return (
            f"ImageBatchCollator(width_multiple={self.width_multiple}, "
            f"pad_value={self.pad_value}, augment={describe(self.augment)})"
        )


def _native_chain(augment: Any) -> Chain | None:
    """Return the native form of an augmentation, or None where a Python callable takes part."""
    if augment is None:
        return Chain([])
    parts = augment.parts if isinstance(augment, Compose) else (augment,)
    native = [
        part
        for part in parts
        # a subclass in Python with a call of its own is a Python callable
        if isinstance(part, NativeAugmentation)
        and type(part).__call__ is NativeAugmentation.__call__
    ]
    return Chain(native) if len(native) == len(parts) else None


def _pad_value(value: Any) -> float:
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise TypeError(f"pad_value must be a number, got {value!r}")
    number = float(value)
    with np.errstate(over="ignore"):
        single = float(np.float32(number))
    if not math.isfinite(single):
        raise ValueError(f"pad_value must be finite in float32, got {value!r}")
    return single

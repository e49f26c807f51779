"""Ragged images to one padded batch, for CTC training.

Source: docs/specification.md, section "Collation".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.key import BatchKey
from onemodel._collate import collate
from onemodel._collate.image_batch import ImageBatch
from onemodel._collate.inputs import CollateInputs, from_columns, from_samples
from onemodel._common.compose import Compose
from onemodel._common.configured import added_attributes, rebuild
from onemodel._common.describe import describe, shown
from onemodel._common.integers import check_integer
from onemodel._common.overrides import is_own
from onemodel._memory.pool import BufferPool
from onemodel._random.rng import SampleRng
from onemodel.augment.protocol import Chain, NativeAugmentation
from onemodel.datasets.columns import Columns
from onemodel.datasets.sample import Sample

__all__ = ["ImageBatchCollator", "native_chain", "with_int64"]


class ImageBatchCollator:
    """Pad a batch's images to one width and put its targets one after another.

    Args:
        width_multiple: the padded width is the widest image's, rounded up to a multiple of this.
        pad_value: finite number for the columns right of an image, rounded to float32.
        augment: ``augment(rng, image)`` edits a float32 copy [C, H, W] of one image in place and
            returns None or that array; ``rng`` is the slot's own ``SampleRng``, stream 1.
            Native augmentations (``onemodel.augment``, also in ``Compose``) run without the GIL
            in the pass that makes the batch. The array is the callable's for the call only.
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
        if hasattr(self, "_chain"):
            raise TypeError("an ImageBatchCollator cannot be changed; make another")
        self._width_multiple = check_integer("width_multiple", width_multiple, 1, 2**31)
        self._pad_value = _check_pad_value(pad_value)
        if augment is not None and not callable(augment):
            raise TypeError(f"augment must be callable(rng, image) or None, got {shown(augment)}")
        if pool is not None and not isinstance(pool, BufferPool):
            raise TypeError(f"pool must be a BufferPool or None, got {shown(pool)}")
        self._augment = augment
        self._own_pool = pool is None
        self._pool = BufferPool() if pool is None else pool
        self._chain = native_chain(augment)

    @property
    def width_multiple(self) -> int:
        """What the padded width is a multiple of."""
        return self._width_multiple

    @property
    def pad_value(self) -> float:
        """What stands right of an image."""
        return self._pad_value

    @property
    def augment(self) -> Callable[[SampleRng, NDArray[np.float32]], Any] | None:
        """The augmentation, or None."""
        return self._augment

    @property
    def pool(self) -> BufferPool:
        """Where the batches' memory comes from."""
        return self._pool

    @property
    def chain(self) -> Chain | None:
        """The augmentation as a native chain; None where a Python callable takes part."""
        return self._chain

    def __call__(self, samples: Iterable[Sample], key: BatchKey) -> ImageBatch:
        """Return the batch of ``samples``, one for each of ``key.indices``.

        Raises:
            TypeError, ValueError: naming slot and dataset index of a sample that does not fit.
        """
        key = with_int64(key)
        return self._collate(from_samples(samples, key), key)

    def from_columns(self, columns: Columns, key: BatchKey) -> ImageBatch:
        """Return the batch of a columnar dataset, without a Python object for each sample."""
        key = with_int64(key)
        return self._collate(from_columns(columns, key), key)

    def _collate(self, inputs: CollateInputs, key: BatchKey) -> ImageBatch:
        multiple = self._width_multiple
        padded = -(-inputs.widest // multiple) * multiple
        if padded >= 2**31:
            raise ValueError(f"the padded width must be below 2**31, got {padded}")
        if self._chain is not None:
            arrays = collate.collate(inputs, self._pool, padded, self._pad_value, self._chain, key)
        else:
            assert self._augment is not None  # of nothing there is a chain
            arrays = collate.collate_each(
                inputs, self._pool, padded, self._pad_value, self._augment, key
            )
        return ImageBatch(
            **arrays,
            epoch=key.epoch,
            step=key.step,
            real_columns=inputs.columns,
            global_step=key.global_step,
            global_rows=key.global_rows,
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(width_multiple={self._width_multiple}, "
            f"pad_value={self._pad_value}, augment={describe(self._augment)})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = {
            "width_multiple": self._width_multiple,
            "pad_value": self._pad_value,
            "augment": self._augment,
            "pool": None if self._own_pool else self._pool,
        }
        own = ("_width_multiple", "_pad_value", "_augment", "_own_pool", "_pool", "_chain")
        made_by = type(self), ImageBatchCollator, arguments
        return rebuild, made_by, added_attributes(self, own)


def with_int64(key: BatchKey) -> BatchKey:
    """Return the key with indices as kernels read them."""
    indices = key.indices
    if (
        type(indices) is np.ndarray
        and indices.dtype == np.int64
        and indices.ndim == 1
        and indices.flags.c_contiguous
        and indices.flags.aligned
    ):
        return key
    return key._replace(indices=np.array(indices, np.int64, ndmin=1))


def native_chain(augment: Any) -> Chain | None:
    """Return the native form of an augmentation, or None where a Python callable takes part."""
    if augment is None:
        return Chain([])
    parts = augment.parts if is_own(augment, Compose, "__call__", "parts") else (augment,)
    native = [part for part in parts if is_own(part, NativeAugmentation, "__call__")]
    return Chain(native) if len(native) == len(parts) else None


def _check_pad_value(value: Any) -> float:
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise TypeError(f"pad_value must be a number, got {shown(value)}")
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"pad_value must be finite in float32, got {shown(value)}") from None
    with np.errstate(all="ignore"):
        single = float(np.float32(number))
    if not math.isfinite(single):
        raise ValueError(f"pad_value must be finite in float32, got {shown(value)}")
    return single

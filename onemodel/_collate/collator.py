"""Ragged images to one padded batch, for CTC training.

Source: docs/specification.md, section "Collation".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.key import BatchKey, checked_key
from onemodel._collate import collate
from onemodel._collate.errors import too_wide_error
from onemodel._collate.image_batch import ImageBatch
from onemodel._collate.inputs import CollateInputs, from_columns, from_samples
from onemodel._common.compose import Compose
from onemodel._common.configured import added_attributes, rebuild
from onemodel._common.describe import describe, shown
from onemodel._common.integers import check_integer
from onemodel._common.overrides import is_own
from onemodel._memory.pool import BufferPool
from onemodel._random.rng import SampleRng
from onemodel._simd.float_mode import DefaultFloatMode
from onemodel.augment.protocol import Chain, NativeAugmentation
from onemodel.datasets.columns import Columns
from onemodel.datasets.sample import Sample

__all__ = ["ImageBatchCollator", "native_chain"]


class ImageBatchCollator:
    """Pad a batch's images to one width; concatenate its targets, or pad them as well.

    Args:
        width_multiple: the padded width is the widest image's, rounded up to a multiple of this.
        pad_value: finite number for the columns right of an image, rounded to float32.
        augment: ``augment(rng, image)`` edits a float32 copy [C, H, W] of one image in place and
            returns None or that array; ``rng`` is the slot's own ``SampleRng``, stream 1.
            Native augmentations (``onemodel.augment``, also in ``Compose``) run without the GIL
            in the pass that makes the batch. The array is the callable's for the call only.
        pool: where the batches' memory comes from; None for a pool of its own.
        targets: "concatenated" for int32 [sum], the layout of CTC losses; "padded" for [B, T],
            each target at the left of its row and 0 behind it. ``target_lengths`` says where a
            target ends. 0 is a valid index wherever symbols are, so a loss or an embedding may
            look at all of the row before it masks.
        target_multiple: T is the longest target's length, at least 1, rounded up to a multiple
            of this. It is 1 where targets are concatenated.
        label_dtype: "int32" or "int64" for the labels, the class indices that PyTorch's losses
            ask for. Targets stay int32, and a label must fit in int32 all the same.
        pad_to: None to pad to the widest image of the shard's own batch. "global" to take the
            widest image, and the longest target, of the global batch, so that a shard is padded
            exactly as the whole is; every rank then looks at all images of a step, and reads and
            transforms them where they are not in columns or a list. An integer is the padded
            width of every batch, a multiple of ``width_multiple``; a wider image is an error.

    Raises:
        TypeError, ValueError: naming the argument that does not fit.

    >>> import onemodel as om
    >>> images = [np.zeros((1, 2, width), np.float32) for width in (5, 9)]
    >>> samples = [om.Sample(images[0], [3, 1, 4], 7), om.Sample(images[1], [5], 8)]
    >>> collate = om.ImageBatchCollator(
    ...     width_multiple=4, targets="padded", target_multiple=4, label_dtype="int64"
    ... )
    >>> batch = om.DataLoader(samples, 2, collate=collate)[0]
    >>> batch.images.shape, batch.targets.tolist(), batch.labels.dtype
    ((2, 1, 2, 12), [[3, 1, 4, 0], [5, 0, 0, 0]], dtype('int64'))
    """

    def __init__(
        self,
        *,
        width_multiple: int = 1,
        pad_value: float = 0.0,
        augment: Callable[[SampleRng, NDArray[np.float32]], Any] | None = None,
        pool: BufferPool | None = None,
        targets: Literal["concatenated", "padded"] = "concatenated",
        target_multiple: int = 1,
        label_dtype: Literal["int32", "int64"] = "int32",
        pad_to: Literal["global"] | int | None = None,
    ) -> None:
        if hasattr(self, "_chain"):
            raise TypeError("an ImageBatchCollator cannot be changed; make another")
        self._width_multiple = check_integer("width_multiple", width_multiple, 1, 2**31)
        self._pad_value = _check_pad_value(pad_value)
        if augment is not None and not callable(augment):
            raise TypeError(f"augment must be callable(rng, image) or None, got {shown(augment)}")
        if pool is not None and not isinstance(pool, BufferPool):
            raise TypeError(f"pool must be a BufferPool or None, got {shown(pool)}")
        self._targets = _check_choice("targets", targets, ("concatenated", "padded"))
        self._target_multiple = check_integer("target_multiple", target_multiple, 1, 2**31)
        if self._targets != "padded" and self._target_multiple != 1:
            raise ValueError(
                f"target_multiple must be 1 where targets are concatenated, got {target_multiple}"
            )
        self._label_dtype = _check_choice("label_dtype", label_dtype, ("int32", "int64"))
        self._pad_to = _check_pad_to(pad_to, self._width_multiple)
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
    def targets(self) -> str:
        """How targets are laid out: "concatenated" or "padded"."""
        return self._targets

    @property
    def target_multiple(self) -> int:
        """What the padded targets' length is a multiple of."""
        return self._target_multiple

    @property
    def label_dtype(self) -> str:
        """The dtype of the labels: "int32" or "int64"."""
        return self._label_dtype

    @property
    def pad_to(self) -> str | int | None:
        """None, "global" or the padded width of every batch."""
        return self._pad_to

    @property
    def chain(self) -> Chain | None:
        """The augmentation as a native chain; None where a Python callable takes part."""
        if self.augment is not self._augment:  # a subclass overrides it
            return native_chain(self.augment)
        return self._chain

    def __call__(self, samples: Iterable[Sample], key: BatchKey) -> ImageBatch:
        """Return the batch of ``samples``, one for each of ``key.indices``.

        Where ``pad_to`` is "global", ``samples`` are those of ``key.whole()``, and the batch is
        made of the shard's own.

        Raises:
            TypeError, ValueError: naming slot and dataset index of a sample that does not fit.
        """
        return self._collate(partial(from_samples, samples), checked_key(key))

    def from_columns(self, columns: Columns, key: BatchKey) -> ImageBatch:
        """Return the batch of a columnar dataset, without a Python object for each sample."""
        return self._collate(partial(from_columns, columns), checked_key(key))

    def _collate(self, read: Callable[[BatchKey], CollateInputs], key: BatchKey) -> ImageBatch:
        if self.pad_to == "global":
            whole = checked_key(key.whole())
            inputs = read(whole)
            if whole is not key:
                _narrow(inputs, key)
        else:
            inputs = read(key)
        shape = self._shape(inputs, key)
        chain = self.chain
        if chain is not None:
            arrays = collate.collate(inputs, self.pool, shape, self.pad_value, chain, key)
        else:
            augment = self.augment
            assert augment is not None  # of nothing there is a chain
            arrays = collate.collate_each(inputs, self.pool, shape, self.pad_value, augment, key)
        return ImageBatch(
            **arrays,
            epoch=key.epoch,
            step=key.step,
            real_columns=inputs.columns,
            global_step=key.global_step,
            global_rows=key.global_rows,
            world=key.world,
        )

    def _shape(self, inputs: CollateInputs, key: BatchKey) -> tuple[int, int, int]:
        """Return the padded width, the padded targets' length or 0, and a label's int32 words."""
        pad_to = self.pad_to
        if isinstance(pad_to, int):
            if inputs.widest > pad_to:
                raise too_wide_error(inputs, pad_to, key)
            width = pad_to
        else:
            width = _rounded_up("the padded width", inputs.widest, self.width_multiple)
        length = 0
        if self.targets == "padded":
            longest = max(inputs.longest, 1)
            length = _rounded_up("the padded targets' length", longest, self.target_multiple)
        return width, length, 2 if self.label_dtype == "int64" else 1

    def __repr__(self) -> str:
        # a loader's state holds this text: what came later is in it only where it says something
        more = "".join(
            f", {name}={value!r}"
            for name, value, default in (
                ("targets", self._targets, "concatenated"),
                ("target_multiple", self._target_multiple, 1),
                ("label_dtype", self._label_dtype, "int32"),
                ("pad_to", self._pad_to, None),
            )
            if value != default
        )
        return (
            f"{type(self).__name__}(width_multiple={self._width_multiple}, "
            f"pad_value={self._pad_value}, augment={describe(self._augment)}{more})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        arguments = {
            "width_multiple": self._width_multiple,
            "pad_value": self._pad_value,
            "augment": self._augment,
            "pool": None if self._own_pool else self._pool,
            "targets": self._targets,
            "target_multiple": self._target_multiple,
            "label_dtype": self._label_dtype,
            "pad_to": self._pad_to,
        }
        own = {f"_{name}" for name in arguments} | {"_own_pool", "_chain"}
        made_by = type(self), ImageBatchCollator, arguments
        return rebuild, made_by, added_attributes(self, own)


def native_chain(augment: Any) -> Chain | None:
    """Return the native form of an augmentation, or None where a Python callable takes part."""
    if augment is None:
        return Chain([])
    parts = augment.parts if is_own(augment, Compose, "__call__", "parts") else (augment,)
    native = [part for part in parts if is_own(part, NativeAugmentation, "__call__")]
    return Chain(native) if len(native) == len(parts) else None


def _narrow(inputs: CollateInputs, key: BatchKey) -> None:
    """Keep the slots of the key's shard."""
    last = inputs.count - len(key.indices)
    if not 0 <= key.first_slot <= last:
        raise ValueError(
            f"first_slot must be in [0, {last}] for {len(key.indices)} of the global batch's "
            f"{inputs.count} slots, got {key.first_slot}"
        )
    inputs.narrow(key.first_slot, len(key.indices))


def _rounded_up(name: str, size: int, multiple: int) -> int:
    rounded = -(-size // multiple) * multiple
    if rounded >= 2**31:
        raise ValueError(f"{name} must be below 2**31, got {rounded}")
    return rounded


def _check_choice(name: str, value: Any, choices: tuple[str, str]) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} must be one of {choices}, got {shown(value)}")
    if value not in choices:
        raise ValueError(f"{name} must be one of {choices}, got {shown(value)}")
    return str(value)


def _check_pad_to(value: Any, multiple: int) -> str | int | None:
    if value is None:
        return None
    if isinstance(value, str):
        if value != "global":
            raise ValueError(f"pad_to must be None, 'global' or a width, got {shown(value)}")
        return "global"
    width = check_integer("pad_to", value, 1, 2**31)
    if width % multiple:
        raise ValueError(f"pad_to must be a multiple of width_multiple {multiple}, got {width}")
    return width


def _check_pad_value(value: Any) -> float:
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise TypeError(f"pad_value must be a number, got {shown(value)}")
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"pad_value must be finite in float32, got {shown(value)}") from None
    with DefaultFloatMode(), np.errstate(all="ignore"):
        single = float(np.float32(number))
    if not math.isfinite(single):
        raise ValueError(f"pad_value must be finite in float32, got {shown(value)}")
    return single

"""``ImageBatch``: a padded batch of images with its targets, and the memory behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from onemodel._common.describe import shown

__all__ = ["ImageBatch"]


class ImageBatch:
    """A padded batch of images with its CTC targets.

    Attributes:
        images: float32 [B, C, H, Wp]; each image at the left, the rest of its rows padding.
        widths: int32 [B], the real widths.
        targets: int32 [sum], every target one after another, the layout of CTC losses; or
            [B, T], padded with 0, as the collator was asked.
        target_lengths: int32 [B].
        labels: int32 [B], or int64.
        indices: int32 [B], the dataset index of each slot.
        epoch, step: where the batch is in the run.
        real_columns: the sum of the widths.
        global_step: of the run; None where the key that it was made of had none.
        global_rows: slots of the global batch, of which these are this shard's; None likewise.
        world: how many ranks share the global batch.
        substitutes: (slot, broken, used) of each item that could not be read, where the dataset is
            an ``Items`` that puts others in their place; ``indices`` holds those.

    ``release()``, or leaving ``with batch:``, drops the batch's arrays. Their memory is used
    again when nobody else holds them: an array that you took out stays yours.
    """

    FIELDS = ("images", "widths", "targets", "target_lengths", "labels", "indices")
    __slots__ = (
        *FIELDS,
        "epoch",
        "global_rows",
        "global_step",
        "real_columns",
        "step",
        "substitutes",
        "world",
    )

    images: NDArray[np.float32]
    widths: NDArray[np.int32]
    targets: NDArray[np.int32]
    target_lengths: NDArray[np.int32]
    labels: NDArray[np.int32] | NDArray[np.int64]
    indices: NDArray[np.int32]
    epoch: int
    step: int
    real_columns: int
    global_step: int | None
    global_rows: int | None
    world: int
    substitutes: tuple[tuple[int, int, int], ...]

    def __init__(
        self,
        images: NDArray[np.float32],
        widths: NDArray[np.int32],
        targets: NDArray[np.int32],
        target_lengths: NDArray[np.int32],
        labels: NDArray[np.int32] | NDArray[np.int64],
        indices: NDArray[np.int32],
        epoch: int,
        step: int,
        real_columns: int,
        global_step: int | None = None,
        global_rows: int | None = None,
        world: int = 1,
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
        self.global_step = global_step
        self.global_rows = global_rows
        self.world = world
        self.substitutes = ()

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
        if not callable(function):
            raise TypeError(f"function must be callable, got {shown(function)}")
        mapped = ImageBatch(
            **{name: function(array) for name, array in self.arrays().items()},
            epoch=self.epoch,
            step=self.step,
            real_columns=self.real_columns,
            global_step=self.global_step,
            global_rows=self.global_rows,
            world=self.world,
        )
        mapped.substitutes = self.substitutes
        return mapped

    def to(self, device: Any, *, non_blocking: bool = False) -> ImageBatch:
        """Return a batch whose tensors are ``tensor.to(device, non_blocking=non_blocking)``.

        Raises:
            TypeError: if the batch holds arrays: ``device="torch"`` makes a loader give tensors.
        """
        return self._map_tensors("to", lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> ImageBatch:
        """Return a batch whose tensors are in pinned memory; raises as ``to`` does."""
        return self._map_tensors("pin_memory", lambda tensor: tensor.pin_memory())

    def _map_tensors(self, method: str, function: Callable[[Any], Any]) -> ImageBatch:
        for name, array in self.arrays().items():
            if not callable(getattr(array, method, None)):
                raise TypeError(
                    f"{name} must be a tensor for {method}(), got {type(array).__name__}; "
                    f'DataLoader(device="torch") gives tensors'
                )
        return self.map(function)

    def without_rows(self) -> ImageBatch:
        """Return a batch of the same shapes with no row: what an empty shard gets."""
        empty = self.map(lambda array: array[:0])
        empty.real_columns = 0
        empty.substitutes = ()
        return empty

    @property
    def loss_scale(self) -> float:
        """What to multiply the mean of this shard's losses by, where ranks average gradients.

        It is ``len(batch) * world / global_rows``. The average over all ranks is then the mean
        over the global batch, also where a short last batch gives ranks unequal parts of it. It
        is 1 where these are equal, and 0 for a rank without rows, whose mean must not be taken:
        0 times a mean of nothing is not a number.
        """
        if self.global_rows is None:
            return 1.0
        return len(self) * self.world / self.global_rows

    def count_columns(self) -> tuple[int, int]:
        """Return the pixel columns of all images, before and after padding."""
        return self.real_columns, len(self.widths) * self.images.shape[3]

    @property
    def padding_waste(self) -> float:
        """The part of the columns that is padding, in [0, 1)."""
        real, padded = self.count_columns()
        return 1.0 - real / padded if padded else 0.0

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
            described = f"images={_extent(self.images)}, targets={_extent(self.targets)}"
        except RuntimeError:
            described = "released"
        return f"ImageBatch(epoch={self.epoch}, step={self.step}, {described})"


def _extent(array: Any) -> Any:
    """Return the length of one dimension, the shape of more, or what ``map`` made instead."""
    shape = getattr(array, "shape", None)
    if shape is None:
        return array
    return shape[0] if len(shape) == 1 else list(shape)

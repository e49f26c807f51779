"""Mixup and CutMix: a batch's images and labels blended with those of partner rows.

Source: docs/transforms.md. Mixup: Zhang et al., ICLR 2018; CutMix: Yun et al., ICCV 2019. What is
changed: partners come from small blocks of the global batch, so that shards of whole blocks give
the rows of the unsharded batch; every row has a weight of its own; the weights' distribution is
limited to what exact arithmetic can draw.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.structure import field_of, name_of, replace, take
from onemodel._common.arguments import check_key, check_number
from onemodel._common.configured import Argument, Configured, configure
from onemodel._common.describe import shown
from onemodel._common.integers import check_integer
from onemodel._random.batch_rng import BatchRng
from onemodel._random.rng import SampleRng
from onemodel._simd.float_mode import DefaultFloatMode
from onemodel.transforms._mixup import cut_rows, mix_rows
from onemodel.transforms.layout import check_layout, image_format, rows_of

__all__ = ["CutMix", "Mixup"]

LARGEST_POWER = 16

Labels = NDArray[np.float32]


def power_of(alpha: float) -> int:
    """Return the k with alpha == 1 / k."""
    with DefaultFloatMode():  # as the division that gave alpha, whatever the thread was set to
        for k in range(1, LARGEST_POWER + 1):
            if alpha == 1.0 / k:
                return k
    raise ValueError(
        f"alpha must be 1 / k for an integer k in [1, {LARGEST_POWER}] (1.0, 0.5, 1 / 3, 0.25, "
        f"0.2, ..., 0.1, ..., 0.0625), got {shown(alpha)}"
    )


def blending_arguments(
    alpha: SupportsFloat, block: SupportsIndex, key: Any, label_key: Any
) -> dict[str, Any]:
    """Check the arguments that Mixup and CutMix share."""
    checked = check_number("alpha", alpha)
    power_of(checked)
    return {
        "alpha": checked,
        "block": check_integer("block", block, 1, 1 << 31),
        "key": check_key("key", key),
        "label_key": check_key("label_key", label_key),
    }


class Blending(Configured, ABC):
    """What Mixup and CutMix share: fields, partners, and the blend of the labels."""

    alpha: Argument[float] = Argument("alpha", "Of the weights' distribution Beta(alpha, alpha).")
    block: Argument[int] = Argument("block", "How many consecutive global slots exchange.")
    key: Argument[int | str | None] = Argument(
        "key", "Which array holds the images; None: the usual one."
    )
    label_key: Argument[int | str | None] = Argument(
        "label_key", "Which array holds the labels; None: the usual one."
    )

    def __call__(self, rng: SampleRng, batch: Any) -> Any:
        """Return the batch with its images and labels blended; the given arrays stay.

        Raises:
            TypeError, ValueError: if the arrays are not as the class describes.
        """
        key, label_key = self.key, self.label_key
        if not isinstance(rng, SampleRng):
            raise TypeError(
                "Argument 'rng' has incorrect type (expected onemodel._random.rng.SampleRng, "
                f"got {type(rng).__name__})"
            )
        generators = rng if isinstance(rng, BatchRng) else BatchRng(rng.next_u64())
        image_field = field_of(batch, key, 0)
        label_field = field_of(batch, label_key, 1)
        if image_field == label_field:
            raise ValueError(f"key and label_key must differ, got {image_field!r} for both")
        images = rows_of("images", take(batch, image_field))
        self._check_images(images)
        labels = rows_of("labels", take(batch, label_field))
        if labels.dtype != np.float32 or labels.ndim == 0:
            raise TypeError(
                f"{name_of(label_field)}, the labels, must be float32 rows (OneHot makes them), "
                f"got {labels.dtype} {list(labels.shape)}"
            )
        if len(images) != len(labels):
            raise ValueError(
                f"images and labels must have as many rows, got {len(images)} and {len(labels)}"
            )
        blended_images = generators.rent(images.shape, images.dtype)
        blended_labels = generators.rent(labels.shape, labels.dtype)
        self._blend(generators, images, blended_images, labels, blended_labels)
        batch = replace(batch, image_field, blended_images)
        return replace(batch, label_field, blended_labels)

    @abstractmethod
    def _check_images(self, images: NDArray[Any]) -> None:
        """Raise where the images are not as the class describes."""

    @abstractmethod
    def _blend(
        self,
        rng: BatchRng,
        images: NDArray[Any],
        result: NDArray[Any],
        labels: Labels,
        blended: Labels,
    ) -> None:
        """Fill ``result`` and ``blended``."""


class Mixup(Blending):
    """Each row blended with a partner's: ``x * w + x[partner] * (1 - w)``, labels alike.

    A row's partner is a row of the same block of ``block`` consecutive slots of the global
    batch, itself included, among those in this shard. So shards whose size is a
    multiple of block give the rows of the unsharded batch; a block that a shard's edge cuts
    chooses among fewer.

    Draws, for each row from its own generator: the partner, ``next_int(rows of the block)``;
    then w ~ Beta(alpha, alpha): with k = 1 / alpha repeat x = ``next_double`` to the k, y =
    ``next_double`` to the k, until 0 < x + y <= 1; w = x / (x + y) in float64, rounded to float32.

    Args:
        alpha: 1 / k for an integer k in [1, 16], such as 1.0, 0.5, 0.2 or 0.1.
        block: slots of the global batch that exchange, in [1, 2**31).
        key: which array holds the images, float32 rows of any shape; None for the first.
        label_key: which array holds the labels, float32 rows (see OneHot); None for the second.

    >>> import numpy as np
    >>> from onemodel._random.rng import SampleRng
    >>> x, y = np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32)
    >>> mixed, labels = Mixup(alpha=0.2)(SampleRng(0), (x, y))
    >>> np.array_equal(mixed, labels)
    True
    """

    def __init__(
        self,
        alpha: SupportsFloat = 1.0,
        block: SupportsIndex = 8,
        key: int | str | None = None,
        label_key: int | str | None = None,
    ) -> None:
        configure(self, Mixup, blending_arguments(alpha, block, key, label_key))

    def _check_images(self, images: NDArray[Any]) -> None:
        if images.dtype != np.float32 or images.ndim == 0:
            raise TypeError(
                "images must be float32 rows (Normalize makes them), got "
                f"{images.dtype} {list(images.shape)}"
            )

    def _blend(
        self,
        rng: BatchRng,
        images: NDArray[Any],
        result: NDArray[Any],
        labels: Labels,
        blended: Labels,
    ) -> None:
        mix_rows(rng, power_of(self.alpha), self.block, images, result, labels, blended)


class CutMix(Blending):
    """A box of each image replaced by a partner's; labels blended by the area that is left.

    Partners are chosen as in Mixup. The box has the centre (cy, cx), covers rows
    [cy - h // 2, cy + h // 2) and columns likewise, cut off at the image's edges. The row's
    weight is the share of pixels outside it: (H * W - area) / (H * W) in float64, rounded to
    float32.

    Draws, for each row from its own generator: partner and w as in Mixup; h = int(H * r) and
    w' = int(W * r) with r = sqrt(1 - w) in float64, where w is not rounded to float32; then cy =
    ``next_int(H)`` and cx = ``next_int(W)``.

    Args:
        alpha, block, key, label_key: as for Mixup; images are uint8 [H, W, C] or [H, W], or
            float32 [C, H, W] or [H, W].
        layout: "HWC" or "CHW", the axes of an image; None for the usual ones of its dtype.

    >>> import numpy as np
    >>> from onemodel._random.rng import SampleRng
    >>> x, y = np.zeros((8, 4, 4, 3), np.uint8), np.eye(8, dtype=np.float32)
    >>> CutMix()(SampleRng(0), (x, y))[1].sum(axis=1).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """

    layout: Argument[str | None] = Argument(
        "layout", "The axes of an image; None: those of its dtype."
    )

    def __init__(
        self,
        alpha: SupportsFloat = 1.0,
        block: SupportsIndex = 8,
        key: int | str | None = None,
        label_key: int | str | None = None,
        layout: str | None = None,
    ) -> None:
        arguments = blending_arguments(alpha, block, key, label_key)
        configure(self, CutMix, {**arguments, "layout": check_layout(layout)})

    def _check_images(self, images: NDArray[Any]) -> None:
        image_format(images.dtype, images.shape[1:], self.layout)

    def _blend(
        self,
        rng: BatchRng,
        images: NDArray[Any],
        result: NDArray[Any],
        labels: Labels,
        blended: Labels,
    ) -> None:
        image = image_format(images.dtype, images.shape[1:], self.layout)
        cut_rows(
            rng,
            power_of(self.alpha),
            self.block,
            images,
            result,
            labels,
            blended,
            image.height,
            image.width,
            image.item_bytes if image.planar else image.item_bytes * image.channels,
        )

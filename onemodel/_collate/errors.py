"""What collation says about a callable or a sample that did not keep to its contract."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.key import BatchKey
from onemodel._collate.inputs import CollateInputs
from onemodel._common.arrays import image_text
from onemodel._common.describe import describe

__all__ = ["augment_error", "too_wide_error"]


def augment_error(
    augment: Any,
    result: Any,
    image: NDArray[np.float32],
    shape: tuple[int, ...],
    slot: int,
    index: int,
) -> TypeError | ValueError:
    """Say what an augmentation did wrong that returned something or made its image another."""
    where = f"from {describe(augment)} at slot {slot} (dataset index {index})"
    if result is not None and result is not image:
        return TypeError(
            f"augment must edit its image in place and return None, got "
            f"{type(result).__name__} {where}"
        )
    return ValueError(
        f"augment must keep the image float32 {list(shape)}, got {image_text(image)} {where}"
    )


def too_wide_error(inputs: CollateInputs, most: int, key: BatchKey) -> ValueError:
    """Name the first slot whose image is wider than the batch is to be."""
    slot, width = next(
        (slot, inputs.width(slot)) for slot in range(inputs.count) if inputs.width(slot) > most
    )
    return ValueError(
        f"sample at slot {key.first_slot + slot} (dataset index {key.indices[slot]}): image must "
        f"have a width of at most {most} (pad_to), got {width}"
    )

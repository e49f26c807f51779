"""What collation says about a callable that did not keep to its contract."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._common.arrays import image_text
from onemodel._common.describe import describe

__all__ = ["augment_error"]


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

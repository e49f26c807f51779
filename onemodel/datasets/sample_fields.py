"""What the fields of a `Sample` may be, and what an error says of one that may not."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._common.arrays import as_c_contiguous, image_text, is_masked, read_only
from onemodel._common.integers import check_int32

__all__ = ["sample_fields", "shown"]


def shown(value: Any) -> Any:
    """Return what a sample shows of a field: of an array a read-only view, else the value."""
    if not isinstance(value, np.ndarray) or is_masked(value):
        return value
    if type(value) is np.ndarray and not value.flags.writeable:
        return value
    return read_only(value)


def sample_fields(image: Any, target: Any, label: Any) -> tuple[NDArray[np.int32], int] | Exception:
    """Return a sample's target and label as a batch holds them, or what is wrong with a field."""
    if not isinstance(image, np.ndarray) or is_masked(image):
        return TypeError(f"image must be a NumPy array, got {image_text(image)}")
    if image.dtype != np.float32 or not image.dtype.isnative:
        return TypeError(f"image must be float32, got {image.dtype}")
    if image.ndim != 3:
        return ValueError(f"image must have shape [C, H, W], got {list(image.shape)}")
    if 0 in image.shape:
        return ValueError(f"image must have C, H and W of at least 1, got {list(image.shape)}")
    if is_masked(target):
        return TypeError("target must be integers without a mask, got a masked array")
    try:
        symbols = np.asarray(target)
    except (TypeError, ValueError, OverflowError) as error:
        return TypeError(f"target must be integers: {error}, got {target!r}")
    if symbols.ndim != 1:
        return ValueError(f"target must have one dimension, got shape {symbols.shape}")
    if symbols.size and (symbols.dtype.kind not in "iu" or _holds_bool(target)):
        return TypeError(f"target must be integers that fit in int32, got {target!r}")
    if symbols.size and not (symbols.min() >= -(2**31) and symbols.max() < 2**31):
        return ValueError(
            f"target must fit in int32, got {int(symbols.min())} to {int(symbols.max())}"
        )
    try:
        return as_c_contiguous(symbols.astype(np.int32, copy=False)), check_int32("label", label)
    except (TypeError, ValueError) as error:
        return error


def _holds_bool(target: Any) -> bool:
    """Return whether True stood in a list, which an integer array made of it does not show."""
    if isinstance(target, np.ndarray):
        return False
    return any(isinstance(each, (bool, np.bool_)) for each in target)

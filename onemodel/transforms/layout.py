"""How rows of an array are read as images: by dtype, or as ``layout`` says.

Source: docs/transforms.md, sections "Images" and "Layout".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onemodel._common.arguments import check_unmasked
from onemodel._common.arrays import as_c_contiguous
from onemodel._common.describe import shown

__all__ = ["ImageFormat", "check_layout", "image_format", "rows_of"]

LAYOUTS = ("HWC", "CHW")

# What images usually have: gray, colours, colours with transparency.
USUAL_CHANNELS = (1, 3, 4)


class ImageFormat(NamedTuple):
    """What one row of an array of images is."""

    item_bytes: int  # 1: uint8, 4: float32
    planar: bool  # [C, H, W], a plane for each channel; else [H, W, C]
    flat: bool  # [H, W]: no axis for the one channel
    channels: int
    height: int
    width: int


def check_layout(value: Any) -> str | None:
    """Return the argument ``layout``.

    >>> check_layout("CHW"), check_layout(None)
    ('CHW', None)
    """
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"layout must be 'HWC', 'CHW' or None, got {shown(value)}")
    if value not in LAYOUTS:
        raise ValueError(f"layout must be 'HWC', 'CHW' or None, got {shown(value)}")
    return value


def image_format(dtype: Any, shape: tuple[int, ...], layout: str | None) -> ImageFormat:
    """Return how rows of this dtype and shape are read.

    Args:
        dtype: uint8, by default [H, W, C]; or float32, by default [C, H, W].
        shape: of one row; [H, W] is an image of one channel.
        layout: "HWC" or "CHW" for that reading; None for the default one, and an error where
            only the other has 1, 3 or 4 channels.

    Raises:
        TypeError, ValueError: if such rows are no images.

    >>> image_format(np.uint8, (32, 30, 3), None)
    ImageFormat(item_bytes=1, planar=False, flat=False, channels=3, height=32, width=30)
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.uint8, np.float32):
        raise TypeError(f"images must be uint8 [H, W, C] or float32 [C, H, W], got {dtype}")
    if len(shape) not in (2, 3):
        raise ValueError(f"images must be of rank 2 or 3, got rows of shape {tuple(shape)}")
    if 0 in shape:
        raise ValueError(f"images must have pixels, got rows of shape {tuple(shape)}")
    native = "HWC" if dtype == np.uint8 else "CHW"
    planar = (layout or native) == "CHW"
    if len(shape) == 2:
        return ImageFormat(dtype.itemsize, native == "CHW", True, 1, *shape)
    if layout is None:
        _check_guess(dtype, shape, native)
    if planar:
        return ImageFormat(dtype.itemsize, True, False, *shape)
    height, width, channels = shape
    return ImageFormat(dtype.itemsize, False, False, channels, height, width)


def _check_guess(dtype: Any, shape: tuple[int, ...], native: str) -> None:
    """Refuse a row that looks like an image only when its axes are read the other way."""
    first, last = shape[0], shape[2]
    channels, others, other = (last, first, "CHW") if native == "HWC" else (first, last, "HWC")
    if channels not in USUAL_CHANNELS and others in USUAL_CHANNELS:
        raise ValueError(
            f"images must be {dtype} [{', '.join(native)}], got rows of shape {tuple(shape)}, "
            f"which look like [{', '.join(other)}]: give layout={other!r} if they are that, "
            f"layout={native!r} if they have {channels} channels"
        )


def rows_of(name: str, value: Any) -> NDArray[Any]:
    """Return an array of a batch as kernels read it: aligned, C-contiguous, an np.ndarray.

    Raises:
        TypeError, ValueError: if it is no array, or has a mask.
    """
    check_unmasked(name, value)
    try:
        return as_c_contiguous(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"{name} must be an array, got {type(value).__name__}: {error}") from None

"""Checks of array arguments, on behalf of the row chain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["check_rows", "row_format"]


def row_format(dtype: Any, shape: tuple[int, ...]) -> tuple[bool, bool, int, int, int]:
    """Return whether rows are bytes and flat, and their height, width and channels.

    Raises:
        TypeError, ValueError: if rows of this dtype and shape are no images.
    """
    dtype = np.dtype(dtype)
    if dtype not in (np.uint8, np.float32):
        raise TypeError(f"images must be uint8 [H, W, C] or float32 [C, H, W], got {dtype}")
    if len(shape) not in (2, 3):
        raise ValueError(f"images must be of rank 2 or 3, got rows of shape {tuple(shape)}")
    if 0 in shape:
        raise ValueError(f"images must have pixels, got rows of shape {tuple(shape)}")
    if len(shape) == 2:
        return dtype == np.uint8, True, shape[0], shape[1], 1
    if dtype == np.uint8:
        return True, False, shape[0], shape[1], shape[2]
    return False, False, shape[1], shape[2], shape[0]


def check_rows(
    source: NDArray[Any],
    source_dtype: Any,
    source_shape: tuple[int, ...],
    result: NDArray[Any],
    dtype: Any,
    shape: tuple[int, ...],
) -> None:
    """Check what a row chain reads and writes.

    Raises:
        TypeError, ValueError: if an array has rows of another dtype, shape or layout, or the two
            share memory.
    """
    if source.dtype != source_dtype or source.shape[1:] != source_shape:
        raise TypeError(f"source must be rows {np.dtype(source_dtype)} {source_shape}")
    if result.dtype != dtype or result.shape[1:] != shape:
        raise TypeError(f"result must be rows {dtype} {shape}")
    if not (result.flags.c_contiguous and result.flags.writeable):
        raise ValueError("result must be C-contiguous and writable")
    if np.may_share_memory(source, result):
        raise ValueError("result must share no memory with source")
    if len(source) > 0 and not (source[0].flags.c_contiguous and source.flags.aligned):
        raise ValueError("source must have contiguous, aligned rows")

"""Array arguments: what NumPy makes of a value, looked at before a kernel reads its memory.

A kernel gets base-class arrays only. A subclass may say anything about its rank, dtype or flags.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onemodel._common.describe import shown

__all__ = ["as_c_contiguous", "check_out", "image_text", "is_masked", "plain_array", "read_only"]


def plain_array(name: str, values: Any) -> NDArray[Any]:
    """Return ``values`` as an array of the base class: the array's own memory where it is one.

    Raises:
        TypeError: if ``values`` is a masked array, whose mask would be lost, or text.
        ValueError: if ``values`` is a sequence whose parts have different lengths, or holds a
            number that no dtype holds.

    >>> plain_array("labels", [1, 2])
    array([1, 2])
    """
    if is_masked(values):
        raise TypeError(f"{name} must be an array without a mask, got a masked array")
    if isinstance(values, (str, bytes, bytearray)):
        raise TypeError(f"{name} must be an array, got {shown(values)}")
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(
            f"{name} must be an array, got a {type(values).__name__}: {error}"
        ) from None


def is_masked(values: Any) -> bool:
    """Return whether ``values`` is a masked array: the base class would lose its mask."""
    # in this order: `np.ma` is imported by its first use
    if type(values) is np.ndarray or not isinstance(values, np.ndarray):
        return False
    return isinstance(values, np.ma.MaskedArray)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view of the base class; the array itself stays as writable as it is."""
    view = np.asarray(array).view()
    view.flags.writeable = False
    return view


def as_c_contiguous(array: ArrayLike) -> NDArray[Any]:
    """Return the array or a copy, in C order and aligned: floats are read as floats."""
    array = np.asarray(array)
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    return array.copy(order="C")


def check_out(out: Any, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return ``out`` if a kernel can fill it as an array of that shape and dtype, or a new one.

    Of a subclass, an array of the base class on the same memory is returned.

    Raises:
        ValueError: if ``out`` is neither None nor such an array.
    """
    if out is None:
        return np.empty(shape, dtype)
    if isinstance(out, np.ndarray) and not is_masked(out):
        array = out if type(out) is np.ndarray else np.asarray(out)
        # carray: C-contiguous, aligned and writable
        if array.dtype == dtype and array.shape == shape and array.flags.carray:
            return array
    raise ValueError(
        f"out must be a writable, aligned, C-contiguous {np.dtype(dtype)} array "
        f"{list(shape)}, got {image_text(out)}"
    )


def image_text(image: Any) -> str:
    """Say what a sample's image is."""
    if is_masked(image):
        return f"a masked array {image.dtype} {list(image.shape)}"
    if isinstance(image, np.ndarray):
        return f"{image.dtype} {list(image.shape)}"
    return type(image).__name__

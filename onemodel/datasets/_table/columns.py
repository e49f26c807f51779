"""What the columns of an `ImageTable` must be: conversions between dtypes, checks of ranges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onemodel._common.arrays import plain_array
from onemodel._common.describe import shown
from onemodel._simd.pixels import bytes_to_planar
from onemodel._simd.scale_and_shift import channel_numbers, scale_and_shift


class Conversion(NamedTuple):
    """How uint8 pixels become float32: `p * scale - shift`, each float32 [C]."""

    mean: NDArray[np.float32]
    std: NDArray[np.float32]
    scale: NDArray[np.float32]
    shift: NDArray[np.float32]

    def to_float32(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Convert [C, H, W], each operation rounded to float32 and never fused."""
        result = np.empty(pixels.shape, np.float32)
        bytes_to_planar(pixels.transpose(1, 2, 0), self.scale, self.shift, result)
        return result

    def to_uint8(self, where: str, image: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Find the pixels whose conversion is `image` to the bit, or raise a ValueError."""
        scale = self.scale.astype(np.float64)[:, np.newaxis, np.newaxis]
        shift = self.shift.astype(np.float64)[:, np.newaxis, np.newaxis]
        with np.errstate(all="ignore"):
            nearest = np.rint((image + shift) / scale)
        # Not a number falls out here too: every comparison with it is false.
        inside = (nearest >= 0) & (nearest <= 255)
        pixels = np.where(inside, nearest, 0).astype(np.uint8)
        exact = self.to_float32(pixels).view(np.uint32) == image.view(np.uint32)
        if not exact.all():
            value = image[~exact][0]
            raise ValueError(
                f"{where}: with dtype uint8 every value must be p * scale - shift of a pixel p in "
                f"0..255 (here scale {self.scale.tolist()}, shift {self.shift.tolist()}), "
                f"got {value!r}"
            )
        return pixels


def conversion(
    mean: float | Sequence[float], std: float | Sequence[float], channels: int
) -> Conversion:
    """Work out scale and shift in float32, as `image.gray8_to_planar` does.

    Raises:
        ValueError: not one number or one a channel, not finite, or a `std` not above 0.
    """
    scale, shift = scale_and_shift(mean, std, channels)
    means = channel_numbers("mean", mean, channels)
    return Conversion(means, channel_numbers("std", std, channels), scale, shift)


def int32_column(name: str, values: ArrayLike) -> NDArray[np.int32]:
    """Return a flat int32 array, of `values` itself if it is one; numbers never wrap.

    Raises:
        TypeError: not integers.
        ValueError: not one-dimensional, or a number that does not fit in int32.
    """
    array = plain_array(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    if array.dtype == np.int32:
        return np.ascontiguousarray(array)
    if array.size == 0:
        return np.empty(0, dtype=np.int32)
    if array.dtype.kind not in "iu":
        # Integers beyond int64 and uint64 arrive here as Python objects.
        raise TypeError(f"{name} must hold integers that fit in int32, got dtype {array.dtype}")
    low, high = int(array.min()), int(array.max())
    if low < -(2**31) or high >= 2**31:
        raise ValueError(f"{name} must fit in int32, got values from {low} to {high}")
    return array.astype(np.int32)


def planar(where: str, image: Any) -> NDArray[Any]:
    """View a uint8 [H, W] or [H, W, 3] or a float32 [C, H, W] array as [C, H, W].

    Raises:
        TypeError, ValueError: anything else; the message starts with `where`.
    """
    if isinstance(image, np.ndarray):
        array = plain_array(where, image)
        if array.dtype == np.uint8 and array.ndim == 2:
            return array[np.newaxis]
        if array.dtype == np.uint8 and array.ndim == 3 and array.shape[2] == 3:
            return array.transpose(2, 0, 1)
        if array.dtype == np.float32 and array.ndim == 3:
            return array
    found = (
        f"{image.dtype} {list(image.shape)}"
        if isinstance(image, np.ndarray)
        else type(image).__name__
    )
    raise TypeError(
        f"{where}: must be an array, uint8 [H, W], uint8 [H, W, 3] or float32 [C, H, W], "
        f"got {found}"
    )


def offsets_of(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of the runs of these lengths starts, and where the last one ends."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def int64_column(name: str, values: ArrayLike, length: int | None = None) -> NDArray[np.int64]:
    """Return a flat int64 array, of `values` itself if it is one.

    Raises:
        TypeError: not integers, or ones that may not fit.
        ValueError: not one-dimensional, or of another length.
    """
    array = plain_array(name, values)
    if array.ndim != 1 or (length is not None and len(array) != length):
        expected = "one dimension" if length is None else f"shape ({length},)"
        raise ValueError(f"{name} must have {expected}, got shape {array.shape}")
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.dtype.kind not in "iu" or not np.can_cast(array.dtype, np.int64):
        raise TypeError(f"{name} must hold integers that fit in int64, got dtype {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.int64)


def pixel_column(pixels: NDArray[Any], elements: int) -> NDArray[Any]:
    """Return flat pixels as an array of the base class.

    Raises:
        TypeError: not uint8 or float32.
        ValueError: not flat and contiguous, or of another number of elements.
    """
    if not isinstance(pixels, np.ndarray) or pixels.dtype not in (np.uint8, np.float32):
        found = pixels.dtype if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise TypeError(f"pixels must be an array of uint8 or float32, got {found}")
    pixels = plain_array("pixels", pixels)
    if pixels.shape != (elements,) or not pixels.flags.c_contiguous:
        raise ValueError(
            f"pixels must be flat, contiguous and of C * H * (the sum of the widths) = {elements} "
            f"elements, got shape {pixels.shape}"
        )
    return pixels


def check_offsets(offsets: NDArray[np.int64], expected: NDArray[np.int64]) -> None:
    """Check that images lie one after another, without gaps.

    Raises:
        ValueError: naming the first offset that is another.
    """
    wrong = offsets != expected
    if wrong.any():
        k = int(wrong.argmax())
        raise ValueError(
            f"offsets[{k}] must be {expected[k]}, channels * height * the widths before, "
            f"got {offsets[k]}"
        )


def checked_names(names: Iterable[str], count: int) -> tuple[str, ...]:
    """Return one string an image.

    Raises:
        TypeError, ValueError: not strings, or of another number.
    """
    try:
        checked = None if isinstance(names, str | bytes) else tuple(names)
    except TypeError:
        checked = None
    if checked is None:
        raise TypeError(f"names must be strings, one an image, got {shown(names)}")
    if len(checked) != count:
        raise ValueError(f"names must be one an image, {count}, got {len(checked)}")
    for k, name in enumerate(checked):
        if not isinstance(name, str):
            raise TypeError(f"names[{k}] must be a string, got {shown(name)}")
    return checked

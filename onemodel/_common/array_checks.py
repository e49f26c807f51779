"""Checks of array arguments, on behalf of kernels.

Kernels look at memory and check what their loops rest on. What an error says about a whole array
is said here: Python in a compiled module is many times as large as its loops.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onemodel._common.describe import describe
from onemodel._common.integers import TWO_63, TWO_64, check_int32

__all__ = [
    "as_c_contiguous",
    "augment_error",
    "check_columns",
    "check_out",
    "image_text",
    "position_error",
    "positions_of",
    "sample_fields",
    "slice_of",
]

Integers = NDArray[np.integer[Any]]


def as_c_contiguous(array: ArrayLike) -> NDArray[Any]:
    """Return the array or a copy, in C order and aligned: floats are read as floats."""
    array = np.asarray(array)
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    return array.copy(order="C")


def positions_of(positions: ArrayLike, out: Any, n: int) -> NDArray[np.int64]:
    """Return positions in [0, n) as C-contiguous int64 that shares no memory with ``out``.

    Only what int64 cannot hold is out of range here; the kernel looks at the rest.
    """
    wanted = np.asarray(positions)
    if wanted.dtype.kind not in "iu":
        if wanted.size:
            raise TypeError(f"positions must be integers, got {wanted.dtype}")
        wanted = wanted.astype(np.int64)
    if wanted.dtype == np.uint64 and wanted.size and int(wanted.max()) >= TWO_63:
        raise IndexError(f"position must be in [0, {n}), got {int(wanted.max())}")
    if isinstance(out, np.ndarray) and np.may_share_memory(wanted, out):
        wanted = wanted.copy()
    return wanted.astype(np.int64, order="C", copy=False)


def position_error(positions: Integers, n: int) -> IndexError:
    """Say which of the positions is the first outside of [0, n)."""
    # none any more, if another thread has mended it
    wrong = next((each for each in positions.flat if not 0 <= each < n), "another")
    return IndexError(f"position must be in [0, {n}), got {wrong}")


def slice_of(positions: slice, n: int) -> tuple[int, int, int]:
    """Return first, step and count of a slice of n positions.

    The first two modulo 2**64: kernels go backwards by wrapping.
    """
    places = range(*positions.indices(n))
    return places.start % TWO_64, places.step % TWO_64, len(places)


def check_out(out: Any, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Return ``out`` if a kernel can fill it as an array of that shape and dtype, or a new one.

    Raises:
        ValueError: if ``out`` is neither None nor such an array.
    """
    if out is None:
        return np.empty(shape, dtype)
    if (
        not isinstance(out, np.ndarray)
        or out.dtype != dtype
        or out.shape != shape
        or not out.flags.carray  # C-contiguous, aligned and writable
    ):
        raise ValueError(
            f"out must be a writable, aligned, C-contiguous {np.dtype(dtype)} array "
            f"{list(shape)}, got {image_text(out)}"
        )
    return out


def check_columns(
    size: int,
    offsets: Integers,
    widths: Integers,
    targets: Integers,
    target_offsets: Integers,
    count: int,
    channels: int,
    height: int,
    scale: NDArray[np.float32],
    shift: NDArray[np.float32],
) -> None:
    """Check that the columns of a dataset describe ``count`` images with ``size`` pixels.

    Raises:
        ValueError: naming the column, and the first image that does not fit.
    """
    if count < 1 or channels < 1 or height < 1:
        raise ValueError(
            f"count, channels and height must be at least 1, got {count}, {channels} and {height}"
        )
    if len(scale) != channels or len(shift) != channels:
        raise ValueError(f"scale and shift must have one value for {channels} channels")
    if len(widths) != count or len(offsets) != count + 1 or len(target_offsets) != count + 1:
        raise ValueError(f"widths and offsets must describe {count} images")
    if offsets[0] != 0 or target_offsets[0] != 0:
        raise ValueError("offsets and target_offsets must start at 0")
    # by division: a product could wrap
    sizes, column = np.diff(offsets), min(channels * height, TWO_63 - 1)
    wrong_width = (widths < 1) | (widths >= 2**31)
    wrong_offset = (
        (offsets[1:] < offsets[:-1]) | (sizes % column != 0) | (sizes // column != widths)
    )
    falling = target_offsets[1:] < target_offsets[:-1]
    wrong = wrong_width | wrong_offset | falling
    if wrong.any():
        k = int(wrong.argmax())
        if wrong_width[k]:
            raise ValueError(f"widths[{k}] must be in [1, 2**31), got {widths[k]}")
        if wrong_offset[k]:
            raise ValueError(
                f"offsets[{k + 1}] must be offsets[{k}] + channels * height * widths[{k}], "
                f"got {offsets[k + 1]} after {offsets[k]}"
            )
        raise ValueError(f"target_offsets must not fall, got {target_offsets[k + 1]} at {k + 1}")
    if offsets[count] != size:
        raise ValueError(f"pixels must hold {offsets[count]} elements, got {size}")
    if target_offsets[count] != len(targets):
        raise ValueError(f"targets must hold {target_offsets[count]} symbols, got {len(targets)}")


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


def image_text(image: Any) -> str:
    """Say what a sample's image is."""
    if isinstance(image, np.ndarray):
        return f"{image.dtype} {list(image.shape)}"
    return type(image).__name__


def sample_fields(image: Any, target: Any, label: Any) -> tuple[NDArray[np.int32], int] | Exception:
    """Return a sample's target and label as a batch holds them, or what is wrong with a field."""
    if not isinstance(image, np.ndarray):
        return TypeError(f"image must be a NumPy array, got {type(image).__name__}")
    if image.dtype != np.float32 or not image.dtype.isnative:
        return TypeError(f"image must be float32, got {image.dtype}")
    if image.ndim != 3:
        return ValueError(f"image must have shape [C, H, W], got {list(image.shape)}")
    if 0 in image.shape:
        return ValueError(f"image must have C, H and W of at least 1, got {list(image.shape)}")
    try:
        symbols = np.asarray(target)
    except (TypeError, ValueError, OverflowError) as error:
        return TypeError(f"target must be integers: {error}, got {target!r}")
    if symbols.ndim != 1:
        return ValueError(f"target must have one dimension, got shape {symbols.shape}")
    if symbols.size and (symbols.dtype.kind not in "iu" or holds_bool(target)):
        return TypeError(f"target must be integers that fit in int32, got {target!r}")
    if symbols.size and not (symbols.min() >= -(2**31) and symbols.max() < 2**31):
        return ValueError(
            f"target must fit in int32, got {int(symbols.min())} to {int(symbols.max())}"
        )
    try:
        return np.ascontiguousarray(symbols, np.int32), check_int32("label", label)
    except (TypeError, ValueError) as error:
        return error


def holds_bool(target: Any) -> bool:
    """Return whether True stood in a list, which an integer array made of it does not show."""
    if isinstance(target, np.ndarray):
        return False
    return any(isinstance(each, (bool, np.bool_)) for each in target)

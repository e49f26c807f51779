"""Collect images, targets and labels into the columns of an `ImageTable`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from onemodel._common.arrays import plain_array
from onemodel._common.describe import shown
from onemodel._common.integers import check_int32
from onemodel.datasets._table.columns import (
    Conversion,
    conversion,
    int32_column,
    offsets_of,
    planar,
)
from onemodel.datasets.sample import Sample

Numbers = float | Sequence[float]


@runtime_checkable
class SampleDataset(Protocol):
    """A dataset of samples: as many as its length, by index."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Sample: ...


def columns_of_samples(
    samples: Iterable[Sample] | SampleDataset, dtype: DTypeLike, mean: Numbers, std: Numbers
) -> dict[str, Any]:
    """Do the work of `ImageTable.from_samples`."""
    try:
        chosen = np.dtype(dtype)
    except (TypeError, ValueError):  # also of numbers that can't be printed
        raise TypeError(f"dtype must be uint8 or float32, got {shown(dtype)}") from None
    if chosen not in (np.dtype(np.uint8), np.dtype(np.float32)):
        raise ValueError(f"dtype must be uint8 or float32, got {chosen}")
    writer = ColumnWriter(chosen, mean=mean, std=std)
    for position, sample in enumerate(in_order(samples)):
        where = f"sample {position}"
        try:
            image, target, label = sample.image, sample.target, sample.label
        except AttributeError:
            raise TypeError(f"{where}: must be a Sample, got {type(sample).__name__}") from None
        if isinstance(image, np.ndarray) and image.dtype != np.float32:
            raise TypeError(f"{where}: the image must have dtype float32, got {image.dtype}")
        writer.append(where, image, target, label)
    if not len(writer):
        raise ValueError("samples must be of at least 1 image, got 0")
    return writer.columns()


def columns_of_arrays(
    images: Sequence[NDArray[Any]] | NDArray[Any],
    targets: Sequence[ArrayLike] | None,
    labels: Sequence[int] | NDArray[Any] | None,
    mean: Numbers,
    std: Numbers,
) -> dict[str, Any]:
    """Do the work of `ImageTable.from_arrays`."""
    images = _sequence("images", images)
    count = len(images)
    targets = None if targets is None else _sequence("targets", targets)
    labels = None if labels is None else _sequence("labels", labels)
    for name, column in (("targets", targets), ("labels", labels)):
        if column is not None and len(column) != count:
            raise ValueError(f"{name} must be one an image, {count}, got {len(column)}")
    first = planar("image 0", images[0]) if count else np.empty(0, dtype=np.uint8)
    writer = ColumnWriter(first.dtype, mean=mean, std=std)
    for position in range(count):
        where = f"image {position}"
        pixels = planar(where, images[position])
        if pixels.dtype != first.dtype:
            raise TypeError(
                f"{where}: must have dtype {first.dtype} as the first image, got {pixels.dtype}"
            )
        target = () if targets is None else targets[position]
        writer.append(where, pixels, target, 0 if labels is None else labels[position])
    return writer.columns()


def _sequence(name: str, values: Any) -> Any:
    """Return what has a length and items from 0 on: of an array one of the base class."""
    if isinstance(values, np.ndarray) and values.ndim:
        return plain_array(name, values)
    known = hasattr(values, "__len__") and hasattr(values, "__getitem__")
    if not known or isinstance(values, np.ndarray | Mapping | str | bytes | type):
        raise TypeError(f"{name} must be a sequence, one item an image, got {shown(values)}")
    return values


def in_order(samples: Iterable[Sample] | SampleDataset) -> Iterator[Sample]:
    """Iterate over a dataset by its length, over anything else as it iterates itself.

    A dataset owes nobody an IndexError, on which Python's own iteration by index would rely.
    """
    try:
        if not isinstance(samples, Mapping | str | bytes):
            if isinstance(samples, SampleDataset):
                count = len(samples)
                return (samples[position] for position in range(count))
            return iter(samples)
    except TypeError:
        pass
    raise TypeError(f"samples must be a dataset or iterable of samples, got {shown(samples)}")


class GrowingArray:
    """A flat array that grows as it is written, with at most a quarter of it to spare."""

    def __init__(self, dtype: DTypeLike) -> None:
        self._array: NDArray[Any] = np.empty(0, dtype=dtype)
        self._used = 0

    def extend(self, values: NDArray[Any]) -> None:
        """Append `values`, flattened in C order."""
        stop = self._used + values.size
        if stop > self._array.size:
            # In place where the system can move pages: no second copy in memory. No one else has
            # seen the array, so the check of references would only see our own.
            self._array.resize(max(stop, stop * 5 // 4), refcheck=False)
        self._array[self._used : stop].reshape(values.shape)[...] = values
        self._used = stop

    def finish(self) -> NDArray[Any]:
        """Give the array away, cut to what was written."""
        array = self._array
        array.resize(self._used, refcheck=False)
        self._array, self._used = np.empty(0, dtype=array.dtype), 0
        return array


class ColumnWriter:
    """Collects planar images of one dtype, channel count and height, and their columns."""

    def __init__(
        self, dtype: DTypeLike, *, mean: float | Sequence[float], std: float | Sequence[float]
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.mean, self.std = mean, std
        self.channels = self.height = 0  # of the first image
        self._conversion: Conversion | None = None
        self._pixels = GrowingArray(dtype)
        self._targets = GrowingArray(np.int32)
        self._widths: list[int] = []
        self._target_lengths: list[int] = []
        self._labels: list[int] = []

    def __len__(self) -> int:
        return len(self._widths)

    def append(self, where: str, image: NDArray[Any], target: ArrayLike, label: int) -> None:
        """Add one image [C, H, W]; float32 ones become uint8 if that is the table's dtype.

        Raises:
            TypeError, ValueError: whatever does not fit; the message starts with `where`.
        """
        if isinstance(image, np.ndarray):
            image = plain_array(f"{where}: the image", image)
        if not isinstance(image, np.ndarray) or image.ndim != 3:
            found = list(image.shape) if isinstance(image, np.ndarray) else type(image).__name__
            raise ValueError(f"{where}: the image must be an array [C, H, W], got {found}")
        channels, height, width = image.shape
        if not len(self):
            if channels < 1 or height < 1:
                raise ValueError(f"{where}: C and H must be at least 1, got {list(image.shape)}")
            self.channels, self.height = channels, height
            self._conversion = conversion(self.mean, self.std, channels)
        if (channels, height) != (self.channels, self.height):
            raise ValueError(
                f"{where}: C and H must be {self.channels} and {self.height} as in the first "
                f"image, got {list(image.shape)}"
            )
        if not 1 <= width < 2**31:
            raise ValueError(f"{where}: the width must be in [1, 2**31), got {width}")
        if image.dtype != self.dtype:
            if image.dtype != np.float32 or self._conversion is None:
                raise TypeError(
                    f"{where}: the image must have dtype {self.dtype}, got {image.dtype}"
                )
            image = self._conversion.to_uint8(where, np.ascontiguousarray(image))
        target = int32_column(f"{where}: the target", target)
        label = check_int32(f"{where}: the label", label)
        self._pixels.extend(image)
        self._targets.extend(target)
        self._widths.append(width)
        self._target_lengths.append(target.size)
        self._labels.append(label)

    def columns(self) -> dict[str, Any]:
        """Give everything away, as the arguments of `ImageTable`.

        Raises:
            ValueError: no image was added.
        """
        if not len(self):
            raise ValueError("a table must have at least 1 image, got 0")
        return {
            "pixels": self._pixels.finish(),
            "widths": np.array(self._widths, dtype=np.int64),
            "channels": self.channels,
            "height": self.height,
            "targets": self._targets.finish(),
            "target_offsets": offsets_of(np.array(self._target_lengths, dtype=np.int64)),
            "labels": np.array(self._labels, dtype=np.int32),
            "mean": self.mean,
            "std": self.std,
        }

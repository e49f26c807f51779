"""All images of a dataset in one buffer, and their widths, targets and labels in columns."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from onemodel._common.integers import check_integer
from onemodel.datasets import table_files
from onemodel.datasets.columns import Columns
from onemodel.datasets.image_folder import Folder
from onemodel.datasets.sample import Sample
from onemodel.datasets.table_builder import (
    ColumnWriter,
    SampleDataset,
    columns_of_arrays,
    columns_of_samples,
)
from onemodel.datasets.table_columns import (
    conversion,
    frozen,
    int32_column,
    int64_column,
    offsets_of,
)


class ImageTable:
    """A columnar dataset of ragged images: one buffer of pixels, no Python object per image.

    Images share channels C and height H and have widths W_i of their own. `table[i]` is a
    `Sample`; a batch builder may instead read the columns, which never change:

    - `pixels` uint8 or float32, flat: image i is `pixels[offsets[i]:offsets[i + 1]]`, planar
      [C, H, W_i];
    - `offsets` int64 [n + 1], `widths` int64 [n] (also what `BucketedSampler` asks for);
    - `targets` int32, flat: target i is `targets[target_offsets[i]:target_offsets[i + 1]]`;
      `target_offsets` int64 [n + 1];
    - `labels` int32 [n];
    - `channels`, `height`, and float32 [C] each `mean`, `std`, `scale`, `shift`;
    - `names`: where each image came from, or None;
    - `columns`: all of it as the kernels' own `inputs.Columns`, by which `ImageBatchCollator`
      makes a batch without one object a sample.

    All columns are C-contiguous and read-only. Pixels of dtype uint8 become float32 when they are
    read, as `image.gray8_to_planar` and `image.rgb8_to_planar` do it: `p * scale - shift` with
    `scale = 1 / (255 * std)` and `shift = mean / std`, each operation rounded to float32. `mean`
    and `std` say nothing about float32 pixels, which are given out as they are.

    Make one with `from_samples`, `from_arrays`, `from_folder` or `open`.

    >>> import numpy as np
    >>> images = [np.full((2, 3), 51, dtype=np.uint8), np.zeros((2, 5), dtype=np.uint8)]
    >>> table = ImageTable.from_arrays(images, targets=[[7, 8], []], labels=[1, 2])
    >>> table
    ImageTable(2 images, [1, 2, 3..5], uint8, 16 bytes of pixels)
    >>> table[0]
    Sample(image=float32 [1, 2, 3], target of 2, label=1)
    >>> table.widths.tolist()
    [3, 5]
    """

    def __init__(
        self,
        pixels: NDArray[Any],
        widths: ArrayLike,
        *,
        channels: int,
        height: int,
        offsets: ArrayLike | None = None,
        targets: ArrayLike = (),
        target_offsets: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
        names: Iterable[str] | None = None,
    ) -> None:
        """Take columns as they are, without a copy where the dtype fits: do not change them later.

        Args:
            pixels: uint8 or float32, flat and contiguous, of sum(C * H * W_i) elements.
            widths: integers in [1, 2**31), one an image, at least one image.
            channels: C, at least 1.
            height: H, at least 1.
            offsets: C * H * (the sum of the widths before each image); None: worked out.
            targets: integers that fit in int32.
            target_offsets: integers from 0 to len(targets) that never fall, one more than images;
                None: every target is empty.
            labels: integers that fit in int32, one an image; None: all 0.
            mean: of uint8 pixels on the scale 0..1, one number or one a channel.
            std: likewise, above 0.
            names: where each image came from, one string an image.

        Raises:
            TypeError, ValueError: a column of another dtype, length or range; the message names
                the column, what was expected and what was found.
        """
        self.channels = check_integer("channels", channels, 1, 2**31)
        self.height = check_integer("height", height, 1, 2**31)
        self.widths = frozen(int64_column("widths", widths))
        count = len(self.widths)
        if not count:
            raise ValueError("a table needs at least 1 image, got 0")
        low, high = self.widths.min(), self.widths.max()
        if low < 1 or high >= 2**31:
            raise ValueError(f"widths must be in [1, 2**31), got {low} to {high}")

        # As Python integers, which do not wrap; the sums below cannot either after this.
        elements = int(self.widths.sum()) * self.channels * self.height
        self.pixels = _checked_pixels(pixels, elements)
        if offsets is None:
            offsets = offsets_of(self.widths * (self.channels * self.height))
        self.offsets = frozen(int64_column("offsets", offsets, count + 1))
        self.targets = frozen(int32_column("targets", targets))
        if target_offsets is None:
            target_offsets = np.zeros(count + 1, dtype=np.int64)
        self.target_offsets = frozen(int64_column("target_offsets", target_offsets, count + 1))
        labels = np.zeros(count, dtype=np.int32) if labels is None else labels
        self.labels = frozen(int32_column("labels", labels))
        if len(self.labels) != count:
            raise ValueError(f"labels must be one an image, {count}, got {len(self.labels)}")
        self.names = None if names is None else tuple(names)
        if self.names is not None and len(self.names) != count:
            raise ValueError(f"names must be one an image, {count}, got {len(self.names)}")

        self._conversion = conversion(mean, std, self.channels)
        self.mean = frozen(self._conversion.mean)
        self.std = frozen(self._conversion.std)
        self.scale = frozen(self._conversion.scale)
        self.shift = frozen(self._conversion.shift)
        # What the collation reads; it checks that the offsets fit the widths and the targets.
        self.columns = Columns(
            self.pixels,
            self.offsets,
            self.widths,
            self.targets,
            self.target_offsets,
            self.labels,
            self.channels,
            self.height,
            self.scale,
            self.shift,
        )

    @classmethod
    def from_samples(
        cls,
        samples: Iterable[Sample] | SampleDataset,
        *,
        dtype: DTypeLike = np.float32,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
    ) -> ImageTable:
        """Copy the samples of a dataset, or of any iterable of samples, into a table.

        With `dtype="uint8"` the pixels take a quarter of the memory, and nothing is lost: every
        value must be one that a uint8 pixel with this `mean` and `std` gives, to the bit.
        `std=256 / 255` fits images in steps of 1/256, such as those of `DigitLines`.

        Raises:
            TypeError, ValueError: no samples; a sample of another dtype, rank, channel count or
                height than the first, a zero width, a value that uint8 cannot give, a target or
                label that is not of integers within int32. The message names the sample.

        >>> from onemodel.datasets import DigitLines
        >>> lines = DigitLines(20)
        >>> table = ImageTable.from_samples(lines, dtype="uint8", std=256 / 255)
        >>> table[7].image.tobytes() == lines[7].image.tobytes()
        True
        """
        return cls(**columns_of_samples(samples, dtype, mean, std))

    @classmethod
    def from_arrays(
        cls,
        images: Sequence[NDArray[Any]] | NDArray[Any],
        targets: Sequence[ArrayLike] | None = None,
        labels: Sequence[int] | NDArray[Any] | None = None,
        *,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
    ) -> ImageTable:
        """Copy arrays into a table.

        Args:
            images: all uint8 [H, W_i] (gray), all uint8 [H, W_i, 3] (interleaved RGB), or all
                float32 [C, H, W_i]; strided views are welcome.
            targets: one sequence of integers an image; None: all empty.
            labels: one integer an image; None: all 0.
            mean: of uint8 pixels on the scale 0..1, one number or one a channel.
            std: likewise, above 0.

        Raises:
            TypeError, ValueError: no images, an image of another kind than the first, other
                numbers of targets or labels than of images; the message names the image.
        """
        return cls(**columns_of_arrays(images, targets, labels, mean, std))

    @classmethod
    def from_folder(
        cls,
        path: str | os.PathLike[str],
        *,
        height: int = 32,
        channels: int = 1,
        labels: str | os.PathLike[str] | None = None,
        alphabet: str | None = None,
        mean: float | Sequence[float] = 0.0,
        std: float | Sequence[float] = 1.0,
    ) -> ImageTable:
        """Decode a folder of images into a uint8 table; needs Pillow (`onemodel[images]`).

        Images are taken in the order of their relative paths, compared by code point, and scaled
        to `height` with their proportions kept; `onemodel.datasets.image_folder` says how, and
        what the labels file holds. The bytes are Pillow's and may change with its version: `save`
        the table to keep them. `names` holds the paths.

        Raises:
            ModuleNotFoundError: Pillow is missing.
            FileNotFoundError: there is no such folder or labels file.
            ValueError: no images, an image that cannot be read, an image without a line in the
                labels file; the message names the file. `onemodel pack` skips and reports instead.
        """
        source = Folder(path, height=height, channels=channels, labels=labels, alphabet=alphabet)
        writer = ColumnWriter(np.uint8, mean=mean, std=std)
        for name in source.names:
            target, label = source.target_and_label(name)
            writer.append(name, source.decode(name), target, label)
        return cls(**writer.columns(), names=source.names)

    @classmethod
    def open(cls, directory: str | os.PathLike[str], *, memory_map: bool = True) -> ImageTable:
        """Open a table that `save` or `onemodel pack` wrote.

        Args:
            directory: where it lies; `onemodel.datasets.table_files` describes the files.
            memory_map: map the columns, so that pixels are read when they are used; False reads
                everything into memory now.

        Raises:
            FileNotFoundError: no such directory, or a file is missing.
            ValueError: a file is foreign, truncated, of another version or at odds with another;
                the message names the file, what was expected and what was found.
        """
        place = Path(directory)
        manifest = table_files.read_manifest(place)
        columns: dict[str, Any] = {
            name: table_files.read_column(place, name, memory_map=memory_map)
            for name in table_files.COLUMNS
        }
        count = manifest["images"]
        if columns["widths"].shape != (count,):
            raise ValueError(
                f"{place / 'widths.npy'}: expected {count} images as the manifest says, "
                f"found shape {columns['widths'].shape}"
            )
        if table_files.NAMES in manifest["files"]:
            columns["names"] = table_files.read_names(place, count)
        settings = {name: manifest[name] for name in ("channels", "height", "mean", "std")}
        try:
            return cls(**columns, **settings)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{place}: expected columns that fit together: {error}") from error

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the table to a new directory, whole or not at all.

        Everything is written to a sibling first, brought to disk and then renamed, so that neither
        an exception nor a power cut leaves a part of a table under the name.

        Raises:
            FileExistsError: `directory` exists; nothing is ever overwritten.
            OSError: whatever the file system says; nothing is left behind.
        """
        with table_files.new_directory(Path(directory)) as place:
            for name in table_files.COLUMNS:
                table_files.write_column(place, name, getattr(self, name))
            if self.names is not None:
                table_files.write_json(place / table_files.NAMES, list(self.names))
            table_files.write_manifest(
                place,
                channels=self.channels,
                height=self.height,
                mean=self.mean.tolist(),
                std=self.std.tolist(),
            )

    def __len__(self) -> int:
        return len(self.widths)

    def __repr__(self) -> str:
        low, high = int(self.widths.min()), int(self.widths.max())
        width = low if low == high else f"{low}..{high}"
        return (
            f"ImageTable({len(self):,} images, [{self.channels}, {self.height}, {width}], "
            f"{self.pixels.dtype}, {self.pixels.nbytes:,} bytes of pixels)"
        )

    def __getitem__(self, index: int) -> Sample:
        count = len(self)
        try:
            position = check_integer("index", index, -count, count) % count
        except ValueError as error:
            raise IndexError(str(error)) from None
        pixels = self.pixels[self.offsets[position] : self.offsets[position + 1]]
        image = pixels.reshape(self.channels, self.height, -1)
        if image.dtype == np.uint8:
            image = self._conversion.to_float32(image)
        target = self.targets[self.target_offsets[position] : self.target_offsets[position + 1]]
        return Sample(image, target, int(self.labels[position]))


def _checked_pixels(pixels: NDArray[Any], elements: int) -> NDArray[Any]:
    if not isinstance(pixels, np.ndarray) or pixels.dtype not in (np.uint8, np.float32):
        found = pixels.dtype if isinstance(pixels, np.ndarray) else type(pixels).__name__
        raise TypeError(f"pixels must be an array of uint8 or float32, got {found}")
    if pixels.shape != (elements,) or not pixels.flags.c_contiguous:
        raise ValueError(
            f"pixels must be flat, contiguous and of C * H * (the sum of the widths) = {elements} "
            f"elements, got shape {pixels.shape}"
        )
    return frozen(pixels)

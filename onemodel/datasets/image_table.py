"""All images of a dataset in one buffer, and their widths, targets and labels in columns."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self, SupportsIndex, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from onemodel._common.arrays import read_only
from onemodel._common.describe import shown
from onemodel._common.files import check_path
from onemodel._common.integers import check_integer
from onemodel.datasets import table_files
from onemodel.datasets._table.builder import (
    ColumnWriter,
    SampleDataset,
    columns_of_arrays,
    columns_of_samples,
)
from onemodel.datasets._table.columns import (
    Conversion,
    check_offsets,
    checked_names,
    conversion,
    int32_column,
    int64_column,
    offsets_of,
    pixel_column,
)
from onemodel.datasets._table.parts import joined, part_of, pixel_runs
from onemodel.datasets.columns import Columns
from onemodel.datasets.image_folder import Folder
from onemodel.datasets.made_once import MadeOnce, remake
from onemodel.datasets.sample import Sample
from onemodel.datasets.split import checked_indices, split_indices


class ImageTable(MadeOnce):
    """A columnar dataset of ragged images: one buffer of pixels, no Python object per image.

    Images share channels C and height H and have widths W_i of their own. `table[i]` is a
    `Sample`; a batch builder may instead read the columns, which never change:

    - `pixels` uint8 or float32, flat: image i begins at `pixels[offsets[i]]`, planar [C, H, W_i];
    - `offsets` int64 [n + 1]; `offsets[n]` is where the last image ends. Images lie one after
      another, without gaps; but a part of a table shares the pixels of the whole;
    - `widths` int64 [n] (also what `BucketedSampler` asks for);
    - `targets` int32, flat: target i is `targets[target_offsets[i]:target_offsets[i + 1]]`;
      `target_offsets` int64 [n + 1];
    - `labels` int32 [n];
    - `channels`, `height`, and float32 [C] each `mean`, `std`, `scale`, `shift`;
    - `names`: where each image came from, or None;
    - `columns`: all of it as `Columns`, from which `ImageBatchCollator` makes a batch without one
      object a sample.

    All columns are C-contiguous and read-only, and no attribute can be set. Pixels of dtype uint8
    become float32 when they are read, as `image.gray8_to_planar` and `image.rgb8_to_planar` do it:
    `p * scale - shift` with `scale = 1 / (255 * std)` and `shift = mean / std`, each operation
    rounded to float32. `mean` and `std` say nothing about float32 pixels, which are given out as
    they are, as read-only views.

    Make one with `from_samples`, `from_arrays`, `from_folder` or `open`; of tables with slices,
    `take`, `split` and `concatenate`. A pickle holds the columns
    by value. Of a table that was opened with `memory_map` it holds the path.

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

    _own = frozenset({"_columns", "_conversion", "_names", "_directory", "_stored_digest"})

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
        """Take the columns: all but the pixels are copied; do not change those later.

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
        self._begin()
        channels = check_integer("channels", channels, 1, 2**31)
        height = check_integer("height", height, 1, 2**31)
        widths = int64_column("widths", widths)
        count = len(widths)
        if not count:
            raise ValueError("widths must be of at least 1 image, got 0")
        low, high = widths.min(), widths.max()
        if low < 1 or high >= 2**31:
            raise ValueError(f"widths must be in [1, 2**31), got {low} to {high}")

        # As Python integers, which do not wrap; the sums below cannot either after this.
        elements = int(widths.sum()) * channels * height
        pixels = pixel_column(pixels, elements)
        expected = offsets_of(widths * (channels * height))
        if offsets is not None:
            check_offsets(int64_column("offsets", offsets, count + 1), expected)
        if target_offsets is None:
            target_offsets = np.zeros(count + 1, dtype=np.int64)
        labels = int32_column("labels", np.zeros(count, np.int32) if labels is None else labels)
        if len(labels) != count:
            raise ValueError(f"labels must be one an image, {count}, got {len(labels)}")
        used = conversion(mean, std, channels)
        columns = Columns(
            pixels,
            expected,
            widths,
            int32_column("targets", targets),
            int64_column("target_offsets", target_offsets, count + 1),
            labels,
            channels,
            height,
            used.scale,
            used.shift,
        )
        self._set(columns, used, None if names is None else checked_names(names, count))

    def _set(self, columns: Columns, used: Conversion, names: tuple[str, ...] | None) -> None:
        self._conversion = Conversion(*(read_only(numbers) for numbers in used))
        self._names = names
        self._directory: str | None = None  # of a table that is mapped
        self._stored_digest: str | None = None  # of a table that was opened, and its parts
        self._columns = columns

    @property
    def columns(self) -> Columns:
        """All columns, as kernels read them."""
        return self._columns

    @property
    def channels(self) -> int:
        """C of every image."""
        return self._columns.channels

    @property
    def height(self) -> int:
        """H of every image."""
        return self._columns.height

    @property
    def pixels(self) -> NDArray[Any]:
        """The pixels of all images, uint8 or float32, flat."""
        return self._columns.arrays["pixels"]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each image begins in `pixels`, and where the last one ends, int64 [n + 1]."""
        return self._columns.arrays["offsets"]

    @property
    def widths(self) -> NDArray[np.int64]:
        """W of each image, int64 [n]."""
        return self._columns.arrays["widths"]

    @property
    def targets(self) -> NDArray[np.int32]:
        """The targets of all images, int32, flat."""
        return self._columns.arrays["targets"]

    @property
    def target_offsets(self) -> NDArray[np.int64]:
        """Where each target begins in `targets`, and where the last one ends, int64 [n + 1]."""
        return self._columns.arrays["target_offsets"]

    @property
    def labels(self) -> NDArray[np.int32]:
        """The label of each image, int32 [n]."""
        return self._columns.arrays["labels"]

    @property
    def mean(self) -> NDArray[np.float32]:
        """Of uint8 pixels on the scale 0..1, float32 [C]."""
        return self._conversion.mean

    @property
    def std(self) -> NDArray[np.float32]:
        """Of uint8 pixels on the scale 0..1, float32 [C]."""
        return self._conversion.std

    @property
    def scale(self) -> NDArray[np.float32]:
        """1 / (255 * std), float32 [C]."""
        return self._conversion.scale

    @property
    def shift(self) -> NDArray[np.float32]:
        """Mean / std, float32 [C]."""
        return self._conversion.shift

    @property
    def names(self) -> tuple[str, ...] | None:
        """Where each image came from."""
        return self._names

    @property
    def stored_digest(self) -> str | None:
        """What the manifest says of all bytes, SHA-256; a loader's state holds it.

        Of a part of an opened table it is made of that of the whole and the indices. None for a
        table that was not opened, and for one that was written without digests.
        """
        return self._stored_digest

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
        to `height` with their proportions kept; `onemodel.datasets.image_folder` says how, and what
        the labels file holds. The bytes are Pillow's and may change with its version: `save` the
        table to keep them. `names` holds the paths.

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

        Only the pixels are mapped; all other columns are read and checked. Pixels that are not in
        this machine's byte order (float32 on a big-endian machine) are read and converted now.

        A mapped file must stay as it is while the table is in use. If another program changes
        `pixels.npy`, so do the images (`onemodel check` finds that). If it is cut short, reading
        beyond its end stops the process with SIGBUS: the system gives a program no error to raise.

        Args:
            directory: where it lies; `onemodel.datasets.table_files` describes the files.
            memory_map: map the pixels, so that they are read when they are used; False reads
                everything into memory now.

        Raises:
            FileNotFoundError: no such directory, or a file is missing.
            ValueError: a file is foreign, damaged, truncated, of another version or at odds with
                another; the message names the file, what was expected and what was found.
        """
        if not isinstance(memory_map, bool | np.bool_):
            raise TypeError(f"memory_map must be a bool, got {shown(memory_map)}")
        place = check_path("directory", directory)
        columns, stored = table_files.read_table(place, memory_map=bool(memory_map))
        try:
            made = cls(**columns)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{place}: expected columns that fit together: {error}") from error
        made._stored_digest = stored
        if memory_map:
            made._directory = str(place.absolute())
        return made

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the table to a new directory, whole or not at all.

        Everything is written to a sibling first, brought to disk and then renamed, so that neither
        an exception nor a power cut leaves a part of a table under the name.

        Raises:
            FileExistsError: `directory` exists; nothing is ever overwritten.
            OSError: whatever the file system says; nothing is left behind.
        """
        sizes = self.widths * (self.channels * self.height)
        with table_files.new_directory(check_path("directory", directory)) as place:
            elements = int(sizes.sum())
            table_files.write_pixels(place, self.pixels.dtype, elements, pixel_runs(self._columns))
            table_files.write_column(place, "offsets", offsets_of(sizes))
            for name in ("widths", "targets", "target_offsets", "labels"):
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

    def take(self, indices: ArrayLike) -> Self:
        """Return a table of the images at `indices`, in their order; the pixels are shared.

        Args:
            indices: integers [n] in [0, len(self)), n at least 1, any of them also more than once.

        Raises:
            IndexError, TypeError, ValueError: if `indices` is not as described.

        >>> table = ImageTable.from_arrays(np.zeros((3, 2, 4), np.uint8), labels=[5, 6, 7])
        >>> table.take([2, 0]).labels.tolist(), table[1:].labels.tolist()
        ([7, 5], [6, 7])
        """
        places = checked_indices(indices, len(self))
        if not places.size:
            raise ValueError("indices must be at least 1, got 0: a table holds an image")
        names = self._names
        if names is not None:
            names = tuple([names[place] for place in places.tolist()])
        columns = part_of(self._columns, places)
        stored = self._stored_digest
        if stored is not None:
            content = stored.encode("ascii") + places.astype("<i8").tobytes()
            stored = hashlib.sha256(content).hexdigest()
        part: Self = remake(type(self), _fill, columns, self._conversion, names, stored)
        part.__dict__.update(self._added() or {})
        return part

    def split(self, seed: int, fractions: Sequence[float]) -> tuple[Self, ...]:
        """Return tables of random, disjoint parts of the images; the pixels are shared.

        Which images each part holds is a function of the length, seed and fractions. A part keeps
        the order of the table.

        Args:
            seed: in [0, 2**64).
            fractions: of all images, each above 0, of a sum up to 1; rounded as
                `datasets.split.split_indices` says.

        Raises:
            TypeError, ValueError: if an argument is not as described, or a part would be empty.

        >>> table = ImageTable.from_arrays(np.zeros((10, 2, 4), np.uint8))
        >>> [len(part) for part in table.split(0, (0.7, 0.2, 0.1))]
        [7, 2, 1]
        """
        return tuple(self.take(part) for part in split_indices(len(self), seed, fractions))

    @classmethod
    def concatenate(cls, tables: Iterable[ImageTable]) -> Self:
        """Return a table of the images of all `tables`, one after another; everything is copied.

        Names are kept if all tables have them.

        Raises:
            TypeError, ValueError: if there is none, or two differ in channels, height, dtype, mean
                or std.

        >>> table = ImageTable.from_arrays(np.zeros((3, 2, 4), np.uint8))
        >>> len(ImageTable.concatenate([table, table[:2]]))
        5
        """
        try:
            given = list(tables)
        except TypeError:
            raise TypeError(f"tables must be a sequence, got {type(tables).__name__}") from None
        for k, table in enumerate(given):
            if not isinstance(table, ImageTable):
                raise TypeError(f"tables[{k}] must be an ImageTable, got {type(table).__name__}")
            if table._kind() != given[0]._kind():
                raise ValueError(
                    f"tables[{k}] must have (channels, height, dtype, mean, std) "
                    f"{given[0]._kind()} as the first, got {table._kind()}"
                )
        if not given:
            raise ValueError("tables must be at least one, got none")
        names: list[str] | None = []
        for table in given:
            names = None if names is None or table.names is None else [*names, *table.names]
        return cls(
            **joined([table.columns for table in given]),
            channels=given[0].channels,
            height=given[0].height,
            mean=given[0].mean.tolist(),
            std=given[0].std.tolist(),
            names=names,
        )

    def _kind(self) -> tuple[Any, ...]:
        return (
            self.channels,
            self.height,
            self.pixels.dtype.name,
            self.mean.tolist(),
            self.std.tolist(),
        )

    def _recipe(self) -> tuple[Any, ...]:
        if self._directory is not None:
            return _fill_from_disk, self._directory
        return _fill, self._columns, self._conversion, self._names, self._stored_digest

    def __len__(self) -> int:
        return self._columns.count

    def __repr__(self) -> str:
        low, high = int(self.widths.min()), int(self.widths.max())
        width = low if low == high else f"{low}..{high}"
        return (
            f"ImageTable({len(self):,} images, [{self.channels}, {self.height}, {width}], "
            f"{self.pixels.dtype}, {self._pixel_bytes():,} bytes of pixels)"
        )

    def _pixel_bytes(self) -> int:
        return int(self.widths.sum()) * self.channels * self.height * self.pixels.itemsize

    @overload
    def __getitem__(self, index: SupportsIndex) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Sample | Self:
        """Return a sample (int), or the table of a slice, which shares the pixels.

        Raises:
            IndexError: if an integer is outside [-n, n), n the length.
            ValueError: if a slice holds no image.
        """
        count = len(self)
        if isinstance(index, slice):
            return self.take(np.arange(*index.indices(count)))
        try:
            position = check_integer("index", index, -count, count) % count
        except ValueError as error:
            raise IndexError(str(error)) from None
        columns = self._columns
        arrays = columns.arrays
        shape = (columns.channels, columns.height, int(arrays["widths"][position]))
        start = int(arrays["offsets"][position])
        image = arrays["pixels"][start : start + shape[0] * shape[1] * shape[2]].reshape(shape)
        if image.dtype == np.uint8:
            image = self._conversion.to_float32(image)
        first, stop = arrays["target_offsets"][position : position + 2]
        return Sample(image, arrays["targets"][first:stop], int(arrays["labels"][position]))


def _fill(
    made: ImageTable,
    columns: Columns,
    used: Conversion,
    names: tuple[str, ...] | None,
    stored_digest: str | None = None,
) -> None:
    """Make ``made`` from its pickled columns."""
    made._begin()
    made._set(columns, used, names)
    made._stored_digest = stored_digest


def _fill_from_disk(made: ImageTable, directory: str) -> None:
    """Make ``made`` from the directory that was pickled."""
    columns, stored = table_files.read_table(Path(directory), memory_map=True)
    ImageTable.__init__(made, **columns)
    made._stored_digest = stored
    made._directory = directory

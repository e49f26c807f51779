"""What a loader's sampler gives over whole epochs: widths, padding, and how often each index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._builders.sample_builder import columns_of
from onemodel._common.describe import shown
from onemodel._common.integers import check_integer
from onemodel.loader import DataLoader

__all__ = ["Inspection", "inspect_loader"]


@dataclass(frozen=True, eq=False)
class Inspection:
    """What ``inspect_loader`` counted. Arrays about widths are empty where nothing has a width.

    Attributes:
        sampler: the class of the sampler.
        epochs: how many were counted, from epoch 0 on.
        steps_per_epoch, batch_size: of the global batch.
        ranks: how many ranks share it.
        draws: int64 [n], how often each index was drawn.
        widths: int64 [n], the width of each item.
        padded: float64 [steps], the part of each step's pixel columns that is padding, each rank
            padded to its own widest item.
        rank_widths: float64 [ranks], the mean width of the items that each rank got.
        rank_columns: int64 [ranks], the pixel columns of each rank's batches with their padding.
    """

    sampler: str
    epochs: int
    steps_per_epoch: int
    batch_size: int
    ranks: int
    draws: NDArray[np.int64]
    widths: NDArray[np.int64]
    padded: NDArray[np.float64]
    rank_widths: NDArray[np.float64]
    rank_columns: NDArray[np.int64]

    @property
    def never_drawn(self) -> int:
        """How many indices were not drawn at all."""
        return int(np.count_nonzero(self.draws == 0))

    @property
    def padding_waste(self) -> float:
        """The part of all pixel columns that is padding, in [0, 1)."""
        columns = int(self.rank_columns.sum())
        return 1.0 - int((self.draws * self.widths).sum()) / columns if columns else 0.0

    def rows(self) -> list[tuple[str, str]]:
        """Return what was counted as (name, text), one for each line of a table."""
        per_epoch = self.draws / self.epochs
        rows = [
            ("items", f"{len(self.draws):,}"),
            ("steps an epoch", f"{self.steps_per_epoch:,} of {self.batch_size}"),
            ("epochs counted", f"{self.epochs}"),
            ("draws an epoch, mean", f"{per_epoch.mean():.3f}"),
            ("draws an epoch, least", f"{per_epoch.min():.3f}"),
            ("draws an epoch, most", f"{per_epoch.max():.3f}"),
            ("never drawn", f"{self.never_drawn:,}"),
        ]
        if not self.widths.size:
            return rows
        rows += [
            ("width, least", f"{self.widths.min():,}"),
            ("width, mean", f"{self.widths.mean():,.1f}"),
            ("width, most", f"{self.widths.max():,}"),
            ("width, mean drawn", f"{np.average(self.widths, weights=self.draws):,.1f}"),
            ("padding", f"{self.padding_waste:.1%}"),
            ("padding of a step, median", f"{np.median(self.padded):.1%}"),
            ("padding of a step, most", f"{self.padded.max():.1%}"),
        ]
        if self.ranks > 1:
            low, high = self.rank_widths.min(), self.rank_widths.max()
            rows.append(("mean width of the ranks", f"{low:,.1f} to {high:,.1f}"))
            work = self.rank_columns / self.rank_columns.mean()
            rows.append(("pixel columns of the ranks", f"{work.min():.1%} to {work.max():.1%}"))
        return rows

    def __str__(self) -> str:
        return "\n".join(f"{name:<28}{text:>20}" for name, text in self.rows())


def inspect_loader(loader: DataLoader, *, epochs: int = 1, ranks: int | None = None) -> Inspection:
    """Count over whole epochs what a loader's sampler gives; nothing is built.

    Widths are those of the dataset: its ``columns``, its attribute ``widths`` with one integer for
    each item, or else, on the sample face, those of its samples, which are read for it. What a
    transform does to them is not seen.

    Args:
        loader: any loader; of its shard only the world is looked at.
        epochs: from epoch 0 on, in [1, 2**20).
        ranks: among how many each global batch is cut; None for the world of the loader's shard.

    Raises:
        TypeError, ValueError: if an argument is not as described.

    >>> import onemodel as om
    >>> lines = om.datasets.DigitLines(64)
    >>> loader = om.DataLoader(lines, 16, shuffle=True, collate=om.ImageBatchCollator())
    >>> found = inspect_loader(loader, ranks=2)
    >>> found.draws.tolist() == [1] * 64, found.never_drawn
    (True, 0)
    >>> 0.2 < found.padding_waste < 0.6
    True
    """
    if not isinstance(loader, DataLoader):
        raise TypeError(f"loader must be a DataLoader, got {shown(loader)}")
    epochs = check_integer("epochs", epochs, 1, 2**20)
    size = loader.sampler.batch_size
    world = loader.shard[1] if ranks is None else check_integer("ranks", ranks, 1, 2**31)
    if size % world:
        raise ValueError(f"ranks must divide the batch_size {size}, got {world}")
    count = len(loader.dataset)
    widths = _widths(loader)
    multiple = getattr(loader.collate, "width_multiple", 1)
    steps = loader.steps_per_epoch
    draws = np.zeros(count, np.int64)
    padded = np.zeros(steps * epochs if widths.size else 0, np.float64)
    rank_widths, rank_items = np.zeros(world, np.int64), np.zeros(world, np.int64)
    rank_columns = np.zeros(world, np.int64)
    for number in range(steps * epochs):
        epoch, step = divmod(number, steps)
        indices = np.asarray(loader.sampler.batch_indices(loader.seed, epoch, step), np.int64)
        np.add.at(draws, indices, 1)
        if not widths.size:
            continue
        real = columns = 0
        for rank in range(world):
            own = indices[rank * len(indices) // world : (rank + 1) * len(indices) // world]
            if not own.size:
                continue
            wide = widths[own]
            whole = len(own) * (-(-int(wide.max()) // multiple) * multiple)
            rank_widths[rank] += int(wide.sum())
            rank_items[rank] += len(own)
            rank_columns[rank] += whole
            real, columns = real + int(wide.sum()), columns + whole
        padded[number] = 1.0 - real / columns if columns else 0.0
    return Inspection(
        type(loader.sampler).__name__,
        epochs,
        steps,
        size,
        world,
        draws,
        widths,
        padded,
        rank_widths / np.maximum(rank_items, 1),
        rank_columns,
    )


def _widths(loader: DataLoader) -> NDArray[np.int64]:
    """Return the width of each item, or an empty array."""
    dataset: Any = loader.dataset
    columns = columns_of(dataset)
    if columns is not None:
        return np.array(columns.arrays["widths"], np.int64)
    widths = getattr(dataset, "widths", None)
    if isinstance(widths, np.ndarray) and widths.shape == (len(dataset),):
        return widths.astype(np.int64)
    if loader.collate is None:
        return np.empty(0, np.int64)
    found = []
    for index in range(len(dataset)):
        shape: Any = getattr(getattr(dataset[index], "image", None), "shape", ())
        if len(shape) != 3:
            return np.empty(0, np.int64)
        found.append(shape[2])
    return np.array(found, np.int64)

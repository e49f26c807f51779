"""Parts of a table that share its pixels, and tables put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel.datasets._table.columns import offsets_of
from onemodel.datasets.columns import Columns

__all__ = ["joined", "part_of", "pixel_runs"]


def part_of(columns: Columns, places: NDArray[np.int64]) -> Columns:
    """Return the columns of the images at ``places``, at least one; the pixels are shared."""
    arrays = columns.arrays
    widths, starts = arrays["widths"][places], arrays["offsets"][places]
    end = starts[-1] + widths[-1] * (columns.channels * columns.height)
    lengths = np.diff(arrays["target_offsets"])[places]
    target_offsets = offsets_of(lengths)
    # symbol j of the part is symbol j + moved of the whole, one number for each target
    moved = np.repeat(
        arrays["target_offsets"][places] - target_offsets[:-1], lengths.astype(np.intp)
    )
    return Columns(
        arrays["pixels"],
        np.append(starts, end),
        widths,
        arrays["targets"][moved + np.arange(len(moved))],
        target_offsets,
        arrays["labels"][places],
        columns.channels,
        columns.height,
        arrays["scale"],
        arrays["shift"],
    )


def pixel_runs(columns: Columns) -> Iterator[NDArray[Any]]:
    """Yield the pixels of all images in their order, as few slices of the whole."""
    pixels, starts = columns.arrays["pixels"], columns.arrays["offsets"][:-1]
    ends = starts + columns.arrays["widths"] * (columns.channels * columns.height)
    breaks = np.flatnonzero(ends[:-1] != starts[1:])
    firsts = starts[np.append(0, breaks + 1)]
    stops = ends[np.append(breaks, len(ends) - 1)]
    for first, stop in zip(firsts.tolist(), stops.tolist(), strict=True):
        yield pixels[first:stop]


def joined(parts: Sequence[Columns]) -> dict[str, NDArray[Any]]:
    """Return the columns of all images, one after another, as arguments of `ImageTable`."""
    columns = {
        name: np.concatenate([part.arrays[name] for part in parts])
        for name in ("widths", "targets", "labels")
    }
    lengths = [np.diff(part.arrays["target_offsets"]) for part in parts]
    columns["target_offsets"] = offsets_of(np.concatenate(lengths))
    columns["pixels"] = np.concatenate([run for part in parts for run in pixel_runs(part)])
    return columns

"""``check_ctc``: which targets no CTC loss can fit into their images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._builders.sample_builder import columns_of
from onemodel._common.describe import shown
from onemodel._common.integers import check_integer

__all__ = ["CtcReport", "check_ctc"]

#: How many a report prints.
SHOWN = 10


@dataclass(frozen=True, eq=False)
class CtcReport:
    """The samples whose target does not fit; ``len`` counts them, ``print`` lists the first.

    Attributes:
        indices: int64 [n], their dataset indices, rising.
        needed: int64 [n], the frames that each target needs.
        available: int64 [n], the frames that each image gives.
        checked: how many samples were looked at.
    """

    indices: NDArray[np.int64]
    needed: NDArray[np.int64]
    available: NDArray[np.int64]
    checked: int

    def __len__(self) -> int:
        return len(self.indices)

    def __str__(self) -> str:
        lines = [f"{len(self)} of {self.checked} targets do not fit"]
        found = zip(self.indices, self.needed, self.available, strict=True)
        for (index, needed, available), _ in zip(found, range(SHOWN), strict=False):
            lines.append(f"index {index}: needs {needed} frames, has {available}")
        if len(self) > SHOWN:
            lines.append(f"and {len(self) - SHOWN} more")
        return "\n".join(lines)


def check_ctc(dataset: Any, *, downsample: int = 1) -> CtcReport:
    """Return the samples whose target no alignment of a CTC loss fits.

    CTC needs a frame for each symbol, and one for the blank between two equal neighbours. An image
    gives ``width // downsample`` frames. Where they are too few, the loss of that sample is
    infinite, or silently 0 with ``zero_infinity``.

    Columns (an ``ImageTable``) are checked at once; of another dataset each sample is read. What a
    transform does to widths or targets is not seen.

    Args:
        dataset: a dataset of samples: an ``ImageTable``, a list, or any with a length and
            ``dataset[i]``.
        downsample: pixel columns for one frame, in [1, 2**31).

    Raises:
        TypeError, ValueError: if an argument or an item is not as described.

    >>> import numpy as np
    >>> import onemodel as om
    >>> image = np.zeros((1, 8, 12), np.float32)
    >>> lines = [om.Sample(image, [1, 2, 3]), om.Sample(image, [5, 5, 1])]
    >>> report = check_ctc(lines, downsample=4)
    >>> print(report)
    1 of 2 targets do not fit
    index 1: needs 4 frames, has 3
    >>> report.indices.tolist()
    [1]
    """
    downsample = check_integer("downsample", downsample, 1, 2**31)
    columns = columns_of(dataset)
    if columns is not None:
        arrays = columns.arrays
        needed = _needed(arrays["targets"], arrays["target_offsets"])
        widths = arrays["widths"]
    else:
        needed, widths = _of_samples(dataset)
    available = widths // downsample
    indices = np.flatnonzero(needed > available).astype(np.int64)
    return CtcReport(indices, needed[indices], available[indices], len(widths))


def _needed(targets: NDArray[Any], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the frames that each target needs: its symbols and its equal neighbours."""
    repeats = np.zeros(len(targets) + 1, np.int64)  # [k]: of those before position k
    np.cumsum(targets[1:] == targets[:-1], out=repeats[2:] if len(targets) else repeats[1:])
    first, stop = offsets[:-1], offsets[1:]
    lengths = stop - first
    # a target's first symbol has its neighbour in another target
    inside = repeats[stop] - repeats[np.minimum(first + 1, stop)]
    return lengths + np.where(lengths > 0, inside, 0)


def _of_samples(dataset: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    try:
        count = len(dataset)
    except TypeError:
        raise TypeError(f"dataset must have a len, got {type(dataset).__name__}") from None
    if not hasattr(type(dataset), "__getitem__") or isinstance(dataset, Mapping | str | bytes):
        raise TypeError(f"dataset must give Samples by index, got {type(dataset).__name__}")
    needed, widths = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for index in range(count):
        sample = dataset[index]
        try:
            target, shape = np.asarray(sample.target), sample.image.shape
        except AttributeError:
            raise TypeError(
                f"dataset must give Samples, got {shown(sample)} at index {index}"
            ) from None
        if target.ndim != 1 or len(shape) != 3:
            raise ValueError(
                f"dataset must give images [C, H, W] and flat targets, got {list(shape)} and "
                f"{list(target.shape)} at index {index}"
            )
        needed[index] = len(target) + np.count_nonzero(target[1:] == target[:-1])
        widths[index] = shape[2]
    return needed, widths

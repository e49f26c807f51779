"""Image tables written on one machine and read on another.

python tables.py write FOLDER: write a table of bytes and one of floats.
python tables.py read FOLDER: print the digests of batches made from both, one a line.

The digests have to be the same wherever the tables were written and wherever they are read.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import onemodel as om
from onemodel.augment import GainOffset
from onemodel.datasets import DigitLines, ImageTable


def write(folder: Path) -> None:
    """Write both tables below ``folder``."""
    lines = DigitLines(60)
    ImageTable.from_samples(lines, dtype="uint8", std=256 / 255).save(folder / "bytes")
    ImageTable.from_samples(lines).save(folder / "floats")


def read(folder: Path) -> None:
    """Print the digests of what is below ``folder``."""
    for name in ("bytes", "floats"):
        for mapped in (True, False):
            table = ImageTable.open(folder / name, memory_map=mapped)
            loader = om.DataLoader(
                table,
                sampler=om.BucketedSampler(table.widths, 8),
                collate=om.ImageBatchCollator(width_multiple=4, augment=GainOffset()),
                seed=5,
            )
            subset = np.asarray(table[7].image)
            print(name, mapped, *(loader.digest(step) for step in (0, 3, 1000)), om.digest(subset))


if __name__ == "__main__":
    {"write": write, "read": read}[sys.argv[1]](Path(sys.argv[2]))

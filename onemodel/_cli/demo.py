"""`onemodel demo`: real, ragged text lines, batch by batch, under two samplers and from a table."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from onemodel._cli.exit_codes import SAME
from onemodel._collate.collator import ImageBatchCollator
from onemodel._collate.image_batch import ImageBatch
from onemodel._common.describe import shown
from onemodel._common.extras import require
from onemodel._common.files import check_path, check_writable
from onemodel._common.integers import check_integer, check_uint64
from onemodel._samplers.bucketing import BucketedSampler
from onemodel._samplers.samplers import Sampler, ShuffledSampler
from onemodel.augment import GainOffset
from onemodel.datasets import DigitLines, ImageTable
from onemodel.loader import DataLoader

__all__ = ["add_arguments", "demo", "run"]

HELP = "stream real text lines and show what came"
DESCRIPTION = (
    "Load an epoch of handwritten digit lines, shuffled, bucketed and from a table; print what "
    "came and write a contact sheet."
)

#: The steps whose digests are shown: the run's first two, and one that nobody has come to yet.
STEPS = (0, 1, 1000)
CONTACT_SHEET = "contact-sheet.png"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--out", default="onemodel-demo", metavar="DIR", help="default %(default)s")
    parser.add_argument("--count", type=int, default=6_000, help="lines; default %(default)s")
    parser.add_argument("--batch-size", type=int, default=32, help="default %(default)s")
    parser.add_argument("--workers", type=int, default=2, help="threads; default %(default)s")
    parser.add_argument("--seed", type=int, default=0, help="default %(default)s")


def run(parsed: argparse.Namespace) -> int:
    """Show the demo and return the exit code."""
    demo(
        parsed.out,
        count=parsed.count,
        batch_size=parsed.batch_size,
        workers=parsed.workers,
        seed=parsed.seed,
    )
    return SAME


class _Pass(NamedTuple):
    """What one epoch showed."""

    name: str
    batches: int
    images: int
    seconds: float
    waited: float
    padding_waste: float
    digests: tuple[str, ...]
    first: ImageBatch


def demo(
    directory: str | Path = "onemodel-demo",
    *,
    count: int = 6_000,
    batch_size: int = 32,
    workers: int = 2,
    seed: int = 0,
    output: TextIO | None = None,
) -> Path:
    """Load an epoch of `DigitLines`, shuffled, bucketed, and bucketed from an `ImageTable`.

    Prints progress bars (standard error) and a table, and writes a contact sheet of the first
    batch of each sampler. The lines are drawn in Python as they are asked for, which is what the
    first two passes wait for; the table holds them drawn, and gives the same digests. Needs tqdm
    and Pillow (`onemodel[demo]`).

    Args:
        directory: where the contact sheet goes; made if it is not there.
        count: lines in the dataset.
        batch_size: lines in a batch, at most `count`.
        workers: threads that build ahead.
        seed: of the loader.
        output: where the table goes; None for standard output.

    Returns:
        The path of the contact sheet.

    Raises:
        ModuleNotFoundError: an extra is missing; the message says what to install.
        NotADirectoryError, PermissionError: the contact sheet could not be written there.
        TypeError, ValueError: an argument out of its range.
    """
    count = check_integer("count", count, 1, 2**31)
    batch_size = check_integer("batch_size", batch_size, 1, count + 1)
    workers = check_integer("workers", workers, 0, 2**16)
    seed = check_uint64("seed", seed)
    if output is not None and not hasattr(output, "write"):
        raise TypeError(f"output must be a text file or None, got {shown(output)}")
    sheet = check_path("directory", directory) / CONTACT_SHEET
    # Before the work, not after it: where the sheet goes, and what draws it.
    check_writable("directory", sheet.parent)
    if sheet.is_dir():
        raise IsADirectoryError(f"{sheet} must be a file, got a directory")
    tqdm = require("tqdm", "demo")
    require("PIL.Image", "demo")
    output = sys.stdout if output is None else output
    lines = DigitLines(count)
    shuffled = ShuffledSampler(count, batch_size)
    bucketed = BucketedSampler(lines.widths, batch_size)
    print(
        f"{count:,} lines of handwritten digits, {int(lines.widths.min())} to "
        f"{int(lines.widths.max())} pixels wide, batches of {batch_size}, {workers} workers",
        file=output,
    )

    def load(name: str, dataset: DigitLines | ImageTable, sampler: Sampler) -> _Pass:
        augment = GainOffset(gain=(0.8, 1.2), offset=(-0.1, 0.1))
        collate = ImageBatchCollator(width_multiple=4, augment=augment)
        with DataLoader(
            dataset, sampler=sampler, collate=collate, seed=seed, workers=workers
        ) as loader:
            return _take_epoch(name, loader, tqdm.tqdm)

    passes = [load("shuffled", lines, shuffled), load("bucketed", lines, bucketed)]
    # Their pixels are whole steps of 1/256: as uint8 they take a quarter, and lose nothing.
    drawn = tqdm.tqdm(lines, desc="to a table", unit="line", leave=False, file=sys.stderr)
    table = ImageTable.from_samples(drawn, dtype=np.uint8, std=256 / 255)
    passes.append(load("bucketed, table", table, bucketed))
    _print_table(passes, output)
    sheet.parent.mkdir(parents=True, exist_ok=True)
    contact_sheet([(done.name, done.first) for done in passes[:2]]).save(sheet)
    print(f"\nThe first batch of both samplers: {sheet}", file=output)
    print("The digests are the same on every machine: try `onemodel verify`.", file=output)
    return sheet


def _take_epoch(name: str, loader: DataLoader, bar: Any) -> _Pass:
    """Take one epoch, and then single batches of steps that were not built before."""
    images = 0
    began = time.perf_counter()
    for batch in bar(loader, desc=name, unit="batch", leave=False, file=sys.stderr):
        images += len(batch)
        batch.release()
    seconds = time.perf_counter() - began
    stats = loader.stats
    return _Pass(
        name,
        stats.batches,
        images,
        seconds,
        stats.wait_seconds,
        stats.padding_waste,
        tuple(loader.digest(step) for step in STEPS),
        loader[0],
    )


def _print_table(passes: list[_Pass], output: TextIO) -> None:
    rows = [
        ("", *(done.name for done in passes)),
        ("batches", *(f"{done.batches:,}" for done in passes)),
        ("batches/s", *(f"{done.batches / done.seconds:,.0f}" for done in passes)),
        ("images/s", *(f"{done.images / done.seconds:,.0f}" for done in passes)),
        ("padding", *(f"{done.padding_waste:.1%}" for done in passes)),
        ("waited for batches", *(f"{done.waited:.2f} s" for done in passes)),
    ]
    for position, step in enumerate(STEPS):
        rows.append((f"digest of step {step}", *(done.digests[position][:16] for done in passes)))
    print(file=output)
    for label, *cells in rows:
        print(f"{label:<20}" + "".join(f"{cell:>20}" for cell in cells), file=output)


def contact_sheet(batches: list[tuple[str, ImageBatch]], *, rows: int = 16) -> Any:
    """Draw the first rows of batches side by side, their padding tinted and their targets beside.

    Args:
        batches: a title and a batch each, of one channel.
        rows: how many images of a batch to show at most.

    Returns:
        A `PIL.Image.Image` in RGB: ink is dark, the padding blue.
    """
    image_module = require("PIL.Image", "demo")
    draw_module = require("PIL.ImageDraw", "demo")
    gap, text = 8, 96
    height = batches[0][1].images.shape[2]
    panels = [text + batch.images.shape[3] + 2 * gap for _, batch in batches]
    shown = min(rows, max(len(batch) for _, batch in batches))
    size = sum(panels), (shown + 1) * (height + gap) + gap
    sheet = image_module.new("RGB", size, "white")
    draw = draw_module.Draw(sheet)
    left = gap
    for (title, batch), panel in zip(batches, panels, strict=True):
        draw.text((left, gap), f"{title}, padding {batch.padding_waste:.0%}", fill="black")
        ends = np.cumsum(batch.target_lengths)
        for row in range(min(rows, len(batch))):
            top = (row + 1) * (height + gap)
            symbols = batch.targets[ends[row] - batch.target_lengths[row] : ends[row]]
            # DigitLines adds one to each digit, so that 0 is free for the blank.
            digits = "".join(str(symbol - 1) for symbol in symbols.tolist())
            draw.text((left, top + height // 2 - 6), digits, fill="black")
            ink = np.clip(batch.images[row, 0], 0.0, 1.0)
            pixels = np.rint(255 * (1 - ink)).astype(np.uint8)[:, :, np.newaxis].repeat(3, axis=2)
            pixels[:, batch.widths[row] :] = (190, 210, 245)
            sheet.paste(image_module.fromarray(pixels), (left + text, top))
        left += panel
    return sheet

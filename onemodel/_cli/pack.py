"""`onemodel pack`: turn a folder of image files into an `ImageTable` on disk.

The work lies in a sibling of the table, `OUT.partial`, with the pixels so far and the journal
(`onemodel._cli.journal`), so that it can be interrupted. Pixels reach the disk before the journal's
lines that speak of them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onemodel._cli.exit_codes import DIFFERENT, SAME
from onemodel._cli.journal import (
    JOURNAL,
    Record,
    locked,
    npy_header,
    opened,
    resume,
    status_of,
    sync,
    write_records,
)
from onemodel._common.describe import shown
from onemodel._common.extras import require
from onemodel._common.files import check_path, check_writable
from onemodel.datasets import ImageTable, table_files
from onemodel.datasets._table.columns import Conversion, conversion, offsets_of
from onemodel.datasets.image_folder import FOLDERS, MAX_WIDTH, Folder

__all__ = ["PackReport", "add_arguments", "pack", "run"]

HELP = "turn a folder of images into an ImageTable on disk"
DESCRIPTION = (
    "Decode all images of a folder, scale them to one height and write them as an ImageTable. "
    "Interrupted, the same command goes on where it stopped. Exit code 1 if anything was left "
    "out, with a line of its reason for each file or folder; the table then holds all others."
)

# What an interruption without a chance to clean up may cost.
_FILES_PER_CHECKPOINT = 256
_BYTES_PER_CHECKPOINT = 64 * 2**20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("folder", metavar="FOLDER")
    parser.add_argument("out", metavar="OUT", help="a directory that does not exist yet")
    parser.add_argument("--height", type=int, default=32, help="default %(default)s")
    parser.add_argument("--channels", type=int, default=1, choices=(1, 3), help="gray or RGB")
    parser.add_argument(
        "--labels",
        metavar=f"FILE|{FOLDERS}",
        help="lines of: path, tab, target, and perhaps tab, label; or the word "
        f'"{FOLDERS}": each folder in FOLDER is a class, and its place in their order the label '
        f"(a file of that name: ./{FOLDERS})",
    )
    parser.add_argument(
        "--alphabet", metavar="TEXT", help="targets are text in these characters, from 1 on"
    )
    parser.add_argument(
        "--max-width",
        type=int,
        default=MAX_WIDTH,
        metavar="PIXELS",
        help="leave out what is wider when it is scaled; default %(default)s",
    )
    for name, default in (("mean", "0"), ("std", "1")):
        parser.add_argument(
            f"--{name}",
            type=_numbers,
            default=default,
            metavar="NUMBER[,NUMBER,NUMBER]",
            help="of the pixels on the scale 0..1, one or one a channel; default %(default)s",
        )


def run(parsed: argparse.Namespace) -> int:
    """Pack a folder, print what was left out, and return the exit code."""
    tqdm = require("tqdm", "images")
    with tqdm.tqdm(desc="pack", unit="image", file=sys.stderr, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        report = pack(
            parsed.folder,
            parsed.out,
            height=parsed.height,
            channels=parsed.channels,
            labels=parsed.labels,
            alphabet=parsed.alphabet,
            mean=parsed.mean,
            std=parsed.std,
            max_width=parsed.max_width,
            progress=progress,
        )
    if report.kept:
        print(f"{report.kept} files were done by an earlier run")
    for label, name in enumerate(report.classes):
        print(f"label {label}: {name!r}")
    print(f"{report.directory}: {ImageTable.open(report.directory)!r}")
    for _, reason in report.unreadable:
        print(f"left out: {reason}", file=sys.stderr)
    if report.unreadable:
        print(f"{len(report.unreadable)} files or folders were left out", file=sys.stderr)
    return DIFFERENT if report.unreadable else SAME


def _numbers(text: str) -> float | list[float]:
    numbers = [float(word) for word in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


class PackReport(NamedTuple):
    """What `pack` did."""

    directory: Path
    images: int  # in the table
    kept: int  # of all files, those that an earlier run had done
    unreadable: tuple[tuple[str, str], ...]  # relative path and reason of all that was left out
    classes: tuple[str, ...] = ()  # with labels="folders": the folder of label 0, 1, ...


def pack(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    height: int = 32,
    channels: int = 1,
    labels: str | os.PathLike[str] | None = None,
    alphabet: str | None = None,
    mean: float | Sequence[float] = 0.0,
    std: float | Sequence[float] = 1.0,
    max_width: int = MAX_WIDTH,
    progress: Callable[[int, int], None] | None = None,
) -> PackReport:
    """Write the images of a folder as a uint8 `ImageTable`; needs Pillow (`onemodel[images]`).

    The arguments are those of `ImageTable.from_folder`, whose table it writes, except that files
    that cannot be read, links that lead nowhere, links to folders and folders that cannot be
    listed are left out and reported. Interrupted, it keeps what is done in `OUT.partial`, and the
    same call goes on from there.

    Args:
        folder: the images.
        out: the directory to write; `ImageTable.open(out)` opens it.
        height: of every image in pixels.
        channels: 1 for gray, 3 for RGB.
        labels: the labels file or "folders", see `onemodel.datasets.image_folder`.
        alphabet: the characters of the targets.
        mean: of the pixels on the scale 0..1; kept for the conversion to float32.
        std: likewise.
        max_width: the widest scaled image; a wider one is left out.
        progress: called with (files done, all files) at the start and after each file.

    Raises:
        FileExistsError: `out` exists; nothing is ever overwritten.
        NotADirectoryError, PermissionError: `out` could not be made where it is to lie.
        FileNotFoundError, ModuleNotFoundError, TypeError, ValueError: as `ImageTable.from_folder`.
        ValueError: `OUT.partial` was begun with other settings or is at work, or no file at all
            could be read.
    """
    directory = check_path("out", out)
    if progress is not None and not callable(progress):
        raise TypeError(f"progress must be a callable or None, got {shown(progress)}")
    # Before the work, not after it.
    if os.path.lexists(directory):
        raise FileExistsError(f"{directory} exists already; remove it or choose another name")
    check_writable("out", directory.parent)
    source = Folder(
        folder,
        height=height,
        channels=channels,
        labels=labels,
        alphabet=alphabet,
        max_width=max_width,
        leave_out=True,
    )
    converted = conversion(mean, std, source.channels)
    settings = {
        "format": "onemodel._cli.pack",
        "version": 2,
        "folder": str(source.path.resolve()),
        "height": source.height,
        "channels": source.channels,
        "max_width": source.max_width,
        "pillow": str(require("PIL", "images").__version__),
    }
    partial = directory.with_name(directory.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    with locked(partial / JOURNAL) as journal, opened(partial / "pixels.npy") as pixels:
        records = resume(partial, journal, pixels, settings, source)
        kept = len(records)
        _decode(source, records, journal, pixels, progress or (lambda done, total: None))
        good = [record for record in records if record.width]
        if not good:
            raise ValueError(
                f"{folder}: none of {len(records)} files could be read, "
                f"first {records[0].name}: {records[0].error}"
            )
        elements = sum(record.width for record in good) * source.channels * source.height
        pixels.seek(0)
        pixels.write(npy_header(elements))
        sync(pixels)
        _write_columns(partial, source, good, converted)
    table_files.publish(partial, directory)
    (directory / JOURNAL).unlink()  # last: until here it could still be needed
    bad = [(record.name, record.error) for record in records if not record.width]
    left_out = tuple(sorted([*bad, *source.left_out]))
    return PackReport(directory, len(good), kept, left_out, tuple(source.classes))


def _write_columns(partial: Path, source: Folder, good: list[Record], used: Conversion) -> None:
    """Write all that stands beside the pixels, and the manifest last."""
    targets = [source.target_and_label(record.name) for record in good]
    widths = np.array([record.width for record in good], dtype=np.int64)
    columns: dict[str, NDArray[Any]] = {
        "widths": widths,
        "offsets": offsets_of(widths * (source.channels * source.height)),
        "targets": np.array([symbol for target, _ in targets for symbol in target], dtype=np.int32),
        "target_offsets": offsets_of(np.array([len(t) for t, _ in targets], dtype=np.int64)),
        "labels": np.array([label for _, label in targets], dtype=np.int32),
    }
    # What is left of a run that was cut off right here goes first.
    for leftover in (*(f"{name}.npy" for name in columns), table_files.NAMES, table_files.MANIFEST):
        (partial / leftover).unlink(missing_ok=True)
    for name, column in columns.items():
        table_files.write_column(partial, name, column)
    table_files.write_json(partial / table_files.NAMES, [record.name for record in good])
    table_files.write_manifest(
        partial,
        channels=source.channels,
        height=source.height,
        mean=used.mean.tolist(),
        std=used.std.tolist(),
    )


def _decode(
    source: Folder,
    records: list[Record],
    journal: IO[bytes],
    pixels: IO[bytes],
    progress: Callable[[int, int], None],
) -> None:
    """Decode the files behind those in `records`, and bring each to disk and into `records`."""
    total = len(source.names)
    progress(len(records), total)
    waiting: list[Record] = []
    waiting_bytes = 0

    def checkpoint() -> None:
        sync(pixels)
        write_records(journal, waiting)
        records.extend(waiting)
        waiting.clear()

    try:
        for name in source.names[len(records) :]:
            size, changed = status_of(source.path / name)
            try:
                image = source.decode(name)
            except ValueError as error:
                record = Record(name, size, changed, 0, str(error))
            else:
                content = image.tobytes()
                pixels.write(content)
                waiting_bytes += len(content)
                width = image.shape[2]
                record = Record(name, size, changed, width, "")
            waiting.append(record)
            if len(waiting) >= _FILES_PER_CHECKPOINT or waiting_bytes >= _BYTES_PER_CHECKPOINT:
                checkpoint()
                waiting_bytes = 0
            progress(len(records) + len(waiting), total)
    finally:
        checkpoint()

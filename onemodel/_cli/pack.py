"""Turn a folder of image files into an `ImageTable` on disk, so that it can be interrupted.

The work lies in a sibling of the table, `OUT.partial`, with the pixels so far and a journal: one
JSON line for the settings and one for each file done, with its size and time of change. Pixels
reach the disk before the lines that speak of them. On the next run the longest run of lines that
still fits the folder is kept, so that a table made in ten runs has the bytes of one made in one.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onemodel._common.extras import require
from onemodel.datasets import table_files
from onemodel.datasets.image_folder import Folder
from onemodel.datasets.table_columns import Conversion, conversion, offsets_of

__all__ = ["PackReport", "pack"]

_JOURNAL = "journal.jsonl"
_HEADER_BYTES = 128  # of pixels.npy: enough for any count, and the pixels start aligned
# What an interruption without a chance to clean up may cost.
_FILES_PER_CHECKPOINT = 256
_BYTES_PER_CHECKPOINT = 64 * 2**20


class PackReport(NamedTuple):
    """What `pack` did."""

    directory: Path
    images: int  # in the table
    kept: int  # of all files, those that an earlier run had done
    unreadable: tuple[tuple[str, str], ...]  # relative path and reason


class _Record(NamedTuple):
    """One line of the journal: a file that is done."""

    name: str
    size: int
    changed: int  # st_mtime_ns
    width: int  # 0: unreadable
    error: str


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
    progress: Callable[[int, int], None] | None = None,
) -> PackReport:
    """Write the images of a folder as a uint8 `ImageTable`; needs Pillow (`onemodel[images]`).

    The arguments are those of `ImageTable.from_folder`, whose table it writes, except that files
    that cannot be read are left out and reported. Interrupted, it keeps what is done in
    `OUT.partial`, and the same call goes on from there.

    Args:
        folder: the images.
        out: the directory to write; `ImageTable.open(out)` opens it.
        height: of every image in pixels.
        channels: 1 for gray, 3 for RGB.
        labels: the labels file, see `onemodel.datasets.image_folder`.
        alphabet: the characters of the targets.
        mean: of the pixels on the scale 0..1; kept for the conversion to float32.
        std: likewise.
        progress: called with (files done, all files) at the start and after each file.

    Raises:
        FileExistsError: `out` exists; nothing is ever overwritten.
        FileNotFoundError, ModuleNotFoundError, ValueError: as `ImageTable.from_folder`.
        ValueError: `OUT.partial` was begun with other settings or is at work, or no file at all
            could be read.
    """
    directory = Path(out)
    if directory.exists():
        raise FileExistsError(f"{directory} exists already; remove it or choose another name")
    source = Folder(folder, height=height, channels=channels, labels=labels, alphabet=alphabet)
    converted = conversion(mean, std, channels)
    settings = {
        "format": "onemodel._cli.pack",
        "version": 1,
        "folder": str(Path(folder).resolve()),
        "height": source.height,
        "channels": channels,
        "pillow": str(require("PIL", "images").__version__),
    }
    partial = directory.with_name(directory.name + ".partial")
    partial.mkdir(parents=True, exist_ok=True)
    with _locked(partial / _JOURNAL) as journal, _opened(partial / "pixels.npy") as pixels:
        records = _resume(partial, journal, pixels, settings, source)
        kept = len(records)
        _decode(source, records, journal, pixels, progress or (lambda done, total: None))
        good = [record for record in records if record.width]
        if not good:
            raise ValueError(
                f"{folder}: none of {len(records)} files could be read, "
                f"first {records[0].name}: {records[0].error}"
            )
        elements = sum(record.width for record in good) * channels * source.height
        pixels.seek(0)
        pixels.write(_npy_header(elements))
        _sync(pixels)
        _write_columns(partial, source, good, converted)
    table_files.publish(partial, directory)
    (directory / _JOURNAL).unlink()  # last: until here it could still be needed
    bad = tuple((record.name, record.error) for record in records if not record.width)
    return PackReport(directory, len(good), kept, bad)


def _write_columns(partial: Path, source: Folder, good: list[_Record], used: Conversion) -> None:
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
    records: list[_Record],
    journal: IO[bytes],
    pixels: IO[bytes],
    progress: Callable[[int, int], None],
) -> None:
    """Decode the files behind those in `records`, and bring each to disk and into `records`."""
    total = len(source.names)
    progress(len(records), total)
    waiting: list[_Record] = []
    waiting_bytes = 0

    def checkpoint() -> None:
        _sync(pixels)
        for record in waiting:
            journal.write(json.dumps(record).encode() + b"\n")
        _sync(journal)
        records.extend(waiting)
        waiting.clear()

    try:
        for name in source.names[len(records) :]:
            status = (source.path / name).stat()
            try:
                image = source.decode(name)
            except ValueError as error:
                record = _Record(name, status.st_size, status.st_mtime_ns, 0, str(error))
            else:
                content = image.tobytes()
                pixels.write(content)
                waiting_bytes += len(content)
                width = image.shape[2]
                record = _Record(name, status.st_size, status.st_mtime_ns, width, "")
            waiting.append(record)
            if len(waiting) >= _FILES_PER_CHECKPOINT or waiting_bytes >= _BYTES_PER_CHECKPOINT:
                checkpoint()
                waiting_bytes = 0
            progress(len(records) + len(waiting), total)
    finally:
        checkpoint()


def _resume(
    partial: Path,
    journal: IO[bytes],
    pixels: IO[bytes],
    settings: dict[str, Any],
    source: Folder,
) -> list[_Record]:
    """Read what an earlier run has done and cut both files behind the part that still holds."""
    lines = journal.read().splitlines(keepends=True)
    records: list[_Record] = []
    if lines and lines[0].endswith(b"\n"):
        _check_settings(partial, lines[0], settings)
    else:
        lines = [json.dumps(settings).encode() + b"\n"]
        journal.seek(0)
        journal.write(lines[0])
    size = len(lines[0])
    available = os.fstat(pixels.fileno()).st_size - _HEADER_BYTES
    used = 0
    for line, name in zip(lines[1:], source.names, strict=False):
        record = _record_of(line)
        if record is None or record.name != name:
            break
        status = (source.path / name).stat()
        if (status.st_size, status.st_mtime_ns) != (record.size, record.changed):
            break
        if used + record.width * source.channels * source.height > available:
            break
        used += record.width * source.channels * source.height
        size += len(line)
        records.append(record)
    journal.truncate(size)
    journal.seek(size)
    pixels.truncate(_HEADER_BYTES + used)
    pixels.seek(_HEADER_BYTES + used)
    return records


def _check_settings(partial: Path, line: bytes, settings: dict[str, Any]) -> None:
    try:
        begun = json.loads(line)
    except ValueError:
        begun = {}
    for name, value in settings.items():
        found = begun.get(name) if isinstance(begun, dict) else None
        if found != value:
            raise ValueError(
                f"{partial}: was begun with {name} {found!r}, not {value!r}; "
                "use the same settings or remove it"
            )


def _record_of(line: bytes) -> _Record | None:
    """Return the record of a journal line; None if the line was cut off."""
    try:
        name, size, changed, width, error = json.loads(line)
    except ValueError:
        return None
    return _Record(name, size, changed, width, error) if line.endswith(b"\n") else None


def _npy_header(elements: int) -> bytes:
    """Make the header of a flat uint8 `.npy` file of format 1.0, padded to a fixed length.

    NumPy's own writer pads to its taste, and the pixels already stand behind this length.
    """
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({elements},), }}"
    prefix = b"\x93NUMPY\x01\x00" + (_HEADER_BYTES - 10).to_bytes(2, "little")
    return prefix + text.ljust(_HEADER_BYTES - 11).encode("ascii") + b"\n"


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _opened(path: Path) -> IO[bytes]:
    """Open for reading and writing, made if it is not there."""
    path.touch()
    return open(path, "r+b")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that one process at a time may hold, where the system has such locks."""
    with _opened(path) as file:
        try:
            import fcntl
        except ModuleNotFoundError:
            yield file
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ValueError(f"{path.parent}: another process is packing there") from None
        yield file

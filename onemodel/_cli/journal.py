"""The journal of `onemodel pack`: what is done, so that another run goes on behind it.

One JSON line for the settings and one for each file done, with its size and time of change. On the
next run the longest run of lines that still fits the folder is kept, so that a table made in ten
runs has the bytes of one made in one.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from onemodel._common.files import parse_json
from onemodel.datasets.image_folder import Folder

__all__ = [
    "HEADER_BYTES",
    "JOURNAL",
    "Record",
    "locked",
    "npy_header",
    "opened",
    "resume",
    "status_of",
    "sync",
    "write_records",
]

JOURNAL = "journal.jsonl"
HEADER_BYTES = 128  # of pixels.npy: enough for any count, and the pixels start aligned


class Record(NamedTuple):
    """One line of the journal: a file that is done."""

    name: str
    size: int  # -1: it could not be reached
    changed: int  # st_mtime_ns
    width: int  # 0: unreadable
    error: str


def status_of(path: Path) -> tuple[int, int]:
    """Return a file's size and time of change; (-1, -1) if it cannot be reached any more."""
    try:
        status = path.stat()
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns


def write_records(journal: IO[bytes], records: Iterable[Record]) -> None:
    """Write the lines of files that are done, and bring them to disk."""
    for record in records:
        journal.write(json.dumps(record).encode() + b"\n")
    sync(journal)


def resume(
    partial: Path,
    journal: IO[bytes],
    pixels: IO[bytes],
    settings: dict[str, Any],
    source: Folder,
) -> list[Record]:
    """Read what an earlier run has done and cut both files behind the part that still holds.

    Raises:
        ValueError: the earlier run had other settings.
    """
    lines = journal.read().splitlines(keepends=True)
    records: list[Record] = []
    if lines and lines[0].endswith(b"\n"):
        _check_settings(partial, lines[0], settings)
    else:
        lines = [json.dumps(settings).encode() + b"\n"]
        journal.seek(0)
        journal.write(lines[0])
    size = len(lines[0])
    available = os.fstat(pixels.fileno()).st_size - HEADER_BYTES
    used = 0
    for line, name in zip(lines[1:], source.names, strict=False):
        record = _record_of(line)
        if record is None or record.name != name:
            break
        if status_of(source.path / name) != (record.size, record.changed):
            break
        if used + record.width * source.channels * source.height > available:
            break
        used += record.width * source.channels * source.height
        size += len(line)
        records.append(record)
    journal.truncate(size)
    journal.seek(size)
    pixels.truncate(HEADER_BYTES + used)
    pixels.seek(HEADER_BYTES + used)
    return records


def _check_settings(partial: Path, line: bytes, settings: dict[str, Any]) -> None:
    try:
        begun = parse_json(line)
    except ValueError:
        begun = {}
    for name, value in settings.items():
        found = begun.get(name) if isinstance(begun, dict) else None
        if found != value:
            raise ValueError(
                f"{partial}: was begun with {name} {found!r}, not {value!r}; "
                "use the same settings or remove it"
            )


def _record_of(line: bytes) -> Record | None:
    """Return the record of a journal line; None if the line was cut off."""
    try:
        name, size, changed, width, error = parse_json(line)
    except ValueError:
        return None
    return Record(name, size, changed, width, error) if line.endswith(b"\n") else None


def npy_header(elements: int) -> bytes:
    """Make the header of a flat uint8 `.npy` file of format 1.0, padded to a fixed length.

    NumPy's own writer pads to its taste, and the pixels already stand behind this length.
    """
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({elements},), }}"
    prefix = b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
    return prefix + text.ljust(HEADER_BYTES - 11).encode("ascii") + b"\n"


def sync(file: IO[bytes]) -> None:
    """Bring what was written to disk."""
    file.flush()
    os.fsync(file.fileno())


def opened(path: Path) -> IO[bytes]:
    """Open for reading and writing, made if it is not there."""
    path.touch()
    return open(path, "r+b")


@contextlib.contextmanager
def locked(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that one process at a time may hold, where the system has such locks."""
    with opened(path) as file:
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

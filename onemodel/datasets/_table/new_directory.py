"""A directory that is written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

__all__ = ["new_directory", "publish"]


@contextlib.contextmanager
def new_directory(directory: Path) -> Iterator[Path]:
    """Give a directory to write into, which gets the name `directory` if all goes well.

    It is a sibling, so that the renaming is one step of the file system. If the body raises, it
    is removed and nothing is left.

    Raises:
        FileExistsError: `directory` exists already; it is never overwritten.
    """
    if directory.exists() or directory.is_symlink():
        raise FileExistsError(f"{directory} exists already; remove it or choose another name")
    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = directory.parent / f".{directory.name}.{secrets.token_hex(8)}.tmp"
    temporary.mkdir()
    try:
        yield temporary
        publish(temporary, directory)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def publish(temporary: Path, directory: Path) -> None:
    """Give a finished directory its name, in one step and so that a power cut keeps it.

    Raises:
        FileExistsError: `directory` exists already.
    """
    _sync(temporary)
    if directory.exists():  # `rename` would replace an empty directory in silence
        raise FileExistsError(f"{directory} exists already; remove it or choose another name")
    temporary.rename(directory)
    _sync(directory.parent)


def _sync(directory: Path) -> None:
    """Bring a directory's entries to disk; a no-op where directories cannot be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

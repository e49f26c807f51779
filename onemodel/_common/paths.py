"""Paths of commands: checked before the work, so that hours of it are never lost at the end."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["check_path", "check_writable"]


def check_path(name: str, value: str | os.PathLike[str]) -> Path:
    """Return ``value`` as a `Path`; errors call it ``name``.

    Raises:
        TypeError: if it is neither a string nor an object with a path's text.
        ValueError: if it holds a character that no path may hold.

    >>> check_path("out", "a/b").name
    'b'
    >>> check_path("out", 3)
    Traceback (most recent call last):
    ...
    TypeError: out must be a path, got 3
    """
    try:
        path = Path(value)
    except TypeError:
        raise TypeError(f"{name} must be a path, got {value!r:.80}") from None
    if "\0" in str(path):
        raise ValueError(f"{name} must be a path without NUL characters, got {value!r:.80}")
    return path


def check_writable(name: str, directory: Path) -> None:
    """Check that ``directory`` is one that may be written into, or that it can be made.

    Raises:
        NotADirectoryError: it, or what it would be made in, is a file.
        PermissionError: it may not be written into.
    """
    place = Path(os.path.abspath(directory))
    while not os.path.lexists(place):
        place = place.parent
    if not place.is_dir():
        raise NotADirectoryError(f"{name} must be in a directory, got {directory}: {place} is none")
    if not os.access(place, os.W_OK | os.X_OK):
        raise PermissionError(
            f"{name} must be in a directory that can be written into, got {directory}: "
            f"{place} cannot"
        )

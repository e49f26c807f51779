"""Paths and JSON texts that come from outside: checked before anything relies on them.

A command's paths are checked before the work, so that hours of it are never lost at the end.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from onemodel._common.describe import shown

__all__ = ["check_path", "check_writable", "parse_json"]

DEEPEST = 64  # lists and objects in one another: what this package writes has four
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)


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
        raise TypeError(f"{name} must be a path, got {shown(value)}") from None
    if "\0" in str(path):
        raise ValueError(f"{name} must be a path without NUL characters, got {shown(value)}")
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


def parse_json(data: bytes) -> Any:
    """Return what a JSON text in UTF-8 says.

    Raises:
        ValueError: if it is no such text, or nests deeper than any of ours. A parser follows the
            nesting on its stack, which ends a browser's Python without an exception.

    >>> parse_json(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    >>> parse_json(b"[" * 100_000)
    Traceback (most recent call last):
    ...
    ValueError: lists and objects must nest at most 64 deep, got more
    """
    depth = 0
    for bracket in re.findall(rb"[\[{\]}]", _STRING.sub(b"", data)):
        depth += 1 if bracket in b"[{" else -1
        if depth > DEEPEST:
            raise ValueError(f"lists and objects must nest at most {DEEPEST} deep, got more")
    return json.loads(data.decode("utf-8"))

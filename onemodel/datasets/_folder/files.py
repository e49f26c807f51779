"""Which files of a folder are images, and which are left out for what reason.

Images are all regular files below the folder, and links to such, whose suffix is one of `SUFFIXES`
in any case. Their order is that of their relative paths with `/`, compared by code point: the same
on every file system and in every locale. Files and folders whose name begins with a dot take no
part. Links to folders are not followed. Nothing is opened here, so a named pipe cannot block.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import NamedTuple

__all__ = ["SUFFIXES", "FolderFiles", "LeftOut", "list_folder"]

#: The suffixes of image files, in any case.
SUFFIXES = frozenset(
    [".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"]
)


class LeftOut(NamedTuple):
    """A file or folder that takes no part."""

    name: str  # its path, relative to the folder
    reason: str  # a text that names the path


class FolderFiles(NamedTuple):
    """What lies in a folder."""

    names: list[str]  # relative paths of the images, in order
    classes: list[str]  # names of the folders directly in it, in order
    left_out: list[LeftOut]  # in order


def list_folder(folder: Path) -> FolderFiles:
    """List the images below a folder; one link, pipe or folder that fails stops nothing.

    Raises:
        FileNotFoundError: no such folder.
        PermissionError: the folder itself cannot be read.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: expected a folder of images, found none")
    names: list[str] = []
    left_out: list[LeftOut] = []
    classes: list[str] = []
    waiting = [""]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(folder / place) as scanned:
                entries = [entry for entry in scanned if not entry.name.startswith(".")]
        except OSError as error:
            if not place:
                raise
            left_out.append(_left_out(folder, place, f"a folder that cannot be read: {error}"))
            continue
        for entry in entries:
            name = f"{place}/{entry.name}" if place else entry.name
            kind, reason = _kind(entry)
            if kind == "folder":
                waiting.append(name)
                if not place:
                    classes.append(name)
            elif reason:
                left_out.append(_left_out(folder, name, reason))
            elif kind == "image":
                names.append(name)
    return FolderFiles(sorted(names), sorted(classes), sorted(left_out))


def _kind(entry: os.DirEntry[str]) -> tuple[str, str]:
    """Return "folder", "image" or "other", and why the entry is left out, if it is."""
    try:
        if entry.is_dir(follow_symlinks=False):
            return "folder", ""
        mode = entry.stat().st_mode
    except OSError as error:
        # Nobody can tell whether it leads to an image, to a folder of images, or to neither.
        return "other", f"cannot be reached: {error.strerror or error}"
    if stat.S_ISDIR(mode):
        return "other", "a link to a folder, which is not followed"
    if Path(entry.name).suffix.lower() not in SUFFIXES:
        return "other", ""
    return "image", "" if stat.S_ISREG(mode) else "not a regular file"


def _left_out(folder: Path, name: str, reason: str) -> LeftOut:
    return LeftOut(name, f"{folder / name}: {reason}")

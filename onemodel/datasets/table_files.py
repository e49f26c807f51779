"""An `ImageTable` on disk: a directory of plain `.npy` files and a small JSON manifest.

| file | dtype | shape | holds |
|---|---|---|---|
| `pixels.npy` | uint8 or float32 | [offsets[n]] | the images, planar [C, H, W_i] each, no gaps |
| `offsets.npy` | int64 | [n + 1] | where image i starts in `pixels`, in elements |
| `widths.npy` | int64 | [n] | W_i |
| `targets.npy` | int32 | [target_offsets[n]] | the targets, no gaps |
| `target_offsets.npy` | int64 | [n + 1] | where target i starts in `targets` |
| `labels.npy` | int32 | [n] | one label an image |
| `names.json` | | [n] | optional: a JSON list, where each image came from |
| `manifest.json` | | | format, version, sizes, mean, std; bytes, dtype and shape of each file |

NumPy alone reads it: `numpy.load("pixels.npy", mmap_mode="r")[offsets[i]:offsets[i + 1]]` is image
i. All numbers are little-endian. The manifest is written last and the directory gets its name when
everything is on disk, so a directory that has the name is whole.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

FORMAT = "onemodel.ImageTable"
VERSION = 1
MANIFEST = "manifest.json"
NAMES = "names.json"

#: The columns and the dtypes each may have, in the order in which they are written.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "pixels": ("|u1", "<f4"),
    "offsets": ("<i8",),
    "widths": ("<i8",),
    "targets": ("<i4",),
    "target_offsets": ("<i8",),
    "labels": ("<i4",),
}


class _Header(NamedTuple):
    dtype: str
    shape: tuple[int, ...]
    file_bytes: int  # of the whole file, by its header


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
    sync_directory(temporary)
    if directory.exists():  # `rename` would replace an empty directory in silence
        raise FileExistsError(f"{directory} exists already; remove it or choose another name")
    temporary.rename(directory)
    sync_directory(directory.parent)


def sync_directory(directory: Path) -> None:
    """Bring a directory's entries to disk; a no-op where directories cannot be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_column(directory: Path, name: str, column: NDArray[Any]) -> None:
    """Write one column as `.npy` and bring it to disk."""
    little = np.ascontiguousarray(column, dtype=column.dtype.newbyteorder("<"))
    with open(directory / f"{name}.npy", "xb") as file:
        np.lib.format.write_array(file, little, version=(1, 0), allow_pickle=False)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, content: object) -> None:
    """Write a JSON file and bring it to disk."""
    with open(path, "x", encoding="utf-8", newline="\n") as file:
        # In ASCII: a path that is no Unicode text comes back as it was.
        json.dump(content, file, indent=1)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def write_manifest(
    directory: Path, *, channels: int, height: int, mean: Sequence[float], std: Sequence[float]
) -> None:
    """Describe the files that lie in `directory`, which have all been written before."""
    files: dict[str, dict[str, Any]] = {}
    for name in COLUMNS:
        path = directory / f"{name}.npy"
        header = _read_header(path)
        files[path.name] = {
            "bytes": path.stat().st_size,
            "dtype": header.dtype,
            "shape": list(header.shape),
        }
    if (directory / NAMES).exists():
        files[NAMES] = {"bytes": (directory / NAMES).stat().st_size}
    content = {
        "format": FORMAT,
        "version": VERSION,
        "images": files["widths.npy"]["shape"][0],
        "channels": channels,
        "height": height,
        "mean": list(mean),
        "std": list(std),
        "files": files,
    }
    write_json(directory / MANIFEST, content)


def read_manifest(directory: Path) -> dict[str, Any]:
    """Read and check the manifest against the files' sizes and headers.

    Returns:
        The manifest's content.

    Raises:
        FileNotFoundError: there is no such directory, or a file is missing.
        ValueError: a file is foreign, of another version, truncated or otherwise not as described.
            Every message names the file, what was expected and what was found.
    """
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory}: expected a directory, found none")
    path = directory / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected the manifest of an ImageTable, found no file")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        _wrong(path, "JSON text", str(error))
    found = content.get("format") if isinstance(content, dict) else content
    if found != FORMAT:
        _wrong(path, f"format {FORMAT!r}", f"{found!r:.80}")
    if content.get("version") != VERSION:
        _wrong(path, f"version {VERSION}", f"version {content.get('version')!r}")
    _check_manifest_types(path, content)

    for name, dtypes in COLUMNS.items():
        column = directory / f"{name}.npy"
        described = content["files"].get(column.name)
        if not isinstance(described, dict) or described.get("dtype") not in dtypes:
            _wrong(path, f"{column.name} of dtype {' or '.join(dtypes)}", repr(described))
        _check_size(column, described)
        header = _read_header(column)
        if [header.dtype, list(header.shape)] != [described["dtype"], described.get("shape")]:
            _wrong(
                column,
                f"dtype {described['dtype']} and shape {described.get('shape')}",
                f"dtype {header.dtype} and shape {list(header.shape)}",
            )
        if header.file_bytes != described["bytes"]:
            _wrong(column, f"{header.file_bytes} bytes", f"{described['bytes']} bytes")
    if NAMES in content["files"]:
        _check_size(directory / NAMES, content["files"][NAMES])
    return cast("dict[str, Any]", content)


def read_column(directory: Path, name: str, *, memory_map: bool) -> NDArray[Any]:
    """Open one column, whose header `read_manifest` has checked, read-only."""
    path = directory / f"{name}.npy"
    # An empty array has no bytes that could be mapped.
    mode: Literal["r"] | None = "r" if memory_map and 0 not in _read_header(path).shape else None
    array: NDArray[Any] = np.load(path, mmap_mode=mode, allow_pickle=False).view(np.ndarray)
    array.flags.writeable = False
    return array


def read_names(directory: Path, count: int) -> tuple[str, ...]:
    """Read `names.json`."""
    path = directory / NAMES
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        _wrong(path, "JSON text", str(error))
    if not (
        isinstance(names, list)
        and len(names) == count
        and all(isinstance(name, str) for name in names)
    ):
        _wrong(path, f"a list of {count} strings", f"{type(names).__name__} of {names!r:.80}")
    return tuple(names)


def _check_manifest_types(path: Path, content: dict[str, Any]) -> None:
    for name in ("images", "channels", "height"):
        value = content.get(name)
        if type(value) is not int or value < 1:
            _wrong(path, f"{name} an integer of at least 1", repr(value))
    for name in ("mean", "std"):
        values = content.get(name)
        if not (
            isinstance(values, list)
            and len(values) == content["channels"]
            and all(type(value) in (int, float) for value in values)
        ):
            _wrong(path, f"{name} a list of {content['channels']} numbers", repr(values))
    if not isinstance(content.get("files"), dict):
        _wrong(path, "files, a description of each", repr(content.get("files")))


def _check_size(path: Path, described: dict[str, Any]) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected {described.get('bytes')} bytes, found no file")
    size = path.stat().st_size
    if size != described.get("bytes"):
        _wrong(path, f"{described.get('bytes')} bytes", f"{size} bytes")


def _read_header(path: Path) -> _Header:
    """Read the header of an `.npy` file of format 1.0 in C order."""
    with open(path, "rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            if version != (1, 0):
                raise ValueError(f"format {version}")
            shape, fortran_order, dtype = np.lib.format.read_array_header_1_0(file)
            if fortran_order:
                raise ValueError("Fortran order")
        except ValueError as error:
            _wrong(path, "an .npy file of format 1.0 in C order", str(error))
        return _Header(dtype.str, shape, file.tell() + math.prod(shape) * dtype.itemsize)


def _wrong(path: Path, expected: str, found: str) -> NoReturn:
    raise ValueError(f"{path}: expected {expected}, found {found}")

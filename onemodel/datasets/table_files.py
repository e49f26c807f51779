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
| `manifest.json` | | | format, version, sizes, mean, std; each file's bytes, dtype, shape, digest |

NumPy alone reads it: `numpy.load("pixels.npy", mmap_mode="r")[offsets[i]:offsets[i + 1]]` is image
i. All numbers are little-endian. The manifest is written last and the directory gets its name when
everything is on disk, so a directory that has the name is whole. Digests are SHA-256; the
manifest's own is that of its other fields, as compact JSON with sorted keys. `open`, which reads no
pixels, takes no notice of them; `check_table` compares them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._common.describe import shown
from onemodel._common.files import parse_json
from onemodel.datasets._table.new_directory import new_directory, publish
from onemodel.datasets._table.npy_files import (
    digest_of,
    read_array,
    read_header,
    write_array,
    write_parts,
    wrong,
)

__all__ = [
    "COLUMNS",
    "FORMAT",
    "MANIFEST",
    "NAMES",
    "VERSION",
    "check_table",
    "new_directory",
    "publish",
    "read_manifest",
    "read_table",
    "write_column",
    "write_json",
    "write_manifest",
    "write_pixels",
]

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


def write_column(directory: Path, name: str, column: NDArray[Any]) -> None:
    """Write one column as `.npy` and bring it to disk."""
    write_array(directory / f"{name}.npy", column)


def write_pixels(
    directory: Path, dtype: np.dtype[Any], elements: int, runs: Iterable[NDArray[Any]]
) -> None:
    """Write `pixels.npy` from runs of that many elements in all, and bring it to disk."""
    write_parts(directory / "pixels.npy", dtype, (elements,), runs)


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
    for name, dtypes in COLUMNS.items():
        path = directory / f"{name}.npy"
        header = read_header(path, dtypes)
        files[path.name] = {
            "bytes": path.stat().st_size,
            "dtype": header.dtype,
            "shape": list(header.shape),
            "sha256": digest_of(path),
        }
    names = directory / NAMES
    if names.exists():
        files[NAMES] = {"bytes": names.stat().st_size, "sha256": digest_of(names)}
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
    content["sha256"] = _content_digest(content)
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
    content = _read_content(directory)
    for name in _described_files(content):
        _check_file(directory, name, content["files"].get(name))
    return content


def read_table(directory: Path, *, memory_map: bool) -> tuple[dict[str, Any], str | None]:
    """Read a table's files as the arguments of `ImageTable`; only the pixels may be mapped.

    The second result is the digest that the manifest holds of everything, or None.

    Raises:
        FileNotFoundError, ValueError: as `read_manifest`.
    """
    manifest = read_manifest(directory)
    columns: dict[str, Any] = {}
    for name, dtypes in COLUMNS.items():
        path = directory / f"{name}.npy"
        header = read_header(path, dtypes)
        columns[name] = read_array(path, header, memory_map=memory_map and name == "pixels")
    count = manifest["images"]
    found = columns["widths"].shape
    if found != (count,):
        wrong(directory / "widths.npy", f"{count} images as the manifest says", f"shape {found}")
    if NAMES in manifest["files"]:
        columns["names"] = _read_names(directory / NAMES, count)
    settings = {name: manifest[name] for name in ("channels", "height", "mean", "std")}
    stored = manifest.get("sha256")
    return columns | settings, stored if isinstance(stored, str) else None


def check_table(directory: str | os.PathLike[str]) -> list[str]:
    """Read a whole table and compare every file with the manifest; return what is wrong.

    An empty list: every byte is as it was written. A table of an earlier version has no digests:
    one line says so, and only sizes and headers were compared.

    >>> check_table("no-such.table")
    ['no-such.table: expected a directory, found none']
    """
    place = Path(directory)
    try:
        content = _read_content(place)
    except (OSError, ValueError) as error:
        return [str(error)]
    problems = []
    unknown = []
    names = _described_files(content)
    for name in names:
        described = content["files"].get(name)
        try:
            _check_file(place, name, described)
            if "sha256" not in described:
                unknown.append(name)
            elif (found := digest_of(place / name)) != described["sha256"]:
                wrong(place / name, f"SHA-256 {_text(described['sha256'])}", found)
        except (OSError, ValueError) as error:
            problems.append(str(error))
    if unknown:
        problems.append(
            f"no digests are stored of {', '.join(unknown)} in {place / MANIFEST}: "
            "open the table and save it again to have them"
        )
    if any("sha256" in described for described in content["files"].values()):
        digest = _content_digest(content)
        stored = _text(content["sha256"]) if "sha256" in content else "none"
        if content.get("sha256") != digest:
            problems.append(
                f"{place / MANIFEST}: expected SHA-256 {stored} of its other fields, found {digest}"
            )
    return problems


def _read_names(path: Path, count: int) -> list[str]:
    names = _read_json(path)
    if not (
        isinstance(names, list)
        and len(names) == count
        and all(isinstance(name, str) for name in names)
    ):
        wrong(path, f"a list of {count} strings", f"{type(names).__name__} {_text(names)}")
    return names


def _read_content(directory: Path) -> dict[str, Any]:
    """Read the manifest and check it by itself."""
    if not directory.is_dir():
        raise FileNotFoundError(f"{directory}: expected a directory, found none")
    path = directory / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected the manifest of an ImageTable, found no file")
    content = _read_json(path)
    found = content.get("format") if isinstance(content, dict) else content
    if not isinstance(content, dict) or found != FORMAT:
        wrong(path, f"format {FORMAT!r}", _text(found))
    if content.get("version") != VERSION:
        wrong(path, f"version {VERSION}", f"version {_text(content.get('version'))}")
    _check_manifest_types(path, content)
    return content


def _read_json(path: Path) -> Any:
    try:
        return parse_json(path.read_bytes())
    except ValueError as error:  # also of text that is no UTF-8, or of too many digits
        wrong(path, "JSON text", f"{type(error).__name__}: {error}")


def _check_manifest_types(path: Path, content: dict[str, Any]) -> None:
    for name in ("images", "channels", "height"):
        value = content.get(name)
        if type(value) is not int or value < 1:
            wrong(path, f"{name} an integer of at least 1", _text(value))
    for name in ("mean", "std"):
        values = content.get(name)
        if not (
            isinstance(values, list)
            and len(values) == content["channels"]
            and all(type(value) in (int, float) and abs(value) < 2**128 for value in values)
        ):
            wrong(path, f"{name} a list of {content['channels']} numbers", _text(values))
    if not isinstance(content.get("files"), dict):
        wrong(path, "files, a description of each", _text(content.get("files")))


def _described_files(content: dict[str, Any]) -> list[str]:
    """Name the files of a table in the order in which they are checked."""
    names = [f"{name}.npy" for name in COLUMNS]
    return [*names, NAMES] if NAMES in content["files"] else names


def _check_file(directory: Path, name: str, described: Any) -> None:
    """Compare a file's size and header with the manifest."""
    path = directory / name
    dtypes = COLUMNS.get(name.removesuffix(".npy"))
    if not isinstance(described, dict) or (
        dtypes is not None and described.get("dtype") not in dtypes
    ):
        expected = "bytes" if dtypes is None else f"dtype {' or '.join(dtypes)}"
        wrong(directory / MANIFEST, f"{name} of {expected}", _text(described))
    expected = f"{_text(described.get('bytes'))} bytes"
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected {expected}, found no file")
    size = path.stat().st_size
    if size != described.get("bytes"):
        wrong(path, expected, f"{size} bytes")
    if dtypes is None:
        return
    header = read_header(path, dtypes)
    if [header.dtype, list(header.shape)] != [described["dtype"], described.get("shape")]:
        wrong(
            path,
            f"dtype {described['dtype']} and shape {_text(described.get('shape'))}",
            f"dtype {header.dtype} and shape {list(header.shape)}",
        )
    if header.file_bytes != size:
        wrong(path, f"{header.file_bytes} bytes", f"{size} bytes")


def _content_digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of a manifest's fields without the one that holds it."""
    others = {name: value for name, value in content.items() if name != "sha256"}
    text = json.dumps(others, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _text(value: Any) -> str:
    """Show a value of a manifest, which may be large."""
    return f"{shown(value)}"

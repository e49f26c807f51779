"""``TarItems``: the samples of WebDataset's tar files, by index and in any order."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from onemodel._common.describe import describe, shown
from onemodel._common.files import check_path
from onemodel._common.integers import check_integer
from onemodel.datasets.made_once import MadeOnce

__all__ = ["TarItems"]


class Part(NamedTuple):
    """Where the content of one file of a sample lies."""

    extension: str
    offset: int
    size: int


class Place(NamedTuple):
    """Where a sample lies."""

    tar: int
    key: str
    parts: tuple[Part, ...]


class TarItems(MadeOnce):
    """The samples of tar files: item i is a dict of the files that share one name.

    Files of a tar that follow one another and have the same name up to its first dot are one
    sample, as in WebDataset: `pages/7.png` and `pages/7.txt` give `{"__key__": "pages/7", "png":
    b"...", "txt": b"..."}`. The headers of all files are read once, to know where each sample
    lies; after that an item is one open file and a read for each of its parts. Reading is safe
    from several threads. A pickle holds the paths and the places. The files must not change.

    Args:
        paths: tar files, not compressed, in their order; or one.
        decode: ``decode(item)`` makes of the dict what the dataset gives; None for the dict.

    Raises:
        TypeError, ValueError: if an argument is not as described, a file is no tar or is
            compressed, holds no sample, or a sample has two files of one extension.
        FileNotFoundError: there is no such file.

    >>> import io, tarfile
    >>> with tarfile.open("words.tar", "w") as tar:
    ...     for name, text in [("0.txt", b"ant"), ("0.cls", b"3"), ("1.txt", b"bee")]:
    ...         entry = tarfile.TarInfo(name)
    ...         entry.size = len(text)
    ...         tar.addfile(entry, io.BytesIO(text))
    >>> items = TarItems("words.tar")
    >>> len(items), items[1]
    (2, {'__key__': '1', 'txt': b'bee'})
    """

    _own = frozenset({"_paths", "_decode", "_places"})

    def __init__(
        self,
        paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
        *,
        decode: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self._begin()
        given = [paths] if isinstance(paths, str | os.PathLike) else _listed(paths)
        checked = [check_path(f"paths[{k}]", path) for k, path in enumerate(given)]
        if not checked:
            raise ValueError("paths must be at least one, got none")
        if decode is not None and not callable(decode):
            raise TypeError(f"decode must be callable or None, got {shown(decode)}")
        places = [place for number, path in enumerate(checked) for place in _places(number, path)]
        self._set(tuple(str(path.absolute()) for path in checked), decode, places)

    def _set(self, paths: tuple[str, ...], decode: Any, places: list[Place]) -> None:
        self._paths, self._decode, self._places = paths, decode, places

    @property
    def paths(self) -> tuple[str, ...]:
        """The tar files, as absolute paths."""
        return self._paths

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, index: int) -> Any:
        """Return the item at ``index``.

        Raises:
            IndexError: if ``index`` is outside [-n, n), n the length.
            ValueError: if the file has become shorter.
        """
        count = len(self)
        try:
            position = check_integer("index", index, -count, count) % count
        except ValueError as error:
            raise IndexError(str(error)) from None
        place = self._places[position]
        item: dict[str, Any] = {"__key__": place.key}
        with open(self._paths[place.tar], "rb") as file:
            for extension, offset, size in place.parts:
                file.seek(offset)
                item[extension] = file.read(size)
                if len(item[extension]) != size:
                    raise ValueError(
                        f"{self._paths[place.tar]}: must hold {size} bytes of "
                        f"{place.key}.{extension} at {offset}, got {len(item[extension])}"
                    )
        return item if self._decode is None else self._decode(item)

    def _recipe(self) -> tuple[Any, ...]:
        return _fill, self._paths, self._decode, self._places

    def __repr__(self) -> str:
        return (
            f"TarItems({len(self)} samples of {len(self._paths)} files, "
            f"decode={describe(self._decode)})"
        )


def _fill(made: TarItems, paths: tuple[str, ...], decode: Any, places: list[Place]) -> None:
    """Make ``made`` from its pickle."""
    made._begin()
    made._set(paths, decode, places)


def _listed(paths: Any) -> list[Any]:
    try:
        return list(paths)
    except TypeError:
        raise TypeError(f"paths must be a path or a sequence of them, got {shown(paths)}") from None


def _places(number: int, path: Path) -> list[Place]:
    """Return where the samples of a tar lie, in the order of the file."""
    places: list[Place] = []
    try:
        with tarfile.open(path, "r:") as tar:
            for member in tar:
                if not member.isreg() or member.issparse():
                    continue
                folder, _, name = member.name.rpartition("/")
                stem, dot, extension = name.partition(".")
                if not stem or not dot:  # hidden files, and names that say no kind
                    continue
                key = f"{folder}/{stem}" if folder else stem
                part = Part(extension.lower(), member.offset_data, member.size)
                if not places or places[-1].key != key:
                    places.append(Place(number, key, (part,)))
                    continue
                last = places[-1]
                if part.extension in [one.extension for one in last.parts]:
                    raise ValueError(f"{path}: {key} must have one .{part.extension}, got two")
                places[-1] = last._replace(parts=(*last.parts, part))
    except tarfile.TarError as error:
        raise ValueError(
            f"{path}: must be a tar file that is not compressed, got {error}"
        ) from None
    if not places:
        raise ValueError(f"{path}: must hold files with a name and an extension, got none")
    return places

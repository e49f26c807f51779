"""A folder of image files, as uint8 pixels of one height, with targets from a text file.

**Order.** All files below the folder whose suffix is one of `SUFFIXES`, by their relative paths
with `/`, compared by code point: the same on every file system and in every locale. Files and
folders whose name begins with a dot are left out.

**Pixels.** Pillow decodes, of several frames the first. The camera's rotation is applied, what is
transparent is laid on white, and colours become gray (1 channel) or RGB (3). An image of another
height is scaled to width `(w * height + h // 2) // h`, at least 1, by Pillow's bilinear filter,
which works in integers. Images of more than 8 bits a channel are refused rather than cut to 8.

**Labels.** A UTF-8 text file, one line an image: its relative path, a tab, its target, and
optionally a tab and an integer label. Without an alphabet the target is integers between spaces;
with one it is text, and each character becomes its place in the alphabet, counted from 1, so that
0 stays free for CTC's blank. Empty lines are skipped; every image must have a line.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from onemodel._common.extras import require
from onemodel._common.integers import check_int32, check_integer

#: The suffixes of image files, in any case.
SUFFIXES = frozenset(
    [".bmp", ".gif", ".jpeg", ".jpg", ".pbm", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"]
)
#: Pillow's modes of at most 8 bits a channel.
_MODES = frozenset(["1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"])

Target = tuple[tuple[int, ...], int]


class Folder:
    """The images of a folder in their order, decoded one at a time.

    Args:
        path: the folder.
        height: of every image in pixels, in [1, 65536].
        channels: 1 for gray, 3 for RGB.
        labels: the labels file, or None for empty targets and labels 0.
        alphabet: the characters of the targets, each once, or None for integers.

    Raises:
        FileNotFoundError: no such folder or labels file.
        ValueError: an argument out of its range, a folder without images, a line of the labels
            file that does not hold what it should, an image without a line.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        height: int = 32,
        channels: int = 1,
        labels: str | os.PathLike[str] | None = None,
        alphabet: str | None = None,
    ) -> None:
        self.path = Path(path)
        self.height = check_integer("height", height, 1, 2**16 + 1)
        if channels not in (1, 3):
            raise ValueError(f"channels must be 1 or 3, got {channels!r}")
        self.channels = channels
        self.names = list_images(self.path)
        if not self.names:
            raise ValueError(f"{self.path}: expected image files ({' '.join(sorted(SUFFIXES))})")
        self._targets: dict[str, Target] | None = None
        if labels is not None:
            self._targets = read_labels(Path(labels), alphabet)
            missing = [name for name in self.names if name not in self._targets]
            if missing:
                raise ValueError(
                    f"{labels}: expected a line for every image, "
                    f"found none for {len(missing)} of {len(self.names)}, first {missing[0]!r}"
                )
        elif alphabet is not None:
            raise ValueError("alphabet must come with a labels file, got labels=None")

    def target_and_label(self, name: str) -> Target:
        """Return the target and label of an image; `((), 0)` without a labels file."""
        return ((), 0) if self._targets is None else self._targets[name]

    def decode(self, name: str) -> NDArray[np.uint8]:
        """Read an image as planar uint8 [C, height, W].

        Raises:
            ModuleNotFoundError: Pillow is missing.
            ValueError: the file cannot be read as an image; the message names it and says why.
        """
        pillow, operations = require("PIL.Image", "images"), require("PIL.ImageOps", "images")
        path = self.path / name
        try:
            with pillow.open(path) as file:
                if file.mode not in _MODES:
                    raise ValueError(f"mode {file.mode!r} has more than 8 bits a channel")
                image = operations.exif_transpose(file)
                if image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info:
                    image = image.convert("RGBA")
                    paper = pillow.new("RGBA", image.size, "white")
                    image = pillow.alpha_composite(paper, image)
                image = image.convert("L" if self.channels == 1 else "RGB")
                if image.height != self.height:
                    width = (image.width * self.height + image.height // 2) // image.height
                    image = image.resize((max(1, width), self.height), pillow.Resampling.BILINEAR)
                pixels = np.asarray(image, dtype=np.uint8)
        except Exception as error:
            # Decoders raise whatever they like on damaged files: OSError, ValueError, SyntaxError,
            # struct.error, IndexError, DecompressionBombError have all been seen.
            raise ValueError(
                f"{path}: cannot be read as an image: {type(error).__name__}: {error}"
            ) from error
        return pixels[np.newaxis] if self.channels == 1 else pixels.transpose(2, 0, 1)


def list_images(folder: Path) -> list[str]:
    """Return the relative paths of a folder's image files, in their order.

    Raises:
        FileNotFoundError: no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: expected a folder of images, found none")
    names = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        names += [
            (Path(place) / name).relative_to(folder).as_posix()
            for name in files
            if not name.startswith(".") and Path(name).suffix.lower() in SUFFIXES
        ]
    return sorted(names)


def read_labels(path: Path, alphabet: str | None) -> dict[str, Target]:
    """Read a labels file as a dict from relative path to target and label.

    Raises:
        FileNotFoundError: no such file.
        ValueError: not UTF-8, a line that does not hold what it should, a path that comes twice,
            an alphabet with a character twice; the message names the line.
    """
    symbols = None
    if alphabet is not None:
        symbols = {character: place for place, character in enumerate(alphabet, start=1)}
        if len(symbols) != len(alphabet) or not alphabet:
            raise ValueError(f"alphabet must hold each character once, got {alphabet!r}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: expected UTF-8 text, found {error}") from None
    targets: dict[str, Target] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        # Only line ends go: a target may begin or end with a space of its alphabet.
        line = line.removesuffix("\r")
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        name, *fields = line.split("\t")
        if not 1 <= len(fields) <= 2:
            raise ValueError(
                f"{where}: expected a path, a target and perhaps a label with tabs between, "
                f"found {len(fields) + 1} fields"
            )
        if name in targets:
            raise ValueError(f"{where}: expected each path once, found {name!r} again")
        try:
            label = check_int32("label", int(fields[1])) if len(fields) == 2 else 0
            target = _symbols(fields[0], symbols)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        targets[name] = target, label
    return targets


def _symbols(text: str, symbols: dict[str, int] | None) -> tuple[int, ...]:
    if symbols is None:
        return tuple(check_int32("target", int(word)) for word in text.split())
    unknown = sorted(set(text) - symbols.keys())
    if unknown:
        raise ValueError(f"expected characters of the alphabet, found {unknown[0]!r}")
    return tuple(symbols[character] for character in text)

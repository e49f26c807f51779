"""A folder of image files, as uint8 pixels of one height, with targets and labels.

**Files.** `onemodel.datasets._folder.files` says which files are images, and in which order.

**Pixels.** Pillow decodes, of several frames the first. The camera's rotation is applied, what is
transparent is laid on white, and colours become gray (1 channel) or RGB (3). An image of another
height is scaled to width `(w * height + h // 2) // h`, at least 1, by Pillow's bilinear filter,
which works in integers. Images of more than 8 bits a channel are refused rather than cut to 8, and
so are images of more than `MAX_PIXELS` pixels, or wider than `max_width` when they are scaled: a
few bytes of a compressed file can stand for gigabytes of pixels.

**Labels.** From a text file, as `onemodel.datasets._folder.labels` says, or with `labels="folders"`
from the folders directly in the folder: each is a class, its place in their order the label.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from onemodel._common.describe import shown
from onemodel._common.extras import require
from onemodel._common.files import check_path
from onemodel._common.integers import check_integer
from onemodel.datasets._folder.files import SUFFIXES, LeftOut, list_folder
from onemodel.datasets._folder.labels import Target, match_names, read_labels

__all__ = ["FOLDERS", "MAX_PIXELS", "MAX_WIDTH", "Folder"]

#: The value of `labels` that takes the classes from the folders.
FOLDERS = "folders"
#: The default limit on the scaled width.
MAX_WIDTH = 2**16
#: The limit on an image's width times its height, before it is scaled.
MAX_PIXELS = 2**27

#: Pillow's names of the formats that the suffixes stand for; of others nobody knows the depth.
_FORMATS = frozenset(["BMP", "GIF", "JPEG", "MPO", "PNG", "PPM", "TIFF", "WEBP"])
#: Pillow's modes of at most 8 bits a channel, if the file has no more.
_MODES = frozenset(["1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr"])
_BITS_PER_SAMPLE = 258  # a TIFF tag


class Folder:
    """The images of a folder in their order, decoded one at a time.

    Attributes:
        names: relative paths of the images, in order.
        classes: with `labels="folders"` the folders' names, else empty; label k is `classes[k]`.
        left_out: what takes no part, with reasons; always empty without `leave_out`.

    Args:
        path: the folder.
        height: of every image in pixels, in [1, 65536].
        channels: 1 for gray, 3 for RGB.
        labels: the labels file, "folders", or None for empty targets and labels 0.
        alphabet: the characters of the targets, each once, or None for integers.
        max_width: the widest scaled image, in [1, 2**31).
        leave_out: leave out what cannot be reached or is not followed, in place of an error.

    Raises:
        FileNotFoundError: no such folder or labels file.
        TypeError: an argument of another kind.
        ValueError: an argument out of its range, a folder without images, a line of the labels
            file that does not hold what it should, an image without a line or without a class.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        height: int = 32,
        channels: int = 1,
        labels: str | os.PathLike[str] | None = None,
        alphabet: str | None = None,
        max_width: int = MAX_WIDTH,
        leave_out: bool = False,
    ) -> None:
        self.path = check_path("folder", path)
        self.height = check_integer("height", height, 1, 2**16 + 1)
        self.channels = check_integer("channels", channels, 1, 4)
        if self.channels == 2:
            raise ValueError(f"channels must be 1 or 3, got {shown(channels)}")
        self.max_width = check_integer("max_width", max_width, 1, 2**31)
        if alphabet is not None and (labels is None or _are_folders(labels)):
            raise ValueError(f"alphabet must come with a labels file, got labels={shown(labels)}")
        labels_file = (
            None if labels is None or _are_folders(labels) else check_path("labels", labels)
        )
        self.names, classes, self.left_out = list_folder(self.path)
        if self.left_out and not leave_out:
            raise ValueError(self.left_out[0].reason)
        if not self.names:
            raise ValueError(
                f"{self.path}: expected image files ({' '.join(sorted(SUFFIXES))}), found none"
                + _among(self.left_out)
            )
        self.classes: list[str] = []
        self._targets: dict[str, Target] | None = None
        if _are_folders(labels):
            self.classes = classes
            self._targets = self._of_folders()
        elif labels_file is not None:
            self._targets = self._of_file(labels_file, alphabet)

    def _of_folders(self) -> dict[str, Target]:
        outside = [name for name in self.names if "/" not in name]
        if outside:
            raise ValueError(
                f"{self.path}: expected every image in a folder of its class, "
                f"found {len(outside)} of {len(self.names)} outside, first {outside[0]!r}"
            )
        places = {name: place for place, name in enumerate(self.classes)}
        return {name: ((), places[name.partition("/")[0]]) for name in self.names}

    def _of_file(self, labels: Path, alphabet: str | None) -> dict[str, Target]:
        lines = read_labels(labels, alphabet)
        targets, missing = match_names(self.names, lines)
        if missing:
            raise ValueError(
                f"{labels}: expected a line for every image, "
                f"found none for {len(missing)} of {len(self.names)}, first {missing[0]!r}"
            )
        return targets

    def target_and_label(self, name: str) -> Target:
        """Return the target and label of an image; `((), 0)` without labels."""
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
            with _open_regular(path) as content, pillow.open(content) as file:
                if file.format not in _FORMATS:
                    raise ValueError(f"format {file.format} is none of its suffixes'")
                _check_depth(file)
                if file.width * file.height > MAX_PIXELS:
                    raise ValueError(
                        f"it must have at most {MAX_PIXELS:,} pixels, "
                        f"got {file.width:,} x {file.height:,}"
                    )
                image = operations.exif_transpose(file)
                width = max(1, (image.width * self.height + image.height // 2) // image.height)
                if width > self.max_width:
                    raise ValueError(
                        f"its width at height {self.height} must be at most {self.max_width:,}, "
                        f"got {width:,} (max_width)"
                    )
                if image.mode in ("LA", "PA", "RGBA") or "transparency" in image.info:
                    image = image.convert("RGBA")
                    paper = pillow.new("RGBA", image.size, "white")
                    image = pillow.alpha_composite(paper, image)
                image = image.convert("L" if self.channels == 1 else "RGB")
                if image.height != self.height:
                    image = image.resize((width, self.height), pillow.Resampling.BILINEAR)
                pixels = np.asarray(image, dtype=np.uint8)
        except Exception as error:
            # Decoders raise whatever they like on damaged files: OSError, ValueError, SyntaxError,
            # struct.error, IndexError, DecompressionBombError have all been seen.
            raise ValueError(
                f"{path}: cannot be read as an image: {type(error).__name__}: {error}"
            ) from error
        return pixels[np.newaxis] if self.channels == 1 else pixels.transpose(2, 0, 1)


def _are_folders(labels: object) -> bool:
    return isinstance(labels, str) and labels == FOLDERS


def _open_regular(path: Path) -> BinaryIO:
    """Open a regular file; a named pipe that took its place since then does not block."""
    nonblocking = getattr(os, "O_NONBLOCK", 0)
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | nonblocking)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError("not a regular file")
    return os.fdopen(descriptor, "rb")


def _check_depth(file: Any) -> None:
    """Refuse more than 8 bits a channel, which Pillow cuts to 8 for some modes.

    The mode tells it for gray. For colours and alpha it is how the file's own pixels are laid out
    ("RGB;16B"), a PPM file's largest value, or a TIFF file's bits.
    """
    deep = file.mode not in _MODES
    for tile in file.tile:
        arguments = tile[3] if isinstance(tile[3], tuple) else (tile[3],)
        deep |= any(isinstance(each, str) and ";16" in each for each in arguments)
        if tile[0] in ("ppm", "ppm_plain"):
            deep |= any(isinstance(each, int) and each > 255 for each in arguments)
    bits = getattr(file, "tag_v2", {}).get(_BITS_PER_SAMPLE, (8,))
    deep |= max(bits if isinstance(bits, tuple) else (bits,)) > 8
    if deep:
        raise ValueError(f"mode {file.mode!r} has more than 8 bits a channel")


def _among(left_out: list[LeftOut]) -> str:
    return f"; left out, first {left_out[0].reason}" if left_out else ""

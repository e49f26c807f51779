"""Pictures of batches and of counts, drawn with Pillow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._checks.inspection import Inspection
from onemodel._common.extras import require
from onemodel._common.files import check_path, check_writable

__all__ = ["as_rgb", "check_picture", "counts_picture", "rows_picture"]

PADDING = (190, 210, 245)
INK = (60, 90, 160)
GAP = 8
LINE = 12  # of Pillow's own font


def check_picture(path: str) -> Path:
    """Return where a picture goes, checked before the work; Pillow is there.

    Raises:
        ModuleNotFoundError: Pillow is missing.
        OSError, ValueError: nothing can be written there, or it is no .png.
    """
    checked = check_path("--out", path)
    if checked.suffix.lower() != ".png":
        raise ValueError(f"--out must end in .png, got {path!r}")
    check_writable("--out", checked.parent)
    if checked.is_dir():
        raise IsADirectoryError(f"--out must be a file, got the directory {path!r}")
    require("PIL.Image", "images")
    return checked


def as_rgb(image: NDArray[Any], low: float, high: float) -> NDArray[np.uint8] | None:
    """Return an image as uint8 [H, W, 3], or None of what is no image.

    Args:
        image: [H, W], [C, H, W] or [H, W, C], C of 1 or 3.
        low: what becomes black.
        high: what becomes white.
    """
    if image.ndim == 2:
        image = image[np.newaxis]
    if image.ndim != 3:
        return None
    if image.shape[0] not in (1, 3):
        if image.shape[2] not in (1, 3):
            return None
        image = np.moveaxis(image, 2, 0)
    span = high - low if high > low else 1.0
    scaled = np.clip((image.astype(np.float64) - low) / span, 0.0, 1.0)
    pixels = np.rint(255 * np.nan_to_num(scaled)).astype(np.uint8)
    return np.ascontiguousarray(np.broadcast_to(pixels, (3, *pixels.shape[1:])).transpose(1, 2, 0))


def rows_picture(
    title: str,
    images: Sequence[NDArray[np.uint8] | None],
    widths: Sequence[int],
    texts: Sequence[Sequence[str]],
) -> Any:
    """Draw one row for each slot: its text at the left, its image at the right, padding tinted."""
    picture, draw_module = require("PIL.Image", "images"), require("PIL.ImageDraw", "images")
    sizes = [(0, 0) if image is None else image.shape[:2] for image in images]
    scale = max(1, 32 // max([height for height, _ in sizes] or [1], default=1))
    heights = [
        max(height * scale, LINE * len(lines)) + GAP
        for (height, _), lines in zip(sizes, texts, strict=True)
    ]
    probe = draw_module.Draw(picture.new("RGB", (1, 1)))
    text_width = int(max(probe.textlength(line) for lines in texts for line in lines)) + 2 * GAP
    image_width = max(width for _, width in sizes) * scale
    size = max(text_width + image_width, int(probe.textlength(title)) + GAP) + GAP
    sheet = picture.new("RGB", (size, sum(heights) + LINE + 3 * GAP), "white")
    draw = draw_module.Draw(sheet)
    draw.text((GAP, GAP), title, fill="black")
    top = LINE + 2 * GAP
    for image, width, lines, height in zip(images, widths, texts, heights, strict=True):
        for number, line in enumerate(lines):
            draw.text((GAP, top + number * LINE), line, fill="black")
        if image is not None:
            tinted = image.copy()
            tinted[:, width:] = PADDING
            tile = picture.fromarray(tinted)
            tile = tile.resize((tile.width * scale, tile.height * scale), 0)
            sheet.paste(tile, (text_width, top))
        top += height
    return sheet


def counts_picture(columns: Sequence[tuple[str, Inspection]]) -> Any:
    """Draw for each sampler its widths, its padding over the steps and its draws."""
    picture, draw_module = require("PIL.Image", "images"), require("PIL.ImageDraw", "images")
    width, height = 320, 150
    panels = [_panels(found) for _, found in columns]
    rows = max(len(each) for each in panels)
    size = (width + GAP) * len(columns) + GAP, (height + GAP) * rows + LINE + 2 * GAP
    sheet = picture.new("RGB", size, "white")
    draw = draw_module.Draw(sheet)
    for column, ((name, _), each) in enumerate(zip(columns, panels, strict=True)):
        left = GAP + column * (width + GAP)
        draw.text((left, GAP), name, fill="black")
        for row, (title, bars, low, high) in enumerate(each):
            top = LINE + 2 * GAP + row * (height + GAP)
            _draw_bars(draw, (left, top, width, height), title, bars, low, high)
    return sheet


#: A title, the heights of the bars, and what stands below the first and the last one.
Panel = tuple[str, NDArray[np.float64], str, str]


def _panels(found: Inspection) -> list[Panel]:
    panels: list[Panel] = []
    if found.widths.size:
        counts, edges = np.histogram(found.widths, bins=40, weights=found.draws)
        panels.append(
            ("draws by width", counts.astype(float), f"{edges[0]:.0f}", f"{edges[-1]:.0f}")
        )
        steps = np.array_split(found.padded, min(80, len(found.padded)))
        means = np.array([part.mean() for part in steps])
        title = f"padding by step, up to {means.max():.0%}"
        panels.append((title, means, "0", f"{len(found.padded) - 1}"))
    parts = np.array_split(found.draws, min(80, len(found.draws)))
    means = np.array([part.mean() for part in parts]) / found.epochs
    title = f"draws an epoch by index, up to {means.max():.2f}"
    panels.append((title, means, "0", f"{len(found.draws) - 1}"))
    return panels


def _draw_bars(
    draw: Any, box: tuple[int, int, int, int], title: str, bars: Any, low: str, high: str
) -> None:
    left, top, width, height = box
    draw.text((left, top), title, fill="black")
    bottom, space = top + height - LINE - 4, height - 3 * LINE
    most = float(bars.max()) or 1.0
    for number, bar in enumerate(bars.tolist()):
        first = left + number * width // len(bars)
        last = max(first, left + (number + 1) * width // len(bars) - 2)
        tall = round(space * bar / most)
        if tall:
            draw.rectangle((first, bottom - tall, last, bottom), fill=INK)
    draw.line((left, bottom + 1, left + width, bottom + 1), fill="black")
    draw.text((left, bottom + 3), low, fill="black")
    draw.text((left + width - draw.textlength(high), bottom + 3), high, fill="black")

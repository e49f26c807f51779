"""`onemodel show`: the batch of one step as a picture, with what it was made of."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._checks.trace import arrays_of
from onemodel._cli._loaders.named import HELP as NAMED
from onemodel._cli._loaders.named import make_named, of_user
from onemodel._cli._loaders.pictures import as_rgb, check_picture, rows_picture
from onemodel._cli.exit_codes import SAME
from onemodel._common.integers import check_integer, check_uint64
from onemodel.loader import DataLoader

__all__ = ["add_arguments", "run"]

#: What `explain` says of a slot beside its generator states.
PLACE = ("slot", "index")

HELP = "draw the batch of one step, and say what it was made of"
DESCRIPTION = (
    "Build the batch of global step G and draw its first images, each with its slot, dataset "
    "index, target, label and generator states."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("target", metavar="MAKE_LOADER", help=NAMED)
    parser.add_argument("step", metavar="G", type=int, help="the global step")
    parser.add_argument("--rows", type=int, default=16, metavar="N", help="default %(default)s")
    parser.add_argument(
        "--out", default="batch.png", metavar="FILE.png", help="default %(default)s"
    )


def run(parsed: argparse.Namespace) -> int:
    """Draw a batch, print what it was made of, and return the exit code."""
    g = check_uint64("G", parsed.step)
    rows = check_integer("--rows", parsed.rows, 1, 2**31)
    out = check_picture(parsed.out)
    loader = make_named(parsed.target)
    arrays, slots = of_user(parsed.target, lambda: _built(loader, g))
    shown = slots[:rows]
    texts = [_text(arrays, place, slot, len(slots)) for place, slot in enumerate(shown)]
    title = (
        f"{parsed.target}, global step {g}: epoch {g // loader.steps_per_epoch}, "
        f"step {g % loader.steps_per_epoch}, seed {loader.seed}"
    )
    print(title)
    for name, array in arrays.items():
        print(f"  {name}: {array.dtype} {list(array.shape)}")
    for lines in texts:
        print("  " + "; ".join(lines))
    name, pixels = _images(arrays, len(slots))
    if not shown or pixels is None:
        raise ValueError(
            f"the batch of global step {g} must hold images [B, C, H, W], [B, H, W, C] or "
            f"[B, H, W] to be drawn, got {[f'{a.dtype} {list(a.shape)}' for a in arrays.values()]}"
        )
    finite = pixels[np.isfinite(pixels)] if pixels.dtype.kind == "f" else pixels
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if pixels.dtype == np.uint8:
        low, high = 0.0, 255.0
    images = [as_rgb(pixels[place], low, high) for place in range(len(shown))]
    widths = arrays.get(f"{name.removesuffix('images')}widths")
    full = [0 if image is None else image.shape[1] for image in images]
    real = full if widths is None else [int(width) for width in widths[: len(shown)]]
    rows_picture(title, images, real, texts).save(out)
    print(f"{len(shown)} of {len(slots)} slots: {out}")
    return SAME


def _built(loader: DataLoader, g: int) -> tuple[dict[str, NDArray[Any]], list[dict[str, Any]]]:
    """Return the arrays of a step, without ``device=``, and what explains them."""
    return arrays_of(loader._builder.build(g)), loader.explain(g)["slots"]


def _images(arrays: dict[str, NDArray[Any]], rows: int) -> tuple[str, NDArray[Any] | None]:
    """Return the first array that holds an image for each slot."""
    for name, array in arrays.items():
        numbers = array.dtype.kind in "buif" and array.size
        if numbers and array.ndim in (3, 4) and len(array) == rows and _is_image(array[0]):
            return name, array
    return "", None


def _is_image(array: NDArray[Any]) -> bool:
    return as_rgb(array, 0.0, 1.0) is not None


def _text(
    arrays: dict[str, NDArray[Any]], place: int, slot: dict[str, Any], rows: int
) -> list[str]:
    """Return the lines that describe a slot."""
    lines = [
        f"slot {slot['slot']}, index {slot['index']}",
        *(f"{name} {state:#018x}" for name, state in slot.items() if name not in PLACE),
    ]
    lengths, targets = arrays.get("batch.target_lengths"), arrays.get("batch.targets")
    values = []
    if lengths is not None and targets is not None:
        end = int(lengths[: place + 1].sum())
        target = targets[end - int(lengths[place]) : end].tolist()
        values.append(f"target {' '.join(map(str, target))}")
    for name, array in arrays.items():
        if array.ndim == 1 and len(array) == rows and array is not lengths:
            short = name.removeprefix("batch").strip(".[]'")
            if short not in ("indices", "targets"):
                values.append(f"{short or 'value'} {array[place]}")
    return [*lines, ", ".join(values)] if values else lines

"""Collation, by the reference path. Source: section 4 of the normative text, "Collation".

Copy each sample to a contiguous scratch, let the augmentation edit the scratch in place, copy the
result to the batch. One image after the other, no fusion.
"""

from typing import NamedTuple

import numpy as np

from .rng import STREAM_AUGMENTATION, SampleRng, derive


class Sample(NamedTuple):
    """A planar float32 image [C, H, W] with its target and label."""

    image: np.ndarray
    target: tuple = ()
    label: int = 0


def collate_images(
    samples,
    indices,
    seed,
    epoch,
    step,
    first_slot=0,
    *,
    width_multiple=1,
    pad_value=0.0,
    augment=None,
    targets="concatenated",
    target_multiple=1,
    label_dtype="int32",
    pad_to=None,
    whole=None,
):
    """The six outputs of a batch as a dict; slots count from `first_slot`.

    `whole` are the samples of the global batch, which `pad_to="global"` looks at. Source of the
    forms: docs/specification.md, "Forms of a batch".
    """
    deciding = whole if pad_to == "global" and whole is not None else samples
    channels, height, _ = deciding[0].image.shape
    widths = [sample.image.shape[2] for sample in samples]
    padded = _rounded_up(max(sample.image.shape[2] for sample in deciding), width_multiple)
    if isinstance(pad_to, int):
        assert padded <= pad_to
        padded = pad_to

    images = np.full((len(samples), channels, height, padded), pad_value, dtype=np.float32)
    symbols = []
    for row, sample in enumerate(samples):
        scratch = np.array(sample.image, dtype=np.float32, order="C")
        if augment is not None:
            slot = first_slot + row
            augment(SampleRng(derive(seed, epoch, step, slot, STREAM_AUGMENTATION)), scratch)
        images[row, :, :, : widths[row]] = scratch
        symbols.append([int(symbol) for symbol in sample.target])

    if targets == "padded":
        longest = max(1, *(len(sample.target) for sample in deciding))
        columns = _rounded_up(longest, target_multiple)
        rows = [row + [0] * (columns - len(row)) for row in symbols]
        laid_out = np.array(rows, dtype=np.int32).reshape(len(samples), columns)
    else:
        laid_out = np.array([symbol for row in symbols for symbol in row], dtype=np.int32)

    return {
        "images": images,
        "widths": np.array(widths, dtype=np.int32),
        "targets": laid_out,
        "target_lengths": np.array([len(sample.target) for sample in samples], dtype=np.int32),
        "labels": np.array([sample.label for sample in samples], dtype=label_dtype),
        "indices": np.array(indices, dtype=np.int32),
    }


def _rounded_up(size, multiple):
    return -(-size // multiple) * multiple

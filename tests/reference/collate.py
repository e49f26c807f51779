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
):
    """The six outputs of a batch as a dict; slots count from `first_slot`."""
    channels, height, _ = samples[0].image.shape
    widths = [sample.image.shape[2] for sample in samples]
    padded = -(-max(widths) // width_multiple) * width_multiple

    images = np.full((len(samples), channels, height, padded), pad_value, dtype=np.float32)
    targets = []
    for row, sample in enumerate(samples):
        scratch = np.array(sample.image, dtype=np.float32, order="C")
        if augment is not None:
            slot = first_slot + row
            augment(SampleRng(derive(seed, epoch, step, slot, STREAM_AUGMENTATION)), scratch)
        images[row, :, :, : widths[row]] = scratch
        targets += [int(symbol) for symbol in sample.target]

    return {
        "images": images,
        "widths": np.array(widths, dtype=np.int32),
        "targets": np.array(targets, dtype=np.int32),
        "target_lengths": np.array([len(sample.target) for sample in samples], dtype=np.int32),
        "labels": np.array([sample.label for sample in samples], dtype=np.int32),
        "indices": np.array(indices, dtype=np.int32),
    }

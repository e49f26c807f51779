"""Transforms and how they are put together.

It knows arrays of a batch and random draws.
It must not know samples, datasets or the loader.

Transforms of the array face, ``transform(rng, batch) -> batch`` with a batch that is an array, a
tuple or a dict: RandomHorizontalFlip, RandomCrop, Cutout and Normalize act on its images, Mixup
and CutMix on images and labels, OneHot on labels. docs/transforms.md specifies each.
"""

from onemodel._common.compose import Compose
from onemodel.transforms.geometry import Cutout, RandomCrop, RandomHorizontalFlip
from onemodel.transforms.mixup import CutMix, Mixup
from onemodel.transforms.normalize import Normalize
from onemodel.transforms.one_hot import OneHot

__all__ = [
    "Compose",
    "CutMix",
    "Cutout",
    "Mixup",
    "Normalize",
    "OneHot",
    "RandomCrop",
    "RandomHorizontalFlip",
]

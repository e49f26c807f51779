"""The native augmentations, by name.

It knows images [C, H, W], samples and random draws.
It must not know batches, other datasets or the loader.

As ``ImageBatchCollator(augment=...)`` they run inside the pass that makes the batch, without
the GIL; called as ``augmentation(rng, image)`` they edit a float32 array [C, H, W] in place and
give the same bytes. ``onemodel.Compose`` puts several in a row and mixes them with Python
callables.

StretchWidth and ResizeHeight change the shape: they are for ``DataLoader(transform=...)`` and
return a new Sample. docs/augmentations.md defines every draw and every operation.
"""

from onemodel.augment.pointwise import Erase, GainOffset, Invert, Noise
from onemodel.augment.protocol import NativeAugmentation
from onemodel.augment.resize import ResizeHeight, StretchWidth
from onemodel.augment.spatial import Blur, HorizontalFlip, Shift

__all__ = [
    "Blur",
    "Erase",
    "GainOffset",
    "HorizontalFlip",
    "Invert",
    "NativeAugmentation",
    "Noise",
    "ResizeHeight",
    "Shift",
    "StretchWidth",
]

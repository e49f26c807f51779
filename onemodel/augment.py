"""The native augmentations, by name.

As ``ImageBatchCollator(augment=...)`` they run inside the pass that makes the batch, without
the GIL; called as ``augmentation(rng, image)`` they edit a float32 array [C, H, W] in place and
give the same bytes. ``onemodel.Compose`` puts several in a row and mixes them with Python
callables.

StretchWidth and ResizeHeight change the shape: they are for ``DataLoader(transform=...)`` and
return a new Sample. docs/augmentations.md defines every draw and every operation.
"""

from onemodel.pointwise import Erase, GainOffset, Invert, Noise
from onemodel.resize import ResizeHeight, StretchWidth
from onemodel.spatial import Blur, HorizontalFlip, Shift
from onemodel.stages import NativeAugmentation

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

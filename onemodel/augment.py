"""The native augmentations, by name.

As ``ImageBatchCollator(augment=...)`` they run inside the pass that makes the batch, without
the GIL; called as ``augmentation(rng, image)`` they edit a float32 array [C, H, W] in place and
give the same bytes. ``onemodel.Compose`` puts several in a row and mixes them with Python
callables.
"""

from onemodel.pointwise import GainOffset
from onemodel.stages import NativeAugmentation

__all__ = ["GainOffset", "NativeAugmentation"]

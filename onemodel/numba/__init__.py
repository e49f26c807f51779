"""Augmentations and row transforms of your own, compiled by Numba: native without a C compiler.

It knows Numba, images and random draws.
It must not know batches or the loader. ``import onemodel.numba`` needs Numba.
"""

from onemodel._common.extras import require

require("numba", "numba")

from onemodel.numba.stages import augmentation, row_transform  # noqa: E402

__all__ = ["augmentation", "row_transform"]

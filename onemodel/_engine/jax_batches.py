"""``ImageBatch`` as JAX knows it: a pytree, and a part of a global batch. JAX is handed in."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

from onemodel._collate.image_batch import ImageBatch

__all__ = ["check_part", "is_sharding", "register"]


def is_sharding(device: Any) -> bool:
    """Return whether ``device`` is a ``jax.sharding.Sharding``; JAX is not imported for it.

    >>> is_sharding("jax")
    False
    """
    kind = getattr(getattr(sys.modules.get("jax"), "sharding", None), "Sharding", None)
    return isinstance(kind, type) and isinstance(device, kind)


def register(jax: Any) -> None:
    """Make ``ImageBatch`` a pytree whose leaves are its six arrays.

    ``global_rows`` and ``world`` are part of its structure, so ``loss_scale`` is there in a
    compiled function. The place in the run is not: it differs from batch to batch, and each would
    be compiled anew. Of a batch that JAX rebuilt, "epoch", "step", "global_step" and
    "real_columns" are None.
    """
    key = jax.tree_util.GetAttrKey

    def with_keys(batch: ImageBatch) -> tuple[list[tuple[Any, Any]], tuple[int | None, int]]:
        return [(key(name), array) for name, array in batch.arrays().items()], rest(batch)

    def rest(batch: ImageBatch) -> tuple[int | None, int]:
        return batch.global_rows, batch.world

    def rebuilt(structure: tuple[int | None, int], arrays: Any) -> ImageBatch:
        nowhere: Any = None
        global_rows, world = structure
        return ImageBatch(
            **dict(zip(ImageBatch.FIELDS, arrays, strict=True)),
            epoch=nowhere,
            step=nowhere,
            real_columns=nowhere,
            global_rows=global_rows,
            world=world,
        )

    def without_keys(batch: ImageBatch) -> tuple[list[Any], tuple[int | None, int]]:
        return list(batch.arrays().values()), rest(batch)

    with contextlib.suppress(ValueError):  # it is one already
        jax.tree_util.register_pytree_with_keys(ImageBatch, with_keys, rebuilt, without_keys)


def check_part(batch: Any) -> None:
    """Refuse a batch whose arrays are no equal parts of global arrays.

    Raises:
        ValueError: if targets are concatenated, or ranks have unequal parts of the global batch.
    """
    if not isinstance(batch, ImageBatch):
        return
    if batch.targets.ndim == 1:
        raise ValueError(
            "targets must be padded for a sharding, as ImageBatchCollator(targets='padded') does, "
            f"got {list(batch.targets.shape)} symbols of {len(batch)} rows"
        )
    if batch.global_rows not in (None, len(batch) * batch.world):
        raise ValueError(
            f"the global batch's rows must be divisible by its {batch.world} ranks for a "
            f"sharding, as with drop_last=True, got {batch.global_rows}"
        )

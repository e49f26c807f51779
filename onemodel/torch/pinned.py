"""Pinned memory as the backing of a buffer pool, so that copies to a device run beside the host."""

from __future__ import annotations

from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

from onemodel._memory.pool import BufferPool

__all__ = ["pinned_pool"]


def pinned_pool() -> BufferPool:
    """Return a ``BufferPool`` whose memory is pinned; an ordinary one where torch has no CUDA.

    Give it to the collator, or to the loader of an array dataset. Its batches are copied to the
    device without a stop of the host: with ``DevicePrefetcher``, which holds each batch until its
    copy is done.

    >>> import onemodel as om
    >>> collate = om.ImageBatchCollator(pool=pinned_pool())
    """
    return BufferPool(allocate=allocate_pinned if torch.cuda.is_available() else None)


def allocate_pinned(size: int) -> Any:
    """Return ``size`` bytes of pinned memory as an array, which holds the tensor behind it."""
    return torch.empty(size, dtype=torch.uint8, pin_memory=True).numpy()

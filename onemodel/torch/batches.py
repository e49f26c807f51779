"""Batches of tensors: made from arrays, moved and pinned, whatever their structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]

from onemodel._batch.structure import map_leaves
from onemodel._engine.devices import converter

__all__ = ["pin_memory", "to_device", "to_tensors"]


def to_tensors(batch: Any) -> Any:
    """Return the batch with tensors in place of arrays, on the same memory.

    Dicts, tuples, lists and ``ImageBatch`` are walked to the bottom. An array is copied only where
    no tensor can have its memory: read-only, another byte order, negative strides. What can be no
    tensor (text, dates, objects) stays as it is, and so do tensors.

    >>> import numpy as np
    >>> to_tensors({"x": np.arange(3), "names": ["a"]})
    {'x': tensor([0, 1, 2]), 'names': ['a']}
    """
    return _CONVERT(batch)


def to_device(batch: Any, device: str | torch.device, *, non_blocking: bool = False) -> Any:
    """Return the batch on a device; arrays become tensors, what can be no tensor stays.

    With ``non_blocking`` and pinned memory the copy may still run when this returns. The batch
    that is copied must then be held until the stream has passed it: ``DevicePrefetcher`` does.

    >>> import numpy as np
    >>> to_device((np.zeros(2, np.float32), [np.ones(1)]), "meta")[0].device
    device(type='meta')
    """
    return _map_tensors(batch, lambda tensor: tensor.to(device, non_blocking=non_blocking))


def pin_memory(batch: Any) -> Any:
    """Return the batch in pinned memory; what lies there already is not copied.

    Raises:
        RuntimeError: where torch has no accelerator to pin memory for.
    """
    return _map_tensors(batch, torch.Tensor.pin_memory)


_CONVERT = converter("torch")


def _map_tensors(batch: Any, function: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    def convert(leaf: Any, _name: str) -> Any:
        return function(leaf) if isinstance(leaf, torch.Tensor) else leaf

    return map_leaves(to_tensors(batch), convert)

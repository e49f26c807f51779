"""The digest of a batch: one SHA-256 over the name, dtype, shape and bytes of every array.

Source: docs/specification.md, section "Digest".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np

from onemodel._common.describe import shown

__all__ = ["digest"]


def digest(batch: Any) -> str:
    """Return the SHA-256 of a batch, as 64 hexadecimal digits.

    Equal digests mean the same arrays, byte for byte, on any machine. NaN payloads are the one
    thing that platforms differ in: keep NaN out of batches that are to be compared.

    Args:
        batch: an ``ImageBatch``; or a dict of arrays, keys in order; or a tuple or list, whose
            items are named "0", "1", ...; or one array, named "0". Tensors on the CPU serve.

    Raises:
        TypeError: if an item is no array, or holds Python objects.

    >>> import numpy as np
    >>> digest({"x": np.zeros(3, np.float32)})[:16]
    '1d9f3a6f3f8e3910'
    """
    result = hashlib.sha256()
    for name, value in _items(batch):
        if not hasattr(value, "__array__"):
            raise TypeError(f"batch must hold arrays, got {shown(value)} as {name!r}")
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError(f"batch must hold arrays of numbers, got {array.dtype} as {name!r}")
        array = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
        result.update(name.encode())
        result.update(json.dumps([array.dtype.str, list(array.shape)]).encode())
        result.update(array.reshape(-1).view(np.uint8).data)
    return result.hexdigest()


def _items(batch: Any) -> Iterator[tuple[str, Any]]:
    arrays = getattr(type(batch), "arrays", None)
    if callable(arrays):  # an ImageBatch, or a batch class of the user's that does as it does
        yield from arrays(batch).items()
    elif isinstance(batch, dict):
        for name, value in batch.items():
            yield str(name), value
    elif isinstance(batch, tuple | list):
        for position, value in enumerate(batch):
            yield str(position), value
    else:
        yield "0", batch

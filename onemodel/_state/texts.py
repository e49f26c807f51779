"""The smallest texts: of numbers, strings and dtypes; and how a text is kept short."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

__all__ = ["digest_of", "dtype_text", "encoded", "plain", "shortened"]

LONGEST = 150  # characters of a text
HEAD = 100  # of which so many stay where it would be longer


def plain(value: Any) -> str | None:
    """Return the text of a number or string, None of anything else."""
    kind = type(value)
    if kind is int:
        return hex(value) if value.bit_length() > 64 else repr(value)
    if value is None or value is Ellipsis or kind in (bool, float, complex, str, bytes):
        return repr(value)
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return f"{value.dtype}({value.item()!r})"
    return None


def dtype_text(dtype: np.dtype[Any]) -> str:
    """Return a text of a dtype that is the same on machines of the other byte order."""
    return str(dtype.newbyteorder("=" if dtype.names is None else "<"))


def shortened(text: str) -> str:
    """Return the text; of more than 150 characters its head, and a digest of all."""
    if len(text) <= LONGEST:
        return text
    return f"{text[:HEAD]}... sha256 {digest_of(encoded(text))}"


def digest_of(content: Any) -> str:
    """Return the SHA-256 of bytes, cut to 128 bits."""
    return hashlib.sha256(content).hexdigest()[:32]


def encoded(text: str) -> bytes:
    """Return the bytes of any text, also of one that is no Unicode."""
    return text.encode("utf-8", "surrogatepass")

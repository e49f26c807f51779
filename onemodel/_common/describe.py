"""Texts that name a callable or an object alike in every process."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["describe"]

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def describe(part: Any) -> str:
    """Return a qualified name for a function or class, else the repr without addresses.

    >>> describe(None), describe(describe)
    ('None', 'onemodel._common.describe.describe')
    """
    name = getattr(part, "__qualname__", None)
    if name is not None:
        return f"{part.__module__}.{name}"
    return _ADDRESS.sub("", repr(part))

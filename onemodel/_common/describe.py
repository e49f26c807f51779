"""Texts that name a callable or an object alike in every process."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["describe", "shown"]

# How much of a value an error shows.
LONGEST = 200

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


def shown(value: Any) -> str:
    """Return the repr of a value for an error: never long, and never an error itself.

    >>> shown("12"), len(shown(10**5000)) <= 203
    ("'12'", True)
    """
    try:
        text = repr(value)
    except Exception:  # a user's own, or an integer of too many digits
        text = f"a {type(value).__name__}"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."

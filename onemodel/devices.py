"""Where a batch goes when the consumer takes it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["resolve"]


def resolve(device: str | Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    """Return the function to apply to each batch, or None to keep NumPy."""
    if device is None or callable(device):
        return device
    raise ValueError(f"device must be None or a callable, got {device!r}")

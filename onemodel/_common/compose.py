"""``Compose``: transforms or augmentations one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from onemodel._common.describe import describe
from onemodel._common.overrides import is_own

__all__ = ["Compose"]


class Compose:
    """Callables one after another, at every place that takes a transform or an augmentation.

    Each part is called as ``part(rng, value)`` with the same generator, so draws follow one
    another; a part that returns None has edited its value in place. Native parts run natively.

    Args:
        parts: callables ``part(rng, value)``; a Compose among them is spliced in (not a subclass
            that overrides the call).

    Raises:
        TypeError: if a part is not callable.

    >>> from onemodel import SampleRng
    >>> Compose([lambda rng, x: x + 1, lambda rng, x: x * 2])(SampleRng(0), 3)
    8
    """

    def __init__(self, parts: Iterable[Callable[..., Any]]) -> None:
        flat: list[Callable[..., Any]] = []
        for part in parts:
            if not callable(part):
                raise TypeError(f"parts must be callables part(rng, value), got {part!r}")
            flat.extend(part.parts if is_own(part, Compose, "__call__") else [part])
        self.parts: tuple[Callable[..., Any], ...] = tuple(flat)

    def __call__(self, rng: Any, value: Any) -> Any:
        """Return ``value`` after every part."""
        for part in self.parts:
            result = part(rng, value)
            if result is not None:
                value = result
        return value

    def __repr__(self) -> str:
        return f"Compose([{', '.join(map(describe, self.parts))}])"

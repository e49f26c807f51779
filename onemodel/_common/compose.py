"""``Compose``: transforms or augmentations one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from onemodel._common.configured import Argument, Configured, configure
from onemodel._common.describe import describe, shown
from onemodel._common.overrides import is_own

__all__ = ["Compose"]


class Compose(Configured):
    """Callables one after another, at every place that takes a transform or an augmentation.

    Each part is called as ``part(rng, value)`` with the same generator, so draws follow one
    another; a part that returns None has edited its value in place. Native parts run natively.

    Args:
        parts: callables ``part(rng, value)``. A Compose among them is replaced by its parts,
            unless it is of a subclass with a call of its own.

    Raises:
        TypeError: if a part is not callable.

    >>> from onemodel import SampleRng
    >>> Compose([lambda rng, x: x + 1, lambda rng, x: x * 2])(SampleRng(0), 3)
    8
    """

    parts: Argument[tuple[Callable[..., Any], ...]] = Argument("parts", "The callables, in order.")

    def __init__(self, parts: Iterable[Callable[..., Any]]) -> None:
        try:
            given = iter(parts)
        except TypeError:
            raise TypeError(
                f"parts must be callables part(rng, value), got {shown(parts)}"
            ) from None
        flat: list[Callable[..., Any]] = []
        for part in given:
            if not callable(part):
                raise TypeError(f"parts must be callables part(rng, value), got {shown(part)}")
            own = is_own(part, Compose, "__call__", "parts", "arguments")
            flat.extend(part.parts if own else [part])  # type: ignore[attr-defined]
        configure(self, Compose, {"parts": tuple(flat)})

    def __call__(self, rng: Any, value: Any) -> Any:
        """Return ``value`` after every part."""
        for part in self.parts:
            result = part(rng, value)
            if result is not None:
                value = result
        return value

    def __repr__(self) -> str:
        return f"Compose([{', '.join(map(describe, self.parts))}])"

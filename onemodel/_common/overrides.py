"""Whether an object does what the library's own class says, so that a fast path may stand in."""

from __future__ import annotations

from typing import Any, TypeGuard, TypeVar

__all__ = ["is_own"]


Base = TypeVar("Base")


def is_own(candidate: Any, base: type[Base], *methods: str) -> TypeGuard[Base]:
    """Return whether ``candidate`` is a ``base`` whose ``methods`` are all ``base``'s own.

    A fast path skips calls of these methods. It may do so only where nobody has overridden one: a
    subclass, an attribute of the instance, or a wrapper that merely delegates.

    >>> is_own([], list, "__getitem__"), is_own({}, list)
    (True, False)
    >>> class Noisy(list):
    ...     def __getitem__(self, index):
    ...         return "noise"
    >>> is_own(Noisy(), list, "__getitem__"), is_own(Noisy(), list, "__len__")
    (False, True)
    """
    kind = type(candidate)
    if not issubclass(kind, base):
        return False
    if kind is not base and kind.__getattribute__ is not base.__getattribute__:
        return False
    own = getattr(candidate, "__dict__", {})
    return all(
        method not in own and _found(kind, method) is _found(base, method) for method in methods
    )


def _found(kind: type, name: str) -> Any:
    """Return what the class's method resolution finds under the name, without binding it."""
    for each in kind.__mro__:
        if name in each.__dict__:
            return each.__dict__[name]
    return None

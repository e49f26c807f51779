"""Whether an object does what our class does: the question before every fast path."""

from __future__ import annotations

from typing import Any, TypeGuard, TypeVar

__all__ = ["is_own"]

T = TypeVar("T")

_LOOKUPS = ("__getattribute__", "__getattr__")


def is_own(obj: object, base: type[T], *methods: str) -> TypeGuard[T]:
    """Return whether ``obj`` is a ``base`` that takes every one of ``methods`` from it.

    A fast path that does without calling ``obj.method()`` may be taken only then. It is not
    where a subclass overrides one, where an attribute of the object has the name of one, or where
    the class has a ``__getattr__`` or ``__getattribute__`` of its own. What ``obj.__class__`` says
    counts for nothing.

    >>> class Loud(dict):
    ...     def __getitem__(self, key):
    ...         return f"{key}!"
    >>> is_own({}, dict, "__getitem__"), is_own(Loud(), dict, "__getitem__")
    (True, False)
    >>> is_own(Loud(), dict, "__len__")
    True
    """
    kind = type(obj)
    if not issubclass(kind, base):
        return False
    if kind is not base and any(
        _found(kind, name) is not _found(base, name) for name in (*methods, *_LOOKUPS)
    ):
        return False
    try:
        attributes = object.__getattribute__(obj, "__dict__")
    except AttributeError:
        return True
    return not any(name in attributes for name in methods)


def _found(kind: type, name: str) -> Any:
    """Return what the class or its bases hold under the name, without asking a descriptor."""
    for each in type.__dict__["__mro__"].__get__(kind):
        if name in vars(each):
            return vars(each)[name]
    return None

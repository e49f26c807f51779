"""Whether an object does what our class does: the question before every fast path."""

from __future__ import annotations

from types import FunctionType
from typing import Any, TypeGuard, TypeVar

__all__ = ["bound", "is_own"]

T = TypeVar("T")

_LOOKUPS = ("__getattribute__", "__getattr__")


def is_own(obj: object, base: type[T], *methods: str) -> TypeGuard[T]:
    """Return whether ``obj`` is a ``base`` that takes every one of ``methods`` from it.

    A fast path that does without calling ``obj.method()`` may be taken only then. It is not
    where a subclass overrides one, where an attribute of the object has the name of one, where the
    class has a ``__getattr__`` or ``__getattribute__`` of its own, or where our own class was
    patched. What ``obj.__class__`` says counts for nothing.

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
    public = [name for name in methods if name.startswith("__") or not name.startswith("_")]
    if not all(_is_ours(_found(base, name)) for name in public):
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


def bound(obj: object, method: str) -> Any:
    """Return a special method as Python's own calls find it: in the class, bound to ``obj``.

    >>> bound([1, 2], "__len__")()
    2
    """
    found = _found(type(obj), method)
    bind = getattr(type(found), "__get__", None)
    return found if bind is None else bind(found, obj, type(obj))


def _is_ours(found: Any) -> bool:
    """Return whether a function was written in this package, and not put into our class."""
    if isinstance(found, FunctionType):
        return str(found.__globals__.get("__name__")).startswith("onemodel.")
    return hasattr(type(found), "__get__") or not callable(found)  # a mock is no method


def _found(kind: type, name: str) -> Any:
    """Return what the class or its bases hold under the name, without asking a descriptor."""
    for each in type.__dict__["__mro__"].__get__(kind):
        if name in vars(each):
            return vars(each)[name]
    return None

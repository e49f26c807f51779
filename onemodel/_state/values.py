"""A text for any value: the same in every process and Python, and another for another value.

An object is described by what a pickle of it would hold, a function by its qualified name, its
defaults and the values that it closes over. No address gets into a text, and no module: a function
of ``__main__`` is the same function when its file is imported. Arrays take part whole, by digest.
"""

from __future__ import annotations

import copyreg
import functools
import random
import re
from collections.abc import Iterable
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._common.configured import Configured, rebuild
from onemodel._state.code import code_digest, names_in
from onemodel._state.texts import digest_of, dtype_text, encoded, plain, shortened
from onemodel.datasets._table.mapped import MappedArray, restored

__all__ = ["Describer", "fingerprint_of", "is_ours"]

DEEPEST = 40  # containers in containers

#: The methods that a loader calls: where the code of an object begins.
ENTRIES = ("__call__", "batch_indices", "from_columns", "steps_per_epoch", "batch_size")

#: Their state is where a draw left them, and says nothing of how they were made.
GENERATORS = (np.random.Generator, np.random.BitGenerator, np.random.RandomState, random.Random)

_NEW = object().__reduce_ex__(2)[0]  # how a pickle makes most objects

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


class Describer:
    """Makes the texts of one part of a loader, and collects the code behind it.

    Args:
        without: arguments of the library's own classes that take no part.

    >>> describer = Describer()
    >>> describer.text({"p": 0.5, "mean": np.zeros(3)})[:36]
    "{'p': 0.5, 'mean': float64 [3] sha25"
    """

    def __init__(self, without: Iterable[str] = ()) -> None:
        self._without = frozenset(without)
        self._texts: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no id is used again
        self._codes: set[str] = set()
        self._kinds: set[type] = set()
        self._depth = 0

    @property
    def code(self) -> str | None:
        """A digest of all Python code that was found, of this Python; None where there is none."""
        return digest_of(encoded("\n".join(sorted(self._codes)))) if self._codes else None

    def text(self, value: Any) -> str:
        """Return the text of a value, of at most 150 characters; a longer one ends in a digest."""
        short = plain(value)
        if short is not None:
            return shortened(short)
        known = self._texts.get(id(value))
        if known is not None:
            return known
        kind = f"<{type(value).__qualname__}>"
        if self._depth > DEEPEST:
            return kind
        self._kept.append(value)
        self._texts[id(value)] = kind  # where it holds itself
        self._depth += 1
        try:
            made = shortened(self._compound(value))
        except Exception:  # a method of the value's own may raise anything
            made = kind
        self._depth -= 1
        self._texts[id(value)] = made
        return made

    def sampler_text(self, sampler: Any) -> str:
        """Return the text of a sampler: its repr, which shows every argument, if it has its own."""
        kind = type(sampler)
        owner = next(base for base in kind.__mro__ if "__repr__" in vars(base))
        if owner is object or is_ours(owner):
            return self.text(sampler)
        self._add_methods(kind)
        try:
            return shortened(_ADDRESS.sub("", repr(sampler)))
        except Exception:
            return f"<{kind.__qualname__}>"

    def _compound(self, value: Any) -> str:
        kind = type(value)
        if kind is list:
            return f"[{self._joined(value)}]"
        if kind is tuple:
            return f"({self._joined(value)})"
        if kind in (set, frozenset):
            return f"{{{', '.join(sorted(map(self.text, value)))}}}"
        if kind is dict:
            return f"{{{', '.join(f'{self.text(k)}: {self.text(v)}' for k, v in value.items())}}}"
        if kind in (np.ndarray, np.memmap):
            return self._array(value)
        if kind is FunctionType:
            return self._function(value)
        if kind is MethodType:
            return f"{self.text(value.__func__)} of {self.text(value.__self__)}"
        if kind is functools.partial:
            arguments = [self.text(each) for each in (value.func, *value.args)]
            return f"partial({', '.join([*arguments, *self._named(value.keywords.items())])})"
        if isinstance(value, type):
            return value.__qualname__
        if isinstance(value, ModuleType):
            return value.__name__
        if isinstance(value, np.dtype):
            return dtype_text(value)
        if kind is MappedArray:
            return self._array(restored(value))
        if isinstance(value, GENERATORS):
            return f"<{kind.__qualname__}>"
        return self._object(value)

    def _joined(self, values: Iterable[Any]) -> str:
        return ", ".join(map(self.text, values))

    def _named(self, items: Iterable[tuple[Any, Any]]) -> list[str]:
        return [f"{name}={self.text(value)}" for name, value in items]

    def _array(self, array: NDArray[Any]) -> str:
        dtype = array.dtype.newbyteorder("<")
        head = f"{dtype_text(array.dtype)} {list(array.shape)}"
        if dtype.hasobject:
            return f"{head} {self._joined(array.ravel().tolist())}"
        ordered = np.ascontiguousarray(array, dtype).reshape(-1)
        return f"{head} sha256 {digest_of(ordered.view(np.uint8) if array.size else b'')}"

    def _function(self, function: FunctionType) -> str:
        code = function.__code__
        defaults = function.__defaults__ or ()
        parameters = code.co_varnames[: code.co_argcount]
        named = list(zip(parameters[-len(defaults) :], defaults, strict=False))
        named += (function.__kwdefaults__ or {}).items()
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                named.append((name, cell.cell_contents))
            except ValueError:  # not set yet
                named.append((name, None))
        named += sorted((name, v) for name, v in vars(function).items() if name != "__wrapped__")
        if not is_ours(function):
            self._codes.add(code_digest(function))
            for name in dict.fromkeys(names_in(code)):
                found = function.__globals__.get(name)
                mine = type(found) is FunctionType and found.__module__ == function.__module__
                if mine or isinstance(found, Configured):
                    self._codes.add(self.text(found))
        values = ", ".join(self._named(named))
        return f"{function.__qualname__}[{values}]" if values else function.__qualname__

    def _object(self, value: Any) -> str:
        kind = type(value)
        self._add_methods(kind)
        own = fingerprint_of(value)
        if own is not None:
            return f"{kind.__qualname__}({own})"
        wrapped = _attribute(value, "__wrapped__")
        if wrapped is not None:
            return self.text(wrapped)
        if hasattr(kind, "__dlpack__"):  # it is in memory
            detach = getattr(value, "detach", None)  # of a tensor
            array = np.asarray(detach().cpu() if callable(detach) else value)
            return f"{kind.__qualname__} {self._array(array)}"
        try:
            reduce = copyreg.dispatch_table.get(kind)
            reduced = value.__reduce_ex__(2) if reduce is None else reduce(value)
        except Exception:
            shown = _ADDRESS.sub("", repr(value))
            return f"<{kind.__qualname__}>" if shown.startswith("<") else shown
        if isinstance(reduced, str):
            return f"{getattr(value, '__module__', None) or kind.__qualname__}.{reduced}"
        return f"{kind.__qualname__}({', '.join(self._parts(kind, *reduced))})"

    def _parts(
        self,
        kind: type,
        function: Any,
        arguments: Any,
        state: Any = None,
        items: Any = None,
        pairs: Any = None,
        *_: Any,
    ) -> list[str]:
        """Return the texts of what ``__reduce_ex__`` gave."""
        if function is rebuild:
            _, owner, given = arguments
            usual = _defaults(owner)
            parts = self._named(
                (name, each)
                for name, each in given.items()
                if not (name in self._without or (name in usual and _same(each, usual[name])))
            )
        elif function is _NEW:
            parts = [self.text(each) for each in arguments[1:]]
        else:
            parts = [self.text(each) for each in arguments]
            if function is not kind:  # by name: its code is not what the loader calls
                parts.insert(0, getattr(function, "__qualname__", None) or self.text(function))
        slots = None
        if isinstance(state, tuple) and len(state) == 2 and isinstance(state[1], dict):
            state, slots = state
        for attributes in (state, slots):
            if isinstance(attributes, dict):
                parts += self._named(sorted(attributes.items()))
            elif attributes is not None:
                parts.append(self.text(attributes))
        parts += [self.text(each) for each in items or ()]
        return parts + [f"{self.text(key)}: {self.text(each)}" for key, each in pairs or ()]

    def _add_methods(self, kind: type) -> None:
        """Collect the code of the methods that a loader calls, and of those that they name."""
        if kind in self._kinds:
            return
        self._kinds.add(kind)
        wanted = list(ENTRIES)
        seen = set()
        for name in wanted:  # it grows meanwhile
            method = None if name in seen else _method(kind, name)
            seen.add(name)
            if method is not None:
                self._codes.add(self.text(method))
                wanted.extend(names_in(method.__code__))


def fingerprint_of(value: Any) -> str | None:
    """Return a text that stands for all that an object holds, or None if it has none.

    The user's own word is an attribute ``fingerprint``, a string or an integer. A table that was
    opened has what its manifest says of its bytes.
    """
    found = _attribute(value, "fingerprint")
    words = []
    if isinstance(found, str | int | np.integer) and not isinstance(found, bool):
        word = str(found) if isinstance(found, str) else int(found)
        words.append(f"fingerprint {shortened(plain(word) or '')}")
    stored = _attribute(value, "stored_digest")
    if isinstance(stored, str):
        words.append(f"stored digest {stored}")
    return ", ".join(words) or None


def _attribute(value: Any, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # of an object that invents attributes
        return None


def is_ours(made: type | FunctionType) -> bool:
    """Return whether a class or function is the library's: no code of it takes part.

    The library promises the bytes of each version, and an object of it never changes.
    """
    return str(made.__module__).partition(".")[0] == "onemodel"


def _method(kind: type, name: str) -> FunctionType | None:
    """Return a method or property that a user's class has in Python."""
    for base in kind.__mro__:
        found = vars(base).get(name)
        if found is not None:
            for inner in ("__func__", "fget", "func"):
                found = getattr(found, inner, None) or found
            return found if type(found) is FunctionType and not is_ours(found) else None
    return None


def _defaults(owner: type) -> dict[str, Any]:
    """Return the default arguments of a class whose ``__init__`` is Python.

    An argument that has its default takes no part, so that a class may get another one later.
    """
    made = vars(owner).get("__init__")
    if type(made) is not FunctionType:
        return {}
    values = made.__defaults__ or ()
    names = made.__code__.co_varnames[: made.__code__.co_argcount]
    return {**dict(zip(names[-len(values) :], values, strict=False)), **(made.__kwdefaults__ or {})}


def _same(value: Any, other: Any) -> bool:
    """Return whether two plain values are equal."""
    text = plain(value)
    return type(value) is type(other) and text is not None and text == plain(other)

"""A function's code as a digest: what it does, without where it stands and how it is written.

Bytecode is not the same from one Python to the next, so a digest belongs to one Python.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType
from typing import Any

__all__ = ["PYTHON", "code_digest", "names_in"]

#: The Python that digests of code belong to: two of them are compared only if it is the same.
PYTHON = (
    f"{sys.implementation.name} {sys.version.split()[0]}{getattr(sys, 'abiflags', '')}"
    f"{' -' + 'O' * sys.flags.optimize if sys.flags.optimize else ''}"
)

TAKES_MORE = 0x0C  # the flags of *args and **kwargs


def code_digest(function: FunctionType) -> str:
    """Return a digest of the function's instructions, constants and names.

    File, line numbers, names of local variables, the docstring and the module take no part.

    >>> def first(x):
    ...     "Double it."
    ...     return x * 2
    >>> def second(y):
    ...     "Return the double."
    ...     return y * 2
    >>> code_digest(first) == code_digest(second) != code_digest(lambda x: x * 3)
    True
    """
    text = _code_text(function.__code__, function.__doc__)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def names_in(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that the code uses, inner functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_in(constant)


def _code_text(code: CodeType, documentation: str | None = None) -> str:
    constants = list(code.co_consts)
    if constants and documentation is not None and constants[0] == documentation:
        constants[0] = None
    parts = (
        (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount),
        code.co_flags & TAKES_MORE,
        code.co_code.hex(),
        getattr(code, "co_exceptiontable", b"").hex(),
        code.co_names,
        [_constant_text(constant) for constant in constants],
    )
    return repr(parts)


def _constant_text(constant: Any) -> str:
    if isinstance(constant, CodeType):
        return _code_text(constant)
    if isinstance(constant, tuple):
        return f"({', '.join(map(_constant_text, constant))})"
    if isinstance(constant, frozenset):  # its order is another one in each process
        return f"{{{', '.join(sorted(map(_constant_text, constant)))}}}"
    try:
        return repr(constant)
    except ValueError:  # an integer of more digits than Python prints
        return hex(constant)

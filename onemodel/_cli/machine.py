"""What a digest may depend on and must not: the machine, the compiler, the versions."""

from __future__ import annotations

import platform
import re
import sys
from pathlib import Path

import numpy as np

from onemodel import __version__
from onemodel._simd import dispatch

__all__ = ["compiler", "describe_machine", "versions"]

# What compilers leave in what they make: GCC and Clang a comment section, MSVC nothing of use.
_COMPILER = re.compile(rb"GCC: \([^()\0]*\) [0-9][0-9.]*|clang version [0-9][0-9.]*")


def versions() -> str:
    """Name the versions in one line, for people."""
    return (
        f"onemodel {__version__}, NumPy {np.__version__}, "
        f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
    )


def compiler() -> str | None:
    """Return the compilers named in the kernels' own file, or None if it names none."""
    if not dispatch.__file__:
        return None
    # More than one where the system's start files came from another compiler.
    found = set(_COMPILER.findall(Path(dispatch.__file__).read_bytes()))
    return ", ".join(sorted(each.decode("ascii", "replace") for each in found)) or None


def describe_machine() -> dict[str, str | int | None]:
    """Return the machine, the compilers and the versions by name; every value fits in JSON.

    >>> describe_machine()["byte_order"] in ("little", "big")
    True
    """
    return {
        "onemodel": __version__,
        "numpy": np.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "python_compiler": platform.python_compiler(),
        "compiler": compiler(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "byte_order": sys.byteorder,
        "pointer_bits": 64 if sys.maxsize > 2**32 else 32,
        "vectors": dispatch.selected(),
    }

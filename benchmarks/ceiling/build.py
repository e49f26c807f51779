"""Compile the C ceilings with the system's compiler and load them with ctypes."""

from __future__ import annotations

import ctypes
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

FLAGS = ("-O3", "-ffp-contract=off", "-shared", "-fPIC", "-pthread")
"""The flags of the package's own extensions: no fast-math, no -march=native."""

SOURCES = ("lines.c", "arrays.c", "permutation.c", "threads.c")


class CeilingMissingError(RuntimeError):
    """There is no C compiler here, or it failed; the message says which."""


@functools.cache
def library() -> ctypes.CDLL:
    """Return the compiled ceilings (built once a process, in a temporary folder)."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        raise CeilingMissingError("no C compiler: neither $CC, cc nor gcc was found")
    folder = Path(__file__).parent
    with tempfile.TemporaryDirectory(prefix="onemodel-ceiling-") as scratch:
        target = Path(scratch) / "ceiling.so"
        command = [compiler, *FLAGS, *(str(folder / name) for name in SOURCES), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise CeilingMissingError(f"{' '.join(command)} failed:\n{done.stderr.strip()}")
        loaded = ctypes.CDLL(str(target))
    for name in ("lines_kernel", "arrays_kernel"):
        getattr(loaded, name).restype = ctypes.c_char_p
    for name in ("lines_run", "arrays_run", "permutation_take", "permutation_take_blocks"):
        getattr(loaded, name).restype = None
    return loaded


def compiler_version() -> str:
    """Return the first line of what the compiler says about itself, or why there is none."""
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
    if compiler is None:
        return "none"
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.stdout else compiler


def kernels(listing: str) -> dict[str, int]:
    """Return the kernels of `lines_kernel` or `arrays_kernel` that this CPU can run, by name."""
    lookup = getattr(library(), listing)
    found: dict[str, int] = {}
    number = 0
    while (name := lookup(number)) is not None:
        if name:
            found[name.decode()] = number
        number += 1
    return found

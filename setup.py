"""Build the Cython kernels. Everything else about the project is in pyproject.toml."""

import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# -ffp-contract=off: GCC and clang otherwise fuse a * b + c where the target has a fused
# multiply-add, and a fused product rounds once where the specification rounds twice.
# The flags stand here and not in CFLAGS, which builders replace.
FLAGS = ["/O2", "/fp:precise"] if sys.platform == "win32" else ["-O3", "-ffp-contract=off", "-g0"]

# A browser downloads what is built for Emscripten, so there only modules with long loops are
# compiled for speed, and Cython leaves out what spares time in Python code and not in loops.
# pyodide-build puts CFLAGS after a module's own flags; behind -Xclang the module's level counts.
EMSCRIPTEN = "emscripten" in sysconfig.get_platform()
LEVELS = {"collate": "-O3", "permutation": "-Os", "dispatch": "-O3"}
SMALL = [
    "-DCYTHON_CLINE_IN_TRACEBACK=0",
    "-DCYTHON_USE_TYPE_SLOTS=0",
    "-DCYTHON_UNPACK_METHODS=0",
    "-DCYTHON_FAST_PYCALL=0",
    "-DCYTHON_USE_PYLIST_INTERNALS=0",
    "-DCYTHON_USE_UNICODE_INTERNALS=0",
    "-DCYTHON_USE_PYLONG_INTERNALS=0",
    "-DCYTHON_AVOID_BORROWED_REFS=0",
]


def kernel(path):
    """Return the extension of one .pyx file."""
    name, sources = ".".join(path.with_suffix("").parts), [path.as_posix()]
    if not EMSCRIPTEN:
        return Extension(name, sources, extra_compile_args=FLAGS)
    level = ["-Xclang", LEVELS.get(path.stem, "-Oz")]
    return Extension(name, sources, extra_compile_args=[*FLAGS, *level, *SMALL])


kernels = [kernel(path) for path in sorted(Path("onemodel").rglob("*.pyx"))]

directives = {
    "language_level": 3,
    "boundscheck": False,  # every kernel checks at its Python door
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    # Functions are plain built-in ones, a third of the size; their signatures stay readable.
    "binding": False,
    "embedsignature": True,
    "embedsignature.format": "clinic",
    "auto_pickle": False,  # what can be pickled has its own __reduce__
}

setup(
    ext_modules=cythonize(kernels, compiler_directives=directives),
    options={} if EMSCRIPTEN else {"build_ext": {"parallel": True}},
)

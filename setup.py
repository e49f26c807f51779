"""Build the Cython kernels. Everything else about the project stands in pyproject.toml."""

import sys
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup

# -ffp-contract=off: GCC and clang otherwise fuse a * b + c where the target has a fused
# multiply-add, and a fused product rounds once where the specification rounds twice.
# The flags stand here and not in CFLAGS, which builders replace.
FLAGS = ["/O2", "/fp:precise"] if sys.platform == "win32" else ["-O3", "-ffp-contract=off", "-g0"]

# One module holds what every typed memoryview needs; the others import it and stay small.
SHARED = "onemodel._cython_shared"

kernels = [
    Extension(f"onemodel.{path.stem}", [path.as_posix()], extra_compile_args=FLAGS)
    for path in sorted(Path("onemodel").glob("*.pyx"))
]
shared = Extension(SHARED, ["onemodel/_cython_shared.c"], extra_compile_args=FLAGS)

directives = {
    "language_level": 3,
    "boundscheck": False,  # every kernel checks at its Python door
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": True,
}

setup(
    ext_modules=cythonize(
        [*kernels, shared],
        compiler_directives=directives,
        shared_utility_qualified_name=SHARED,
    )
)

"""Build the Cython kernels. Everything else about the project is in pyproject.toml."""

import os
import platform
import re
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_py import build_py


def compile_flags(machine, pointer_bits):
    """Return the compiler's flags for a machine; tools/platforms builds for others with them.

    They are here and not in CFLAGS, which builders replace.
    """
    if sys.platform == "win32":
        return ["/O2", "/fp:precise"]
    # -ffp-contract=off: GCC and clang otherwise fuse a * b + c where the target has a fused
    # multiply-add, and a fused product rounds once where the specification rounds twice.
    flags = ["-O3", "-ffp-contract=off", "-g0"]
    # The x87 unit, which compilers take for 32-bit x86 by default, rounds to 80 bits: compiler.h
    # refuses it.
    if pointer_bits == 32 and machine in ("i386", "i686", "x86_64"):
        flags += ["-msse2", "-mfpmath=sse"]
    return flags


FLAGS = compile_flags(platform.machine(), 64 if sys.maxsize > 2**32 else 32)
EMSCRIPTEN = "emscripten" in sysconfig.get_platform()

# Cython's shortcuts around calls of Python. A page downloads them, and its loops need none.
WITHOUT_SHORTCUTS = [
    f"-DCYTHON_{name}=0"
    for name in (
        "AVOID_BORROWED_REFS",
        "CLINE_IN_TRACEBACK",
        "FAST_PYCALL",
        "UNPACK_METHODS",
        "USE_PYLIST_INTERNALS",
        "USE_PYLONG_INTERNALS",
        "USE_TYPE_SLOTS",
        "USE_UNICODE_INTERNALS",
    )
]

HEADERS = sorted(path.as_posix() for path in Path("onemodel").rglob("*.h"))


def kernel(path):
    """Return the extension of one .pyx file; a header that changes builds it again."""
    name = ".".join(path.with_suffix("").parts)
    flags = FLAGS + (WITHOUT_SHORTCUTS if EMSCRIPTEN else [])
    if EMSCRIPTEN and "_simd" not in path.parts:
        # A page downloads it, and the loops that count are in _simd. The builder for browsers
        # adds an -O of its own at the end; the compiler itself takes the one behind -Xclang.
        flags += ["-Xclang", "-Oz"]
    return Extension(name, [path.as_posix()], extra_compile_args=flags, depends=HEADERS)


kernels = [kernel(path) for path in sorted(Path("onemodel").rglob("*.pyx"))]

directives = {
    "language_level": 3,
    "boundscheck": False,  # every kernel checks its arguments first
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    # Functions are built-in ones, which `inspect.signature` reads by the first line of their text
    # as it does classes: one way for both.
    "binding": False,
    "embedsignature": True,
    "embedsignature.format": "clinic",
    # Threads without the GIL: what they share is guarded by locks (onemodel/_memory/lock.pxd).
    "freethreading_compatible": True,
    "auto_pickle": False,  # what can be pickled has its own __reduce__
}


def project_urls():
    """Return the links of the metadata, where PROJECT_URL says where the project lives."""
    project = os.environ.get("PROJECT_URL", "").rstrip("/")
    if not project:
        return {}
    return {
        "Source": project,
        "Documentation": f"{project}/tree/HEAD/docs",
        "Changelog": f"{project}/blob/HEAD/CHANGELOG.md",
        "Issues": f"{project}/issues",
    }


def readme():
    """Return the README; its relative links lead to the project, since an index has no files."""
    text = Path("README.md").read_text(encoding="utf-8")
    project = project_urls().get("Source")
    if not project:
        return text
    kinds = {"": "blob", "!": "raw"}
    return re.sub(
        r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)]+)\)",
        lambda found: f"{found[1]}{found[2]}({project}/{kinds[found[1]]}/HEAD/{found[3]})",
        text,
    )


class BrowserModules(build_py):
    """Leaves out what a browser cannot use: there is no torch and no Numba.

    The packages themselves stay, and say so when they are imported.
    """

    def find_package_modules(self, package, package_dir):
        """Return the modules of a package that the wheel gets."""
        modules = super().find_package_modules(package, package_dir)
        if package not in ("onemodel.torch", "onemodel.numba"):
            return modules
        return [module for module in modules if module[1] == "__init__"]


# A browser compiles nothing and checks no types, and a page downloads the whole wheel.
UNUSED_IN_A_BROWSER = ["*.pxd", "*.h", "*.pyi", "README.md"]

setup(
    long_description=readme(),
    long_description_content_type="text/markdown",
    project_urls=project_urls(),
    ext_modules=cythonize(kernels, compiler_directives=directives),
    exclude_package_data={"": UNUSED_IN_A_BROWSER} if EMSCRIPTEN else {},
    cmdclass={"build_py": BrowserModules} if EMSCRIPTEN else {},
    options={} if EMSCRIPTEN else {"build_ext": {"parallel": True}},
)

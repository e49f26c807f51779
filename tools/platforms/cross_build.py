"""Compile the package for another machine: the C files of this checkout, the flags of setup.py.

python tools/platforms/cross_build.py SOURCE TARGET --compiler COMPILER --include FOLDER...
    --suffix .cpython-313-aarch64-linux-gnu.so --machine aarch64 --bits 64 [--flag=FLAG...]

SOURCE is a copy of the checkout, in which the C files are written once and kept. TARGET becomes
the package and what its tests read. Needs Cython and setuptools.
"""

from __future__ import annotations

import argparse
import os
import runpy
import shlex
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import setuptools

WHAT_TESTS_READ = (
    "onemodel",
    "tests",
    "docs",
    "examples",
    "tools",
    "benchmarks",
    "wasm",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "Makefile",
    "pyproject.toml",
    "setup.py",
)


def setup_of(source: Path) -> dict[str, Any]:
    """Return what setup.py defines, and as ``ext_modules`` the extensions that it hands over.

    Running it writes the C files, and builds nothing.
    """
    given: dict[str, Any] = {}
    original, setuptools.setup = setuptools.setup, given.update
    before = Path.cwd()
    os.chdir(source)
    try:
        return runpy.run_path("setup.py") | given
    finally:
        os.chdir(before)
        setuptools.setup = original


def main() -> None:
    """Build as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--suffix", required=True)
    parser.add_argument("--machine", required=True)
    parser.add_argument("--bits", type=int, required=True)
    parser.add_argument("--flag", action="append", default=[], help="after those of setup.py")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    given = parser.parse_args()

    setup = setup_of(given.source)
    # as CPython's own build does: without asserts, and with integers that wrap
    flags = ["-DNDEBUG", "-fwrapv", "-fPIC", "-shared", "-w"]
    flags += setup["compile_flags"](given.machine, given.bits)
    flags += given.flag + [f"-I{folder}" for folder in given.include]

    shutil.rmtree(given.target, ignore_errors=True)
    given.target.mkdir(parents=True)
    ignored = shutil.ignore_patterns("*.c", "*.so")
    for name in WHAT_TESTS_READ:
        path = given.source / name
        if path.is_dir():
            shutil.copytree(path, given.target / name, ignore=ignored)
        elif path.exists():
            shutil.copy(path, given.target / name)

    def compile_one(extension: Any) -> None:
        source = Path(extension.sources[0])
        binary = (given.target / source.with_suffix(given.suffix)).absolute()
        subprocess.run(
            [
                *shlex.split(given.compiler),
                *flags,
                *(f"-I{folder}" for folder in extension.include_dirs),
                *("-o", str(binary), str(source)),
            ],
            cwd=given.source,
            check=True,
        )

    with ThreadPoolExecutor(given.jobs) as workers:
        for _ in workers.map(compile_one, setup["ext_modules"]):
            pass


if __name__ == "__main__":
    main()

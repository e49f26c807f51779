"""Lay out the cross-build environment that `pyodide build` works with.

pyodide-build downloads this folder from Pyodide's release page. All that it holds can
also be had from packages: the runtime from the npm package `pyodide`, the headers from
Debian's python3-dev of the same minor version, and the target's configuration from the
sysconfig data inside the runtime's standard library.

Runs inside the chroot; standard library only.
"""

import argparse
import os
import re
import shutil
import sys
import sysconfig
import textwrap
import zipfile
from pathlib import Path

SYSCONFIG_NAME = "_sysconfigdata__emscripten_wasm32-emscripten"

# Variables that pyodide-build reads. It sets PYODIDE_ROOT itself before it asks.
# The base flags are those that built Pyodide: position independent code, and
# exceptions and longjmp by WebAssembly's own instructions.
MAKEFILE = """\
export PYVERSION = {python}
export PYMAJOR = {major}
export PYMINOR = {minor}
export PYMICRO = {micro}
export PYODIDE_VERSION = {pyodide}
export PYODIDE_ABI_VERSION = {abi}
export PYODIDE_EMSCRIPTEN_VERSION = {emscripten}
export PLATFORM_TRIPLET = wasm32-emscripten
export SYSCONFIG_NAME = {sysconfig_name}
export CPYTHONINSTALL = $(PYODIDE_ROOT)/cpython/installs/python-$(PYVERSION)
export TARGETINSTALLDIR = $(CPYTHONINSTALL)
export PYTHONINCLUDE = $(CPYTHONINSTALL)/include/python$(PYMAJOR).$(PYMINOR)
export SYSCONFIGDATA_DIR = $(CPYTHONINSTALL)/sysconfigdata
export HOSTINSTALLDIR = $(PYODIDE_ROOT)/packages/.artifacts
export HOSTSITEPACKAGES = $(HOSTINSTALLDIR)/lib/python$(PYMAJOR).$(PYMINOR)/site-packages
export CFLAGS_BASE = -g0 -fPIC -fwasm-exceptions -sSUPPORT_LONGJMP=wasm
export CXXFLAGS_BASE = $(CFLAGS_BASE)
export LDFLAGS_BASE = -fwasm-exceptions -sSUPPORT_LONGJMP=wasm
export PIP_CONSTRAINT = {constraints}

.output_vars:
\t@env
"""

# Requests to the C library for its POSIX and GNU interfaces. Every pyconfig.h on a Unix
# has them, and sysconfig leaves them out since it skips names that begin with "_".
FEATURES = """\
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif
"""


def target_variables(pyodide: Path) -> tuple[str, dict]:
    """Return the target's sysconfig module, as text and as the variables it defines."""
    with zipfile.ZipFile(pyodide / "python_stdlib.zip") as standard_library:
        text = standard_library.read(f"{SYSCONFIG_NAME}.py").decode()
    names: dict = {}
    exec(text, names)
    return text, names["build_time_vars"]


def target_pyconfig(host_pyconfig: str, variables: dict) -> str:
    """Return the target's pyconfig.h.

    The names come from the host's file, which lists every macro that this CPython knows,
    defined or not. The values come from the target: with the host's own values a module
    compiles for 8-byte pointers, links, and then fails quietly.
    """
    lines = ["#ifndef Py_PYCONFIG_H", "#define Py_PYCONFIG_H", FEATURES]
    names = re.findall(r"^\s*(?:#\s*define|/\*\s*#\s*undef)\s+(\w+)", host_pyconfig, re.MULTILINE)
    for name in dict.fromkeys(names):
        value = variables.get(name)
        if name == "Py_PYCONFIG_H" or value is None:
            continue
        # sysconfig says 0 for a macro that is not defined, and a size can truly be 0.
        if value == 0 and not name.startswith(("SIZEOF_", "ALIGNOF_")):
            continue
        lines.append(f"#define {name} {value}")
    lines.append("#endif")
    if "#define SIZEOF_VOID_P 4" not in lines:
        raise SystemExit("the target's pyconfig.h came out without the size of a pointer")
    return "\n".join(lines) + "\n"


def lay_out(arguments: argparse.Namespace) -> None:
    pyodide = Path(arguments.pyodide)
    version = re.search(r'"version":\s*"([^"]+)"', (pyodide / "package.json").read_text())[1]
    major, minor, micro = arguments.python.split(".")
    host = f"{sys.version_info.major}.{sys.version_info.minor}"
    if host != f"{major}.{minor}":
        raise SystemExit(f"this has to run under Python {major}.{minor}, not {host}")

    base = Path(arguments.into)
    environment = base / version / "xbuildenv"
    root = environment / "pyodide-root"
    install = root / "cpython" / "installs" / f"python-{arguments.python}"

    (environment / "site-packages-extras").mkdir(parents=True)
    (environment / "requirements.txt").touch()
    shutil.copytree(pyodide, root / "dist")

    os.environ["PYODIDE_ROOT"] = str(root)
    text, variables = target_variables(pyodide)
    folder = install / "sysconfigdata"
    folder.mkdir(parents=True)
    (folder / f"{SYSCONFIG_NAME}.py").write_text(text)

    include = install / "include" / f"python{major}.{minor}"
    shutil.copytree(sysconfig.get_path("include"), include)
    # Debian's own pyconfig.h only includes the one of the machine's architecture.
    host_pyconfig = Path(
        "/usr/include", sysconfig.get_config_var("MULTIARCH"), include.name, "pyconfig.h"
    )
    (include / "pyconfig.h").write_text(target_pyconfig(host_pyconfig.read_text(), variables))

    (root / "Makefile.envs").write_text(
        MAKEFILE.format(
            python=arguments.python,
            major=major,
            minor=minor,
            micro=micro,
            pyodide=version,
            abi=arguments.abi,
            emscripten=arguments.emscripten,
            sysconfig_name=SYSCONFIG_NAME,
            constraints=arguments.constraints,
        )
    )

    (base / "xbuildenv").symlink_to(base / version)
    (base / version / ".build-python-version").write_text(f"{major}.{minor}\n")
    (base / version / ".installed").touch()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=textwrap.dedent(__doc__), formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--pyodide", required=True, help="folder of the npm package")
    parser.add_argument("--into", required=True, help="folder to make")
    parser.add_argument("--python", required=True, help="CPython's version, such as 3.14.2")
    parser.add_argument("--abi", required=True, help="Pyodide's interface version")
    parser.add_argument("--emscripten", required=True, help="the Emscripten that built Pyodide")
    parser.add_argument("--constraints", required=True, help="pip constraints for every build")
    lay_out(parser.parse_args())


if __name__ == "__main__":
    main()

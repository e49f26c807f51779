"""Promise: a package that was built for another Python says so when it is imported."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import onemodel as om

PACKAGE = Path(om.__file__).parent

pytestmark = pytest.mark.usefixtures("needs_subprocess")


def imported(folder, *compiled):
    """Import a copy whose compiled modules are named otherwise; return what Python says."""
    unbuilt = shutil.ignore_patterns("*.so", "*.pyd", "*.c", "__pycache__")
    shutil.copytree(PACKAGE, folder / "onemodel", ignore=unbuilt)
    for name in compiled:
        (folder / "onemodel" / "_common" / name).touch()
    done = subprocess.run(
        [sys.executable, "-c", "import onemodel"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 1
    return done.stderr


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "configured.cpython-399-wasm32-emscripten.so",
            "onemodel was built for cpython-399-wasm32-emscripten (Pyodide 399), and this Python",
        ),
        (
            "configured.cpython-313-wasm32-emscripten.so",
            "built for cpython-313-wasm32-emscripten (Pyodide 0.29), and this Python is",
        ),
        ("configured.cp399-win_amd64.pyd", "onemodel was built for cp399-win_amd64, and this"),
    ],
)
def test_a_wheel_of_another_python_names_it(tmp_path, name, said):
    stderr = imported(tmp_path, name)
    assert f"ImportError: {said.split(',')[0]}" in stderr or said in stderr
    assert "ModuleNotFoundError" not in stderr


def test_sources_that_are_not_built_say_so(tmp_path):
    assert "ImportError: onemodel has no compiled modules" in imported(tmp_path)

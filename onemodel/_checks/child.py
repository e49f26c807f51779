"""The same steps in a new process: what ``python -m onemodel._checks.child`` runs, and who asks."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from onemodel._checks.targets import find_function, make_checked
from onemodel._checks.trace import Trace, build_traced

__all__ = ["ProcessFailedError", "traces_in_a_process"]


class ProcessFailedError(ValueError):
    """A new process could not make the loader that this one made."""


def traces_in_a_process(target: str, steps: list[int], hash_seed: int) -> list[Trace]:
    """Return the traces of ``steps`` that a new process builds, which has another hash seed.

    Raises:
        ProcessFailedError: if it ends without them; the message holds what it said.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "traces")
        request = {"target": target, "steps": steps, "out": str(out), "path": sys.path}
        done = subprocess.run(
            [sys.executable, "-c", "from onemodel._checks.child import main; main()"],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            env={
                **os.environ,
                "PYTHONHASHSEED": str(hash_seed),
                "PYTHONPATH": os.pathsep.join(each or os.getcwd() for each in sys.path),
            },
            check=False,
        )
        if done.returncode or not out.is_file():
            said = done.stderr.strip().splitlines() or ["nothing"]
            raise ProcessFailedError(
                f"a new process could not build the steps of {target}; it said: {said[-1]}"
            )
        traces: list[Trace] = pickle.loads(out.read_bytes())
    return traces


def main() -> None:
    """Build what standard input asks for and write the traces to the file that it names."""
    request: dict[str, Any] = json.loads(sys.stdin.read())
    sys.path[:] = request["path"]
    loader = make_checked(find_function(request["target"]))
    traces = [build_traced(loader, g) for g in request["steps"]]
    Path(request["out"]).write_bytes(pickle.dumps(traces))

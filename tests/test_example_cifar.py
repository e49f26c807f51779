"""Promise: examples/cifar_like.py learns, and a killed run leaves the weights of a whole one."""

import importlib.util
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn", reason="the example's data come with scikit-learn")

EXAMPLE = Path(__file__).parent.parent / "examples" / "cifar_like.py"
EPOCHS = 4
STEPS = EPOCHS * 24


def run(checkpoint, backend, *options):
    return subprocess.run(
        [
            *(sys.executable, EXAMPLE, "--checkpoint", checkpoint, "--backend", backend),
            *("--epochs", str(EPOCHS), *options),
        ],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not beside the tests")
@pytest.mark.usefixtures("needs_subprocess", "needs_threads")
@pytest.mark.parametrize("backend", ["numpy", "torch"])
def test_a_killed_run_ends_with_equal_weights(tmp_path, backend):
    if backend == "torch" and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    whole = run(tmp_path / "whole.npz", backend)
    assert whole.returncode == 0, whole.stderr
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", whole.stdout)]
    assert len(losses) == EPOCHS
    assert losses[-1] < 0.6 * losses[0]

    kill_at = random.randrange(STEPS)  # a new one each time: any must do
    killed = run(tmp_path / "run.npz", backend, "--kill-at", str(kill_at), "--workers", "2")
    assert killed.returncode == 9, killed.stderr
    assert "weights" not in killed.stdout
    resumed = run(tmp_path / "run.npz", backend, "--workers", "0")
    assert resumed.returncode == 0, resumed.stderr
    expected_start = 0 if kill_at < 10 else kill_at // 10 * 10
    assert f"from step {expected_start}" in resumed.stdout
    assert resumed.stdout.splitlines()[-2:] == whole.stdout.splitlines()[-2:], (
        f"killed at {kill_at}"
    )

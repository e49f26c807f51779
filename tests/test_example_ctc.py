"""Promise: examples/train_ctc.py learns; interrupted, it ends with the same weights.

Short here: a few dozen steps. What the whole run reaches stands in docs/guides/torch.md.
"""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

for package in ("torch", "tqdm", "PIL"):
    pytest.importorskip(package, reason=f"{package} is not installed")

EXAMPLE = Path(__file__).parent.parent / "examples" / "train_ctc.py"
SHORT = ["--lines", "96", "--steps", "24", "--batch-size", "8", "--held-out", "16"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not beside the tests"),
    pytest.mark.usefixtures("needs_subprocess", "needs_threads"),
]


@pytest.fixture
def main(capsys):
    """The example's ``main``, which returns what it printed."""
    import torch

    specification = importlib.util.spec_from_file_location("train_ctc", EXAMPLE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)

    def run(checkpoint, *options):
        module.main(["--checkpoint", str(checkpoint), *SHORT, *map(str, options)])
        return capsys.readouterr()

    yield run
    torch.use_deterministic_algorithms(False)


def weights(printed):
    (found,) = re.findall(r"^weights (\w{64})$", printed, flags=re.M)
    return found


def assert_the_loss_falls(printed):
    first, last = map(float, re.search(r"loss (\S+) -> (\S+)", printed).groups())
    assert last < 0.7 * first


def test_the_loss_falls_and_a_resumed_run_ends_with_the_same_weights(main, tmp_path):
    from PIL import Image

    whole = main(tmp_path / "whole.pt", "--picture", tmp_path / "lines.png")
    assert_the_loss_falls(whole.out)
    assert re.search(r"loss \S+, \d+ lines/s, waited \S+%", whole.err)
    with Image.open(tmp_path / "lines.png") as picture:
        assert picture.size[0] > 50

    run = tmp_path / "run.pt"
    assert weights(main(run, "--stop-at", 13, "--workers", 0).out) != weights(whole.out)
    assert weights(main(run, "--resume", "--workers", 2).out) == weights(whole.out)


def test_two_processes_train_together(tmp_path):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    made = subprocess.run(
        [sys.executable, *launcher, EXAMPLE, "--checkpoint", tmp_path / "two.pt", *SHORT],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    assert_the_loss_falls(made.stdout)
    assert len(weights(made.stdout)) == 64

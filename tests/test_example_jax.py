"""Promise: examples/train_jax.py learns with few compilations; interrupted, it ends the same.

Short here: a dozen steps.
"""

import importlib.util
import re
from pathlib import Path

import pytest

for package in ("jax", "optax", "tqdm"):
    pytest.importorskip(package, reason=f"{package} is not installed")

EXAMPLE = Path(__file__).parent.parent / "examples" / "train_jax.py"
SHORT = ["--lines", "48", "--steps", "12", "--batch-size", "8", "--held-out", "16"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not EXAMPLE.exists(), reason="the examples are not beside the tests"),
    pytest.mark.usefixtures("needs_threads"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def test_the_loss_falls_and_a_resumed_run_ends_with_the_same_weights(tmp_path, capsys):
    specification = importlib.util.spec_from_file_location("train_jax", EXAMPLE)
    example = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(example)

    def run(checkpoint, *options):
        example.main(["--checkpoint", str(tmp_path / checkpoint), *SHORT, *options])
        return capsys.readouterr().out

    def weights(printed):
        return re.search(r"^weights (\w{64})$", printed, flags=re.M)[1]

    whole = run("whole.npz")
    first, last = map(float, re.search(r"loss (\S+) -> (\S+)", whole).groups())
    assert last < 0.8 * first
    assert int(re.search(r"compiled (\d+) times", whole)[1]) <= 6
    cut = run("cut.npz", "--stop-at", "5")
    resumed = run("cut.npz", "--resume")
    assert weights(cut) != weights(whole)
    assert weights(resumed) == weights(whole)

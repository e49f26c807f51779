"""Promise: whatever is damaged, only documented errors come; here a few cases of each subject.

`make fuzz SECONDS=600` runs new ones for as long as one likes. A failure names the case.
"""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "fuzz.py"

pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="the source tree is not here")

COUNTS = {"tables": 150, "states": 400, "reports": 300, "folders": 60}


@pytest.mark.parametrize("subject", COUNTS)
def test_damage_is_said_or_harmless(subject):
    if subject == "folders":
        pytest.importorskip("PIL")
    spec = importlib.util.spec_from_file_location("fuzz", SCRIPT)
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    assert set(COUNTS) == set(fuzz.CASES)
    failures = [found for n in range(COUNTS[subject]) if (found := fuzz.run_case(subject, n))]
    assert not failures, failures[0]


def test_a_failure_names_its_case():
    spec = importlib.util.spec_from_file_location("fuzz", SCRIPT)
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)

    def broken(rng, folder):
        raise RuntimeError(f"{rng.random()}")

    fuzz.CASES["states"] = broken
    first, again = (fuzz.run_case("states", 7) for _ in range(2))
    assert first.startswith("python tools/fuzz.py --case 7 states\n")
    assert first == again

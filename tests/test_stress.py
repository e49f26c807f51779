"""Promise: every way to end a run, five times here and 200 times by `make stress`, ends."""

import importlib.util
import os
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "tools" / "stress.py"

pytestmark = [
    pytest.mark.usefixtures("needs_threads", "needs_subprocess"),
    pytest.mark.skipif(not SCRIPT.is_file(), reason="the source tree is not here"),
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork"),
]

WAYS = ("break", "close", "collection", "interrupt", "fork", "exit")


@pytest.mark.parametrize("kind", ["native", "python"])
@pytest.mark.parametrize("way", WAYS)
def test_every_end_ends(way, kind):
    spec = importlib.util.spec_from_file_location("stress", SCRIPT)
    stress = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stress)
    assert set(WAYS) == set(stress.WAYS)
    assert stress.run(way, kind, 5) is None

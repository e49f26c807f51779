"""Promise: every way to end a run, five times here and 200 times by `make stress`, ends; and eight
threads that share a loader get the batches that one thread gets.
"""

import importlib.util
import os
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parent.parent / "tools"

pytestmark = [
    pytest.mark.usefixtures("needs_threads", "needs_subprocess"),
    pytest.mark.skipif(not TOOLS.is_dir(), reason="the source tree is not here"),
]

WAYS = ("break", "close", "collection", "interrupt", "fork", "exit")
SHARED = ("one iterator", "one loader", "any step")


@pytest.fixture(scope="module")
def tool():
    def load(name):
        spec = importlib.util.spec_from_file_location(name, TOOLS / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
@pytest.mark.parametrize("kind", ["native", "python"])
@pytest.mark.parametrize("way", WAYS)
def test_every_end_ends(tool, way, kind):
    stress = tool("stress")
    assert set(WAYS) == set(stress.WAYS)
    assert stress.run(way, kind, 5) is None


@pytest.mark.parametrize("kind", ["table", "samples", "python", "arrays"])
@pytest.mark.parametrize("shared", SHARED)
def test_threads_that_share_a_loader_get_the_batches_of_one(tool, kind, shared):
    stress = tool("stress_threads")
    assert set(SHARED) == set(stress.SHARED)
    wanted = stress.STEPS * (1 if shared == "one iterator" else stress.THREADS)
    assert stress.run_loaders(kind, shared, workers=2) == wanted


def test_threads_share_samplers_and_pools(tool):
    stress = tool("stress_threads")
    stress.run_samplers()
    stress.run_pool()

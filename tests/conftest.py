"""Fixtures that every test file shares: the two implementations, and what the platform can do."""

import faulthandler
import os
import sys

import pytest
from hypothesis import HealthCheck, settings
from support import load_package, load_twin

settings.register_profile(
    "suite",
    deadline=None,
    max_examples=40,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("thorough", settings.get_profile("suite"), max_examples=2000)
settings.register_profile("fuzz", settings.get_profile("suite"), derandomize=False, database=None)
settings.load_profile("suite")

IN_BROWSER = sys.platform in ("emscripten", "wasi")


# Seconds for one test, of which the slowest needs some ten; an emulator has more.
LIMIT = int(os.environ.get("ONEMODEL_TEST_LIMIT", "300"))
SLOW_LIMIT = 900  # for one that runs a framework
STDERR = pytest.StashKey[object]()


def pytest_configure(config):
    """Keep the real standard error, which a test's captured one hides."""
    if not IN_BROWSER:
        config.stash[STDERR] = os.fdopen(os.dup(2), "w")


def pytest_unconfigure(config):
    """Close it again."""
    if STDERR in config.stash:
        config.stash[STDERR].close()


@pytest.fixture(autouse=True)
def _no_test_hangs(request):
    """End the whole run, with the stack of every thread, where a test hangs."""
    if IN_BROWSER:  # the watchdog is a thread
        yield
        return
    limit = SLOW_LIMIT if request.node.get_closest_marker("slow") else LIMIT
    faulthandler.dump_traceback_later(limit, exit=True, file=request.config.stash[STDERR])
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def needs_threads():
    """Skip where the platform cannot start a thread."""
    if IN_BROWSER:
        pytest.skip(f"threads cannot start on {sys.platform}")


@pytest.fixture(scope="session")
def needs_subprocess():
    """Skip where the platform cannot start a process."""
    if IN_BROWSER:
        pytest.skip(f"processes cannot start on {sys.platform}")


@pytest.fixture(autouse=True)
def _threads_for_workers(request):
    """A test with a parameter `workers` above zero needs threads, whichever file it is in."""
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    if parameters.get("workers", 0):
        request.getfixturevalue("needs_threads")


@pytest.fixture(scope="session", params=["twin", "onemodel"])
def implementation(request):
    """The same names from `tests/reference` and from the package."""
    return load_twin() if request.param == "twin" else load_package()

"""Promise: where no thread can start, the loader builds on the caller's: the same batches."""

import threading
import types

import numpy as np
import pytest
from support import STEPS, expected_indices, indices_of, make_loader

from onemodel import ArrayDataset, DataLoader, digest
from onemodel._common import threads

DATA = ArrayDataset(np.arange(40, dtype=np.int64))


def pretend(monkeypatch, name, **more):
    monkeypatch.setattr(threads, "sys", types.SimpleNamespace(platform=name, **more))


def browser(pthreads):
    return {"_emscripten_info": types.SimpleNamespace(pthreads=pthreads)}


@pytest.mark.parametrize(
    ("name", "more", "expected"),
    [
        ("emscripten", browser(False), False),
        ("emscripten", browser(True), True),
        ("emscripten", {}, False),
        ("wasi", {}, False),
        ("linux", {}, True),
        ("win32", {}, True),
    ],
)
def test_threads_are_a_capability(monkeypatch, name, more, expected):
    pretend(monkeypatch, name, **more)
    assert threads.can_start_threads() is expected


@pytest.mark.parametrize(("name", "more"), [("emscripten", browser(False)), ("wasi", {})])
def test_the_loader_runs_without_workers_in_silence(monkeypatch, name, more):
    """Warnings are errors in this suite, so a warning would fail it too."""
    here = DataLoader(DATA, 4, shuffle=True, seed=5)
    pretend(monkeypatch, name, **more)
    before = threading.active_count()
    there = DataLoader(DATA, 4, shuffle=True, seed=5, workers=4)
    assert there.workers == 0
    assert "workers=0" in repr(there)
    stream = iter(there)
    assert [digest(batch) for batch in stream] == [here.digest(g) for g in range(10)]
    assert threading.active_count() == before


def test_async_iteration_lets_the_event_loop_run_between_batches():
    """Driven by hand, for an event loop cannot be started everywhere."""
    loader = DataLoader(DATA, 10, seed=5)

    async def collect():
        return [digest(batch) async for batch in loader.aiter()]

    coroutine, pauses = collect(), 0
    try:
        while True:
            assert coroutine.send(None) is None  # what asyncio.sleep(0) yields
            pauses += 1
    except StopIteration as done:
        digests = done.value
    assert digests == [loader.digest(g) for g in range(4)]
    assert pauses == len(digests) + 1
    assert loader.epoch == 1


def test_a_platform_without_threads_runs_without_workers(monkeypatch):
    """As in a browser: no error, no warning, no thread, the same batches."""
    monkeypatch.setattr("onemodel._common.threads.can_start_threads", lambda: False)

    def no_start(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", no_start)
    with make_loader(workers=4) as loader:
        assert loader.workers == 0
        assert indices_of(loader) == expected_indices(range(STEPS))

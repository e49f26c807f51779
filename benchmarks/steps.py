"""Steps of a trainer that keep the GIL, and how long a build takes on its own.

The bindings of many devices hold the GIL while they wait for the device: `usleep` through
`ctypes.PyDLL` does the same. A step of pure Python gives the GIL away only where the interpreter
is asked to, 5 ms after another thread began to wait.
"""

from __future__ import annotations

import contextlib
import ctypes
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

Step = Callable[[float], None]
"""Keeps the GIL for about so many seconds."""

TIMER_SLACK = 29  # PR_SET_TIMERSLACK of <sys/prctl.h>


def held_sleep() -> Step:
    """Return a step that sleeps in C with the GIL held."""
    usleep = ctypes.PyDLL(None).usleep
    usleep.argtypes, usleep.restype = (ctypes.c_uint,), ctypes.c_int
    with exact_sleeps():
        late = statistics.median(timed(lambda: usleep(200)) for _ in range(20)) - 200e-6

    def step(seconds: float) -> None:
        usleep(max(1, round((seconds - late) * 1e6)))

    return step


def pure_python() -> Step:
    """Return a step that runs bytecode until its time is over."""

    def step(seconds: float) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            pass

    return step


STEPS: dict[str, Callable[[], Step]] = {
    "a step that sleeps with the GIL": held_sleep,
    "a step of pure Python": pure_python,
}


@contextlib.contextmanager
def exact_sleeps() -> Iterator[None]:
    """Let this thread's sleeps end on time: Linux adds 50 µs, as much as a small build takes."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None
    if prctl is not None:
        prctl(TIMER_SLACK, ctypes.c_ulong(1))
    try:
        yield
    finally:
        if prctl is not None:
            prctl(TIMER_SLACK, ctypes.c_ulong(0))  # the process's own


def timed(action: Callable[[], Any]) -> float:
    """Return how many seconds a call takes."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def build_seconds(make: Callable[[int], Any], count: int = 40) -> float:
    """Return the median time of a build on this thread, without workers."""
    loader = make(0)
    stream = iter(loader.steps(0))
    for _ in range(8):
        next(stream)
    found = statistics.median(timed(lambda: next(stream)) for _ in range(count))
    loader.close()
    return found

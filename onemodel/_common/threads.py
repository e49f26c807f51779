"""What the platform can do: the only file that reads ``sys.platform``."""

from __future__ import annotations

import os
import sys
from functools import cache

__all__ = ["can_start_processes", "can_start_threads", "processors"]


def can_start_threads() -> bool:
    """Return whether ``threading.Thread.start`` works here.

    In a browser it depends on how Python was compiled, so the capability is asked for and not
    the name; WASI has no threads that Python can start.

    >>> can_start_threads()
    True
    """
    if sys.platform == "emscripten":
        return bool(getattr(getattr(sys, "_emscripten_info", None), "pthreads", False))
    return sys.platform != "wasi"


def can_start_processes() -> bool:
    """Return whether a new Python can be started here.

    >>> isinstance(can_start_processes(), bool)
    True
    """
    return sys.platform not in ("emscripten", "wasi", "ios")


@cache
def processors() -> int:
    """Return how many processors this process could use when it was first asked, at least 1.

    >>> processors() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

"""What the platform can do: the only file that reads ``sys.platform``."""

from __future__ import annotations

import sys

__all__ = ["can_start_threads"]


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

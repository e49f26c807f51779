"""What a native lane caught on a thread, until the reference path has built the same step.

A lane cannot raise, so the reference path builds its step again. An error of the data comes again
there. What a signal handler raised, a timeout or a Ctrl-C, does not, and must not be lost.
"""

from __future__ import annotations

import threading

__all__ = ["caught", "take_caught"]


class _Caught(threading.local):
    error: BaseException | None = None


caught = _Caught()


def take_caught() -> BaseException | None:
    """Return what this thread's lane caught since it was asked last."""
    error, caught.error = caught.error, None
    return error

"""What a native lane caught on a thread, until the reference path has built the same step.

A lane cannot raise, so the reference path builds its step again. An error of the data comes again
there. What a signal handler raised, a timeout or a Ctrl-C, does not, and must not be lost.
"""

from __future__ import annotations

import signal
import threading

__all__ = ["caught", "is_interruption", "take_caught"]


class _Caught(threading.local):
    error: BaseException | None = None


caught = _Caught()


def take_caught() -> BaseException | None:
    """Return what this thread's lane caught since it was asked last."""
    error, caught.error = caught.error, None
    return error


def is_interruption(error: BaseException) -> bool:
    """Return whether a signal's handler raised ``error``.

    Then it concerns what a thread does now, and no step that it happened to build.
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    handlers = {_code(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    cause: BaseException | None = error
    while cause is not None:
        place = cause.__traceback__
        while place is not None:
            if place.tb_frame.f_code in handlers:
                return True
            place = place.tb_next
        cause = cause.__cause__
    return False


def _code(handler: object) -> object:
    """Return what a handler runs: the code of a function, a method, a partial or a `__call__`."""
    call = vars(type(handler)).get("__call__")
    for each in (handler, getattr(handler, "func", None), call):
        code = getattr(each, "__code__", None)
        if code is not None:
            return code
    return None

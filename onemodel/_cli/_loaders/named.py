"""A loader that a command is given by name, and what its code raises."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from typing import TypeVar

from onemodel._checks.targets import TargetError, find_function, make_checked
from onemodel._common.describe import shown
from onemodel.loader import DataLoader

__all__ = ["HELP", "UserError", "find_named", "is_table", "make_named", "of_user"]

HELP = "MODULE:FUNCTION or FILE.py:FUNCTION, a function without arguments that returns a DataLoader"

T = TypeVar("T")


class UserError(ValueError):
    """What the user's own code raised, with its traceback in the text."""


def of_user(name: str, call: Callable[[], T]) -> T:
    """Return what ``call`` gives; what the code behind ``name`` raises keeps its traceback."""
    try:
        return call()
    except TargetError:  # of the command's argument, and not of the user's code
        raise
    except Exception as error:
        lines = "".join(traceback.format_exception(error)).rstrip()
        raise UserError(f"{name} raised {type(error).__name__}:\n{lines}") from error


def find_named(target: str) -> Callable[[], DataLoader]:
    """Return the function that ``MODULE:FUNCTION`` names.

    Raises:
        UserError: what importing the module raised.
        ValueError: if the text names nothing.
    """
    return of_user(target, lambda: find_function(target))


def make_named(target: str) -> DataLoader:
    """Return the loader that the function of that name makes; errors as ``find_named``."""
    make_loader = find_named(target)
    return of_user(target, lambda: make_checked(make_loader))


def is_table(argument: str) -> bool:
    """Return whether a command's argument is a directory, and not the name of a function.

    Raises:
        FileNotFoundError: if it is neither.
    """
    if os.path.isdir(argument):
        return True
    if ":" not in argument:
        raise FileNotFoundError(
            f"{argument}: expected the directory of an ImageTable, or {HELP}, got {shown(argument)}"
        )
    return False

"""Optional dependencies: imported where they are used, and named when they are missing."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["require"]


def require(module: str, extra: str) -> Any:
    """Import a module that comes with one of onemodel's extras.

    Raises:
        ModuleNotFoundError: it is not installed; the message says which command installs it.

    >>> require("json", "demo").__name__
    'json'
    >>> require("no_such_module", "demo")
    Traceback (most recent call last):
    ...
    ModuleNotFoundError: no_such_module is not installed; run: pip install 'onemodel[demo]'
    """
    package = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != package:
            raise  # it is there, and something that it needs is not
        raise ModuleNotFoundError(
            f"{package} is not installed; run: pip install 'onemodel[{extra}]'", name=package
        ) from None

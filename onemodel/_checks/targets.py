"""Functions by name: how a command or a new process finds what a user wrote.

A name is ``MODULE:FUNCTION`` or ``FILE.py:FUNCTION``.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from onemodel._common.describe import shown
from onemodel.loader import DataLoader

__all__ = ["TargetError", "find_function", "make_checked", "target_of"]


class TargetError(ValueError):
    """A text that names no function."""


FORM = "MODULE:FUNCTION or FILE.py:FUNCTION"


def find_function(target: str) -> Callable[[], Any]:
    """Import what ``target`` names and return it; the working directory is searched first.

    Raises:
        TargetError: if the text has another form, or there is no such file, module or function;
            it is a ValueError.
        Exception: whatever the module itself raises.

    >>> find_function("json:dumps").__name__
    'dumps'
    >>> find_function("json")
    Traceback (most recent call last):
    ...
    onemodel._checks.targets.TargetError: MAKE_LOADER must be MODULE:FUNCTION or ..., got 'json'
    """
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise TargetError(f"MAKE_LOADER must be {FORM}, got {shown(target)}")
    found: Any = _module_of(place, target)
    for part in name.split("."):
        if not hasattr(found, part):
            raise TargetError(
                f"MAKE_LOADER must be {FORM}, got {shown(target)}: {place} has no {name}"
            )
        found = getattr(found, part)
    if not callable(found):
        raise TargetError(
            f"MAKE_LOADER must be a function that returns a DataLoader, got {shown(target)}, "
            f"which is of type {type(found).__name__}"
        )
    function: Callable[[], Any] = found
    return function


def _module_of(place: str, target: str) -> ModuleType:
    if place.endswith(".py") or os.sep in place:
        path = Path(place).absolute()
        if not path.is_file():
            raise TargetError(f"MAKE_LOADER must be {FORM}, got {shown(target)}: no such file")
        _search_first(str(path.parent))
        name = path.stem
        loaded = sys.modules.get(name)
        if loaded is not None:
            if getattr(loaded, "__file__", None) == str(path):
                return loaded
            name = f"{name}_by_its_path"  # another module has the name, perhaps Python's own
        specification = importlib.util.spec_from_file_location(name, path)
        if specification is None or specification.loader is None:
            raise TargetError(f"MAKE_LOADER must name a Python file, got {shown(target)}")
        module = importlib.util.module_from_spec(specification)
        sys.modules[name] = module
        specification.loader.exec_module(module)
        return module
    _search_first(os.getcwd())
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError as error:
        if not (error.name and f"{place}.".startswith(f"{error.name}.")):
            raise  # the module is there, and something that it needs is not
        raise TargetError(
            f"MAKE_LOADER must be {FORM}, got {shown(target)}: no module {error.name}"
        ) from None


def _search_first(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def target_of(function: Callable[..., Any]) -> str | None:
    """Return the text by which another process finds ``function``; None where there is none.

    >>> import json
    >>> target_of(json.dumps), target_of(lambda: None)
    ('json:dumps', None)
    """
    name = getattr(function, "__qualname__", "")
    module = getattr(function, "__module__", None)
    if not name or "<" in name or module is None:
        return None
    if module == "__main__":
        path = getattr(sys.modules["__main__"], "__file__", None)
        return None if path is None else f"{Path(path).absolute()}:{name}"
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not function:
        return None
    path = getattr(sys.modules[module], "__file__", None)
    specification = getattr(sys.modules[module], "__spec__", None)
    if path is not None and specification is not None and not _is_importable(module):
        return f"{Path(path).absolute()}:{name}"
    return f"{module}:{name}"


def _is_importable(module: str) -> bool:
    """Return whether ``import module`` finds it again: a file that was run by its path is not."""
    loaded = sys.modules.pop(module)
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    finally:
        sys.modules[module] = loaded
    return found is not None and found.origin == getattr(loaded, "__file__", found.origin)


def make_checked(make_loader: Callable[[], Any]) -> DataLoader:
    """Call ``make_loader`` and return its loader.

    Raises:
        TypeError: if it gives something else.
    """
    loader = make_loader()
    if not isinstance(loader, DataLoader):
        raise TypeError(f"make_loader must return a DataLoader, got {shown(loader)}")
    return loader

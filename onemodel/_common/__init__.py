"""What every layer uses: checks of arguments, descriptions, optional packages, the platform.

It knows Python values and arrays.
It must not know samples, samplers or anything else of the package.
"""

import importlib
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

__all__ = ["require_compiled"]

_FIRST = "configured"  # a compiled module of this folder


def require_compiled() -> None:
    """Raise an ImportError that says which Python this package was built for, if not for this one.

    Without it the first compiled module would be called missing, and nothing would say why.

    >>> require_compiled()
    """
    name = f"{__name__}.{_FIRST}"
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        files = sorted(Path(__file__).parent.glob(f"{_FIRST}.*"))
        built = [_platform(file.name) for file in files if file.suffix in (".so", ".pyd")]
        here = _platform(EXTENSION_SUFFIXES[0])
        if built:
            message = f"onemodel was built for {' and '.join(built)}, and this Python is {here}"
        else:
            message = f"onemodel has no compiled modules: it is not built for this Python, {here}"
        raise ImportError(message) from None


def _platform(file_name: str) -> str:
    """Return what the name of a compiled module says about its Python."""
    tag = file_name.split(".")[1]
    if not tag.endswith("emscripten"):
        return tag
    return f"{tag} (Pyodide 0.29)" if "-313-" in tag else f"{tag} (Pyodide {tag.split('-')[1]})"

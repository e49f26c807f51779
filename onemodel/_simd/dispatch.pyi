from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["select", "selected", "store_rows", "variants"]

def variants() -> tuple[str, ...]: ...
def selected() -> str: ...
def select(name: str) -> None: ...
def store_rows(
    source: NDArray[Any],
    out: NDArray[np.float32],
    pad: float,
    scale: float = 1.0,
    shift: float = 0.0,
    gain_offset: tuple[float, float] | None = None,
    non_temporal: bool = False,
) -> None: ...

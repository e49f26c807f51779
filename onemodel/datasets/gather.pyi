from typing import Any

from numpy.typing import ArrayLike, NDArray

__all__ = ["gather_rows"]

def gather_rows(
    source: NDArray[Any],
    indices: ArrayLike,
    out: NDArray[Any] | None = None,
    non_temporal: bool = False,
) -> NDArray[Any]: ...

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import DTypeLike, NDArray

__all__ = ["BufferPool", "PoolStats"]

class PoolStats(NamedTuple):
    rented: int
    returned: int
    allocated: int
    bytes: int

class BufferPool:
    def __init__(self, *, allocate: Callable[[int], Any] | None = None) -> None: ...
    def rent(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]: ...
    @property
    def stats(self) -> PoolStats: ...
    @property
    def exceeds_cache(self) -> bool: ...
    def clear(self) -> None: ...

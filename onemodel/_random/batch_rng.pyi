from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onemodel._memory.pool import BufferPool
from onemodel._random.rng import SampleRng

__all__ = ["BatchRng"]

class BatchRng(SampleRng):
    def __init__(
        self,
        seed: SupportsIndex,
        epoch: SupportsIndex = 0,
        step: SupportsIndex = 0,
        first_slot: SupportsIndex = 0,
    ) -> None: ...
    @property
    def first_slot(self) -> int: ...
    @property
    def pool(self) -> BufferPool | None: ...
    def row_u64(self, rows: SupportsIndex) -> NDArray[np.uint64]: ...
    def row_random(self, rows: SupportsIndex) -> NDArray[np.float64]: ...
    def use_pool(self, pool: BufferPool | None) -> None: ...
    def rent(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]: ...

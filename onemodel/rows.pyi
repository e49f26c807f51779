from collections.abc import Iterable
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onemodel.pool import BufferPool
from onemodel.rng import SampleRng

__all__ = ["BatchRng", "NativeTransform", "RowProgram"]

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

class NativeTransform:
    @property
    def arguments(self) -> dict[str, Any]: ...
    @property
    def key(self) -> int | str | None: ...
    def __call__(self, rng: SampleRng, batch: Any) -> Any: ...

class RowProgram:
    def __init__(
        self, parts: Iterable[NativeTransform], dtype: DTypeLike, shape: tuple[int, ...]
    ) -> None: ...
    @property
    def parts(self) -> tuple[NativeTransform, ...]: ...
    @property
    def dtype(self) -> np.dtype[Any]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def run(
        self,
        rng: BatchRng,
        source: NDArray[Any],
        indices: NDArray[np.int64] | None,
        result: NDArray[Any],
    ) -> None: ...

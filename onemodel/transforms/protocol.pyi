from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from onemodel._common.configured import Configured
from onemodel._random.batch_rng import BatchRng
from onemodel._random.rng import SampleRng

__all__ = ["CompiledTransform", "NativeTransform", "RowChain"]

class NativeTransform(Configured):
    @property
    def key(self) -> int | str | None: ...
    @property
    def layout(self) -> str | None: ...
    def __call__(self, rng: SampleRng, batch: Any) -> Any: ...

class CompiledTransform(NativeTransform):
    def _compiled(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> int: ...

class RowChain(Configured):
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
        non_temporal: bool = False,
    ) -> None: ...

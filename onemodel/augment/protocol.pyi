from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from onemodel._random.rng import SampleRng

__all__ = ["Chain", "NativeAugmentation"]

class NativeAugmentation:
    def __call__(self, rng: SampleRng, image: NDArray[np.float32]) -> None: ...

class Chain:
    def __init__(self, parts: Iterable[NativeAugmentation]) -> None: ...
    def __call__(
        self,
        rng: SampleRng,
        image: NDArray[np.float32],
        out: NDArray[np.float32] | None = ...,
    ) -> None: ...
    @property
    def parts(self) -> tuple[NativeAugmentation, ...]: ...

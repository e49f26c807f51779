from collections.abc import Iterable
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray

from onemodel.transforms.protocol import NativeTransform

__all__ = ["Normalize", "bytes_to_planar"]

class Normalize(NativeTransform):
    def __init__(
        self,
        mean: SupportsFloat | Iterable[SupportsFloat],
        std: SupportsFloat | Iterable[SupportsFloat],
        key: int | str | None = None,
        layout: str | None = None,
    ) -> None: ...
    @property
    def mean(self) -> float | tuple[float, ...]: ...
    @property
    def std(self) -> float | tuple[float, ...]: ...

def bytes_to_planar(
    pixels: NDArray[np.uint8],
    scale: NDArray[np.float32],
    shift: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None: ...

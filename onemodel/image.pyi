from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["gray8_to_planar", "rgb8_to_planar", "scale_and_shift"]

def scale_and_shift(
    mean: float | Sequence[float], std: float | Sequence[float], channels: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]: ...
def gray8_to_planar(
    pixels: NDArray[np.uint8],
    mean: float,
    std: float,
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]: ...
def rgb8_to_planar(
    pixels: NDArray[np.uint8],
    mean: float | Sequence[float],
    std: float | Sequence[float],
    out: NDArray[np.float32] | None = None,
) -> NDArray[np.float32]: ...

import numpy as np
from numpy.typing import NDArray

__all__ = ["bytes_to_planar"]

def bytes_to_planar(
    pixels: NDArray[np.uint8],
    scale: NDArray[np.float32],
    shift: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None: ...

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw_indices"]

def draw_indices(
    cumulative: NDArray[np.float64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    seed: int,
    epoch: int,
    step: int,
    out: NDArray[np.int64],
) -> None: ...

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._random.batch_rng import BatchRng

__all__ = ["cut_rows", "mix_rows"]

def mix_rows(
    rng: BatchRng,
    power: int,
    block: int,
    images: NDArray[np.float32],
    result: NDArray[np.float32],
    labels: NDArray[np.float32],
    blended: NDArray[np.float32],
) -> None: ...
def cut_rows(
    rng: BatchRng,
    power: int,
    block: int,
    images: NDArray[Any],
    result: NDArray[Any],
    labels: NDArray[np.float32],
    blended: NDArray[np.float32],
    height: int,
    width: int,
    pixel_bytes: int,
) -> None: ...

import numpy as np
from numpy.typing import NDArray

__all__ = ["draw_indices", "draw_weighted", "fill_alias_table"]

def draw_indices(
    cumulative: NDArray[np.float64],
    starts: NDArray[np.int64],
    sizes: NDArray[np.int64],
    seed: int,
    epoch: int,
    step: int,
    out: NDArray[np.int64],
) -> None: ...
def fill_alias_table(amounts: NDArray[np.uint64], table: NDArray[np.uint64]) -> int: ...
def draw_weighted(
    table: NDArray[np.uint64],
    total: int,
    seed: int,
    epoch: int,
    step: int,
    out: NDArray[np.int64],
) -> None: ...

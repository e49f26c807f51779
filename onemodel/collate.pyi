from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel.pool import BufferPool
from onemodel.rng import SampleRng
from onemodel.sources import Sources
from onemodel.stages import Program

__all__ = ["collate", "collate_each", "write_integers"]

def collate(
    sources: Sources,
    images: NDArray[np.float32],
    pad_value: float,
    program: Program,
    streamed: bool,
    seed: int,
    epoch: int,
    step: int,
    first_slot: int,
) -> None: ...
def write_integers(sources: Sources, integers: NDArray[np.int32]) -> None: ...
def collate_each(
    sources: Sources,
    images: NDArray[np.float32],
    pad_value: float,
    augment: Callable[[SampleRng, NDArray[np.float32]], Any],
    pool: BufferPool,
    streamed: bool,
    seed: int,
    epoch: int,
    step: int,
    first_slot: int,
) -> None: ...

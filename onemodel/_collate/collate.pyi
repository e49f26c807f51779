from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._collate.inputs import CollateInputs
from onemodel._memory.pool import BufferPool
from onemodel._random.rng import SampleRng
from onemodel.augment.protocol import Chain

__all__ = ["collate", "collate_each"]

def collate(
    inputs: CollateInputs,
    pool: BufferPool,
    padded_width: int,
    pad_value: float,
    chain: Chain,
    seed: int,
    epoch: int,
    step: int,
    first_slot: int,
) -> tuple[NDArray[np.float32], NDArray[np.int32]]: ...
def collate_each(
    inputs: CollateInputs,
    pool: BufferPool,
    padded_width: int,
    pad_value: float,
    augment: Callable[[SampleRng, NDArray[np.float32]], Any],
    seed: int,
    epoch: int,
    step: int,
    first_slot: int,
) -> tuple[NDArray[np.float32], NDArray[np.int32]]: ...

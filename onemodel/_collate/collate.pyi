from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._batch.key import BatchKey
from onemodel._collate.inputs import CollateInputs
from onemodel._memory.pool import BufferPool
from onemodel._random.rng import SampleRng
from onemodel.augment.protocol import Chain

__all__ = ["collate", "collate_each"]

def collate(
    inputs: CollateInputs,
    pool: BufferPool,
    layout: tuple[int, int, int],
    pad_value: float,
    chain: Chain,
    key: BatchKey,
) -> dict[str, NDArray[Any]]: ...
def collate_each(
    inputs: CollateInputs,
    pool: BufferPool,
    layout: tuple[int, int, int],
    pad_value: float,
    augment: Callable[[SampleRng, NDArray[np.float32]], Any],
    key: BatchKey,
) -> dict[str, NDArray[Any]]: ...

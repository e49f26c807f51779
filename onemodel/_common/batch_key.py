"""Where a batch stands in the run: all that its bytes may depend on, beside the data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BatchKey"]


class BatchKey(NamedTuple):
    """The coordinates of a batch, handed to builders and collators.

    Slot j of the batch is slot ``first_slot + j`` of the global batch and draws from
    ``derive(seed, epoch, step, first_slot + j, stream)``.
    """

    seed: int
    epoch: int
    step: int
    first_slot: int
    indices: NDArray[np.int64]

"""Where a batch is in the run: all that its bytes may depend on, beside the data."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BatchKey"]


class BatchKey(NamedTuple):
    """The coordinates of a batch, handed to builders and collators.

    Slot j of the batch is slot ``first_slot + j`` of the global batch and draws from
    ``derive(seed, epoch, step, first_slot + j, stream)``.

    Attributes:
        seed, epoch, step: step is the one in the epoch.
        first_slot: of this shard, in the global batch.
        indices: int64 dataset indices, one for each slot of this shard.
        global_step: of the run; None for a key that was made by hand without one.
        global_rows: slots of the global batch, of which ``indices`` is this shard's part.
    """

    seed: int
    epoch: int
    step: int
    first_slot: int
    indices: NDArray[np.int64]
    global_step: int | None = None
    global_rows: int | None = None

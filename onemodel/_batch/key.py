"""Where a batch is in the run: all that its bytes may depend on, beside the data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from onemodel._common.arrays import plain_array
from onemodel._common.describe import shown
from onemodel._common.integers import check_uint64

__all__ = ["BatchKey", "checked_key"]


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
        global_indices: the indices of all of these slots; None for a key without them.
        world: how many ranks share the global batch.
    """

    seed: int
    epoch: int
    step: int
    first_slot: int
    indices: NDArray[np.int64]
    global_step: int | None = None
    global_rows: int | None = None
    global_indices: NDArray[np.int64] | None = None
    world: int = 1

    def whole(self) -> BatchKey:
        """Return the key of the global batch, of which this key's batch is a part.

        Raises:
            ValueError: if this is a part, and the key does not say of what.

        >>> key = BatchKey(7, 0, 0, 2, np.array([5, 9]), 0, 4, np.array([3, 1, 5, 9]), 2)
        >>> key.whole().first_slot, key.whole().indices.tolist()
        (0, [3, 1, 5, 9])
        """
        own = len(self.indices)
        if self.global_indices is not None and len(self.global_indices) != own:
            return self._replace(first_slot=0, indices=self.global_indices)
        if self.global_rows not in (None, own):
            raise ValueError(
                f"global_indices must be the {self.global_rows} indices of the global batch "
                f"for a key of {own} of them, got {self.global_indices}"
            )
        return self


def checked_key(key: BatchKey) -> BatchKey:
    """Return a key that a user may have made, as kernels read it: with int64 indices [n].

    Raises:
        TypeError: not a ``BatchKey``, or a coordinate or the indices are no integers.
        ValueError: a coordinate is not in [0, 2**64), or the indices have several dimensions.
    """
    if not isinstance(key, BatchKey):
        raise TypeError(f"key must be a BatchKey, got {shown(key)}")
    for name in ("seed", "epoch", "step", "first_slot"):
        value = getattr(key, name)
        if type(value) is not int or not 0 <= value < 1 << 64:
            changed: Any = {name: check_uint64(f"{name} of the key", value)}
            key = key._replace(**changed)
    indices = key.indices
    if (
        type(indices) is np.ndarray
        and indices.dtype == np.int64
        and indices.ndim == 1
        and indices.flags.c_contiguous
        and indices.flags.aligned
    ):
        return key
    found = plain_array("indices of the key", indices)
    if found.ndim > 1:
        raise ValueError(f"indices of the key must have one dimension, got shape {found.shape}")
    if found.dtype.kind not in "iu" and (found.dtype.kind != "f" or found.size):
        raise TypeError(f"indices of the key must be integers, got {found.dtype}")
    checked: BatchKey = key._replace(indices=np.array(found, np.int64, ndmin=1))
    return checked

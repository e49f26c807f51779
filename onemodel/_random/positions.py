"""Positions of a keyed permutation, as its kernels take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onemodel._common.arrays import plain_array
from onemodel._common.integers import TWO_63, TWO_64

__all__ = ["position_error", "positions_of", "slice_of"]


def positions_of(positions: ArrayLike, out: Any, n: int) -> NDArray[np.int64]:
    """Return positions in [0, n) as C-contiguous int64 that shares no memory with ``out``.

    Only what int64 cannot hold is out of range here; the kernel looks at the rest.
    """
    wanted = plain_array("positions", positions)
    if wanted.dtype.kind not in "iu":
        if wanted.size:
            raise TypeError(f"positions must be integers, got {wanted.dtype}")
        wanted = wanted.astype(np.int64)
    if wanted.dtype == np.uint64 and wanted.size and int(wanted.max()) >= TWO_63:
        raise IndexError(f"position must be in [0, {n}), got {int(wanted.max())}")
    if isinstance(out, np.ndarray) and np.may_share_memory(wanted, out):
        wanted = wanted.copy()
    return wanted.astype(np.int64, order="C", copy=False)


def position_error(positions: NDArray[np.int64], n: int) -> IndexError:
    """Say which of the positions is the first outside of [0, n)."""
    # none any more, if another thread has changed it since
    wrong = next((each for each in positions.flat if not 0 <= each < n), "another")
    return IndexError(f"position must be in [0, {n}), got {wrong}")


def slice_of(positions: slice, n: int) -> tuple[int, int, int]:
    """Return first, step and count of a slice of n positions.

    The first two modulo 2**64: kernels go backwards by wrapping.
    """
    start, stop, step = positions.indices(n)
    # not the length of a range, which some platforms can't say
    count = max(0, (stop - start + step - (1 if step > 0 else -1)) // step)
    return start % TWO_64, step % TWO_64, count

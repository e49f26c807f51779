"""What a sampler is told of each item: a length or a weight, checked once and copied.

The array is large, so a repr names it by its digest.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from onemodel._common.arrays import plain_array
from onemodel._samplers.samplers import OrderSampler
from onemodel._simd.float_mode import DefaultFloatMode

__all__ = ["PerItemSampler", "check_lengths", "check_weights"]


class PerItemSampler(OrderSampler):
    """A sampler one argument of which is an array with a number for each item."""

    _made = OrderSampler._made | {"_digest"}

    def __init__(
        self, owner: type, arguments: dict[str, Any], n: int, steps: int, size: int | None = None
    ) -> None:
        super().__init__(owner, arguments, n, steps, size)
        self._digest: str | None = None

    def _shown(self) -> dict[str, Any]:
        """Return the arguments that the repr shows."""
        return dict(self.arguments)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={self._named(value) if isinstance(value, np.ndarray) else repr(value)}"
            for name, value in self._shown().items()
        )
        return f"{type(self).__name__}({shown})"

    def _named(self, column: NDArray[Any]) -> str:
        if self._digest is None:  # once: a state asks for the repr each time
            data = column.astype(column.dtype.newbyteorder("<")).tobytes()
            self._digest = hashlib.sha256(data).hexdigest()
        return f"<{self.n}, sha256 {self._digest}>"


def check_lengths(lengths: ArrayLike) -> NDArray[np.int64]:
    """Return lengths in [0, 2**32) as a read-only copy."""
    values = _one_dimension("lengths", lengths)
    if values.size and values.dtype.kind not in "iu":
        raise TypeError(f"lengths must be integers, got {values.dtype}")
    if values.size and not (values.min() >= 0 and values.max() < 2**32):
        raise ValueError(
            f"lengths must be in [0, 2**32), got {int(values.min())} to {int(values.max())}"
        )
    checked = np.array(values, np.int64)
    checked.flags.writeable = False
    return checked


def check_weights(weights: ArrayLike) -> NDArray[np.float64]:
    """Return finite weights >= 0, one of them above 0, as a read-only copy in float64."""
    values = _one_dimension("weights", weights)
    if values.size and values.dtype.kind not in "iuf":
        raise TypeError(f"weights must be numbers, got {values.dtype}")
    with DefaultFloatMode(), np.errstate(all="ignore"):
        checked = np.array(values, np.float64) + 0.0  # no zero has a sign
        wrong = ~(np.isfinite(checked) & (checked >= 0))
        if wrong.any():
            place = int(wrong.argmax())
            raise ValueError(
                f"weights[{place}] must be finite and at least 0, got {float(checked[place])}"
            )
        if checked.size and not (checked > 0).any():
            raise ValueError(f"weights must have one above 0, got {checked.size} zeros")
    checked.flags.writeable = False
    return checked


def _one_dimension(name: str, values: ArrayLike) -> NDArray[Any]:
    array = plain_array(name, values)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {list(array.shape)}")
    return array

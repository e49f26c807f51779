"""Which items the parts of a dataset hold: by indices, or by a keyed split."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._common.arguments import check_number
from onemodel._common.arrays import is_masked, plain_array
from onemodel._common.describe import shown
from onemodel._common.integers import check_uint64
from onemodel._random.permutation import KeyedPermutation
from onemodel._random.rng import derive

__all__ = ["checked_indices", "split_indices"]

#: The stream of `Derive` that a split is drawn from.
STREAM = 8


def checked_indices(indices: Any, length: int, name: str = "indices") -> NDArray[np.int64]:
    """Return indices in [0, length) as int64 [n]; errors call them ``name``.

    Raises:
        TypeError: not integers.
        ValueError: not one-dimensional.
        IndexError: one is out of range.
    """
    array = plain_array(name, indices)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got shape {array.shape}")
    if not array.size:
        if array.dtype.kind not in "iuf":  # an empty list is one of floats
            raise TypeError(f"{name} must be integers, got {array.dtype}")
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be integers, got {array.dtype}")
    if array.min() < 0 or array.max() >= length:
        bad = array[(array < 0) | (array >= length)][0]
        raise IndexError(f"{name} must be in [0, {length}), got {bad}")
    return array.astype(np.int64, copy=False)


def split_indices(length: int, seed: int, fractions: Sequence[float]) -> list[NDArray[np.int64]]:
    """Return the indices of each part of a random split, in rising order.

    Item i lies at position p of the keyed permutation of ``Derive(seed, 0, 0, 0, 8)``; part k
    holds the positions from ``floor(length * (f_0 + ... + f_(k-1)))`` up to the same sum with
    ``f_k``. A fraction is the nearest one with a denominator up to 10**6, so that 0.7, 0.2 and
    0.1 add up to 1.

    Raises:
        TypeError, ValueError: if a fraction is not in (0, 1], or they add up to more than 1, or a
            part would be empty.

    >>> [part.tolist() for part in split_indices(5, seed=1, fractions=(0.6, 0.4))]
    [[1, 2, 4], [0, 3]]
    """
    if is_masked(fractions):
        raise TypeError("fractions must be numbers without a mask, got a masked array")
    key = derive(check_uint64("seed", seed), 0, 0, 0, STREAM)
    try:
        numbers = [check_number("fraction", share) for share in fractions]
    except (TypeError, ValueError) as error:
        raise type(error)(f"fractions must be numbers in (0, 1], got {shown(fractions)}") from None
    shares = [Fraction(number).limit_denominator(10**6) for number in numbers]
    if not shares or min(shares) <= 0 or sum(shares) > 1:
        raise ValueError(
            f"fractions must be above 0 and add up to at most 1, got {shown(fractions)}"
        )
    bounds = [int(length * share) for share in itertools.accumulate(shares, initial=Fraction(0))]
    if any(first == stop for first, stop in itertools.pairwise(bounds)):
        raise ValueError(
            f"fractions must give each part at least 1 of {length} items, got {shown(fractions)}"
        )
    order = KeyedPermutation(length, key)
    return [np.sort(order[first:stop]) for first, stop in itertools.pairwise(bounds)]

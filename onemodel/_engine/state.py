"""A loader's state: a version, names and plain values, checked when it is loaded.

The state is one step number and what it is a step of. It says nothing of workers, prefetch or
shards, so a run goes on with others.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from onemodel._common.describe import describe, shown
from onemodel._common.integers import TWO_64, check_integer

__all__ = ["STATE_VERSION", "check_state", "make_state"]

STATE_VERSION = 1


def make_state(
    *, next_step: int, seed: int, dataset_length: int, sampler: Any, collator: Any
) -> dict[str, Any]:
    """Return the state as a dict that JSON can hold."""
    return {
        "version": STATE_VERSION,
        "next_step": next_step,
        "seed": seed,
        "dataset_length": dataset_length,
        "sampler": describe(sampler),
        "collator": describe(collator),
    }


def check_state(state: Any, expected: dict[str, Any]) -> int:
    """Return the state's next global step after checking that it belongs to this loader.

    Raises:
        TypeError: if ``state`` is no dict.
        ValueError: naming the field that is missing, unknown or other than ``expected``, with
            both values.
    """
    if not isinstance(state, dict):
        raise TypeError(f"state must be a dict from state_dict(), got {type(state).__name__}")
    for name in expected:
        if name not in state:
            raise ValueError(f"state has no field {name!r}; its fields are {shown(list(state))}")
    for name in state:
        if name not in expected:
            raise ValueError(f"state has an unknown field {name!r}: {shown(state[name])}")
    for name, value in expected.items():
        found = state[name]
        comparable = isinstance(found, str | int | np.integer)  # arrays compare item by item
        if name != "next_step" and not (comparable and found == value):
            raise ValueError(
                f"state field {name!r} does not match: the state has {shown(found)}, "
                f"this loader has {value!r}"
            )
    return check_integer("state['next_step']", state["next_step"], 0, TWO_64 + 1)

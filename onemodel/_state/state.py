"""A loader's state: a version, names and plain values, checked when it is loaded.

The state is one step number and what it is a step of. It says nothing of workers, prefetch or
shards, so a run goes on with others. Source: docs/specification.md, section "State".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from onemodel._common.describe import shown
from onemodel._common.integers import TWO_64, check_integer
from onemodel._state.code import PYTHON
from onemodel._state.fingerprint import Fingerprint

__all__ = ["FIELDS", "STATE_VERSION", "check_allowed", "check_state", "make_state"]

STATE_VERSION = 2

#: What must be the same where a run goes on, in the order in which it is compared.
FIELDS = (
    "seed",
    "dataset_length",
    "dataset",
    "sampler",
    "transform",
    "augmentation",
    "collator",
)


def make_state(next_step: int, seed: int, length: int, made_of: Fingerprint) -> dict[str, Any]:
    """Return the state as a dict that JSON can hold."""
    return {
        "version": STATE_VERSION,
        "next_step": next_step,
        "seed": seed,
        "dataset_length": length,
        **made_of.texts,
        "code": {"python": PYTHON, **made_of.code},
    }


def check_allowed(allow: Iterable[str]) -> frozenset[str]:
    """Return the fields that may differ.

    Raises:
        TypeError: if ``allow`` is no collection of names.
        ValueError: if a name is none of ``FIELDS``.
    """
    try:
        names = None if isinstance(allow, str | bytes) else frozenset(allow)
    except TypeError:
        names = None
    if names is None:
        raise TypeError(f"allow must be a set of the state's fields, got {shown(allow)}")
    unknown = [name for name in names if name not in FIELDS]
    if unknown:
        raise ValueError(
            f"allow must be of the fields {', '.join(FIELDS)}, got {shown(unknown[0])}"
        )
    return names


def check_state(
    state: Any,
    own: dict[str, Any],
    own_version_1: Callable[[], dict[str, Any]],
    allow: frozenset[str],
) -> int:
    """Return the state's next global step after checking that it belongs to this loader.

    Args:
        state: what was loaded.
        own: this loader's state.
        own_version_1: this loader's state as version 1 had it.
        allow: fields that may differ.

    Raises:
        TypeError: if ``state`` is no dict, or a field is of another type; naming the field.
        ValueError: naming the field that is missing, unknown or other than this loader's, with
            both values.
    """
    if not isinstance(state, dict):
        raise TypeError(f"state must be a dict from state_dict(), got {type(state).__name__}")
    if "version" not in state:
        raise ValueError(f"state has no field 'version'; its fields are {shown(list(state))}")
    version = check_integer("state['version']", state["version"], 1, STATE_VERSION + 1)
    expected = own if version == STATE_VERSION else own_version_1()
    for name in expected:
        if name not in state:
            raise ValueError(f"state has no field {name!r}; its fields are {shown(list(state))}")
    for name in state:
        if name not in expected:
            raise ValueError(f"state has an unknown field {shown(name)}: {shown(state[name])}")
    next_step = check_integer("state['next_step']", state["next_step"], 0, TWO_64 + 1)
    code = _code(state) if version == STATE_VERSION else {}
    comparable = code.get("python") == PYTHON
    differing = {}
    for name in FIELDS:
        if name not in expected:
            continue
        found, wanted = _checked(name, state[name], expected[name]), expected[name]
        if found != wanted:
            differing[name] = f"the state has {shown(found)}, this loader has {wanted!r}"
        elif comparable and code.get(name) != own["code"].get(name):
            differing[name] = (
                f"the state has {shown(found)} with code {shown(code.get(name))}, "
                f"this loader has it with code {own['code'].get(name)!r}"
            )
    refused = [name for name in differing if name not in allow]
    if refused:
        first, *others = refused
        also = f", and so do {', '.join(others)}" if others else ""
        names = ", ".join(repr(name) for name in differing)
        raise ValueError(
            f"state field {first!r} does not match: {differing[first]}{also}; "
            f"load_state_dict(state, allow={{{names}}}) goes on all the same, with other batches"
        )
    return next_step


def _checked(name: str, found: Any, wanted: int | str) -> int | str:
    """Return a field's value of the type that it has in every state."""
    if isinstance(wanted, str):
        if not isinstance(found, str):
            raise TypeError(f"state[{name!r}] must be a string, got {shown(found)}")
        return found
    return check_integer(f"state[{name!r}]", found, 0, TWO_64)


def _code(state: dict[str, Any]) -> dict[str, str]:
    """Return the digests of code, by field, and the Python that they belong to."""
    code = state["code"]
    if not (
        isinstance(code, dict)
        and isinstance(code.get("python"), str)
        and all(isinstance(each, str) for each in code.values())
    ):
        raise TypeError(
            f"state['code'] must be a dict of strings with the key 'python', got {shown(code)}"
        )
    return code

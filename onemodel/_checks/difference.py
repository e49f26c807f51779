"""Where two builds of one step differ first: the part, the slot, the field, the value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onemodel._checks.trace import Stage, Trace

__all__ = ["Difference", "first_difference"]


@dataclass(frozen=True)
class Difference:
    """The first difference that one comparison found.

    Attributes:
        comparison: in which one: "order", "made again", "threads", "workers" or "process".
        how: what was different there, in words.
        step: the global step.
        slot: in the global batch; None where the difference belongs to none.
        index: the slot's dataset index, or None.
        field: the array, as the expression that reaches it; None where one build raised.
        position: of the first element that differs in it; None where dtype or shape differ.
        expected: that element (or dtype and shape, or error) where steps are built in order.
        found: the same in the comparison.
        part: the first part of the pipeline that gave something else; None if that is not known.
        draws: how many draws that part took from its generator, in order and in the comparison;
            each None where it has none.
        kind: the probable cause: "sampler", "global generator", "clock", "edited dataset",
            "changing dataset", "state", "thread", "process", "hash seed" or "unknown".
        hint: the same as a sentence.
    """

    comparison: str
    how: str
    step: int
    slot: int | None
    index: int | None
    field: str | None
    position: tuple[int, ...] | None
    expected: Any
    found: Any
    part: str | None
    draws: tuple[int | None, int | None] | None
    kind: str = "unknown"
    hint: str = ""

    def __str__(self) -> str:
        place = f"global step {self.step}"
        if self.slot is not None:
            place += f", slot {self.slot}, dataset index {self.index}"
        what = "building it" if self.field is None else self.field
        if self.field is not None and self.position is not None:
            what += str(list(self.position))
        lines = [
            f"{self.comparison}: {place}: {what} gave {self.found}, and {self.expected} in order",
            f"    compared: {self.how}",
        ]
        if self.part is not None:
            lines.append(f"    first part that differs: {self.part}{self._draws_text()}")
        if self.hint:
            lines.append(f"    probable cause: {self.hint}")
        return "\n".join(lines)

    def _draws_text(self) -> str:
        if self.draws is None or self.draws[0] is None or self.draws[1] is None:
            return ""
        before, after = self.draws
        if before == after:
            return f" ({after} draws of its generator, as before)"
        return f" ({after} draws of its generator, and {before} in order)"


def first_difference(comparison: str, how: str, expected: Trace, found: Trace) -> Difference | None:
    """Return the first difference of two builds of one step, or None."""
    place = _first_place(expected, found)
    if place is None:
        return None
    field, position, left, right = place
    part, slot, draws = _first_part(expected.stages, found.stages)
    if field is not None and position is not None:
        own = _slot_of(field, position, expected)
        slot = slot if own is None else own
    row = -1 if slot is None else slot - expected.first_slot
    index = expected.indices[row] if 0 <= row < len(expected.indices) else None
    return Difference(
        comparison,
        how,
        expected.step,
        None if index is None else slot,
        index,
        field,
        position,
        left,
        right,
        part,
        draws,
    )


def _first_place(
    expected: Trace, found: Trace
) -> tuple[str | None, tuple[int, ...] | None, Any, Any] | None:
    """Return (field, position, what was expected, what was found)."""
    if expected.error is not None or found.error is not None:
        if expected.error == found.error:
            return None
        return None, None, expected.error or "a batch", found.error or "a batch"
    for field in dict.fromkeys([*expected.arrays, *found.arrays]):
        left, right = expected.arrays.get(field), found.arrays.get(field)
        if left is None or right is None or left.dtype != right.dtype or left.shape != right.shape:
            return field, None, _shape(left), _shape(right)
        position = _first_position(left, right)
        if position is not None:
            return field, position, left[position].item(), right[position].item()
    return None


def _shape(array: NDArray[Any] | None) -> str:
    return "no such array" if array is None else f"{array.dtype} {list(array.shape)}"


def _first_position(left: NDArray[Any], right: NDArray[Any]) -> tuple[int, ...] | None:
    """Return where two arrays of one dtype and shape differ in a byte."""
    width = left.dtype.itemsize
    if not left.size or not width:
        return None
    bytes_of = [np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in (left, right)]
    differs = (bytes_of[0] != bytes_of[1]).reshape(-1, width).any(axis=1)
    if not differs.any():
        return None
    return tuple(int(each) for each in np.unravel_index(int(differs.argmax()), left.shape))


def _slot_of(field: str, position: tuple[int, ...], trace: Trace) -> int | None:
    """Return the slot that an element belongs to: its array row's, or that of its target."""
    if not position:
        return None
    array, rows = trace.arrays[field], len(trace.indices)
    lengths = trace.arrays.get(f"{field.removesuffix('targets')}target_lengths")
    if field.endswith("targets") and array.ndim == 1 and lengths is not None:
        return trace.first_slot + int(np.searchsorted(np.cumsum(lengths), position[0], "right"))
    return trace.first_slot + position[0] if array.shape[0] == rows else None


def _first_part(
    expected: list[Stage], found: list[Stage]
) -> tuple[str | None, int | None, tuple[int | None, int | None] | None]:
    """Return the first part that gave something else, its slot, and its draws."""
    if not expected or not found:
        return None, None, None
    for left, right in zip(expected, found, strict=False):
        if left != right:
            return right.part, right.slot, (_draws(expected, left), _draws(found, right))
    if len(expected) == len(found):
        return None, None, None
    longer = max(expected, found, key=len)
    stage = longer[min(len(expected), len(found))]
    return stage.part, stage.slot, None


def _draws(stages: list[Stage], stage: Stage) -> int | None:
    """Return how many draws its part took: for its slot, or for the whole batch."""
    if stage.draws is not None:
        return stage.draws
    return next((one.draws for one in stages if one.part == stage.part and one.slot is None), None)

"""What an error that was raised while building a batch says of the place where it happened."""

from __future__ import annotations

import contextlib
from typing import Any

__all__ = ["note", "note_finish", "note_slot", "note_step"]


def note_slot(error: BaseException, key: Any, position: int, index: int) -> None:
    """Note on ``error`` which slot of the batch of ``key`` it concerns, once.

    Args:
        error: what was raised.
        key: a ``BatchKey``.
        position: of the slot in this shard's batch; its number in the global batch is noted.
        index: the slot's dataset index.
    """
    note(error, f"{_step_text(key)}, slot {key.first_slot + position}, dataset index {index}")


def note_step(error: BaseException, key: Any) -> None:
    """Note on ``error`` at which step it was raised, unless ``note_slot`` has said so already."""
    text = _step_text(key)
    if not any(str(note).startswith(text) for note in _notes(error)):
        note(error, text)


def note_finish(error: BaseException, g: int) -> None:
    """Note on ``error`` that it was raised while global step ``g`` was brought to its device."""
    note(error, f"while device= was applied to global step {g}")


def _step_text(key: Any) -> str:
    if key.global_step is None:
        return f"while building epoch {key.epoch}, step {key.step}"
    return f"while building global step {key.global_step} (epoch {key.epoch}, step {key.step})"


def _notes(error: BaseException) -> list[Any]:
    try:
        notes = getattr(error, "__notes__", None)
    except Exception:  # a property of the user's
        return []
    return notes if isinstance(notes, list) else []


def note(error: BaseException, text: str) -> None:
    """Add a note to ``error``, if it takes any."""
    # An exception may refuse notes (a frozen dataclass) or mean something else by add_note: it
    # then arrives as it is.
    with contextlib.suppress(Exception):
        BaseException.add_note(error, text)

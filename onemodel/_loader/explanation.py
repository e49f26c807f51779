"""What makes the batch of a step: its rows, and the generators of its slots."""

from __future__ import annotations

from typing import Any

from onemodel._builders.step_builder import StepBuilder
from onemodel._random.rng import derive
from onemodel._random.streams import (
    AUGMENTATION_STREAM,
    ITEM_STREAM,
    ROW_STREAM,
    TRANSFORM_STREAM,
)

__all__ = ["explain"]

STREAMS = {"transform": TRANSFORM_STREAM, "augment": AUGMENTATION_STREAM, "row": ROW_STREAM}


def explain(builder: StepBuilder, g: int) -> dict[str, Any]:
    """Return what ``DataLoader.explain`` says of global step g."""
    key = builder.key(g)
    streams = dict(STREAMS)
    if getattr(builder.builder, "reader", None) is not None:
        streams["item"] = ITEM_STREAM
    slots = [
        {"slot": slot, "index": index}
        | {
            name: derive(key.seed, key.epoch, key.step, slot, stream)
            for name, stream in streams.items()
        }
        for slot, index in enumerate(key.indices.tolist(), key.first_slot)
    ]
    return {"global_step": g, "epoch": key.epoch, "step": key.step, "slots": slots}

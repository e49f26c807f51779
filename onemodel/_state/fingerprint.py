"""The parts of a loader as a state holds them: one short text each."""

from __future__ import annotations

from typing import Any

from onemodel._collate.collator import ImageBatchCollator
from onemodel._common.configured import Configured
from onemodel._state.values import Describer, fingerprint_of, is_ours
from onemodel.datasets.digits import DigitLines

__all__ = ["Fingerprint"]


class Fingerprint:
    """What a loader's batches depend on, besides seed and length; each part is described once.

    Args:
        dataset: of its items nothing is read.
        sampler, transform, collator: as the loader has them.
    """

    def __init__(self, dataset: Any, sampler: Any, transform: Any, collator: Any) -> None:
        ours = isinstance(collator, ImageBatchCollator)
        self._parts = {
            "dataset": dataset,
            "sampler": sampler,
            "transform": transform,
            "augmentation": collator.augment if ours else None,
            "collator": collator,
        }
        self._described: dict[str, tuple[str, str | None]] = {}
        self._taken_down = False

    def take_down(self) -> None:
        """Describe what a batch might change: a callable may count, remember, or be configured.

        The dataset and the library's own samplers stay as they are. They are described when a
        state is made: their arrays may be large.
        """
        if self._taken_down:  # every pass asks
            return
        sampler = self._parts["sampler"]
        stays = isinstance(sampler, Configured) and is_ours(type(sampler))
        for name in ("transform", "augmentation", "collator", *(() if stays else ("sampler",))):
            self._describe(name)
        self._taken_down = True

    @property
    def texts(self) -> dict[str, str]:
        """A text for each part, the same in every Python."""
        return {name: self._describe(name)[0] for name in self._parts}

    @property
    def code(self) -> dict[str, str]:
        """For each part that has Python code its digest, which is that of this Python."""
        found = ((name, self._describe(name)[1]) for name in self._parts)
        return {name: digest for name, digest in found if digest is not None}

    def _describe(self, name: str) -> tuple[str, str | None]:
        known = self._described.get(name)
        if known is None:
            part = self._parts[name]
            if part is None:
                return "None", None
            describer = Describer(("augment", "pool") if name == "collator" else ())
            if name == "dataset":
                text = _dataset_text(part)
            elif name == "sampler":
                text = describer.sampler_text(part)
            else:
                text = describer.text(part)
            known = text, describer.code
            self._described[name] = known
        return known


def _dataset_text(dataset: Any) -> str:
    kind = repr(dataset) if type(dataset) is DigitLines else type(dataset).__qualname__
    own = fingerprint_of(dataset)
    return kind if own is None else f"{kind}, {own}"

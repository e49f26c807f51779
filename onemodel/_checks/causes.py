"""The probable cause of a difference: what a step did besides reading its arguments.

A step is built once more on one thread while its surroundings are watched: NumPy's and Python's
global generators, the clocks and identities that modules hand out, and the dataset's own items.
These are hints. A clock that was imported by name, say, is not seen.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from onemodel._checks.trace import Recorder, build_traced, fingerprint
from onemodel._common.overrides import is_own
from onemodel.datasets import Items
from onemodel.loader import DataLoader

__all__ = ["Cause", "causes_of"]

#: What is counted while a part runs: (module, function, kind).
WATCHED = (
    *(
        (time, name, "clock")
        for name in (
            "time",
            "time_ns",
            "monotonic",
            "monotonic_ns",
            "perf_counter",
            "perf_counter_ns",
            "process_time",
            "process_time_ns",
            "thread_time",
            "localtime",
            "gmtime",
            "strftime",
        )
    ),
    (os, "urandom", "global generator"),
    (random, "_urandom", "global generator"),  # of SystemRandom, secrets and default_rng()
    (threading, "get_ident", "thread"),
    (threading, "get_native_id", "thread"),
    (threading, "current_thread", "thread"),
    (os, "getpid", "process"),
)


class Cause(NamedTuple):
    """What a part did."""

    kind: str
    part: str
    hint: str


def causes_of(loader: DataLoader, g: int) -> list[Cause]:
    """Build global step g of ``loader`` under watch and return what was seen, in order."""
    recorder = _Watch(loader)
    with _counted(recorder.called):
        build_traced(loader, g, recorder)
    return recorder.causes


class _Watch(Recorder):
    def __init__(self, loader: DataLoader) -> None:
        super().__init__()
        self.loader = loader
        self.causes: list[Cause] = []
        self.calls: list[tuple[str, str]] = []
        self.generators: dict[str, str] = {}
        self.items: dict[int, str] = {}
        self.is_changing = False
        self.inside = 0  # parts may call one another

    def begin(self, part: str, position: int | None) -> None:
        self.inside += 1
        if self.inside == 1:
            self.calls.clear()
            self.generators = _generator_states()

    def end(self, part: str, position: int | None) -> None:
        self.inside -= 1
        if self.inside:
            return
        calls = dict.fromkeys(self.calls)
        is_own = part.startswith("sampler") and _is_ours(self.loader.sampler)
        for name, kind in () if is_own else calls:
            self.causes.append(Cause(kind, part, f"{part} calls {name}()"))
        for name, state in _generator_states().items():
            if state != self.generators.get(name, state):
                hint = f"{part} draws from {name}; take every draw from the generator it is given"
                self.causes.append(Cause("global generator", part, hint))
        known = position is not None and position < len(self.indices)
        self._look_at_items(part, [self.indices[position or 0]] if known else self.indices)

    def called(self, name: str, kind: str) -> None:
        if self.inside:
            self.calls.append((name, kind))

    def _look_at_items(self, part: str, indices: list[int]) -> None:
        """Read items again, twice at first, and say who changed them."""
        for index in dict.fromkeys(indices):
            try:
                read = self._read(index)
                if index not in self.items:
                    self.items[index], read = read, self._read(index)
                    if self.items[index] != read:
                        self._changing()
            except Exception:  # the part has just read it
                self._changing()
                return
            if self.items[index] != read and not self.is_changing:
                hint = f"{part} edits the dataset's own memory; make a copy and edit that"
                self.causes.append(Cause("edited dataset", part, hint))
            self.items[index] = read

    def _changing(self) -> None:
        part = f"dataset {type(self.loader.dataset).__name__}"
        hint = f"{part} gives another item when the same index is read again"
        if not self.is_changing:
            self.is_changing = True
            self.causes.append(Cause("changing dataset", part, hint))

    def _read(self, index: int) -> str:
        self.inside += 1  # its own calls do not count
        try:
            dataset = self.loader.dataset
            if is_own(dataset, Items, "read"):
                return fingerprint(dataset.dataset[index])
            if self.loader.collate is not None:
                return fingerprint(dataset[index])
            read = self.loader._builder.builder.read  # type: ignore[attr-defined]
            return fingerprint(read(np.array([index], np.int64)))
        finally:
            self.inside -= 1


def _is_ours(part: Any) -> bool:
    return type(part).__module__.partition(".")[0] == "onemodel"


def _generator_states() -> dict[str, str]:
    states = {
        "random": fingerprint(random.getstate()),
        "np.random": fingerprint(np.random.get_state(legacy=False)),
    }
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "get_rng_state"):
        states["torch's global generator"] = fingerprint(torch.get_rng_state())
    return states


@contextmanager
def _counted(called: Callable[[str, str], None]) -> Iterator[None]:
    """Replace the watched functions by ones that tell ``called`` when this thread calls them."""
    thread = threading.get_ident()
    get_ident = threading.get_ident
    originals = []

    def counting(module: Any, name: str, kind: str, function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            if get_ident() == thread:
                called(f"{module.__name__}.{name}", kind)
            return function(*arguments, **named)

        return call

    try:
        for module, name, kind in WATCHED:
            function = getattr(module, name, None)
            if function is not None:
                originals.append((module, name, function))
                setattr(module, name, counting(module, name, kind, function))
        yield
    finally:
        for module, name, function in originals:
            setattr(module, name, function)

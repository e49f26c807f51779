"""``check_loader``: the same steps, built in other ways, must give the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from onemodel._checks.causes import Cause, causes_of
from onemodel._checks.child import ProcessFailedError, traces_in_a_process
from onemodel._checks.difference import Difference, first_difference
from onemodel._checks.targets import make_checked, target_of
from onemodel._checks.trace import Trace, arrays_of, build_traced
from onemodel._common.arguments import check_flag, items
from onemodel._common.describe import describe, shown
from onemodel._common.integers import TWO_64, check_integer, check_uint64
from onemodel._common.threads import can_start_processes, can_start_threads
from onemodel._engine.prefetch import call_on_threads
from onemodel.loader import DataLoader

__all__ = ["LoaderReport", "check_loader"]

#: The comparisons, in their order.
COMPARISONS = ("order", "made again", "threads", "workers", "process")
#: (workers, prefetch) of the passes that are compared.
WORKERS = ((1, 2), (4, 8))
THREADS = 4


@dataclass(frozen=True)
class LoaderReport:
    """What ``check_loader`` found; ``print`` it.

    Attributes:
        steps: the global steps that were compared.
        compared: the comparisons that ran, of "order", "made again", "threads", "workers" and
            "process".
        skipped: the others, with the reason for each.
        differences: the first difference of each comparison that found one.
    """

    steps: tuple[int, ...]
    compared: tuple[str, ...]
    skipped: dict[str, str]
    differences: tuple[Difference, ...]

    @property
    def is_pure(self) -> bool:
        """Whether nothing differed."""
        return not self.differences

    def __str__(self) -> str:
        lines = [f"{len(self.steps)} global steps: {_ranges(self.steps)}"]
        differing = {each.comparison for each in self.differences}
        for name in self.compared:
            lines.append(f"{name:<11} {'DIFFERENT' if name in differing else 'the same bytes'}")
        lines += [f"{name:<11} not compared: {reason}" for name, reason in self.skipped.items()]
        lines += ["", *map(str, self.differences)] if self.differences else []
        return "\n".join(lines)


def check_loader(
    make_loader: Callable[[], DataLoader],
    *,
    steps: int | Iterable[int] = 8,
    processes: bool = True,
) -> LoaderReport:
    """Build the same steps in other ways and say where the bytes differ first.

    A loader's promise holds for its own parts. A dataset, transform, collator or sampler of yours
    may break it: by a global generator, a clock, an edit of shared arrays, state that is kept
    between calls. Each step is built in order on this thread, and then

    - "order": again by the same loader, in another order;
    - "made again": by a loader that ``make_loader`` makes anew;
    - "threads": by several threads at once;
    - "workers": in passes with 1 and with 4 workers;
    - "process": by two new processes with other hash seeds, where ``make_loader`` can be imported
      there by its name and the platform has processes.

    ``device=`` is left out. Where something differs, the step is built once more under watch, for
    a hint at the cause. A report without differences is no proof: what depends on the date, the
    machine or rare events may not show.

    Args:
        make_loader: returns a ``DataLoader``, a new one for each call.
        steps: how many steps: the first ones of the run, and two around the end of the first
            epoch; or the global steps themselves.
        processes: whether new processes are started.

    Raises:
        TypeError, ValueError: if an argument is not as described.
        Exception: what making a loader raises, and what a step raises whenever it is built.

    >>> import numpy as np
    >>> import onemodel as om
    >>> def noise(rng, x):
    ...     return x + np.random.random(x.shape)
    >>> def make_loader():
    ...     return om.DataLoader(om.ArrayDataset(np.zeros(20)), 4, transform=noise)
    >>> report = check_loader(make_loader, steps=3, processes=False)
    >>> report.is_pure, report.differences[0].step, report.differences[0].kind
    (False, 0, 'global generator')
    >>> report.differences[0].part
    'transform onemodel._checks.purity.noise'
    """
    if not callable(make_loader):
        raise TypeError(f"make_loader must be callable, got {shown(make_loader)}")
    check_flag("processes", processes)
    loader = make_checked(make_loader)
    chosen = _steps(steps, loader)
    expected = {}
    for g in chosen:
        expected[g] = build_traced(loader, g)
        if expected[g].error is not None:
            make_checked(make_loader)._builder.build(
                g
            )  # raises it: else it is no error of the step
    check = _Check(make_loader, loader, chosen, expected)
    return check.run(processes)


class _Check:
    """One check: what was built in order, and the ways to build it otherwise."""

    def __init__(
        self,
        make_loader: Callable[[], DataLoader],
        loader: DataLoader,
        steps: list[int],
        expected: dict[int, Trace],
    ) -> None:
        self.make_loader, self.loader = make_loader, loader
        self.steps, self.expected = steps, expected
        self._causes: dict[int, list[Cause]] = {}

    def run(self, processes: bool) -> LoaderReport:
        skipped = self._skipped(processes)
        differences = []
        for name in COMPARISONS:
            if name in skipped:
                continue
            try:
                found = getattr(self, f"_{name.replace(' ', '_')}")()
            except ProcessFailedError as error:
                skipped[name] = str(error)
                continue
            if found is not None:
                differences.append(found)
        compared = tuple(name for name in COMPARISONS if name not in skipped)
        names = {each.comparison for each in differences}
        differences = [self._with_cause(each, names) for each in differences]
        return LoaderReport(tuple(self.steps), compared, skipped, tuple(differences))

    def _skipped(self, processes: bool) -> dict[str, str]:
        skipped = {}
        if not can_start_threads():
            skipped["threads"] = skipped["workers"] = "this platform has no threads"
        self.target = target_of(self.make_loader)
        if not processes:
            skipped["process"] = "processes=False"
        elif not can_start_processes():
            skipped["process"] = "this platform has no processes"
        elif self.target is None:
            skipped["process"] = (
                f"{describe(self.make_loader)} cannot be imported by its name; "
                "give a function of a module or of a file"
            )
        return skipped

    def _first(self, name: str, how: str, traces: Iterable[Trace]) -> Difference | None:
        """Return the difference of the first step that differs."""
        in_order = sorted(traces, key=lambda trace: trace.step)
        found = (first_difference(name, how, self.expected[each.step], each) for each in in_order)
        return next((each for each in found if each is not None), None)

    def _order(self) -> Difference | None:
        order = [*self.steps[1::2], *reversed(self.steps[::2])]
        how = "the same loader, the same steps in another order"
        return self._first("order", how, (build_traced(self.loader, g) for g in order))

    def _made_again(self) -> Difference | None:
        loader = make_checked(self.make_loader)
        how = "a loader that make_loader made anew, the steps in order"
        return self._first("made again", how, (build_traced(loader, g) for g in self.steps))

    def _threads(self) -> Difference | None:
        loader = make_checked(self.make_loader)

        def build(first: int) -> list[Trace]:
            turned = [*self.steps[first:], *self.steps[:first]]
            return [build_traced(loader, g) for g in turned]

        begins = [k * len(self.steps) // THREADS for k in range(THREADS)]
        built = call_on_threads([partial(build, first) for first in begins])
        how = f"{THREADS} threads at once, each from another step on"
        return self._first("threads", how, (trace for traces in built for trace in traces))

    def _workers(self) -> Difference | None:
        for workers, prefetch in WORKERS:
            traces = self._pass(workers, prefetch)
            how = f"a pass with workers={workers}, prefetch={prefetch}"
            found = self._first("workers", how, traces)
            if found is not None:
                return found
        return None

    def _pass(self, workers: int, prefetch: int) -> Iterator[Trace]:
        made = make_checked(self.make_loader)
        with DataLoader(
            made.dataset,
            sampler=made.sampler,
            transform=made.transform,
            collate=made.collate,
            seed=made.seed,
            shard=made.shard,
            workers=workers,
            prefetch=prefetch,
        ) as loader:
            for first, stop in _runs(self.steps):
                g = first
                batches = iter(loader.steps(first, stop))
                while g < stop:
                    try:
                        arrays, error = arrays_of(next(batches)), None
                    except Exception as raised:
                        arrays, error = {}, f"{type(raised).__name__}: {raised}"
                    known = self.expected[g]
                    yield Trace(g, known.first_slot, known.indices, [], arrays, error)
                    g = stop if error is not None else g + 1

    def _process(self) -> Difference | None:
        assert self.target is not None
        built = [traces_in_a_process(self.target, self.steps, seed) for seed in (1, 2)]
        for seed, traces in enumerate(built, start=1):
            how = f"a new process with PYTHONHASHSEED={seed}"
            found = self._first("process", how, traces)
            if found is not None:
                return self._of_processes(found, built)
        return None

    def _of_processes(self, found: Difference, built: list[list[Trace]]) -> Difference:
        """Say whether it is the hash seed that matters, by a third process."""
        at = self.steps.index(found.step)
        first, second = built[0][at], built[1][at]
        again = traces_in_a_process(str(self.target), self.steps, 1)[at]
        if first_difference("", "", first, again) is not None:
            return replace(found, kind="process")
        if first_difference("", "", first, second) is not None:
            return replace(found, kind="hash seed")
        return replace(found, kind="new process")

    def _with_cause(self, found: Difference, names: set[str]) -> Difference:
        """Add the probable cause: what was seen under watch, or what the comparisons say."""
        if found.part is not None and found.part.startswith("sampler"):
            hint = "batch_indices is no pure function of (seed, epoch, step)"
            return replace(found, kind="sampler", hint=hint)
        seen = self._seen(found.step)
        by_process = names == {"process"}
        if by_process and found.kind == "hash seed":
            hint = "the order of a set, or hash(): both change with PYTHONHASHSEED; sort first"
            return replace(found, kind="hash seed", hint=hint)
        wanted = _wanted(names)
        cause = next((each for kind in wanted for each in seen if each.kind == kind), None)
        if cause is not None:
            kind = found.kind if by_process and cause.kind == "thread" else cause.kind
            return replace(found, kind=kind, hint=cause.hint)
        kind, hint = _by_comparison(names, found)
        return replace(found, kind=kind, hint=hint)

    def _seen(self, g: int) -> list[Cause]:
        if g not in self._causes:
            try:
                self._causes[g] = causes_of(make_checked(self.make_loader), g)
            except Exception:  # a hint is not worth losing the report for
                self._causes[g] = []
        return self._causes[g]


def _wanted(names: set[str]) -> Sequence[str]:
    """Return which kinds of causes can explain that just these comparisons differ."""
    if "order" in names or "made again" in names:
        return ("edited dataset", "changing dataset", "global generator", "clock", "thread")
    return ("thread", "process", "edited dataset", "global generator", "clock", "changing dataset")


def _by_comparison(names: set[str], found: Difference) -> tuple[str, str]:
    part = found.part or "a part of the pipeline"
    if "order" in names:
        return "state", (
            f"{part} keeps something between calls: a counter, a cache, or a clock or generator "
            "that is not seen from outside"
        )
    if "made again" in names:
        return "state", f"{part} is not made alike each time that make_loader is called"
    if names & {"threads", "workers"}:
        return "thread", (
            f"{part} depends on the thread that runs it, or is not safe to be called from several: "
            "a shared file handle, buffer or cache"
        )
    return "process", (
        f"{part} depends on its process: its id, what was imported before, the environment"
    )


def _steps(steps: Any, loader: DataLoader) -> list[int]:
    """Return the global steps to compare, each once, in rising order."""
    last = loader.steps_per_epoch
    listed = items(steps)
    if listed is not None:
        chosen = {check_uint64("each of steps", g) for g in listed}
        if not chosen:
            raise ValueError("steps must be at least one, got none")
        return sorted(chosen)
    count = check_integer("steps", steps, 1, 2**31)
    around = {g for g in (last - 1, last) if g < TWO_64}
    return sorted({*range(min(count, 2 * last)), *around})


def _runs(steps: Sequence[int]) -> list[tuple[int, int]]:
    """Return the (first, stop) of each stretch of steps that follow one another."""
    runs: list[tuple[int, int]] = []
    for g in steps:
        if runs and runs[-1][1] == g:
            runs[-1] = (runs[-1][0], g + 1)
        else:
            runs.append((g, g + 1))
    return runs


def _ranges(steps: Sequence[int]) -> str:
    return ", ".join(
        f"{first}" if stop == first + 1 else f"{first} to {stop - 1}"
        for first, stop in _runs(steps)
    )

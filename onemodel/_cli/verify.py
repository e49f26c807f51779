"""The proof on one's own machine: canonical batches, recomputed and compared by digest.

`onemodel/data/canonical.json` holds configurations, and for some global steps of each the SHA-256
of the batch. The digests were computed by the pure-Python reference implementations of onemodel's
repository (`tools/make_canonical.py`), never by the compiled kernels; so equal digests say that
this machine, with this compiler, NumPy and number of threads, follows the specification.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onemodel._batch.digest import digest
from onemodel._cli.canonical import canonical, make_loader
from onemodel._cli.exit_codes import DIFFERENT, SAME
from onemodel._cli.machine import versions
from onemodel._cli.report import compare, make_report, read_report

__all__ = ["Result", "add_arguments", "results", "run", "verify"]

HELP = "prove that this machine gives the canonical batches"
DESCRIPTION = (
    "Recompute the digests of canonical batches and compare each with the shipped one. "
    "Exit code 1 if any differs."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--json",
        action="store_true",
        help="print one JSON object instead: platform, Python, NumPy, compiler if it is known, "
        "vectors in use, version of the algorithm; of each batch both digests and whether they "
        "are the same",
    )
    choice.add_argument(
        "--compare",
        metavar="FILE",
        help="compare with another machine instead: FILE is what `onemodel verify --json` printed "
        "there. Says which batches differ; exit code 1 if any does",
    )


def run(parsed: argparse.Namespace) -> int:
    """Recompute all batches, print what came, and return the exit code."""
    if parsed.compare is not None:
        return _run_compare(Path(parsed.compare))
    found = []
    for result in results():
        found.append(result)
        if not parsed.json:
            print(_line(result))
    same = sum(result.same for result in found)
    if parsed.json:
        print(json.dumps(_report(found), indent=1))
    else:
        print(f"{same} of {len(found)} batches are the same, byte for byte. {versions()}")
    return SAME if same == len(found) else DIFFERENT


def _line(result: Result) -> str:
    name = f"{result.configuration}, step {result.step}"
    if result.same:
        return f"same       {result.found[:16]}  {name}"
    return f"DIFFERENT  {result.found[:64]}  {name}, expected {result.expected[:16]}"


def _run_compare(path: Path) -> int:
    there = read_report(path)  # before the work, not after it
    here = _report(results())
    differences = compare(here, there)
    if here["algorithm"] != there.get("algorithm"):
        print(
            f"{path}: algorithm {there.get('algorithm')!r}, here {here['algorithm']!r}: "
            "their batches are meant to differ"
        )
    for each in differences:
        print(
            f"DIFFERENT  {each.configuration}, step {each.step}: here {each.here[:64] or 'none'}, "
            f"there {each.there[:64] or 'none'}"
        )
    total = len(differences) + sum(
        (batch["configuration"], batch["step"]) not in {each[:2] for each in differences}
        for batch in here["batches"]
    )
    of = there["machine"]
    machine = f"{of.get('platform')}, {of.get('python')}, NumPy {of.get('numpy')}"
    print(f"{total - len(differences)} of {total} batches are the same as on {machine}")
    return DIFFERENT if differences else SAME


def _report(found: Iterable[Result]) -> dict[str, Any]:
    batches = ({**vars(result), "same": result.same} for result in found)
    return make_report(canonical()["algorithm"], batches)


@dataclass(frozen=True)
class Result:
    """One line of the proof.

    Attributes:
        configuration: its name.
        step: the global step.
        expected: the canonical digest, 64 hexadecimal digits.
        found: this machine's digest, or the error that building the batch raised.
    """

    configuration: str
    step: int
    expected: str
    found: str

    @property
    def same(self) -> bool:
        """Whether the batch is the canonical one, byte for byte."""
        return self.found == self.expected


def verify() -> list[Result]:
    """Recompute every canonical batch; a few seconds.

    Never raises for a batch that differs or cannot be built: the result says so.

    >>> all(result.same for result in verify())
    True
    """
    return list(results())


def results() -> Iterator[Result]:
    """Recompute the canonical batches one by one, for showing each as it comes."""
    for configuration in canonical()["configurations"]:
        for step, expected in configuration["digests"].items():
            try:
                found = _digest(configuration, int(step))
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            yield Result(configuration["name"], int(step), expected, found)


def _digest(configuration: dict[str, Any], step: int) -> str:
    """Build the batch of one global step, through the ring if the configuration has workers."""
    with make_loader(configuration) as loader:
        if not configuration["workers"]:
            return digest(loader[step])
        return digest(next(iter(loader.steps(step, step + 3))))

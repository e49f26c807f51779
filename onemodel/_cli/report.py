"""The proof as a JSON file, and two machines' proofs compared.

| key | holds |
|---|---|
| `format`, `version` | "onemodel.verify", 1 |
| `algorithm` | the version of the specification that the digests belong to |
| `machine` | what `onemodel._cli.machine` knows: versions, compilers, platform, vectors in use |
| `same`, `total` | how many batches are canonical, of how many |
| `batches` | one object a batch: `configuration`, `step`, `expected`, `found`, `same` |
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from onemodel._cli.machine import describe_machine
from onemodel._common.describe import shown
from onemodel._common.files import parse_json

__all__ = ["Difference", "compare", "make_report", "read_report"]

_FORMAT, _VERSION = "onemodel.verify", 1
_DIGITS = frozenset("0123456789abcdef")


class Difference(NamedTuple):
    """A batch that two machines do not share."""

    configuration: str
    step: int
    here: str  # the digest, the error, or "" if there is no such batch
    there: str


def make_report(algorithm: Any, batches: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Put the batches and this machine in one object that fits in JSON."""
    listed = list(batches)
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "algorithm": algorithm,
        "machine": describe_machine(),
        "same": sum(batch["same"] for batch in listed),
        "total": len(listed),
        "batches": listed,
    }


def read_report(path: Path) -> dict[str, Any]:
    """Read what `onemodel verify --json` printed, on this machine or another.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is something else; the message names the file.
    """
    try:
        report = parse_json(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: expected JSON text, found {error}") from None
    found = report.get("format") if isinstance(report, dict) else report
    if found != _FORMAT or report.get("version") != _VERSION:
        raise ValueError(
            f"{path}: expected what `onemodel verify --json` prints, version {_VERSION}, "
            f"found {shown(found)}"
        )
    batches = report.get("batches")
    if not isinstance(report.get("machine"), dict) or not (
        isinstance(batches, list)
        and all(
            isinstance(batch, dict)
            and isinstance(batch.get("configuration"), str)
            and type(batch.get("step")) is int
            and isinstance(batch.get("found"), str)
            for batch in batches
        )
    ):
        raise ValueError(f"{path}: expected a machine and a list of batches, found other values")
    return dict(report)


def compare(here: dict[str, Any], there: dict[str, Any]) -> list[Difference]:
    """Return the batches that differ, are missing on one side, or could not be built.

    A batch that failed on both machines is a difference: an error is no digest.
    """
    ours, theirs = _by_name(here), _by_name(there)
    return [
        Difference(*name, ours.get(name, ""), theirs.get(name, ""))
        for name in dict.fromkeys([*ours, *theirs])
        if ours.get(name) != theirs.get(name) or not _is_digest(ours[name])
    ]


def _by_name(report: dict[str, Any]) -> dict[tuple[str, int], str]:
    return {(each["configuration"], each["step"]): each["found"] for each in report["batches"]}


def _is_digest(found: str) -> bool:
    return len(found) == 64 and _DIGITS.issuperset(found)

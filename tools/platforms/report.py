"""The table of platforms: one row each, as text and in docs/platforms.md."""

from __future__ import annotations

import datetime
import re
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Row", "shown", "write_page"]

HEADING = (
    "platform", "machine", "compiler and flags", "Python", "NumPy", "vectors", "digests same",
    "tests", "tables",
)  # fmt: skip
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"


@dataclass
class Row:
    """What came of one platform.

    Args:
        name: of the platform.
        found: what `onemodel verify --json` printed there.
        flags: beside those of setup.py.
        good: whether all was as it must be.
        tests: pytest's last line, or what else is to be said.
        tables: whether tables from here and there gave the same batches here and there; None
            where that was not tried.
        skipped: why it was not tried; "" where it was.
        seconds: what it took.
    """

    name: str
    found: dict[str, Any] | None = None
    flags: tuple[str, ...] = ()
    good: bool = True
    tests: str = ""
    tables: bool | None = None
    skipped: str = ""
    seconds: float = 0.0

    def cells(self) -> list[str]:
        """Return the row's cells."""
        if self.found is None:
            return [self.name, f"skipped: {self.skipped}", *[""] * (len(HEADING) - 2)]
        machine = self.found["machine"]
        compiler = re.sub(r" ?\(Debian [^)]*\)", "", str(machine["compiler"] or "")).split(
            " version"
        )
        compiler = re.sub(r"^GCC: ?", "GCC ", compiler[0] + "".join(compiler[1:])).strip()
        order = "" if machine["byte_order"] == "little" else f", {machine['byte_order']}-endian"
        return [
            self.name,
            f"{machine['machine']}, {machine['pointer_bits']} bit{order}",
            " ".join([compiler, *self.flags]),
            machine["python"].removeprefix("CPython "),
            machine["numpy"],
            machine["vectors"],
            f"{self.found['same']} of {self.found['total']}",
            self.tests,
            {True: "same", False: "DIFFERENT", None: ""}[self.tables],
        ]


def shown(rows: list[Row], heading: bool = True) -> str:
    """Return the rows as Markdown."""
    lines = []
    if heading:
        lines += ["| " + " | ".join(HEADING) + " |", "|" + "---|" * len(HEADING)]
    lines += ["| " + " | ".join(row.cells()) + " |" for row in rows]
    return "\n".join(lines)


def write_page(path: Path, rows: list[Row]) -> None:
    """Put the table between the markers of a page, with the date and the command."""
    text = path.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    command = shlex.join(["python", "tools/platforms/check.py", *sys.argv[1:]])
    today = datetime.datetime.now(datetime.UTC).date()
    table = f"{BEGIN}\n{shown(rows)}\n\nMade on {today} by `{command}`.\n{END}"
    path.write_text(before + table + after, encoding="utf-8")

"""Time this checkout beside another one: `python -m benchmarks.against PATH`.

Both are built already (`python setup.py build_ext --inplace`). Each has a process of its own; they
time a row in turn, so that a shared machine treats both alike. A row's ratio is the median over
rounds of this checkout's rate by the other's. Several pairs of processes, one after another,
because where memory lies differs from process to process and stays within one. Only public names
are used: the other checkout may have its modules elsewhere.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import report
from benchmarks.harness import progress
from benchmarks.rows import rows

HERE = Path(__file__).resolve().parents[1]


@dataclass
class Row:
    """What was measured of a row: rates of both checkouts, round by round."""

    name: str
    this: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)
    skipped: str = ""

    @property
    def ratios(self) -> list[float]:
        """Rates of the checkout by the other's, one a round."""
        return [own / theirs for own, theirs in zip(self.this, self.other, strict=True)]


class Server:
    """A process that times rows with the onemodel of one checkout."""

    def __init__(self, process: subprocess.Popen[str], checkout: Path) -> None:
        self.process, self.checkout = process, checkout

    def time(self, row: str, seconds: float) -> float:
        """Return the row's rate.

        Raises:
            RuntimeError: where the row can't be timed there.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"row": row, "seconds": seconds}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the process for {self.checkout} ended at {row!r}")
        answer: dict = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"{self.checkout}: {answer['error']}")
        return answer["figure"]


@contextmanager
def server(checkout: Path) -> Iterator[Server]:
    """Start a process for a checkout; it ends with its input."""
    command = [sys.executable, "-P", str(HERE / "benchmarks" / "serve_rows.py"), str(checkout)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Server(process, checkout)
        assert process.stdin is not None
        process.stdin.close()


def compare(found: list[Row], other: Path, pairs: int, rounds: int, seconds: float) -> None:
    """Time all rows in so many pairs of processes, so many rounds each."""
    for pair in range(pairs):
        with ExitStack() as stack:
            own, theirs = (stack.enter_context(server(path)) for path in (HERE, other))
            for place, row in enumerate(found):
                progress(
                    f"\r\033[Kpair {pair + 1}/{pairs}, row {place + 1}/{len(found)}: {row.name}"
                    if sys.stderr.isatty()
                    else ""
                )
                try:
                    for number in range(0 if row.skipped else rounds):
                        order = (own, theirs) if number % 2 == 0 else (theirs, own)
                        rates = {each: each.time(row.name, seconds) for each in order}
                        row.this.append(rates[own])
                        row.other.append(rates[theirs])
                except RuntimeError as error:
                    row.skipped = str(error)
    progress("\r\033[K" if sys.stderr.isatty() else "")


def show(found: list[Row], limit: float) -> int:
    """Print a line a row; return how many are below the limit."""
    size = max(len(row.name) for row in found)
    print(f"{'':{size}}  {'this':>9}  {'other':>9}  ratio  quartiles")
    slower = 0
    for row in found:
        if row.skipped or not row.this:
            print(f"{row.name:{size}}  skipped: {row.skipped}")
            continue
        ratios = row.ratios
        ratio = statistics.median(ratios)
        spread = ""
        if len(ratios) > 1:
            low, _, high = statistics.quantiles(ratios, n=4, method="inclusive")
            spread = f"{low:.2f}-{high:.2f}"
        rates = [report.number(statistics.median(side), "rate") for side in (row.this, row.other)]
        mark = ""
        if ratio < limit:
            slower += 1
            mark = "  slower"
        line = f"{row.name:{size}}  {rates[0]:>9}  {rates[1]:>9}  {ratio:5.3f}  {spread}{mark}"
        print(line.rstrip())
    return slower


def main() -> None:
    """Time the chosen rows and print them; exit with 1 where one is slower than the limit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("path", type=Path, help="the other checkout, built in place")
    parser.add_argument("--quick", action="store_true", help="one pair, three short rounds")
    parser.add_argument("--pairs", type=int, help="pairs of processes (default 3, quick 1)")
    parser.add_argument("--rounds", type=int, help="rounds a pair (default 5, quick 3)")
    parser.add_argument("--seconds", type=float, help="seconds a row, round and checkout")
    parser.add_argument("--limit", type=float, default=0.97, help="ratio below which a row is "
                        "called slower (default 0.97)")  # fmt: skip
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only rows whose name contains NAME, or another NAME")  # fmt: skip
    options = parser.parse_args()
    other = options.path.resolve()
    if not (other / "onemodel" / "__init__.py").is_file():
        parser.error(f"path must be a checkout with a folder onemodel, got {other}")
    wanted = [name.lower() for name in options.only]
    found = [
        Row(name) for name in rows() if not wanted or any(each in name.lower() for each in wanted)
    ]
    if not found:
        parser.error(f"--only must be part of a row's name, got {options.only}")
    where = report.machine()
    print(f"{where['processor']}, {where['cores']} cores, load {where['load at start']}")
    compare(
        found,
        other,
        options.pairs or (1 if options.quick else 3),
        options.rounds or (3 if options.quick else 5),
        options.seconds or (0.1 if options.quick else 0.2),
    )
    slower = show(found, options.limit)
    print(f"{slower} of {len(found)} rows below {options.limit}")
    raise SystemExit(bool(slower))


if __name__ == "__main__":
    main()

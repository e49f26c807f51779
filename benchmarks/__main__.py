"""Run the benchmarks: `python -m benchmarks [PART ...] [--quick] [--only NAME]`."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks import report

PARTS = ("lines", "arrays", "plans", "workers", "trainer", "auto")


def main() -> None:
    """Time the chosen parts, print their tables, write them to the results folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}")
    parser.add_argument("--quick", action="store_true", help="few short rounds, no 10^8 for peers")
    parser.add_argument("--rounds", type=int, help="interleaved rounds (default 7, quick 3)")
    parser.add_argument("--seconds", type=float, help="seconds a contender and round")
    parser.add_argument("--only", action="append", default=[], metavar="NAME",
                        help="only contenders whose group and name contain NAME, or another "
                        "NAME where it is given more than once")  # fmt: skip
    parser.add_argument("--results", type=Path, default=report.RESULTS, help="folder to write to")
    options = parser.parse_args()
    unknown = sorted(set(options.parts) - set(PARTS))
    if unknown:
        parser.error(f"unknown part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    rounds = options.rounds or (3 if options.quick else 7)
    seconds = options.seconds or (0.15 if options.quick else 0.4)
    where = report.machine()
    print(f"{where['processor']}, {where['cores']} cores, load {where['load at start']}")
    for name in options.parts or PARTS:
        part = importlib.import_module(f"benchmarks.{name}")
        tables = part.run(rounds=rounds, seconds=seconds, quick=options.quick, only=options.only)
        for table in tables:
            report.show(table)
            written = report.save(table, where, options.results)
            print("written:", ", ".join(str(path) for path in written))


if __name__ == "__main__":
    main()

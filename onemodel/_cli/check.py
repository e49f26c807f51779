"""`onemodel check`: a table's bytes against its digests, or a loader's batches among themselves."""

from __future__ import annotations

import argparse

from onemodel._checks.purity import check_loader
from onemodel._cli._loaders.named import HELP as NAMED
from onemodel._cli._loaders.named import find_named, is_table, of_user
from onemodel._cli.exit_codes import DIFFERENT, SAME
from onemodel._common.integers import check_integer

__all__ = ["add_arguments", "run"]

HELP = "find changed bytes in an ImageTable on disk, or what makes a loader impure"
DESCRIPTION = (
    "Of a table: read it whole and compare every file with the digests in its manifest. "
    "Of a loader: build the same steps in other orders, threads, processes and worker counts, and "
    "name the first step, slot, field and part of the pipeline that differ. "
    "Exit code 1 if anything differs."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "target", metavar="TABLE|MAKE_LOADER", help=f"the directory of an ImageTable; or {NAMED}"
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=8,
        metavar="N",
        help="of a loader: how many steps from the first on, and two around the end of the first "
        "epoch; default %(default)s",
    )
    parser.add_argument(
        "--no-processes", action="store_true", help="of a loader: start no new processes"
    )


def run(parsed: argparse.Namespace) -> int:
    """Check a table or a loader, print what is wrong, and return the exit code."""
    if is_table(parsed.target):
        return _check_table(parsed.target)
    steps = check_integer("--steps", parsed.steps, 1, 2**31)
    make_loader = find_named(parsed.target)
    report = of_user(
        parsed.target,
        lambda: check_loader(make_loader, steps=steps, processes=not parsed.no_processes),
    )
    print(f"{parsed.target}: {report}")
    if report.is_pure:
        print(f"{parsed.target}: no difference found")
        return SAME
    return DIFFERENT


def _check_table(table: str) -> int:
    from onemodel.datasets.table_files import check_table

    problems = check_table(table)
    for problem in problems:
        print(problem)
    if problems:
        print(f"{table}: problems found: {len(problems)}")
        return DIFFERENT
    print(f"{table}: every byte is as it was written")
    return SAME

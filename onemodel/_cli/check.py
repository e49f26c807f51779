"""`onemodel check`: find changed bytes in a table by the digests in its manifest."""

from __future__ import annotations

import argparse
import os

from onemodel._cli.exit_codes import DIFFERENT, SAME

__all__ = ["add_arguments", "run"]

HELP = "find changed bytes in an ImageTable on disk"
DESCRIPTION = (
    "Read a whole ImageTable and compare every file with the digests in its manifest. "
    "Exit code 1 if anything differs, with a line for each problem."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("table", metavar="TABLE", help="the directory of an ImageTable")


def run(parsed: argparse.Namespace) -> int:
    """Check a table, print what is wrong, and return the exit code."""
    if ":" in parsed.table and not os.path.lexists(parsed.table):
        raise ValueError(
            f"TABLE must be the directory of an ImageTable, got {parsed.table!r}: "
            "there is no such directory, and loaders (MODULE:MAKE_LOADER) cannot be checked yet"
        )
    if not os.path.isdir(parsed.table):
        raise FileNotFoundError(f"{parsed.table}: expected the directory of an ImageTable")
    from onemodel.datasets.table_files import check_table

    problems = check_table(parsed.table)
    for problem in problems:
        print(problem)
    if problems:
        print(f"{parsed.table}: problems found: {len(problems)}")
        return DIFFERENT
    print(f"{parsed.table}: every byte is as it was written")
    return SAME

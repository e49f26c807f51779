"""`onemodel inspect`: widths, padding and bias of a sampler, as a table and a picture."""

from __future__ import annotations

import argparse

from onemodel._checks.inspection import Inspection, inspect_loader
from onemodel._cli._loaders.named import HELP as NAMED
from onemodel._cli._loaders.named import is_table, make_named, of_user
from onemodel._cli._loaders.pictures import check_picture, counts_picture
from onemodel._cli.exit_codes import SAME
from onemodel._collate.collator import ImageBatchCollator
from onemodel._common.integers import check_integer
from onemodel._samplers.bucketing import BucketedSampler
from onemodel._samplers.samplers import Sampler, SequentialSampler, ShuffledSampler
from onemodel.datasets import ImageTable
from onemodel.loader import DataLoader

__all__ = ["add_arguments", "run"]

HELP = "count what a sampler gives: widths, padding, how often each index"
DESCRIPTION = (
    "Count over whole epochs how much of the batches is padding, how often each index is drawn, "
    "and what each rank gets. Of a loader with its own sampler; of a table with the sequential, "
    "the shuffled and the bucketed one. Nothing is built."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument(
        "target", metavar="TABLE|MAKE_LOADER", help=f"the directory of an ImageTable; or {NAMED}"
    )
    parser.add_argument("--epochs", type=int, default=1, metavar="N", help="default %(default)s")
    parser.add_argument(
        "--ranks", type=int, metavar="N", help="ranks that share a batch; default: the loader's"
    )
    parser.add_argument(
        "--batch-size", type=int, default=32, metavar="N", help="of a table; default %(default)s"
    )
    parser.add_argument("--out", metavar="FILE.png", help="also draw it, with Pillow")


def run(parsed: argparse.Namespace) -> int:
    """Count, print the table, draw the picture, and return the exit code."""
    out = None if parsed.out is None else check_picture(parsed.out)
    check_integer("--epochs", parsed.epochs, 1, 2**20)
    if is_table(parsed.target):
        loaders = _of_table(ImageTable.open(parsed.target), parsed.batch_size)
        columns = [_counted(loader, parsed) for loader in loaders]
    else:
        loader = make_named(parsed.target)
        columns = [of_user(parsed.target, lambda: _counted(loader, parsed))]
    names = [name for name, _ in columns[0].rows()]
    print(f"{'':<28}" + "".join(f"{found.sampler:>20}" for found in columns))
    for row, name in enumerate(names):
        print(f"{name:<28}" + "".join(f"{found.rows()[row][1]:>20}" for found in columns))
    if out is not None:
        counts_picture([(found.sampler, found) for found in columns]).save(out)
        print(f"\n{out}")
    return SAME


def _counted(loader: DataLoader, parsed: argparse.Namespace) -> Inspection:
    return inspect_loader(loader, epochs=parsed.epochs, ranks=parsed.ranks)


def _of_table(table: ImageTable, batch_size: int) -> list[DataLoader]:
    count = len(table)
    batch_size = check_integer("--batch-size", batch_size, 1, count + 1)
    samplers: list[Sampler] = [
        SequentialSampler(count, batch_size),
        ShuffledSampler(count, batch_size),
        BucketedSampler(table.widths, batch_size),
    ]
    return [
        DataLoader(table, sampler=sampler, collate=ImageBatchCollator()) for sampler in samplers
    ]

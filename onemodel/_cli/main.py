"""The command line: `onemodel demo`, `onemodel verify`, `onemodel pack`."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence

import numpy as np

from onemodel import __version__
from onemodel._common.extras import require

__all__ = ["main"]

#: Exit codes: all well, something differs or could not be read, the command could not run.
SAME, DIFFERENT, FAILED, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Args:
        arguments: without the program's name; None for those of the process.

    Returns:
        0 if all went well; 1 if `verify` found a difference or `pack` left files out; 2 if the
        command could not run, with the reason on standard error; 130 after Ctrl-C.
    """
    parsed = _parser().parse_args(arguments)
    try:
        code: int = parsed.run(parsed)
    except (ModuleNotFoundError, OSError, TypeError, ValueError) as error:
        # These name what is wrong with the command; a traceback would only bury it.
        print(f"onemodel {parsed.command}: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        kept = "; run it again to go on from here" if parsed.command == "pack" else ""
        print(f"onemodel {parsed.command}: interrupted{kept}", file=sys.stderr)
        return INTERRUPTED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="onemodel", description="The training data loader whose every batch can be replayed."
    )
    parser.add_argument("--version", action="version", version=_versions())
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    command = commands.add_parser(
        "demo",
        help="stream real text lines and show what came",
        description="Load an epoch of handwritten digit lines, shuffled, bucketed and from a "
        "table; print what came and write a contact sheet.",
    )
    command.add_argument(
        "--out", default="onemodel-demo", metavar="DIR", help="default %(default)s"
    )
    command.add_argument("--count", type=int, default=6_000, help="lines; default %(default)s")
    command.add_argument("--batch-size", type=int, default=32, help="default %(default)s")
    command.add_argument("--workers", type=int, default=2, help="threads; default %(default)s")
    command.add_argument("--seed", type=int, default=0, help="default %(default)s")
    command.set_defaults(run=_demo)

    command = commands.add_parser(
        "verify",
        help="prove that this machine gives the canonical batches",
        description="Recompute the digests of canonical batches and compare each with the shipped "
        "one. Exit code 1 if any differs.",
    )
    command.set_defaults(run=_verify)

    command = commands.add_parser(
        "pack",
        help="turn a folder of images into an ImageTable on disk",
        description="Decode all images of a folder, scale them to one height and write them as an "
        "ImageTable. Interrupted, the same command goes on where it stopped. Exit code 1 if a "
        "file could not be read; the table then holds all others.",
    )
    command.add_argument("folder", metavar="FOLDER")
    command.add_argument("out", metavar="OUT", help="a directory that does not exist yet")
    command.add_argument("--height", type=int, default=32, help="default %(default)s")
    command.add_argument("--channels", type=int, default=1, choices=(1, 3), help="gray or RGB")
    command.add_argument(
        "--labels", metavar="FILE", help="lines of: path, tab, target, and perhaps tab, label"
    )
    command.add_argument(
        "--alphabet", metavar="TEXT", help="targets are text in these characters, from 1 on"
    )
    for name, default in (("mean", "0"), ("std", "1")):
        command.add_argument(
            f"--{name}",
            type=_numbers,
            default=default,
            metavar="NUMBER[,NUMBER,NUMBER]",
            help="of the pixels on the scale 0..1, one or one a channel; default %(default)s",
        )
    command.set_defaults(run=_pack)
    return parser


def _demo(parsed: argparse.Namespace) -> int:
    from onemodel._cli.demo import demo

    demo(
        parsed.out,
        count=parsed.count,
        batch_size=parsed.batch_size,
        workers=parsed.workers,
        seed=parsed.seed,
    )
    return SAME


def _verify(parsed: argparse.Namespace) -> int:
    from onemodel._cli.verify import results

    total = same = 0
    for result in results():
        total += 1
        same += result.same
        if result.same:
            print(f"same       {result.found[:16]}  {result.configuration}, step {result.step}")
        else:
            print(
                f"DIFFERENT  {result.found[:64]}  {result.configuration}, step {result.step}, "
                f"expected {result.expected[:16]}"
            )
    print(f"{same} of {total} batches are the same, byte for byte. {_versions()}")
    return SAME if same == total else DIFFERENT


def _pack(parsed: argparse.Namespace) -> int:
    from onemodel._cli.pack import pack
    from onemodel.datasets import ImageTable

    tqdm = require("tqdm", "images")
    with tqdm.tqdm(desc="pack", unit="image", file=sys.stderr, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        report = pack(
            parsed.folder,
            parsed.out,
            height=parsed.height,
            channels=parsed.channels,
            labels=parsed.labels,
            alphabet=parsed.alphabet,
            mean=parsed.mean,
            std=parsed.std,
            progress=progress,
        )
    if report.kept:
        print(f"{report.kept} files were done by an earlier run")
    print(f"{report.directory}: {ImageTable.open(report.directory)!r}")
    for _, reason in report.unreadable:
        print(f"left out: {reason}", file=sys.stderr)
    if report.unreadable:
        print(f"{len(report.unreadable)} files could not be read", file=sys.stderr)
    return DIFFERENT if report.unreadable else SAME


def _numbers(text: str) -> float | list[float]:
    numbers = [float(word) for word in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def _versions() -> str:
    return (
        f"onemodel {__version__}, NumPy {np.__version__}, "
        f"{platform.python_implementation()} {platform.python_version()}, {platform.machine()}"
    )


if __name__ == "__main__":
    sys.exit(main())

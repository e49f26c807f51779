"""The command line: one file a command, listed here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from onemodel._cli import check, demo, pack, verify
from onemodel._cli._loaders import inspect, show
from onemodel._cli.exit_codes import FAILED, INTERRUPTED
from onemodel._cli.machine import versions

__all__ = ["main"]

#: Each has HELP, DESCRIPTION, `add_arguments(parser)` and `run(parsed)`, which gives the exit code.
_COMMANDS = {
    "demo": demo,
    "verify": verify,
    "pack": pack,
    "check": check,
    "inspect": inspect,
    "show": show,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Args:
        arguments: without the program's name; None for those of the process.

    Returns:
        0 if all went well; 1 if `verify` or `check` found a difference or `pack` left files out;
        2 if the command could not run, with the reason on standard error; 130 after Ctrl-C.
    """
    parsed = _parser().parse_args(arguments)
    try:
        code: int = _COMMANDS[parsed.command].run(parsed)
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
    parser.add_argument("--version", action="version", version=versions())
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in _COMMANDS.items():
        command.add_arguments(
            commands.add_parser(name, help=command.HELP, description=command.DESCRIPTION)
        )
    return parser


if __name__ == "__main__":
    sys.exit(main())

# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The command line: one file per command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .._version import __version__
from . import bench, doctor, graph, info, pipe, ptx, run

_COMMANDS = (info, doctor, run, ptx, graph, bench)


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        By default those of the process.

    Returns
    -------
    int
        Exit status.
    """
    with pipe.may_break():
        options = _parsed(sys.argv[1:] if arguments is None else list(arguments))
        if options.main is not run.main:
            with pipe.escaped():
                return int(options.main(options))
    return int(options.main(options))  # a script's pipes are its own, as python SCRIPT leaves them


def _parsed(given: list[str]) -> argparse.Namespace:
    """Return the options of a command line, and the function ``main`` of its command."""
    module = Path(sys.argv[0]).name == "__main__.py"
    parser = argparse.ArgumentParser(
        prog="python -m cudago" if module else "cudago",
        description="CUDA for Python, with a core in Go.",
    )
    parser.add_argument("--version", action="version", version=f"cudago {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for command in _COMMANDS:
        command.add_to(commands)
    of_script = list[str]()
    if given[:1] == ["run"]:
        given, of_script = run.split_arguments(given[1:])
        given.insert(0, "run")
    return parser.parse_args(given, argparse.Namespace(arguments=of_script))

# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The command line: one file per command."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from .._version import __version__
from . import doctor, info, ptx, run

_COMMANDS = (info, doctor, run, ptx)


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
    module = Path(sys.argv[0]).name == "__main__.py"
    parser = argparse.ArgumentParser(
        prog="python -m cudago" if module else "cudago",
        description="CUDA for Python, with a core in Go.",
    )
    parser.add_argument("--version", action="version", version=f"cudago {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    for command in _COMMANDS:
        command.add_to(commands)
    given, of_script = sys.argv[1:] if arguments is None else list(arguments), list[str]()
    if given[:1] == ["run"]:
        given, of_script = run.split_arguments(given[1:])
        given.insert(0, "run")
    options = parser.parse_args(given, argparse.Namespace(arguments=of_script))
    return int(options.main(options))

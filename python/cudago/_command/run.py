# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``cudago run``: a script, on a chosen driver, with every check on."""

from __future__ import annotations

import argparse
import contextlib
import os
import runpy
import sys
from pathlib import Path

import cudago as cu

_DRIVER, _CHECK = "--driver", "--check"


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "run",
        help="run a script on a chosen driver",
        usage="%(prog)s [--driver NAME] [--check] SCRIPT [--driver NAME] [--check] [ARGUMENTS]",
        description="Run a script. Options may stand before and after it; what follows -- is the "
        "script's, and so is every argument that is none of these options.",
        allow_abbrev=False,
    )
    parser.add_argument(_DRIVER, action=_Once, choices=("auto", "nvidia", "sim"))
    parser.add_argument(
        _CHECK,
        action="store_true",
        help="switch on every check of the simulated driver; what is found makes the exit status 1",
    )
    parser.add_argument("script")
    parser.set_defaults(main=main, fail=parser.error)


class _Once(argparse.Action):
    """An option that the script may have too: if it is given twice, its owner is unclear."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        """Store the value."""
        if (before := getattr(namespace, self.dest)) is not None:
            parser.error(
                f"{option_string} must be given once, got {before!r} and {values!r}; "
                "put what is the script's after --"
            )
        setattr(namespace, self.dest, values)


def split_arguments(given: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments for argparse, and those of the script.

    argparse gives all that follows a script to the script, or nothing that looks like an option.
    """
    ours: list[str] = []
    theirs: list[str] = []  # the script first
    rest = iter(given)
    for argument in rest:
        if argument == "--":
            theirs += rest
        elif argument == _DRIVER:
            ours += [argument, *([value] if (value := next(rest, None)) is not None else [])]
        elif argument == _CHECK or argument.startswith((_DRIVER + "=", _CHECK + "=")):
            ours.append(argument)
        else:  # an unknown option before the script is an error, left to argparse
            (ours if not theirs and argument.startswith("-") else theirs).append(argument)
    return [*ours, "--", *theirs[:1]], theirs[1:]


def main(options: argparse.Namespace) -> int:
    """Run the script, and return its exit status."""
    if options.driver:
        os.environ["CUDAGO_DRIVER"] = options.driver
    if options.check:
        if os.environ.get("CUDAGO_DRIVER") == "nvidia":
            options.fail("--check is of the simulated driver: add --driver sim")
        os.environ["CUDAGO_SIM"] = ",".join(
            filter(None, (os.environ.get("CUDAGO_SIM"), "check=full"))
        )
    if not Path(options.script).exists():
        options.fail(f"the script {options.script!r} does not exist")
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, str(Path(options.script).resolve().parent))
    try:
        runpy.run_path(options.script, run_name="__main__")
    except SystemExit:
        if options.check and _found():
            return 1
        raise
    except BaseException:
        if options.check:
            _found()
        raise
    return 1 if options.check and _found() else 0


def _found() -> bool:
    """Print what the checks found once all work is done, or that they could not run."""
    if not cu._core._is_open():
        return False
    if cu.driver_name() != "sim":
        print(
            f"cudago: --check has checked nothing: the driver is {cu.driver_name()!r}, "
            "and checks are of the simulated one; add --driver sim",
            file=sys.stderr,
        )
        return True
    with contextlib.suppress(cu.CUDAError):  # findings are in the reports
        for device in cu.Device.all():
            with contextlib.suppress(cu.CheckError):
                device.sync()
    found = cu.sim.reports()
    for report in found:
        print(f"cudago: {report}", file=sys.stderr)
    return bool(found)

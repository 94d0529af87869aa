# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Calls everything public with hostile arguments: ``PYTHONPATH=tests_py python -m hostile``."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from . import parent


def options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the options of a command line."""
    p = argparse.ArgumentParser(prog="hostile", description=__doc__)
    p.add_argument("--driver", choices=("sim", "nvidia"), default="sim")
    p.add_argument("--hostile", dest="selection", choices=("quick", "full"), default="quick")
    p.add_argument("--seed", type=int, default=1, help="chooses the cases of quick")
    p.add_argument("--jobs", type=int, default=min(4, os.cpu_count() or 1))
    p.add_argument("--only", default="", help="regular expression: the units to run")
    p.add_argument("--case", default="", help="one case, by its full name")
    p.add_argument("--limit-s", type=float, default=30, help="what takes longer hangs")
    p.add_argument("--crashes", type=int, default=3, help="crashes after which a unit is given up")
    p.add_argument("--no-confirm", dest="confirm", action="store_false")
    p.add_argument("--list", action="store_true", help="print the units, run nothing")
    p.add_argument("--json", type=Path, help="write everything that went wrong here")
    return p.parse_args(arguments)


def units(chosen: Any) -> list[str]:
    """Names of the units to run, from a child: making values needs a driver."""
    command = [sys.executable, "-m", "hostile.listing"]
    env = parent.environment(chosen.driver)
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    if done.returncode:
        raise SystemExit(f"hostile: the units could not be listed:\n{done.stderr}")
    names = done.stdout.splitlines()
    if chosen.case:
        return [n for n in names if chosen.case == n or chosen.case.startswith(f"{n}|")]
    return [n for n in names if re.search(chosen.only, n)]


def main() -> None:
    """Run what was chosen, and report."""
    chosen = options()
    names = units(chosen)
    if chosen.list:
        print("\n".join(names))
        return
    print(f"hostile: {chosen.selection}, seed {chosen.seed}, {len(names)} units", flush=True)
    start = time.monotonic()
    tally = parent.run(chosen, names)
    for line in parent.lines(tally):
        print(line)
    print(f"{time.monotonic() - start:.0f} s")
    if chosen.json:
        chosen.json.write_text(json.dumps([vars(f) for f in tally.failures], indent=1))
    raise SystemExit(bool(tally.failures) or not tally.cases)


if __name__ == "__main__":
    main()

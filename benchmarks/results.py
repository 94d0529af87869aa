# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Keep what was measured, and make the page of the documentation from the latest.

``python benchmarks/results.py keep FILE`` keeps what ``bench.py --json FILE`` wrote, and
``python benchmarks/results.py page`` writes the page. results/README.md describes the files.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
KEPT = HERE / "results"
PAGE = HERE.parent / "docs" / "reference" / "performance.rst"
FORMAT = 1
FLOOR, BARE, OURS = "C floor", "Python floor", "cudago"

# What a file says of a run, and what bench.py calls it.
FACTS = {
    "date": "date",
    "commit": "commit",
    "device": "device",
    "driver": "NVIDIA driver",
    "cuda": "driver's CUDA",
    "python": "python",
    "machine": "machine",
}


class ResultError(Exception):
    """A result cannot be kept or read; the text says what was expected."""


def provenance() -> dict[str, str]:
    """Return what only the machine of the run knows: date, commit and NVIDIA's driver.

    What cannot be found is left out; who keeps the result then has to name it.
    """
    found = {"date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    command = ["git", "describe", "--always", "--dirty", "--exclude", "*"]
    try:
        run = subprocess.run(command, cwd=HERE, capture_output=True, text=True)
        if run.returncode == 0:
            found["commit"] = run.stdout.strip()
    except OSError:
        pass  # no git
    module = Path("/sys/module/nvidia/version")
    if module.exists():
        found["NVIDIA driver"] = module.read_text().strip()
    return found


def kept(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the file's content for what ``bench.py`` measured."""
    facts = figures["facts"]
    if facts.get("driver") != "nvidia":
        raise ResultError(f"kept are figures of driver nvidia, not of {facts.get('driver')}")
    missing = [fact for fact in FACTS.values() if not facts.get(fact)]
    if missing:
        raise ResultError(f"the run does not say its {', '.join(missing)}: name them")
    if facts["commit"].endswith("-dirty"):
        raise ResultError(f"commit {facts['commit']} had changes; kept are figures of a commit")
    datetime.date.fromisoformat(facts["date"])
    named = {row["library"] for row in figures["results"]}
    return {
        "format": FORMAT,
        **{key: facts[fact] for key, fact in FACTS.items()},
        "libraries": {name: facts[name] for name in sorted(named) if name in facts},
        "unit": figures["unit"],
        "notes": figures["notes"],
        "results": [
            {
                "operation": row["operation"],
                "library": row["library"],
                "median": row["median"],
                "p99": row["p99"],
                "calls_per_batch": row["calls_per_batch"],
                "batches": len(row["batch_means"]),
            }
            for row in figures["results"]
        ],
    }


def name_of(result: dict[str, Any]) -> str:
    """Return the name of a result's file: names sort by date."""
    device = re.sub(r"[^a-z0-9]+", "-", result["device"].lower()).strip("-")
    return f"{result['date']}-{device}-{result['commit']}.json"


def keep(figures: dict[str, Any], folder: Path = KEPT) -> Path:
    """Write a result's file into the folder, and return its path."""
    result = kept(figures)
    path = folder / name_of(result)
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def latest(folder: Path = KEPT) -> dict[str, Any]:
    """Return the result with the last date."""
    files = sorted(folder.glob("*.json"))
    if not files:
        raise ResultError(f"{folder} has no results")
    result = json.loads(files[-1].read_text())
    if result.get("format") != FORMAT:
        raise ResultError(f"{files[-1].name}: format {FORMAT} expected, not {result.get('format')}")
    return result


HEAD = """\
.. Made by benchmarks/results.py of the latest file in benchmarks/results: make gen.

Performance
===========

What a call costs the calling thread, in nanoseconds. Each operation is measured in batches, of up
to 100 calls, or of 1,000 where nothing is put into a stream: the first number is the median of the
batches' means, the one after the slash their 99th percentile. The device does almost nothing
meanwhile, and waiting for it is counted only where the operation says so. The *C floor* is the same
driver calls in a loop in C, with PyTorch's own part where a tensor of PyTorch's is taken or made.
The *Python floor* is a function of C, called from Python, that does nothing but make the calls, and
*ratio* is cudago's median over that of the C floor. An empty cell was not measured.

"""


def page(result: dict[str, Any]) -> str:
    """Return the page of the documentation that shows a result."""
    cells = {(row["operation"], row["library"]): row for row in result["results"]}
    operations = list(dict.fromkeys(row["operation"] for row in result["results"]))
    libraries = {row["library"] for row in result["results"]}
    others = [BARE] * (BARE in libraries) + sorted(libraries - {FLOOR, BARE, OURS})
    rows = [["operation", FLOOR, OURS, "ratio", *others]]
    for operation in operations:
        floor, ours = cells.get((operation, FLOOR)), cells.get((operation, OURS))
        ratio = f"{ours['median'] / floor['median']:.2f}" if floor and ours else ""
        rest = [_cell(cells.get((operation, library))) for library in others]
        rows.append([operation, _cell(floor), _cell(ours), ratio, *rest])
    lines = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        lines.append(f"   * - {row[0]}")
        lines += [f"     - {cell}".rstrip() for cell in row[1:]]
    return HEAD + "\n".join([*lines, "", *_made(result)]) + "\n"


def _made(result: dict[str, Any]) -> list[str]:
    batches = sorted({row["batches"] for row in result["results"]})
    libraries = ", ".join(f"{name} {version}" for name, version in result["libraries"].items())
    lines = [
        f"Measured on {result['date']}: {result['device']}, driver {result['driver']}",
        f"(CUDA {result['cuda']}), {result['machine']}, Python {result['python']}; {libraries},",
        f"at commit {result['commit']}; {' or '.join(map(str, batches))} batches of each.",
    ]
    for note in result["notes"]:
        lines += ["", f"Note: {note}."]
    return [*lines, "", "``make bench`` measures on your own machine."]


def _cell(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{row['median']:.0f} / {row['p99']:.0f}"


def main(arguments: list[str]) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    keeping = commands.add_parser("keep", help="keep what bench.py --json wrote")
    keeping.add_argument("file", type=Path)
    for name in ("date", "commit", "driver"):
        keeping.add_argument(f"--{name}", help="where the run does not say it")
    commands.add_parser("page", help="write the page of the documentation")
    options = parser.parse_args(arguments)
    try:
        if options.command == "page":
            PAGE.write_text(page(latest()))
            return 0
        figures = json.loads(options.file.read_text())
        for name in ("date", "commit", "driver"):
            if value := getattr(options, name):
                figures["facts"].setdefault(FACTS[name], value)
        print(keep(figures))
    except ResultError as error:
        print(f"results.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

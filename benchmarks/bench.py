# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Measure cudago's calls beside the C floor and the peers, in one process.

Run ``python benchmarks/bench.py``. Rows are operations, columns are libraries, cells are
nanoseconds per call: the median of the batches' means, and their 99th percentile after the slash.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import operations as op
import results
from measure import Case, measure

FLOOR, BARE, OURS = results.FLOOR, results.BARE, results.OURS
PEERS = {
    "cuda.core": "with_cuda_core",
    "CuPy": "with_cupy",
    "torch": "with_torch",
    "NumPy": "with_numpy",
}
WITHOUT_GPU = ("NumPy",)
COLUMNS = (FLOOR, BARE, OURS, *PEERS)


def parse_arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all figures to FILE")
    parser.add_argument("--keep", action="store_true", help="also keep them in benchmarks/results")
    parser.add_argument("--driver", choices=("auto", "nvidia", "sim"), help="as in CUDAGO_DRIVER")
    parser.add_argument("--rounds", type=int, default=80, help="batches per case (%(default)s)")
    parser.add_argument("--only", default="", metavar="REGEX", help="operations to measure")
    parser.add_argument(
        "--columns",
        default=",".join(COLUMNS),
        metavar="LIST",
        help="libraries to measure, of: %(default)s",
    )
    arguments = parser.parse_args()
    arguments.columns = arguments.columns.split(",")
    unknown = set(arguments.columns) - set(COLUMNS)
    if unknown:
        parser.error(
            f"unknown columns {', '.join(sorted(unknown))}; known are {', '.join(COLUMNS)}"
        )
    return arguments


class Bench:
    """The cases of one run and what there is to say about it."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.columns: list[str] = arguments.columns
        self.only = re.compile(arguments.only)
        self.cases: list[Case] = []
        self.notes: list[str] = []
        self.facts: dict[str, str] = {
            "python": platform.python_version(),
            "machine": platform.machine(),
            **results.provenance(),
        }

    def collect(self) -> None:
        """Make the cases of every column that this machine can measure.

        cudago comes first and must work; a peer that does not is a note.
        """
        driver = "nvidia"
        if OURS in self.columns:
            driver = self._collect_ours()
        if FLOOR in self.columns and importlib.util.find_spec("torch") is not None:
            self._collect_exchange_floor("cpu" if driver == "sim" else "cuda")
        if driver == "sim":
            self.notes.append("simulated driver: no C floor of driver calls, no peers with a GPU")
        else:
            self._collect_floors()
        for library, module in PEERS.items():
            if library in self.columns and (driver != "sim" or library in WITHOUT_GPU):
                self._attempt(
                    library, lambda module=module: importlib.import_module(module).cases()
                )

    def _collect_ours(self) -> str:
        import cudago as cu

        ours = importlib.import_module("with_cudago")
        self._add(ours.cases())
        device = cu.Device()
        self.facts |= {
            "cudago": cu.__version__,
            "driver": cu.driver_name(),
            "device": device.name,
        }
        return cu.driver_name()

    def _collect_floors(self) -> None:
        cfloor = importlib.import_module("cfloor")
        bare = importlib.import_module("python_floor")
        for column, make in ((FLOOR, cfloor.Floor), (BARE, bare.PythonFloor)):
            if column not in self.columns:
                continue
            try:
                floor = make()
            except cfloor.FloorUnavailableError as error:
                self.notes.append(f"no {column}: {error}")
                continue
            self._add(floor.cases())
            self.facts |= floor.facts()

    def _collect_exchange_floor(self, where: str) -> None:
        try:
            self._add(importlib.import_module("exchange_floor").cases(where))
        except Exception as error:  # as of a peer
            self.notes.append(f"no C floor of exchange: {type(error).__name__}: {error}")

    def _attempt(self, library: str, make: Callable[[], list[Case]]) -> None:
        try:
            self._add(make())
            self.facts[library] = _version(library)
        except Exception as error:  # whatever a peer raises, the others go on
            self.notes.append(f"{library} was not measured: {type(error).__name__}: {error}")

    def _add(self, cases: list[Case]) -> None:
        self.cases += [case for case in cases if self.only.search(case.operation)]

    def table(self) -> str:
        """Return the figures as text."""
        found = {(case.operation, case.library): case for case in self.cases}
        shown = [c for c in COLUMNS if any(library == c for _, library in found)]
        ratio = FLOOR in shown and OURS in shown
        head = ["ns per call", *shown]
        if ratio:
            head.insert(head.index(OURS) + 1, "ratio")
        rows = [head]
        for operation in op.ALL:
            cells = {c: found.get((operation, c)) for c in shown}
            if not any(cells.values()):
                continue
            row = [operation, *(_cell(case) for case in cells.values())]
            if ratio:
                row.insert(head.index("ratio"), _ratio(cells[OURS], cells[FLOOR]))
            rows.append(row)
        return _align(rows)

    def figures(self) -> dict[str, Any]:
        """Return everything that was measured, for JSON."""
        return {
            "facts": self.facts,
            "notes": self.notes,
            "unit": "ns per call",
            "results": [
                {
                    "operation": case.operation,
                    "library": case.library,
                    "median": round(case.median, 1),
                    "p99": round(case.p99, 1),
                    "calls_per_batch": case.calls,
                    "batch_means": [round(mean, 1) for mean in case.means],
                }
                for case in sorted(self.cases, key=lambda c: (op.ALL.index(c.operation), c.library))
            ],
        }


def _version(library: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    for name in {"CuPy": ("cupy-cuda13x", "cupy-cuda12x", "cupy")}.get(
        library, (library.replace(".", "-"),)
    ):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "unknown"


def _cell(case: Case | None) -> str:
    return "-" if case is None else f"{case.median:.0f} / {case.p99:.0f}"


def _ratio(ours: Case | None, floor: Case | None) -> str:
    return "-" if ours is None or floor is None else f"{ours.median / floor.median:.2f}"


def _align(rows: list[list[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        first, *rest = (cell for cell in row)
        cells = [first.ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def main() -> int:
    """Run the benchmark and print the table."""
    arguments = parse_arguments()
    if arguments.driver:
        os.environ["CUDAGO_DRIVER"] = arguments.driver
    bench = Bench(arguments)
    bench.collect()
    if not bench.cases:
        print("nothing to measure", *bench.notes, sep="\n  ", file=sys.stderr)
        return 2
    measure(bench.cases, arguments.rounds)
    print("; ".join(f"{name} {value}" for name, value in bench.facts.items()))
    print(bench.table())
    for note in bench.notes:
        print(f"note: {note}")
    if arguments.json:
        arguments.json.write_text(json.dumps(bench.figures(), indent=1) + "\n")
    if arguments.keep:
        print(results.keep(bench.figures()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Run every case on the driver in use, and write what came out: ``run.py FOLDER [FAMILY ...]``.

``FOLDER/<family>.npz`` then holds an array for each case, raw bits, and ``FOLDER/device.json`` says
where it was made. Inputs depend on nothing but these files, so that drivers can be compared.
"""

from __future__ import annotations

import datetime
import importlib
import json
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import case as cases
import numpy as np
import values

import cudago as cu

SCALAR = ("integers", "floats", "conversions")
WHOLE = ("warps", "matrices", "programs")
FAMILIES = SCALAR + WHOLE


def cases_of(family: str) -> list[cases.Case]:
    """Return the cases of a family of instructions on elements."""
    return list(importlib.import_module(family).cases())


def run_scalar(family: str, stream: cu.Stream, capability: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield name and result of each case of a family; none of what the driver refuses."""
    scratch = cu.zeros((2 * cases.COUNT,), "u8", stream=stream)
    inputs: dict[tuple[str, int], cu.Tensor] = {}
    by_target = defaultdict(list)
    for case in cases_of(family):
        by_target[case.target].append(case)
    config = cu.LaunchConfig(cases.COUNT // cases.BLOCK, cases.BLOCK)
    for target, group in sorted(by_target.items()):
        if int(target) > capability:
            continue
        code = cu.ObjectCode.from_ptx(cases.module(group, target))
        for i, case in enumerate(group):
            try:
                kernel = code[f"k{i}"]
            except cu.UnsupportedError:
                continue
            operands = []
            for position, kind in enumerate(case.operands):
                key = kind, position
                if key not in inputs:
                    inputs[key] = cu.asarray(values.operand(kind, position), stream=stream)
                operands.append(inputs[key])
            operands += [None] * (3 - len(operands))
            out = cu.zeros(
                (cases.COUNT,), f"u{cases.register_bits(case.result) // 8}", stream=stream
            )
            cu.launch(stream, config, kernel, out, scratch, *operands)
            yield case.name, values.one_nan(case.result, out.numpy(stream=stream))


def run(family: str, stream: cu.Stream) -> dict[str, np.ndarray]:
    """Return name and result of each case of a family."""
    major, minor = stream.device.compute_capability
    capability = 10 * major + minor
    if family in SCALAR:
        return dict(run_scalar(family, stream, capability))
    return dict(importlib.import_module(family).results(stream, capability))


def approximations(family: str) -> set[str]:
    """Return the cases of a family that need not agree in each bit."""
    if family not in SCALAR:
        return set()
    return {c.name for c in cases_of(family) if c.tolerance is not None}


def device(stream: cu.Stream) -> dict[str, str]:
    """Return what golden files say of their origin."""
    major, minor = stream.device.compute_capability
    return {
        "device": f"{stream.device.name}, compute capability {major}.{minor}",
        "driver": f"{cu.driver_name()}, CUDA {'.'.join(map(str, cu.driver_version()))}",
        "date": datetime.date.today().isoformat(),
    }


def main(folder: Path, families: list[str]) -> None:
    """Run families, and leave a file for each."""
    with cu.Device().create_stream() as stream:
        (folder / "device.json").write_text(json.dumps(device(stream)))
        for family in families or FAMILIES:
            np.savez_compressed(folder / f"{family}.npz", **run(family, stream))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])

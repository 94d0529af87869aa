# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Run cases that work on elements, each on the inputs of its types."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import numpy as np

import cudago as cu

from . import values
from .case import BLOCK, COUNT, Case, module, register_bits


def run(
    cases: Iterable[Case], stream: cu.Stream, capability: int
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield name and result of each case that the device has; none of what the driver refuses."""
    scratch = cu.zeros((2 * COUNT,), "u8", stream=stream)
    inputs: dict[tuple[str, int], cu.Tensor] = {}
    by_target = defaultdict(list)
    for case in cases:
        by_target[case.target].append(case)
    config = cu.LaunchConfig(COUNT // BLOCK, BLOCK)
    for target, group in sorted(by_target.items()):
        if int(target) > capability:
            continue
        code = cu.ObjectCode.from_ptx(module(group, target))
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
            out = cu.zeros((COUNT,), f"u{register_bits(case.result) // 8}", stream=stream)
            cu.launch(stream, config, kernel, out, scratch, *operands)
            yield case.name, values.one_nan(case.result, out.numpy(stream=stream))

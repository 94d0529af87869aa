# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""``cudago bench``: what calls cost the thread that makes them.

A batch is some calls in a row with one pair of clock reads around them; waiting for the device
stays outside. In each round every operation has one batch, in random order, so that a slow phase of
the machine falls on all of them.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import platform
import random
import statistics
import sys
import time
import timeit
from dataclasses import dataclass, field
from typing import Any

import cudago as cu

ROUNDS = 100
UNIT = "ns per call"
_NODES = (1, 10, 100)
_SIZE = 4 << 10

# It does nothing for n >= 0, so that calls are measured and not the device.
_PTX = """
.version 7.0
.target sm_75
.address_size 64
.visible .entry touch(.param .u64 x, .param .u64 y, .param .u32 n)
{
    .reg .pred %q; .reg .b32 %n, %v; .reg .b64 %x, %y;
    ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u32 %n, [n];
    setp.ge.s32 %q, %n, 0;
    @%q ret;
    ld.global.u32 %v, [%x];
    st.global.u32 [%y], %v;
    ret;
}
"""


@dataclass
class Operation:
    """A statement that is measured, and the mean of each of its batches in nanoseconds."""

    name: str
    statement: str
    calls: int = 100  # of a batch; far fewer than a driver queues before it blocks
    means: list[float] = field(default_factory=list[float])

    def run(self, names: dict[str, Any]) -> None:
        """Add the mean of one more batch, and wait for what it has queued."""
        timer = timeit.Timer(self.statement, timer=time.perf_counter_ns, globals=names)
        self.means.append(timer.timeit(self.calls) / self.calls)
        names["stream"].sync()

    def figures(self) -> dict[str, Any]:
        """Return what was measured, for JSON."""
        ordered = sorted(self.means)
        return {
            "operation": self.name,
            "calls_per_batch": self.calls,
            "median": round(statistics.median(ordered), 1),
            "p99": round(ordered[math.ceil(0.99 * len(ordered)) - 1], 1),
        }


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to the parser."""
    parser = commands.add_parser(
        "bench",
        help="measure what calls cost the thread that makes them",
        description="Measure launches of a kernel and of graphs, a copy, and the recording of an "
        "event on device 0 of the driver that CUDAGO_DRIVER chooses. Waiting for the device is "
        "not counted.",
    )
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="batches of each operation (%(default)s)"
    )
    parser.set_defaults(main=main, fail=parser.error)


def main(options: argparse.Namespace) -> int:
    """Measure, and print the figures; return 1 where no driver is usable."""
    if options.rounds < 1:
        options.fail(f"--rounds must be 1 or more, got {options.rounds}")
    try:
        found = _facts() | {"unit": UNIT, "rounds": options.rounds}
        found["results"] = measure(cu.Device(), options.rounds)
    except (cu.CUDAError, ValueError) as e:
        print(f"cudago: nothing can be measured: {e}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        _show(found)
    return 0


def measure(device: cu.Device, rounds: int) -> list[dict[str, Any]]:
    """Return the figures of each operation after so many batches of it."""
    names = _names(device)
    operations = [
        Operation("launch a kernel, 3 arguments", "launch(stream, config, kernel, x, y, 1)"),
        *(
            Operation(
                f"launch a graph, {count} node{'s' * (count > 1)}",
                f"graph{count}.launch(stream)",
                50 if count == _NODES[-1] else 100,
            )
            for count in _NODES
        ),
        Operation("copy 4 KiB, pinned to device", "x.copy_from(pinned, stream=stream)"),
        Operation("record an event", "stream.record(event)"),
    ]
    for operation in operations:  # first calls load code and grow pools
        operation.run(names)
        operation.means.clear()
    order, shuffle = list(operations), random.Random(0).shuffle
    for _ in range(rounds):
        shuffle(order)
        gc.collect()
        for operation in order:
            operation.run(names)
    return [operation.figures() for operation in operations]


def _names(device: cu.Device) -> dict[str, Any]:
    """Return what the statements use."""
    stream = device.create_stream()
    kernel = cu.ObjectCode.from_ptx(_PTX.encode())["touch"]
    config = cu.LaunchConfig(grid=1, block=32)
    x, y = (device.allocate(_SIZE, stream=stream) for _ in range(2))
    names: dict[str, Any] = {
        "launch": cu.launch,
        "stream": stream,
        "kernel": kernel,
        "config": config,
        "x": x,
        "y": y,
        "pinned": cu.PinnedMemoryResource().allocate(_SIZE),
        "event": device.create_event(),
    }
    for count in _NODES:
        graph = cu.Graph()
        node = graph.launch(config, kernel, x, y, 1)
        for _ in range(count - 1):
            node = node.launch(config, kernel, x, y, 1)
        names[f"graph{count}"] = graph.instantiate()
    return names


def _facts() -> dict[str, Any]:
    return {
        "cudago": cu.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "device": cu.Device().name,
        "driver": {"name": cu.driver_name(), "version": list(cu.driver_version())},
    }


def _show(found: dict[str, Any]) -> None:
    driver = found["driver"]
    print(
        f"cudago {found['cudago']} on {found['device']}, driver {driver['name']},",
        f"CUDA {'.'.join(map(str, driver['version']))}, Python {found['python']}",
    )
    if driver["name"] == "sim":
        print("These are the simulated driver's costs, and say nothing of a GPU's.")
    print(f"\n{UNIT:30}{'median':>10}{'p99':>10}")
    for row in found["results"]:
        print(f"{row['operation']:30}{row['median']:10.0f}{row['p99']:10.0f}")
    print(f"\nOf the means of {found['rounds']} batches; waiting for the device is not counted.")

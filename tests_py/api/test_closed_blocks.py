# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A with block does not begin with an object that is closed."""

from __future__ import annotations

from pathlib import Path

# Each thing that the hostile cases know, if it can be closed and begin a with block.
SCRIPT = """
import contextlib
import cudago as cu
from hostile.world import MAKERS, UnavailableError, World

seen = set()
for name in MAKERS:
    world = World()
    try:
        thing = world.get(name)
    except (UnavailableError, cu.CUDAError):
        continue
    kind = type(thing)
    if not (hasattr(kind, "close") and hasattr(kind, "__enter__") and hasattr(kind, "is_closed")):
        world.close()
        continue
    try:
        thing.close()
    except ValueError:  # it is being captured
        world.close()
        continue
    assert thing.is_closed, name
    try:
        with thing:
            print(name, "was entered")
    except cu.ClosedError:
        seen.add(kind.__name__)
    world.close()
print(*sorted(seen))
"""


def test_no_with_block_begins_with_what_is_closed(driver, script):
    tests = str(Path(__file__).parents[1])
    run = script("import sys\nsys.path.insert(0, " + repr(tests) + ")\n" + SCRIPT)
    assert run.returncode == 0, run.stderr
    (seen,) = run.stdout.splitlines()
    assert {"Stream", "Event", "Buffer", "Tensor", "Graph", "GraphExec"} < set(seen.split())
    assert len(seen.split()) > 20

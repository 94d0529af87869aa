# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Keeping a graph's operands costs no driver call per launch."""

from __future__ import annotations

import re

import pytest

SCRIPT = """
import os
import numpy as np
import cudago as cu
from cudago.testing import settle

def say(what):
    os.write(2, what + b"\\n")  # in one piece: other threads write their trace too

d = cu.Device()
s = d.create_stream()
buffer = d.allocate(64, stream=s)
with s.capture() as captured:
    buffer.copy_from(np.zeros(16, "i4"), stream=s)
graph = cu.Graph()
graph.memcpy(buffer, np.zeros(16, "i4"), name="up").callback(lambda: None)
with graph.clone() as clone, cu.Graph() as parent:
    parent.embed(clone)
    steps = [g.instantiate() for g in (captured, graph, clone, parent)]
steps[1]["up"].update(src=np.ones(16, "i4"))
steps[0].launch(s)
s.sync()
say(b"LAUNCHES")
for _ in range(20):
    steps[0].launch(s)
say(b"END OF LAUNCHES")
s.sync()
for step in steps:
    step.launch(s)
    step.close()
s.sync()
graph.close()
captured.close()
settle()
"""


def test_no_user_objects_and_nothing_but_launches_when_launching(script, driver):
    run = script(SCRIPT, CUDAGO_TRACE="1")
    assert run.returncode == 0
    calls = re.findall(r"\b(cu[A-Z]\w+)\(", run.stderr)
    assert calls.count("cuGraphInstantiateWithParams") + calls.count("cuGraphInstantiate") >= 4
    assert calls.count("cuGraphExecDestroy") == 4
    assert not [c for c in calls if "UserObject" in c]
    launches = run.stderr.split("LAUNCHES\n")[1].split("END OF")[0]
    assert launches.count(" cuGraphLaunch(") == 20
    (thread,) = set(re.findall(r"(thread \d+) cuGraphLaunch\(", launches))
    # Other threads may look after what went before.
    per_launch = re.findall(rf"{thread} (cu[A-Z]\w+)\(", launches)
    assert not [c for c in per_launch if "Event" in c]


MARKS = """
import gc
import os
import cudago as cu

d = cu.Device()
streams = [d.create_stream() for _ in range({streams})]
buffer = d.allocate(64, stream=streams[0])
with streams[0].capture() as captured:
    buffer.fill(0, stream=streams[0])
step = captured.instantiate()
d.sync()
gc.disable()  # a collection marks what is in flight
os.write(2, b"LAUNCHES\\n")  # as a whole, beside the lines of other threads
for _ in range({launches}):
    for s in streams:
        step.launch(s)
os.write(2, b"END OF LAUNCHES\\n")
d.sync()
"""


@pytest.mark.parametrize(
    ("streams", "launches", "marks"),
    [(1, 200, False), (1, 1000, True), (8, 50, False), (8, 300, True)],
)
def test_marks_are_far_apart_unless_many_launches_are_in_flight(
    script, driver, streams, launches, marks
):
    run = script(MARKS.format(streams=streams, launches=launches), CUDAGO_TRACE="1")
    assert run.returncode == 0
    traced = run.stderr.split("LAUNCHES\n")[1].split("END OF")[0]
    calls = re.findall(r"\b(cu[A-Z]\w+)\(", traced)
    assert calls.count("cuGraphLaunch") == streams * launches
    assert ("cuEventRecord" in calls) == marks

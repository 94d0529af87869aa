# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Which recording of an event a node waits for: the latest when its graph is launched."""

from __future__ import annotations

import pytest

import cudago as cu
from cudago.testing import hold

ORDERS = {
    "record, then wait": lambda g, e: g.record(e).wait(e),
    "wait, then record": lambda g, e: g.wait(e).record(e),
    "no order": lambda g, e: (g.record(e), g.wait(e)),
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_graph_that_waits_for_its_own_event_is_queued_again(graph, device, stream, order):
    event = device.create_event()
    ORDERS[order](graph, event)
    with graph.instantiate() as step:
        with hold(stream):
            for _ in range(5):
                step.launch(stream)
        stream.sync()
    event.close()


def test_what_a_later_graph_records_is_not_waited_for(graph, device, stream):
    event = device.create_event()
    graph.wait(event)
    with cu.Graph(device) as other:
        other.record(event)
        with graph.instantiate() as waits, other.instantiate() as records:
            with hold(stream):
                for step in (waits, records, waits, records):
                    step.launch(stream)
            stream.sync()
    event.close()


def test_what_is_recorded_between_the_launch_and_the_wait(graph, device, stream):
    event, other = device.create_event(), device.create_stream()
    graph.wait(event)
    buffer = device.allocate(4, stream=other)
    word = cu.VirtualMemoryResource(device).allocate(4, stream=other)
    word.fill(0, stream=other)
    other.sync()
    with graph.instantiate() as step:
        with hold(stream):
            step.launch(stream)
            other.wait_value(word, 1)
            other.record(event)  # not reached before the wait below has ended
        stream.sync()
        assert not event.is_done
        step.launch(stream)
        buffer.fill(1, stream=stream)
        assert not stream.is_done
        third = device.create_stream()
        word.fill(1, stream=third)
        stream.sync()
        other.sync()
    for thing in (event, buffer, word, other, third):
        thing.close()

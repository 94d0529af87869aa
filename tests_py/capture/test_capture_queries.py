# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Reading an object's attributes neither invalidates a capture nor fails during one."""

from __future__ import annotations

import contextlib
import re
import threading

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

# Attributes that a capture does affect: it changes the answer, or there is none.
OTHERWISE = {("Stream", "is_capturing"), ("Stream", "is_done")}

# What a repr tells of contents, which nobody reads during a capture.
CONTENTS = re.compile(r"[:,] (?:not read: [^>]*|[-+\d.e… a-f]+)>")


@pytest.fixture(scope="module")
def objects(device):
    """One object of each class that knows of the driver, by the class's name."""
    with contextlib.ExitStack() as stack:
        made = [device, device.properties, stack.enter_context(device.create_stream())]
        stream = made[-1]
        pools = [
            cu.DeviceMemoryResource(device, pool=cu.PoolOptions()),
            cu.PinnedMemoryResource(),
            cu.ManagedMemoryResource(device),
            cu.VirtualMemoryResource(device),
        ]
        made += [stack.enter_context(pool) for pool in pools]
        made += [stack.enter_context(pools[0].allocate(64, stream=stream))]
        made += [
            cu.zeros(16, "f4", stream=stream),
            made[-1].ptr,
            stack.enter_context(stream.record()),
        ]
        program = cu.Program('extern "C" __global__ void one(int* p) { *p = 1; }', "c++")
        kernel = program.compile().get_kernel("one")
        graph = stack.enter_context(cu.Graph(device))
        node = graph.launch(cu.LaunchConfig(1, 1), kernel, made[-4], name="one")
        step = stack.enter_context(graph.instantiate())
        made += [program, kernel, kernel.attributes, graph, node, step, step["one"]]
        stream.sync()
        things = {type(thing).__name__: thing for thing in made}
        yield things | {"managed Buffer": stack.enter_context(pools[2].allocate(64, stream=stream))}


def answer(thing, name: str) -> str | None:
    """Return an attribute's value, or the error that reading it raises; None for a method."""
    try:
        value = getattr(thing, name)
    except (cu.UnsupportedError, TypeError, ValueError) as e:
        return repr(e)
    return None if callable(value) else CONTENTS.sub(">", repr(value))


def answers(objects) -> dict[tuple[str, str], str]:
    """Return what objects say of themselves, by class and attribute."""
    public = {(kind, n) for kind, thing in objects.items() for n in dir(thing) if n[0] != "_"}
    said = {(kind, n): answer(objects[kind], n) for kind, n in sorted(public - OTHERWISE)}
    said["Device", "free_memory"] = "any: other processes use the GPU too"
    return {key: text for key, text in said.items() if text is not None}


@pytest.mark.parametrize("where", ["in this thread", "in another thread"])
def test_whatever_is_read_while_a_capture_is_open(where, objects, device):
    before, during = answers(objects), []
    with device.create_stream() as stream, stream.capture() as graph:
        objects["Buffer"].fill(0, stream=stream)
        read = threading.Thread(target=lambda: during.append(answers(objects)))
        if where == "in this thread":
            read.run()
        else:
            read.start()
            read.join()
    (said,) = during
    assert {key: said.get(key) for key in before if said.get(key) != before[key]} == {}
    assert said.keys() == before.keys()
    assert [node.kind for node in graph.nodes] == ["memset"]
    assert len(before) > 60


def test_what_an_event_of_a_capture_is_asked_for(stream, device):
    """Each is a ValueError, as documented, and the capture goes on; so it is after the capture."""
    with (
        device.create_event(timing_enabled=True) as start,
        device.create_event(timing_enabled=True) as end,
        device.allocate(4, stream=stream) as buffer,
    ):
        asked = (end.sync, lambda: end.is_done, lambda: end.elapsed_ms(start), lambda: end - start)
        with stream.capture() as graph:
            stream.record(start)
            buffer.fill(1, stream=stream)
            stream.record(end)
            for ask in asked:
                with pytest.raises(ValueError, match="the event was recorded in a capture"):
                    ask()
            for wait in (stream.sync, device.sync):
                with pytest.raises(ValueError, match="cannot be waited for"):
                    wait()
            buffer.fill(2, stream=stream)
        assert [node.kind for node in graph.nodes] == ["memset", "memset"]
        for ask in asked:
            with pytest.raises(ValueError, match="the event was recorded in a capture"):
                ask()
        stream.record(start)
        stream.record(end)
        end.sync()
        assert end.is_done and end - start >= 0

# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The values that ``repr`` shows of memory: true, few, and never waited for."""

from __future__ import annotations

import gc
import re
import threading
import time

import pytest

import cudago as cu
from cudago._display import preview

# Values are shown only while every stream of the process is known.
pytestmark = pytest.mark.early

np = pytest.importorskip("numpy")


def told(memory) -> str:
    """Return what a repr says behind the address, or behind the kind of memory."""
    return re.fullmatch(r"<.*?(?: at 0x\w+|bytes, \w+)(.*)>", repr(memory))[1]


def on_host(array) -> cu.Tensor:
    """Return a tensor over an array of NumPy."""
    return cu.from_dlpack(np.asarray(array))


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.arange(6, dtype="i8"), "0 1 2 3 4 5"),
        (np.arange(7, dtype="u2"), "0 1 2 \u2026 4 5 6"),
        (np.arange(12.0).reshape(3, 4).T[::-1, 1:], "7 11 6 \u2026 9 4 8"),
        (np.array([[1.5, -0.25]], "f2"), "1.5 -0.25"),
        (np.array([1e300, np.nan]), "1e+300 nan"),
        (np.array([1 + 2j], "c8"), "1+2j"),
        (np.array([True, False]), "True False"),
        (np.array(7, "i1"), "7"),
    ],
)
def test_elements_of_host_memory(array, words, driver):
    assert told(on_host(array)) == f": {words}"


def test_what_has_no_words(driver, stream):
    assert told(on_host(np.zeros((0, 3)))) == ""
    with (
        cu.empty((0, 3), "bfloat16", stream=stream) as t,
        cu.empty(4, "float4_e2m1fn", stream=stream) as packed,
    ):
        assert told(t) == told(packed) == ""


SMALL = ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")


@pytest.mark.parametrize("name", ["bfloat16", *(f"float8_{name}" for name in SMALL)])
def test_elements_that_numpy_lacks(name, driver):
    types = pytest.importorskip("ml_dtypes")
    bits = np.arange(0, 1 << 16, 7, "u2") if name == "bfloat16" else np.arange(256, dtype="u1")
    raw = on_host(bits).buffer
    with np.errstate(all="ignore"):
        values = bits.view(getattr(types, name)).astype("f8").tolist()
    for first in range(0, len(bits), 6):
        part = raw[first * bits.itemsize : (first + 6) * bits.itemsize].view(name)
        expected = " ".join(preview.short(v) for v in values[first : first + 6])
        assert told(part) == f": {expected}"


def test_bytes_of_buffers(pinned, stream, driver):
    memoryview(pinned)[:] = bytes(range(64))
    stream.sync()
    assert told(pinned) == ": 00 01 02 \u2026 3d 3e 3f"
    assert told(pinned[:6]) == ": 00 01 02 03 04 05"
    assert told(pinned[10:18].view("u2")) == ": 2826 3340 3854 4368"
    pinned.close()
    assert repr(pinned) == "<cudago.Buffer of 64 bytes: closed>"


def test_memory_of_a_device(device, stream, driver):
    with cu.full((2, 5), 3, "int32", stream=stream) as t:
        stream.sync()
        on_simulated = ": 3 3 3 \u2026 3 3 3" if driver == "sim" else ""
        assert told(t) == on_simulated
        assert told(t[:, 1]) == (": 3 3" if driver == "sim" else "")


def test_pending_work_is_not_waited_for(device, stream, pinned):
    gate = threading.Event()
    stream.callback(gate.wait)
    try:
        assert told(pinned) == ", not read: work pending"
        assert told(pinned.view("i4")) == ", not read: work pending"
        assert told(on_host(np.ones(2))) == ": 1 1"
    finally:
        gate.set()
    stream.sync()
    assert told(pinned).startswith(": 00")


def test_ipython_waits_a_moment_as_a_card_does(pinned, stream):
    class Printer:
        said = ""

        def text(self, said: str) -> None:
            self.said += said

    stream.callback(time.sleep, 0.02)
    printer = Printer()
    pinned._repr_pretty_(printer, False)
    assert printer.said.endswith("64 bytes, pinned: 00 00 00 \u2026 00 00 00>")
    gate = threading.Event()
    stream.callback(gate.wait)
    printer = Printer()
    pinned.view("i4")._repr_pretty_(printer, False)
    gate.set()
    assert printer.said.endswith(", not read: work pending>")


def test_a_capture_is_not_disturbed(device, stream, a, pinned):
    stream.sync()
    with device.create_stream() as other, stream.capture() as captured:
        a.fill(1, stream=stream)
        assert told(pinned) == ", not read: a stream is capturing"
        repr(a), repr(a.view("f4")), repr(other)
        a.fill(2, stream=stream)
    assert [node.kind for node in captured.nodes] == ["memset", "memset"]
    captured.close()


def test_work_of_a_closed_stream(device, pinned):
    with device.create_stream() as gone:
        t = cu.zeros(4, stream=gone)
        gone.sync()
    assert told(pinned) == ", not read: work may be pending"
    t.close()


def test_from_a_callback(stream, pinned, driver):
    said = []
    stream.callback(lambda: said.append(told(pinned)))
    stream.sync()
    assert len(said) == 1
    assert said[0] in (", not read: work pending", "")


def test_while_others_close_it(device, stream):
    stop = threading.Event()
    held: list[cu.Buffer] = []

    def close() -> None:
        while not stop.is_set():
            for memory in held[:]:
                memory.close()

    thread = threading.Thread(target=close)
    thread.start()
    try:
        with cu.PinnedMemoryResource() as resource:
            for _ in range(100):
                held[:] = [resource.allocate(64), device.allocate(64, stream=stream)]
                for memory in held[:]:
                    assert repr(memory).startswith("<cudago.Buffer")
    finally:
        stop.set()
        thread.join()
    for memory in held:
        memory.close()


def test_no_values_while_garbage_is_collected(pinned, stream):
    cu.debug.resource_warnings()
    try:
        stream.sync()
        with pytest.warns(
            ResourceWarning, match="unclosed <cudago.Buffer 0x\\w+: 8 bytes, pinned>"
        ):
            cu.PinnedMemoryResource().allocate(8)
            gc.collect()
    finally:
        cu.debug.resource_warnings(False)


def test_in_a_forked_child(script, driver):
    run = script(
        """
        import os
        import cudago as cu
        pinned = cu.PinnedMemoryResource().allocate(4)
        child = os.fork()
        if not child:
            os._exit(not repr(pinned).startswith("<cudago.Buffer"))
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert (run.returncode, run.stderr) == (0, "")

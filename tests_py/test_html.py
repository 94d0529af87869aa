# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of objects: true, harmless markup, and had without touching anything."""

from __future__ import annotations

import logging
import re
import threading
from base64 import b64decode
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

import cudago as cu
from cudago import _html, _preview

# Values are shown only while every stream of the process is known.
pytestmark = pytest.mark.early

np = pytest.importorskip("numpy")

EVIL = '<script>alert("&")</script>\x00\ud800'
VOID = {"path", "rect", "img"}  # written with a slash at their end
CARDS = [getattr(_html, name) for name in dir(_html) if name.endswith("_card") and name[0] != "_"]


class Card(HTMLParser):
    """What a card says: its rows, its text, and that its markup is whole and harmless."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.tags, self.rows, self.text, self.open, self.label = [], {}, "", [], ""
        self.feed(markup)
        self.close()
        assert self.open == []
        assert not {"script", "link", "iframe", "style", "a"} & set(self.tags)
        assert re.findall(r"\b(?:src|href|on\w+)=", markup) == ["src="] * markup.count("<img ")
        assert set(re.findall(r"url\([^)]*\)", markup)) <= {"url(#cudago-end)"}
        assert set(re.findall(r"https?://\S+?(?=\")", markup)) <= {"http://www.w3.org/2000/svg"}
        markup.encode()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        assert tag in VOID
        if tag == "img":
            kind, _, drawn = dict(attrs)["src"].partition(",")
            assert kind == "data:image/svg+xml;base64"
            picture = b64decode(drawn, validate=True).decode()
            ElementTree.fromstring(picture)  # a browser shows nothing of an image that is not XML
            inside = Card(picture)
            self.tags += inside.tags
            self.text += inside.text

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open[-1:] == ["th"]:
            self.label = data
        elif self.open[-1:] == ["td"]:
            self.rows[self.label] = data


def card(thing) -> Card:
    """Return the card of an object."""
    return Card(thing._repr_html_())


def shown(tensor) -> list[list[str]]:
    """Return the elements on a tensor's card."""
    return [
        line.split()
        for line in re.findall(r"<pre.*?>(.*?)</pre>", tensor._repr_html_(), re.S)[0].split("\n")
    ]


@pytest.fixture
def graph(device):
    """An empty graph."""
    with cu.Graph(device) as graph:
        yield graph


@pytest.fixture
def a(device, stream):
    """64 bytes of device memory, zero."""
    with device.allocate(64, stream=stream) as buffer:
        buffer.fill(0, stream=stream)
        stream.sync()
        yield buffer


# --- what is told ---------------------------------------------------------------------------------


def test_a_device(device):
    rows = card(device).rows
    assert rows["name"] == device.name
    assert rows["compute capability"] == ".".join(map(str, device.compute_capability))
    assert f"({device.total_memory:,} bytes), of which" in rows["memory"]
    assert rows["driver"].endswith("CUDA {}.{}".format(*cu.driver_version()))


def test_a_stream(device):
    with device.create_stream(name=EVIL, priority=0) as stream:
        shown = card(stream)
        assert shown.rows == {
            "state": "open",
            "device": "0",
            "handle": f"{stream.handle:#x}",
            "priority": "0",
        }
        assert '<script>alert("&")</script>\ufffd\ufffd' in shown.text
    assert card(stream).rows == {"state": "closed"}
    assert "legacy default stream" in card(device.default_stream).rows["handle"]


def test_a_buffer(a, pinned):
    rows = card(a[16:48]).rows
    assert rows["state"] == "open"
    assert rows["address"] == f"{a.handle + 16:#x}"
    assert (rows["size"], rows["memory"], rows["owner"]) == (
        "32 bytes",
        "device, device 0",
        "cudago",
    )
    assert "pinned" in card(pinned).rows["memory"]
    imported = cu.from_dlpack(np.zeros(1 << 20, "u1")).buffer
    assert card(imported).rows["owner"] == "another library"
    assert card(imported).rows["size"] == "1 MiB (1,048,576 bytes)"
    view = a[:1]
    view.close()
    assert card(view).rows == {"state": "closed", "size": "1 byte"}


def test_a_tensor(stream):
    t = cu.zeros((4, 6), "int16", stream=stream)[:, ::2]
    rows = card(t).rows
    assert (rows["shape"], rows["dtype"], rows["size"]) == ("(4, 3)", "int16", "24 bytes")
    assert rows["strides"] == "(6, 2) elements, not contiguous"
    assert (rows["device"], rows["address"]) == ("device 0", f"{t.handle:#x}")
    t.close()
    assert card(t).rows == {"state": "closed"}


def test_a_graph_and_its_executable(graph, a):
    graph.memset(a, 0, name=EVIL[:-2]).memset(a[:16], 1, name="second").callback(print)
    shown = card(graph)
    assert shown.rows["nodes"] == "3: 2 memset, 1 host"
    assert shown.rows["edges"] == "2"
    assert shown.rows["keeps"] == "3 operands, with 80 bytes of memory"
    # Of an svg element that is not in an image, JupyterLab shows untrusted words and no boxes.
    assert "<svg" not in graph._repr_html_()
    assert shown.tags.count("svg") == 1 and shown.tags.count("rect") == 3
    assert EVIL[:-2] in shown.text
    assert graph._repr_svg_() == graph.to_svg()
    with graph.instantiate() as step:
        rows = card(step).rows
        assert (rows["nodes"], rows["launches"]) == ("3: 2 memset, 1 host", "0")
        assert rows["keeps"] == shown.rows["keeps"]
    graph.close()
    assert card(step).rows == card(graph).rows == {"state": "closed"}
    assert graph._repr_svg_() is None


def test_a_large_graph_has_no_picture(graph, a):
    for _ in range(_html._PICTURE_NODES):
        graph.memset(a, 0)
    assert card(graph).tags.count("svg") == 1
    graph.memset(a, 0)
    assert graph._repr_svg_() is None
    assert "to_svg()" in card(graph).rows["picture"]


@pytest.mark.parametrize("name", ["x" * (1 << 20), "a\x1eb\x1fc", "\u202e\ufffe]]>-->"])
def test_odd_names_of_nodes(name, graph, a):
    graph.memset(a, 0, name=name)
    assert len(graph._repr_html_()) < 1 << 16
    card(graph)


def test_what_is_inside_of_nodes_counts_for_the_picture(graph, a, device):
    with cu.Graph(device) as inner:
        for _ in range(_html._PICTURE_NODES):
            inner.memset(a, 0)
        graph.embed(inner)
    assert graph._repr_svg_() is None


def test_a_compile_error():
    with pytest.raises(cu.CompileError) as e:
        cu.Program("__global__ void f() {\n  if (a <b> c) return;\n}").compile()
    shown = card(e.value)
    assert shown.rows["line"] == "2"
    assert "--gpu-architecture" in shown.rows["options"]
    lines = shown.text.split("\n")
    at = next(i for i, line in enumerate(lines) if "if (a <b> c)" in line)
    assert lines[at + 1].index("^") == lines[at].index("a <b>")


def test_a_log_of_many_lines():
    error = cu.CompileError("failed")
    error.log = "a.cu(7): error: x\n" + "more\n" * 1000
    shown = card(error)
    assert shown.rows["line"] == "7"
    assert shown.text.endswith("... and 961 lines more")
    assert "failed" in card(cu.CompileError("failed")).text


def test_a_ptx_error(device):
    ptx = ".version 8.0\n.target sm_75\n.address_size 64\n.entry f() {\n  foo.bar;\n}"
    with pytest.raises(cu.PTXError) as e:
        cu.Program(ptx, "ptx").compile()["f"]
    assert str(e.value).split("\n")[0] in card(e.value).text
    if e.value.line:  # NVIDIA's driver does not always say
        assert card(e.value).rows["line"] == "5"
    if e.value.column:
        assert card(e.value).text.split("\n")[-2:] == ["    foo.bar;", "    ^"]


# --- values ---------------------------------------------------------------------------------------

DTYPES = {
    "bool": (["True", "False"], [True, False]),
    "int8": (["-1", "2"], [-1, 2]),
    "uint64": (["18446744073709551615", "0"], [2**64 - 1, 0]),
    "float16": (["0.5", "nan"], [0.5, float("nan")]),
    "bfloat16": (["0.5", "-inf"], [0.5, float("-inf")]),
    "float64": (["0.33333", "1e+300"], [1 / 3, 1e300]),
    "complex64": (["1+2j", "-1j"], [1 + 2j, -1j]),
    "float8_e4m3fn": (["0.5", "2"], [0.5, 2]),
}


@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_each_kind(dtype, stream):
    if dtype.startswith(("bfloat", "float8")):
        pytest.importorskip("ml_dtypes")
    words, elements = DTYPES[dtype]
    with cu.empty(2, dtype, stream=stream) as t:
        for i, element in enumerate(elements):
            with cu.full(1, element, dtype, stream=stream) as one:
                t[i : i + 1].copy_from(one, stream=stream)
        stream.sync()
        assert [[w.replace("(", "").replace("-0-1j", "-1j") for w in row] for row in shown(t)] == [
            words
        ]


def test_the_edges_of_a_matrix(stream):
    array = np.arange(12 * 20).reshape(12, 20)
    with cu.asarray(array, "int32", stream=stream) as t:
        words = shown(t)
        assert words[3] == ["\u2026"] * 7
        for i, row in enumerate([0, 1, 2, None, 9, 10, 11]):
            if row is not None:
                assert words[i] == [*map(str, array[row, :3]), "\u2026", *map(str, array[row, -3:])]
        assert shown(t.T[::-1, :2])[0] == ["19", "39"]
        assert shown(t[5]) == [["100", "101", "102", "\u2026", "117", "118", "119"]]
        assert shown(t[5, 5]) == [["105"]]
    with cu.asarray(array.reshape(2, 6, 20), "int32", stream=stream) as t:
        assert card(t).rows["values"] == "of [0, :, :], as they are now:"
        assert shown(t)[-1][-1] == str(array[5, -1])


def test_of_a_large_tensor_only_edges_are_copied(stream, monkeypatch):
    copied, formatted = [], _preview._formatted
    monkeypatch.setattr(
        _preview, "_formatted", lambda t, np: copied.append(t.size) or formatted(t, np)
    )
    with cu.zeros((1 << 12, 1 << 12), "int8", stream=stream) as t:
        assert shown(t)[0] == [*"000", "\u2026", *"000"]
    assert copied == [9, 9, 9, 9]


@pytest.mark.parametrize("shape", [0, (0, 3), (3, 0), (2, 0, 2)])
def test_no_elements(shape, stream):
    with cu.empty(shape, stream=stream) as t:
        assert card(t).rows["values"] == "not shown: there are no elements"


def test_elements_of_less_than_a_byte(stream):
    with cu.empty((9, 9), "float4_e2m1fn", stream=stream) as t:
        assert card(t).rows["values"] == "not shown: elements of less than a byte are packed"


def test_values_of_host_memory(pinned):
    view = pinned[:12].view("int32")
    memoryview(view)[1] = 7
    assert shown(view) == [["0", "7", "0"]]
    view.close()
    assert shown(cu.from_dlpack(np.arange(4)[::-1])) == [["3", "2", "1", "0"]]
    readonly = np.ones(2, "f4")
    readonly.flags.writeable = False
    assert card(cu.from_dlpack(readonly)).rows["address"].endswith(", read-only")


def test_work_that_was_queued_is_seen(stream, kernels):
    config = cu.LaunchConfig(grid=1, block=32)
    with cu.zeros(4, "int32", stream=stream) as t:
        for _ in range(100):
            cu.launch(stream, config, kernels["add"], t, 1, 4)
        stream.sync()
        cu.launch(stream, config, kernels["add"], t, 1, 4)
        assert shown(t) == [["101"] * 4]


# --- what must not happen -------------------------------------------------------------------------


@pytest.fixture
def gate(graph, a, stream):
    """Holds work up that sets `a` to 7, until it is set."""
    gate = threading.Event()
    graph.callback(lambda: gate.wait()).memset(a, 7)
    with graph.instantiate() as step:
        step.launch(stream)
        yield gate
        gate.set()
        stream.sync()


def test_work_that_takes_long_is_not_waited_for(gate, a, stream, monkeypatch):
    with a.view("uint8") as t:
        monkeypatch.setattr(_preview, "PATIENCE_S", 0.01)
        assert card(t).rows["values"] == "not shown: work is still under way"
        gate.set()
        monkeypatch.setattr(_preview, "PATIENCE_S", 60)
        assert shown(t)[0][0] == "7"


def test_a_capture_beside_work_that_takes_long(gate, a, device, stream, monkeypatch):
    monkeypatch.setattr(_preview, "PATIENCE_S", 0.01)
    with a.view("uint8", (2, 32)) as matrix, stream.capture() as captured:
        a.fill(1, stream=stream)
        assert "capturing" in card(matrix).rows["values"]
        gate.set()
        a.fill(2, stream=stream)
    assert [node.kind for node in captured.nodes] == ["memset", "memset"]
    captured.close()


def test_captures_beside_looks_of_another_thread(a, device, stream):
    stop, looks = threading.Event(), []

    def look() -> None:
        with a.view("float32", (4, 4)) as t:
            while not stop.is_set():
                looks.append([card(thing).rows for thing in (t, stream, a, device)])

    thread = threading.Thread(target=look)
    thread.start()
    try:
        for _ in range(200):
            a.fill(3, stream=stream)
            with stream.capture() as captured:
                a.fill(1, stream=stream)
                a.fill(2, stream=stream)
            assert len(captured.nodes) == 2
            captured.close()
    finally:
        stop.set()
        thread.join()
    assert looks


def test_work_of_a_closed_stream(device, a):
    with device.create_stream() as gone:
        t = cu.zeros(4, stream=gone)
        gone.sync()
        assert shown(t) == [["0"] * 4]
    assert "a stream that is closed" in card(t).rows["values"]
    t.close()


def test_memory_that_the_host_cannot_read(stream, monkeypatch):
    monkeypatch.setattr(_preview, "_in_place", None)
    monkeypatch.setattr(_preview, "_CUDA", cu.zeros(1, stream=stream)._memory[1])
    with cu.asarray(np.arange(400).reshape(20, 20), "int32", stream=stream) as t:
        assert shown(t)[0] == ["0", "1", "2", "\u2026", "17", "18", "19"]
        assert shown(t.T)[0] == ["0", "20", "40", "\u2026", "340", "360", "380"]


def test_a_capture_is_not_spoilt(device, stream, a, graph):
    t, other = a.view("float32"), cu.zeros(3, stream=device.default_stream)
    host = cu.from_dlpack(np.ones(2))
    device.sync()
    with device.create_stream() as second, stream.capture() as captured:
        a.fill(0, stream=stream)
        assert card(stream).rows["state"] == "capturing"
        assert card(t).rows["values"].startswith("not shown: a stream is capturing")
        assert "still being captured" in card(captured).rows["state"]
        assert captured._repr_svg_() is None
        assert shown(host) == [["1", "1"]]
        for thing in (device, second, a, graph, other, t[:0], device.default_stream):
            card(thing)
        a.fill(1, stream=stream)
    assert [node.kind for node in captured.nodes] == ["memset", "memset"]
    with captured.instantiate() as step:
        step.launch(stream)
    assert shown(a.view("uint8"))[0][0] == "1"
    t.close()
    other.close()
    captured.close()


@pytest.mark.parametrize("make", CARDS, ids=lambda make: make.__name__)
def test_a_card_never_raises(make):
    class Broken:
        def __getattr__(self, name):
            raise RuntimeError("lost <b>")

    assert "not known: lost <b>" in Card(make(Broken())).text
    assert "object" in Card(make(object())).text


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_finding_is_not_lost(stream, device, caplog, driver):
    source = """extern "C" __global__ void racy(int* p) {
        __shared__ int m[64];
        m[threadIdx.x] = p[threadIdx.x];
        p[threadIdx.x] = m[63 - threadIdx.x];
    }"""
    racy = cu.Program(source).compile()["racy"]
    with cu.zeros(64, "int32", stream=stream) as t:
        with cu.sim.check("races", raises=False):
            pass
        with pytest.MonkeyPatch.context() as patch, caplog.at_level(logging.ERROR, "cudago"):
            patch.setattr(_preview, "PATIENCE_S", 60)
            with cu.sim.check("races"):
                cu.launch(stream, cu.LaunchConfig(grid=1, block=64), racy, t)
                assert "no barrier lies between" in card(t).rows["values"]
    (record,) = caplog.records
    assert "no barrier lies between" in record.getMessage()


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_no_work_is_put_into_a_stream(script, driver):
    run = script(
        """
        import sys
        import numpy, cudago as cu
        device = cu.Device()
        stream = device.create_stream()
        t = cu.zeros((20, 20), stream=stream)
        graph = cu.Graph(device)
        graph.memset(t.buffer, 0)
        step = graph.instantiate()
        things = [device, stream, t, t.T, t.buffer, graph, step, device.default_stream]
        print("from here", file=sys.stderr, flush=True)
        assert all("not known" not in thing._repr_html_() for thing in things)
        assert "<pre" in t._repr_html_()
        print("to here", file=sys.stderr, flush=True)
        """,
        CUDAGO_TRACE="1",
    )
    assert run.returncode == 0, run.stderr
    calls = re.findall(r" (cu\w+)\(", run.stderr.partition("from here")[2].partition("to here")[0])
    assert "cuMemGetInfo" in calls
    assert (
        re.findall("Async|Launch|WaitEvent|Synchronize|BeginCapture|Alloc", " ".join(calls)) == []
    )


def test_after_a_reset_and_in_a_forked_child(script, driver):
    run = script(
        """
        import os
        import numpy, cudago as cu
        device = cu.Device()
        stream = device.create_stream()
        t = cu.zeros(4, stream=stream)
        graph = cu.Graph(device)
        step = graph.instantiate()
        things = [stream, t, t.buffer, graph, step, device.default_stream]
        stream.sync()
        device.reset()
        for thing in [*things, device]:
            card = thing._repr_html_()
            assert "closed" in card or "lost" in card or thing is device, card
        child = os.fork()
        if not child:
            ok = all(thing._repr_html_().startswith("<div") for thing in [*things, device])
            os._exit(not ok)
        assert os.waitpid(child, 0)[1] == 0
        """
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_import_does_not_need_it(script):
    run = script(
        """
        import sys, cudago
        assert not {"cudago._html", "cudago._preview"} & set(sys.modules)
        """
    )
    assert run.returncode == 0, run.stderr

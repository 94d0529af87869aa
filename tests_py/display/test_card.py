# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of objects is true, and its markup is harmless."""

from __future__ import annotations

import pytest

import cudago as cu
from cudago._display import html
from cudago._display.picture import FOLD

from .card import Card, card

# Values are shown only while every stream of the process is known.
pytestmark = pytest.mark.early

np = pytest.importorskip("numpy")

EVIL = '<script>alert("&")</script>\x00\ud800'
CARDS = [getattr(html, name) for name in dir(html) if name.endswith("_card") and name[0] != "_"]


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
    assert card(a[:20]).text.endswith(" ".join(["00"] * 16) + "\n00 00 00 00")
    memoryview(pinned)[:] = bytes(range(64))
    assert card(pinned).rows["bytes"] == "as they are now:"
    assert card(pinned).text.endswith("30 31 32 33 34 35 36 37 38 39 3a 3b 3c 3d 3e 3f")
    assert card(imported).rows["bytes"] == "the first 64, as they are now:"
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
    assert shown.rows["keeps"] == "3 operands, with 64 bytes of memory"  # an allocation, once
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


def test_memory_that_a_graph_keeps_is_counted_once(graph, device, stream):
    array = np.zeros(4096, "u1")
    with (
        device.allocate(4096, stream=stream) as whole,
        device.allocate(100, stream=stream) as other,
    ):
        for part in (whole, whole[:100], whole[50:200], other, other):
            graph.memset(part, 0)
        graph.memcpy(other, array[:100]).memcpy(other, array[50:150])  # of another owner: ranges
        for shown in (graph, graph.instantiate()):
            assert card(shown).rows["keeps"] == "9 operands, with 4.244 KiB (4,346 bytes) of memory"


def test_a_large_graph_is_folded(graph, a):
    for _ in range(FOLD + 1):
        graph.memset(a, 0)
    assert card(graph).tags.count("rect") == 2  # the one behind says that it is several
    assert f"{FOLD + 1} memset" in card(graph).text


def test_a_graph_that_takes_too_long_has_no_picture(graph, a, monkeypatch):
    monkeypatch.setattr(html, "_PICTURE_NODES", 3)
    for _ in range(3):
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


def test_what_is_inside_of_nodes_counts_for_the_picture(graph, a, device, monkeypatch):
    monkeypatch.setattr(html, "_PICTURE_NODES", 3)
    with cu.Graph(device) as inner:
        for _ in range(html._PICTURE_NODES):
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


@pytest.mark.parametrize("make", CARDS, ids=lambda make: make.__name__)
def test_a_card_never_raises(make):
    class Broken:
        def __getattr__(self, name):
            raise RuntimeError("lost <b>")

    assert "not known: lost <b>" in Card(make(Broken())).text
    assert "object" in Card(make(object())).text

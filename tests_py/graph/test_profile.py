# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Times of nodes: which there are, what runs, and what cannot be measured."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

import cudago as cu

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")

SVG = "{http://www.w3.org/2000/svg}"


def test_each_node_runs_once_in_an_order_of_the_dependencies(graph, a, b, stream, kernels):
    add, log = kernels["add"], []
    last = graph.launch(CONFIG, kernels["copy"], a, b, N, name="last")
    first = graph.memset(a, 0, name="first")
    middle = first.launch(CONFIG, add, a, 5, N, name="middle")
    graph.add_edge(middle, last)
    last.callback(lambda: log.append(numbers), name="told")
    step = graph.instantiate()
    profile = step.profile(stream)
    assert [row[:2] for row in profile.rows] == [
        *(("first", "memset"), ("middle", "kernel"), ("last", "kernel"), ("told", "host")),
    ]
    assert profile.edges == ((0, 1), (1, 2), (2, 3))
    assert (numbers(a, stream), numbers(b, stream), len(log)) == (5, 5, 1)
    assert step.launch_count == 0
    starts = [row.start for row in profile.rows]
    assert starts == sorted(starts)
    assert all(row.microseconds >= 0 for row in profile.rows)
    assert profile.microseconds == sum(row.microseconds for row in profile.rows)


def test_kernels_take_time(graph, a, stream, kernels):
    graph.launch(CONFIG, kernels["add"], a, 1, N)
    assert graph.instantiate().profile(stream).microseconds > 0


def test_the_operands_are_those_of_the_next_launch(graph, device, a, stream, kernels):
    buffer, data = device.allocate(4 * N, stream=stream), np.full(N, 3, "i4")
    up = graph.memcpy(buffer, data, name="up")
    up.memcpy(a, buffer).launch(CONFIG, kernels["add"], a, 1, N, name="add")
    step = graph.instantiate()
    step["add"].update(value=10)
    step["up"].update(src=np.full(N, 4, "i4"))
    buffer.close()
    graph.close()
    step.profile(stream)
    assert numbers(a, stream) == 14


def test_copies_between_strides_events_and_joins(graph, device, stream):
    x = cu.asarray(np.arange(64, dtype="i4").reshape(8, 8), stream=stream)
    y = cu.zeros((8, 8), "i4", stream=stream)
    event = device.create_event()
    copied = graph.memcpy(y[2:4, 1:3], x[4:6, 5:7], name="box")
    graph.join(copied).record(event).wait(event)
    step = graph.instantiate()
    kinds = [row.kind for row in step.profile(stream).rows]
    assert kinds == ["memcpy", "empty", "event record", "event wait"]
    expected = np.zeros((8, 8), "i4")
    expected[2:4, 1:3] = x.numpy(stream=stream)[4:6, 5:7]
    assert (y.numpy(stream=stream) == expected).all()


def test_captured_graphs(a, b, stream, kernels):
    with stream.capture() as graph:
        a.fill(1, stream=stream)
        cu.launch(stream, CONFIG, kernels["copy"], a, b, N)
        stream.callback(lambda: None)
    profile = graph.instantiate().profile(stream)
    assert sorted(row.kind for row in profile.rows) == ["host", "kernel", "memset"]
    assert numbers(b, stream) == 0x01010101


def test_disabled_nodes_are_left_out(graph, a, stream):
    graph.memset(a, 1, name="one").memset(a, 2, name="two")
    step = graph.instantiate()
    with step["two"].disabled():
        assert [row.name for row in step.profile(stream).rows] == ["one"]
    assert numbers(a, stream) == 0x01010101


def test_what_a_graph_embeds_is_one_row(graph, device, a, stream, kernels):
    with cu.Graph(device) as inner:
        inner.memset(a, 0).launch(CONFIG, kernels["add"], a, 2, N)
        deep = graph.embed(inner, name="deep")
    deep.launch(CONFIG, kernels["add"], a, 1, N, name="add")
    step = graph.instantiate()
    graph.close()
    step["add"].update({1: 5})
    profile = step.profile(stream)
    assert [row[:2] for row in profile.rows] == [("deep", "child graph"), ("add", "kernel")]
    assert profile.edges == ((0, 1),)
    assert numbers(a, stream) == 7


def test_what_was_put_into_an_executable_is_not_profiled(graph, device, a, stream):
    with cu.Graph(device) as inner:
        inner.memset(a, 7)
        graph.embed(inner, name="deep")
        step = graph.instantiate()
        step["deep"].update(inner)
    with pytest.raises(ValueError, match='"deep" embeds something else than when'):
        step.profile(stream)
    assert numbers(a, stream) == 0


def test_conditional_nodes_cannot_be_profiled(graph, a, stream):
    graph.memset(a, 7)
    graph.if_then(graph.condition(default=1), name="maybe").body.memset(a, 7)
    with pytest.raises(cu.UnsupportedError, match="cannot profile conditional node 'maybe'"):
        graph.instantiate().profile(stream)
    assert numbers(a, stream) == 0


def test_streams(graph, device, a, stream):
    graph.memset(a, 1)
    step = graph.instantiate()
    with stream.capture(), pytest.raises(ValueError, match="nothing runs there"):
        step.profile(stream)
    with pytest.raises(TypeError, match="stream must be"):
        step.profile(5)
    with device.create_stream() as closed:
        pass
    with pytest.raises(cu.ClosedError):
        step.profile(closed)
    step.close()
    with pytest.raises(cu.ClosedError):
        step.profile(stream)


def test_an_empty_graph(graph, stream):
    profile = graph.instantiate().profile(stream)
    assert (profile.rows, profile.edges, profile.microseconds) == ((), (), 0)
    assert "0 nodes" in str(profile)


def test_a_table(graph, a, stream):
    graph.memset(a, 1, name="short").callback(print, name="a longer name")
    profile = cu.GraphProfile(
        (cu.NodeTime("short", "memset", 1.0, 0.0), cu.NodeTime("a longer name", "host", 4.0, 1.5)),
    )
    assert repr(profile).splitlines() == [
        "      5.00 µs in 2 nodes, each run alone",
        "      1.00 µs  short          memset  ██████",
        "      4.00 µs  a longer name  host    ████████████████████████",
    ]
    assert profile == cu.GraphProfile(profile.rows)


def profile_of(*times: tuple[str, float]) -> cu.GraphProfile:
    """Return a profile of kernels in a row."""
    rows = [cu.NodeTime(name, "kernel", took, 0.0, f"{name}.py:1") for name, took in times]
    return cu.GraphProfile(tuple(rows), tuple((i, i + 1) for i in range(len(rows) - 1)))


def shown(picture: str) -> list[tuple[str, str, list[str]]]:
    """Return the color, the title and the lines of the boxes of a picture."""
    return [
        (
            group.findall(f"{SVG}rect")[-1].get("fill"),  # of a folded one the first is behind it
            group.find(f"{SVG}title").text,
            [line.text for line in group.find(f"{SVG}text")],
        )
        for group in ElementTree.fromstring(picture).iter(f"{SVG}g")
    ]


def test_a_picture_with_times():
    profile = profile_of(("a <&>", 1.0), ("b", 4.0))
    assert shown(profile.to_svg()) == [
        ("#ffd9d9", "made at a <&>.py:1", ["a <&>", "kernel", "1.00 µs"]),
        ("#ff6969", "made at b.py:1", ["b", "kernel", "4.00 µs"]),
    ]
    assert profile.to_svg().count("marker-end=") == 1
    assert profile._repr_svg_() == profile.to_svg()


def test_a_folded_box_has_the_time_of_its_nodes():
    profile = profile_of(*((f"k{i}", float(i)) for i in range(10)))
    assert len(shown(profile.to_svg(fold=None))) == 10
    ((color, title, lines),) = shown(profile.to_svg(fold=1))
    assert (color, lines) == ("#ff6969", ["k0 … k9", "10 nodes", "10 kernel", "45.00 µs"])
    assert title.split("\n")[::8] == ["made at k0.py:1", "and 2 lines more"]
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"fold must be 1 or more, or None, got {wrong}"):
            profile.to_svg(fold=wrong)
    with pytest.raises(TypeError):
        profile.to_svg(fold="2")


def test_a_picture_of_what_ran(graph, a, stream):
    graph.memset(a, 1, name="one").memset(a, 2, name="two")
    profile = graph.instantiate().profile(stream)
    assert [row.made_at for row in profile.rows] == [node.made_at for node in graph.nodes]
    assert [lines[0] for _, _, lines in shown(profile.to_svg())] == ["one", "two"]


def test_profiles_without_nodes_or_lines():
    assert cu.GraphProfile(())._repr_svg_() is None
    assert shown(cu.GraphProfile(()).to_svg()) == []
    profile = cu.GraphProfile((cu.NodeTime("a", "memset", 0.0, 0.0),))
    assert "<title>" not in profile.to_svg()


def test_a_chrome_trace(graph, a, stream, tmp_path):
    name = 'quo"ted\\ and <b>'
    graph.memset(a, 1, name=name)
    profile = graph.instantiate().profile(stream)
    profile.to_chrome_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    (row,) = profile.rows
    (event,) = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert (event["name"], event["cat"]) == (name, "memset")
    assert (event["ts"], event["dur"]) == (row.start, row.microseconds)


def test_a_card(graph, a, stream):
    graph.memset(a, 1, name="<b>&").callback(lambda: None, name="done")
    html = graph.instantiate().profile(stream)._repr_html_()
    assert "&lt;b&gt;&amp;" in html
    assert "<b>&" not in html
    assert "each node run alone" in html
    assert '<img alt="the graph"' in html
    assert "<img" not in cu.GraphProfile(())._repr_html_()


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_calls_that_fail_leave_nothing_behind(script, driver):
    run = script(
        """
        import cudago as cu
        from cudago import _core
        from cudago.testing import settle
        device = cu.Device()
        s = device.create_stream()
        x = device.allocate(64, stream=s)
        graph = cu.Graph()
        graph.memset(x, 0).memset(x, 1)
        step = graph.instantiate()
        before = cu.live_objects()
        for call, n in {
            "cuEventCreate": 2, "cuGraphCreate": 1, "cuGraphAddEventRecordNode": 2,
            "cuGraphAddMemsetNode": 2, "cuGraphInstantiateWithParams": 1, "cuGraphLaunch": 1,
            "cuEventElapsedTime": 2,
        }.items():
            _core._fail_next(call, n, 999)
            try:
                step.profile(s)
            except cu.CUDAError as e:
                assert call.startswith(e.operation), (call, e)
            else:
                raise AssertionError(call)
            settle()
            assert cu.live_objects() == before, (call, cu.live_objects())
        assert len(step.profile(s).rows) == 2
        """,
        CUDAGO_SIM="faults=0",
    )
    assert (run.returncode, run.stderr) == (0, "")


def test_names_stay_in_their_lines_of_the_table(graph, a, stream):
    graph.memset(a, 0, name="a\n\x1b[31mb").memset(a, 1, name="long enough to align")
    lines = str(graph.instantiate().profile(stream)).split("\n")
    assert len(lines) == 3 and all(line.isprintable() for line in lines)
    assert lines[1].index("memset") == lines[2].index("memset")


def test_events_and_semaphores_that_were_closed(device, graph, a, b, stream):
    """The nodes have them, and so has what does the same again."""
    event = device.create_event()
    exported = cu.sim.create_semaphore() if cu.driver_name() == "sim" else None
    node = graph.memset(a, 1, name="fill").record(event).wait(event)
    if exported is not None:
        semaphore = cu.ExternalSemaphore.from_fd(device, exported)
        node.signal(semaphore, 3).wait(semaphore, 3)
    step = graph.instantiate()
    event.close()
    count = 3
    if exported is not None:
        semaphore.close()
        count = 5
    assert len(step.profile(stream).rows) == count
    clone = graph.clone()
    graph.close()
    assert len(step.profile(stream).rows) == count
    step["fill"].enabled = False
    with stream.capture() as captured:
        step.launch(stream)
    step.close()
    captured.instantiate().launch(stream)
    stream.sync()
    again = clone.instantiate()
    clone.close()
    assert len(again.profile(stream).rows) == count
    if exported is not None:
        assert exported.value == 3
        exported.close()

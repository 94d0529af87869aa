# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that start before those in front of them have ended: launches, edges, captures, files.

That needs compute capability 9.0. The simulated device of a run of all tests has 7.5, so the tests
of this file are run once more, in a process whose device has 9.0.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import cudago as cu
from cudago.testing import hold

from .operand import CONFIG, N, numbers

np = pytest.importorskip("numpy")

EARLY = cu.LaunchConfig(grid=1, block=N, programmatic=True)
# plus adds to what the kernel in front has stored; it starts before that has ended.
SOURCE = """
.version 7.8
.target sm_90
.address_size 64
.visible .entry plus(.param .u64 p, .param .u32 v)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<3>;
    ld.param.u64 %d0, [p];
    ld.param.u32 %r0, [v];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d1, %r1, 4;
    add.u64 %d2, %d0, %d1;
    griddepcontrol.launch_dependents;
    griddepcontrol.wait;
    ld.global.u32 %r2, [%d2];
    add.u32 %r3, %r2, %r0;
    st.global.u32 [%d2], %r3;
    ret;
}
"""


def is_early(device) -> bool:
    return device.compute_capability >= (9, 0)


@pytest.fixture(scope="module")
def plus(device):
    if not is_early(device):
        pytest.skip("the device has no programmatic launches: see test_on_a_later_device")
    return cu.ObjectCode.from_ptx(SOURCE)["plus"]


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_on_a_later_device(driver, device):
    """Runs the other tests of this file, if the device of this process is too old for them."""
    if is_early(device):
        return
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env=os.environ | {"CUDAGO_DRIVER": "sim", "CUDAGO_SIM": "cc=9.0"},
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "sim-" in run.stdout or " passed" in run.stdout


def data(graph) -> dict[tuple[str, str], str]:
    return {(a.name, b.name): how for (a, b), how in graph.edge_data.items()}


def names(edges) -> set[tuple[str, str]]:
    return {(a.name, b.name) for a, b in edges}


@pytest.fixture
def chain(graph, plus, a):
    """Three kernels: the second starts early, the third once the second has begun."""
    one = graph.launch(CONFIG, plus, a, 1, name="one")
    one.launch(EARLY, plus, a, 10, name="two")
    three = graph.launch(CONFIG, plus, a, 100, name="three")
    graph.add_edge(graph["two"], three, programmatic="launch_order")
    graph.add_edge(one, three, programmatic=True)
    return graph


CHAIN = {
    ("one", "two"): "programmatic",
    ("two", "three"): "launch_order",
    ("one", "three"): "programmatic",
}


# --- configurations -------------------------------------------------------------------------------


def test_a_configuration_says_so():
    assert EARLY.programmatic
    assert not CONFIG.programmatic
    assert EARLY != CONFIG
    assert pickle.loads(pickle.dumps(EARLY)) == EARLY
    assert repr(EARLY).endswith(", programmatic=True)")
    assert len({EARLY, CONFIG, cu.LaunchConfig(1, N, programmatic=1)}) == 2


def test_an_old_device_says_what_is_missing(device, stream, kernels, a, graph):
    if is_early(device):
        pytest.skip("the device has programmatic launches")
    one = graph.launch(CONFIG, kernels["add"], a, 1, N)
    two = graph.launch(CONFIG, kernels["add"], a, 1, N)
    for use in (
        lambda: cu.launch(stream, EARLY, kernels["add"], a, 1, N),
        lambda: kernels["add"][EARLY, stream](a, 1, N),
        lambda: one.launch(EARLY, kernels["add"], a, 1, N),
        lambda: graph.add_edge(one, two, programmatic=True),
        lambda: graph.add_edge(one, two, programmatic="launch_order"),
    ):
        with pytest.raises(cu.UnsupportedError, match="needs compute capability 9"):
            use()
    with pytest.raises(cu.UnsupportedError, match="compute capability"), stream.capture() as broken:
        cu.launch(stream, EARLY, kernels["add"], a, 1, N)
    assert broken.is_closed
    assert (len(graph.nodes), graph.edges, graph.edge_data) == (2, (), {})
    assert numbers(a, stream) == 0


# --- launches -------------------------------------------------------------------------------------


def test_launches_one_behind_the_other(plus, stream, a):
    for value in range(1, 101):
        cu.launch(stream, EARLY, plus, a, value)
    assert numbers(a, stream) == 5050


def test_launches_between_other_work(plus, stream, a, b):
    cu.launch(stream, CONFIG, plus, a, 5)
    cu.launch(stream, EARLY, plus, a, 7)
    b.copy_from(a, stream=stream)
    cu.launch(stream, EARLY, plus, b, 1)
    assert (numbers(a, stream), numbers(b, stream)) == (12, 13)


def test_a_bound_launch_cannot_start_early(plus, a):
    with pytest.raises(ValueError, match="a bound launch is a graph of its own"):
        plus.bind(EARLY, a, 1)
    with plus.bind(CONFIG, a, 1) as bound, pytest.raises(ValueError, match="programmatic"):
        bound.update(EARLY)


# --- edges ----------------------------------------------------------------------------------------


def test_edges_say_what_they_wait_for(chain, a, stream):
    assert data(chain) == CHAIN
    assert names(chain.edges) == set(CHAIN)
    assert chain["two"].dependencies == (chain["one"],)
    with chain.instantiate() as step:
        for _ in range(2):
            step.launch(stream)
    assert numbers(a, stream) == 222


def test_only_edges_between_kernels_are_made_early(graph, plus, a):
    fill = graph.memset(a, 0, name="fill")
    one = fill.launch(EARLY, plus, a, 1, name="one")
    two = one.launch(EARLY, plus, a, 1, name="two")
    two.launch(CONFIG, plus, a, 1, name="three")
    assert data(graph) == {("one", "two"): "programmatic"}
    assert names(graph.edges) == {("fill", "one"), ("one", "two"), ("two", "three")}
    assert one.params.config.programmatic


def test_wrong_edges(graph, plus, a):
    one, two = (graph.launch(CONFIG, plus, a, 1, name=name) for name in ("one", "two"))
    fill = graph.memset(a, 0, name="fill")
    for start, end in ((fill, one), (one, fill), (graph.join(), graph.join())):
        with pytest.raises(ValueError, match="must be between two kernels to be programmatic"):
            graph.add_edge(start, end, programmatic=True)
    with pytest.raises(ValueError, match="or 'launch_completion', got 'trigger'"):
        graph.add_edge(one, two, programmatic="trigger")
    for wrong in (1, None, np.True_, b"programmatic"):
        with pytest.raises(TypeError, match="must be a bool or a str such as 'launch_order', not "):
            graph.add_edge(one, two, programmatic=wrong)
    assert graph.edge_data == {}
    graph.add_edge(one, two, programmatic="programmatic")
    with pytest.raises(ValueError, match="must be new"):
        graph.add_edge(one, two)
    with pytest.raises(ValueError, match="must be new"):
        graph.add_edge(one, two, programmatic="launch_order")
    for start in (one, two):
        with pytest.raises(ValueError, match="must not close a cycle"):
            graph.add_edge(two, one if start is two else two, programmatic=True)
    assert data(graph) == {("one", "two"): "programmatic"}


def test_edges_are_removed_and_exchanged(chain, a, stream):
    one, two, three = (chain[name] for name in ("one", "two", "three"))
    chain.remove_edge(two, three)
    assert data(chain) == {("one", "two"): "programmatic", ("one", "three"): "programmatic"}
    chain.add_edge(two, three)
    chain.remove_edge(one, two)
    chain.add_edge(one, two, programmatic="launch_order")
    assert data(chain) == {("one", "two"): "launch_order", ("one", "three"): "programmatic"}
    chain.remove(one)
    assert data(chain) == {}
    assert chain.edges == ((two, three),)
    with chain.instantiate() as step:
        step.launch(stream)
    assert numbers(a, stream) == 110


def test_copies_have_the_same_edges(chain, device, a, stream):
    with chain.clone() as clone, cu.Graph(device) as outer:
        clone.remove_edge(clone["two"], clone["three"])
        assert data(chain) == CHAIN
        assert data(clone) == {("one", "two"): "programmatic", ("one", "three"): "programmatic"}
        inner = outer.embed(chain, name="inner").params.graph
        assert data(inner) == CHAIN
        with clone.clone() as again, outer.clone() as both:
            assert data(again) == data(clone)
            assert data(both["inner"].params.graph) == CHAIN
            with both.instantiate() as step:
                step.launch(stream)
    assert numbers(a, stream) == 111


def test_edges_in_a_body(graph, plus, a, stream):
    loop = graph.if_then(graph.condition(1))
    one = loop.body.launch(CONFIG, plus, a, 1, name="one")
    one.launch(EARLY, plus, a, 2, name="two")
    assert data(loop.body) == {("one", "two"): "programmatic"}
    with graph.instantiate() as step:
        step.launch(stream)
    assert numbers(a, stream) == 3


def test_a_graph_with_memory_has_such_edges(graph, plus, stream):
    memory = graph.allocate(4 * N)
    fill = memory.memset(memory.buffer, 0)
    one = fill.launch(EARLY, plus, memory.buffer, 1, name="one")
    two = one.launch(EARLY, plus, memory.buffer, 2, name="two")
    out = np.zeros(N, "i4")
    two.memcpy(out, memory.buffer).free(memory.buffer)
    assert data(graph) == {("one", "two"): "programmatic"}
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()
    assert out.tolist() == [3] * N


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_kernel_that_never_waits_is_named(driver, graph, plus, a, stream):
    source = SOURCE.replace("griddepcontrol.wait;", "")
    forgets = cu.ObjectCode.from_ptx(source)["plus"]
    graph.launch(CONFIG, plus, a, 1, name="one").launch(EARLY, forgets, a, 2, name="two")
    with (
        graph.instantiate() as step,
        pytest.raises(cu.CheckError, match="never executes griddepcontrol") as e,
        cu.sim.check("races"),
    ):
        step.launch(stream)
        stream.sync()
    assert "'two'" in str(e.value) or '"two"' in str(e.value)
    with (
        pytest.raises(cu.CheckError, match="never executes griddepcontrol"),
        cu.sim.check("races"),
    ):
        for _ in range(20):  # an event that cudago records behind the first orders them
            with hold(stream):  # as the host does that has seen its end
                cu.launch(stream, CONFIG, plus, a, 1)
                cu.launch(stream, EARLY, forgets, a, 2)
            stream.sync()


# --- differences and updates ----------------------------------------------------------------------


def test_differences_name_such_edges(chain):
    with chain.clone() as other:
        assert not chain.diff(other)
        other.remove_edge(other["one"], other["two"])
        other.add_edge(other["one"], other["two"])
        other.remove_edge(other["one"], other["three"])
        assert str(chain.diff(other)).splitlines() == [
            "- edge 'one' → 'three' (programmatic)",
            "~ edge 'one' → 'two': programmatic → complete",
        ]
        assert "~ edge 'one' → 'two': complete → programmatic" in str(other.diff(chain))


def test_an_update_keeps_the_edges(chain, plus, a, stream):
    with chain.instantiate() as step, chain.clone() as other:
        other["two"].update(EARLY, plus, a, 20)
        step.update(other)
        step.launch(stream)
        assert numbers(a, stream) == 121
        other.remove_edge(other["two"], other["three"])
        other.add_edge(other["two"], other["three"])
        with pytest.raises(cu.GraphUpdateError, match=r'"two" \(launch_order\)') as e:
            step.update(other)
        assert e.value.node == "three"
        with step.update_or_instantiate(other) as new:
            assert new is not step
            new.launch(stream)
            assert numbers(a, stream) == 242


def test_embedded_graphs_are_compared_with_their_edges(chain, device):
    with cu.Graph(device) as outer, chain.clone() as other, cu.Graph(device) as changed:
        outer.embed(chain, name="inner")
        other.remove_edge(other["one"], other["two"])
        other.add_edge(other["one"], other["two"], programmatic="launch_order")
        changed.embed(other, name="inner")
        with outer.instantiate() as step:
            step.update(outer)
            with pytest.raises(cu.GraphUpdateError, match=r'"one" \(programmatic\)'):
                step.update(changed)


def test_a_node_does_not_change_its_edges(chain, plus, a):
    one, two = chain["one"], chain["two"]
    for node, config in ((one, EARLY), (two, CONFIG)):
        with pytest.raises(ValueError, match="a matter of its edges: remove them and add others"):
            node.update(config)
    two.update(cu.LaunchConfig(grid=1, block=N, shared_memory=4, programmatic=True))
    assert data(chain) == CHAIN
    with chain.instantiate() as step:
        step["two"].update(EARLY, plus, a, 30)
        with pytest.raises(ValueError, match="priority or programmatic in an executable"):
            step["two"].update(CONFIG)
        with pytest.raises(ValueError, match="priority or programmatic in an executable"):
            step["one"].update(EARLY)


# --- captures -------------------------------------------------------------------------------------


def test_a_capture_makes_such_edges(plus, stream, a, b):
    with stream.capture() as graph:
        a.fill(0, stream=stream)
        cu.launch(stream, EARLY, plus, a, 1)  # behind a fill
        cu.launch(stream, EARLY, plus, a, 2)
        cu.launch(stream, CONFIG, plus, a, 3)
        b.copy_from(a, stream=stream)
    assert data(graph) == {("kernel_0", "kernel_1"): "programmatic"}
    assert [n.kind for n in graph] == ["memset", "kernel", "kernel", "kernel", "memcpy"]
    assert graph["kernel_1"].params.config == EARLY
    with graph, graph.instantiate() as step:
        for _ in range(3):
            step.launch(stream)
    assert (numbers(a, stream), numbers(b, stream)) == (6, 6)


def test_a_capture_with_a_fork(plus, device, stream, a, b):
    with device.create_stream() as other, stream.capture() as graph:
        cu.launch(stream, CONFIG, plus, a, 1)
        with graph.fork(other) as branch:
            cu.launch(branch, CONFIG, plus, b, 1)
            cu.launch(branch, EARLY, plus, b, 2)
            cu.launch(stream, EARLY, plus, a, 2)
        cu.launch(stream, CONFIG, plus, a, 3)
    early = set(graph.edge_data.values())
    assert early == {"programmatic"}
    with graph, graph.instantiate() as step:
        step.launch(stream)
    assert (numbers(a, stream), numbers(b, stream)) == (6, 3)


def test_a_capture_into_a_graph_keeps_them(graph, plus, stream, a):
    first = graph.launch(CONFIG, plus, a, 1, name="first")
    with first.capture(stream) as nodes:
        cu.launch(stream, EARLY, plus, a, 10)
        cu.launch(stream, EARLY, plus, a, 100)
        cu.launch(stream, CONFIG, plus, a, 1000)
    # What is captured comes after all of the node.
    assert graph.edge_data == {(nodes[0], nodes[1]): "programmatic"}
    assert set(graph.edges) == {(first, nodes[0]), (nodes[0], nodes[1]), (nodes[1], nodes[2])}
    body = nodes[-1].if_then(graph.condition(1)).body
    with body.capture(stream) as inside:
        cu.launch(stream, CONFIG, plus, a, 10_000)
        cu.launch(stream, EARLY, plus, a, 100_000)
    assert body.edge_data == {(inside[0], inside[1]): "programmatic"}
    with graph.instantiate() as step:
        step.launch(stream)
    assert numbers(a, stream) == 111_111


def test_a_launch_into_a_capture_keeps_them(chain, plus, stream, a):
    with chain.instantiate() as step:
        with stream.capture() as same:
            step.launch(stream)
        step["three"].update(CONFIG, plus, a, 200)
        with stream.capture() as updated:
            step.launch(stream)
        step["three"].enabled = False
        with stream.capture() as shorter:
            step.launch(stream)
    of = [g.nodes[0].params.graph for g in (same, updated, shorter)]
    assert data(of[0]) == data(of[1]) == CHAIN
    assert data(of[2]) == {("one", "two"): "programmatic"}
    for graph, total in zip((same, updated, shorter), (111, 322, 333), strict=True):
        with graph, graph.instantiate() as again:
            again.launch(stream)
        assert numbers(a, stream) == total


def test_a_function_is_captured_with_them(plus, stream, a):
    @cu.graph
    def twice(s, x):
        cu.launch(s, CONFIG, plus, x, 1)
        cu.launch(s, EARLY, plus, x, 2)

    for _ in range(3):
        twice(stream, a)
    (graph,) = twice.graphs
    assert list(graph.edge_data.values()) == ["programmatic"]
    assert numbers(a, stream) == 9
    twice.clear()


# --- pictures and files ---------------------------------------------------------------------------


def test_pictures_show_them(chain):
    dot = chain.to_dot()
    assert 'n0 -> n1 [style=dotted, label="programmatic"];' in dot
    assert 'n1 -> n2 [style=dotted, label="launch_order"];' in dot
    picture = chain.to_svg()
    assert picture.count("stroke-dasharray") == 3
    assert picture.count("<title>launch_order</title>") == 1
    text = str(chain)
    assert "programmatic, after one (programmatic)" in text
    assert "after two (launch_order), one (programmatic)" in text
    assert "stroke-dasharray" not in chain.to_svg(fold=1)


def test_a_profile_measures_them(chain, stream):
    profile = chain.instantiate().profile(stream)
    assert {row.name for row in profile.rows} == {"one", "two", "three"}


def text_of(path) -> dict:
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("graph.json"))


def test_files_keep_them(chain, device, stream, tmp_path):
    with chain.clone() as inner:
        chain["three"].embed(inner, name="inner")
    chain.save(tmp_path / "early.cudago")
    assert text_of(tmp_path / "early.cudago")["version"] == 2
    with cu.Graph.load(tmp_path / "early.cudago") as loaded:
        assert data(loaded) == CHAIN
        assert data(loaded["inner"].params.graph) == CHAIN
        assert loaded["two"].params.config == EARLY
        assert names(loaded.edges) == names(chain.edges)
        loaded.instantiate().launch(stream)
        loaded.save(tmp_path / "again.cudago")
    one, other = (text_of(tmp_path / f"{name}.cudago") for name in ("early", "again"))
    assert one == other


def test_files_keep_edges_that_the_configuration_would_not_make(graph, plus, a, tmp_path):
    one = graph.launch(CONFIG, plus, a, 1, name="one")
    two = one.launch(EARLY, plus, a, 1, name="two")
    graph.remove_edge(one, two)
    graph.add_edge(one, two)
    graph.save(tmp_path / "plain.cudago")
    with cu.Graph.load(tmp_path / "plain.cudago") as loaded:
        assert (data(loaded), names(loaded.edges)) == ({}, {("one", "two")})
        assert loaded["two"].params.config == EARLY


def test_files_without_them_are_as_before(graph, plus, a, tmp_path):
    graph.launch(CONFIG, plus, a, 1).launch(CONFIG, plus, a, 2)
    graph.save(tmp_path / "plain.cudago")
    assert text_of(tmp_path / "plain.cudago")["version"] == 1
    cu.Graph.load(tmp_path / "plain.cudago").close()


def edges(number, given):
    """Return a change that gives a node such edges."""
    return lambda text: text["nodes"][number].update(edges=given)


WRONG = {
    "of an earlier version": (lambda t: t.update(version=1), "has a 'programmatic', which this"),
    "not waited for": (edges(1, [[2, "programmatic"]]), "from 2, for which it does not wait"),
    "twice": (edges(1, [[0, "programmatic"]] * 2), "from 0, for which it does not wait, or not"),
    "no pair": (edges(1, [[0]]), "must be a node and what is waited for"),
    "no list": (edges(1, {"0": "programmatic"}), "edges of node 'two' must be a list"),
    "something else": (edges(1, [[0, "port 3"]]), "must be one of programmatic, launch_order, lau"),
    "negative": (edges(1, [[-1, "programmatic"]]), "must be a whole number"),
    "of no kernel": (
        edges(4, [[3, "programmatic"]]),
        "node 'four' waits for a part of a node that is no kernel",
    ),
    "no boolean": (
        lambda t: t["nodes"][1]["config"].update(programmatic=1),
        "must be true or false",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files(chain, plus, a, tmp_path, name):
    change, message = WRONG[name]
    chain["three"].memset(a, 0, name="fill").launch(CONFIG, plus, a, 1, name="four")
    path = tmp_path / "good.cudago"
    chain.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    text = json.loads(members["graph.json"])
    change(text)
    members["graph.json"] = json.dumps(text).encode()
    with zipfile.ZipFile(tmp_path / "bad.cudago", "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)
    with pytest.raises(cu.GraphFileError, match=message):
        cu.Graph.load(tmp_path / "bad.cudago")


@pytest.mark.parametrize("driver", ["sim"], indirect=True)
def test_a_file_needs_such_a_device(driver, chain, script, tmp_path):
    chain.save(tmp_path / "early.cudago")
    run = script(
        f"""
        import cudago as cu
        try:
            cu.Graph.load({str(tmp_path / "early.cudago")!r})
        except cu.CUDAError as e:
            assert "sm_90" in str(e) or "compute capability 9.0" in str(e), e
        else:
            raise AssertionError
        assert cu.live_objects().get("Graph", 0) == 0
        """,
        CUDAGO_DRIVER="sim",
        CUDAGO_SIM="cc=7.5",
    )
    assert (run.returncode, run.stderr) == (0, "")

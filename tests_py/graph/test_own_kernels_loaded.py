# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Other memory for nodes of a file whose kernels are cudago's own: it is counted, or refused."""

from __future__ import annotations

import json
import zipfile

import pytest

import cudago as cu
from cudago.testing import no_leaks

N = 1000


@pytest.fixture
def tensor(stream):
    """Return a function that makes a tensor of one value."""
    return lambda value, count=N, dtype="f4": cu.full(count, value, dtype, stream=stream)


@pytest.fixture
def file(tmp_path, stream):
    """Return a function that saves what a function puts into a stream, and gives what loads it."""
    path = tmp_path / "graph"

    def save(work):
        work()  # compiled by now
        with stream.capture() as captured:
            work()
        captured.save(path, contents=True)
        captured.close()
        return lambda **bind: cu.Graph.load(path, bind={f"kernel_0.{k}": bind[k] for k in bind})

    return save


@pytest.fixture
def added(file, axpy, tensor, stream):
    """Return what loads z = 2 * x + y."""
    x, y, z = tensor(1), tensor(2), tensor(0)
    return file(lambda: axpy(x, y, 2.0, stream=stream, out=z))


def run(graph, stream):
    with graph:
        run_all(graph, stream)


def run_all(graph, stream):
    with graph.instantiate() as step:
        step.launch(stream)
        stream.sync()


def test_an_expression_counts_what_it_is_given(added, tensor, stream):
    around = tensor(0, 30)
    small = tensor(5, 10)
    with no_leaks():
        for bind in ({"z": small}, {"x": small}, {"x": small, "z": around[10:20]}):
            with pytest.raises(ValueError, match="needs tensors of one size, got elements: x 10"):
                added(**{"x": small, **bind} if "y" not in bind else bind)
        with pytest.raises(ValueError, match="z 10") as e:
            added(z=around[10:20])
        assert "for node 'kernel_0'" in "".join(e.value.__notes__)
        with pytest.raises(ValueError, match="n of 'kernel_0' is the number of elements"):
            added(n=5000)
        with pytest.raises(TypeError, match="x of 'kernel_0' must have elements of type float32"):
            added(x=tensor(1, N, "f8"))
        with pytest.raises(TypeError, match="x of 'kernel_0' must be a tensor, not Buffer"):
            added(x=small.buffer)
        del e
    run(added(x=small, y=small, z=around[10:20], a=3.0), stream)
    assert around.numpy(stream=stream).tolist() == [0] * 10 + [20] * 10 + [0] * 10
    out = tensor(0)
    run(added(z=out), stream)
    assert (out.numpy(stream=stream) == 4).all()


def test_a_reduction(file, tensor, stream):
    squares = cu.reduce("float x", "float sum", "a + b", map="x * x", name="squares")
    x, out = tensor(1), tensor(0, 1)
    load = file(lambda: squares(x, stream=stream, out=out))
    with pytest.raises(ValueError, match="must have one element, got 10"):
        load(sum=tensor(5, 10))
    result = tensor(0, 1)
    run(load(x=tensor(5, 10), sum=result), stream)
    assert result.item(stream=stream) == 250
    squares._kernels.clear()


def test_a_fill_fills_what_it_is_given(file, tensor, stream):
    x = tensor(0, N, "f8")
    load = file(lambda: x.fill(2.5, stream=stream))
    around = tensor(0, 30, "f8")
    run(load(dst=around[10:20]), stream)
    assert around.numpy(stream=stream).tolist() == [0] * 10 + [2.5] * 10 + [0] * 10
    with pytest.raises(TypeError, match="dst of fill 'kernel_0' cannot be None"):
        load(dst=None)
    for name in ("n", "low", "d0"):
        with pytest.raises(ValueError, match="arguments describe the memory together"):
            load(**{name: 5000})


def test_a_fill_with_gaps_is_not_known_any_more(file, tensor, stream):
    x = tensor(0)
    load = file(lambda: x[::2].fill(2.5, stream=stream))
    with pytest.raises(ValueError, match="shape is not known any more"):
        load(dst=tensor(0, 10))


def test_a_copy_has_both_sides_or_none(file, stream):
    m, t = (cu.zeros((4, 4, 4), "f4", stream=stream) for _ in range(2))
    source = m.buffer.view("f4", (4, 4, 4), (1, 16, 4))
    load = file(lambda: t.copy_from(source, stream=stream))
    small, many = (cu.full((4, 4), 3, "f4", stream=stream) for _ in range(2))
    with pytest.raises(ValueError, match="needs the same shape"):
        load(src=small)
    with pytest.raises(ValueError, match="not known any more"):
        load(dst=t)
    with pytest.raises(ValueError, match="arguments describe the memory together"):
        load(n=5)
    many.fill(0, stream=stream)
    run(load(dst=many, src=small.T), stream)
    assert (many.numpy(stream=stream) == 3).all()


def test_the_order_of_elements_is_not_known_any_more(file, stream):
    """Of a tensor whose elements are all of its memory, in another order."""
    m, t = (cu.zeros((4, 4, 4), "f4", stream=stream) for _ in range(2))
    source = m.buffer.view("f4", (4, 4, 4), (1, 16, 4))
    load = file(lambda: t.copy_from(source, stream=stream))
    with load() as loaded, pytest.raises(ValueError, match="shape is not known any more"):
        loaded["kernel_0"].update(dst=t)


def test_a_conversion_keeps_its_memory(file, tensor, stream):
    x = tensor(1)
    load = file(lambda: x.astype("f8", stream=stream))
    with pytest.raises(ValueError, match="arguments describe the memory together"):
        load(src=tensor(1, 10))


def test_a_condition_is_read_from_as_much_as_there_is(graph, stream, tmp_path):
    wide, small = cu.asarray([1 << 33], "i8", stream=stream), cu.asarray([1], "u1", stream=stream)
    written = cu.zeros(4, "u1", stream=stream)
    condition = graph.condition()
    node = graph.set_condition(condition, wide, name="set")
    node.if_then(condition).body.memset(written, 7, name="then")
    graph.save(tmp_path / "graph")
    bind = {"conditional_0/then.dst": written}
    for value, ran in ((small, True), (0, False), (3, True)):
        written.fill(0, stream=stream)
        run(cu.Graph.load(tmp_path / "graph", bind={"set.value": value, **bind}), stream)
        assert bool(written.numpy(stream=stream)[0]) == ran
    with pytest.raises(ValueError, match="value must have 1, 2, 4 or 8 bytes, got 3"):
        cu.Graph.load(tmp_path / "graph", bind={"set.value": written[:3]})
    with pytest.raises(ValueError, match="arguments describe the memory together"):
        cu.Graph.load(tmp_path / "graph", bind={"set.condition": 3})


def test_a_condition_of_no_node_is_not_saved(graph, tmp_path):
    """Its number would be that of another graph, or of none, where it is loaded."""
    graph.set_condition(graph.condition(), 1, name="set")
    with pytest.raises(ValueError, match="'set' cannot be saved: its parameter 0 is a condition"):
        graph.save(tmp_path / "graph")


def test_a_fill_with_an_address(file, stream):
    """Which is that of the loaded memory, and no number that other memory could be filled with."""
    x = cu.zeros(4, "u8", stream=stream)
    address = x.handle
    load = file(lambda: x.fill(address, stream=stream))
    with load() as loaded:
        run_all(loaded, stream)
        (made,) = {node.params.args[0] for node in loaded.nodes}
        assert (made.numpy(stream=stream) == made.handle).all()
    y = cu.zeros(2, "u8", stream=stream)
    with pytest.raises(ValueError, match="fills with an address: give value= too"):
        load(dst=y)
    with load() as loaded:
        loaded["kernel_0"].update(y, 7)
        run_all(loaded, stream)
    assert (y.numpy(stream=stream) == 7).all()


def test_a_file_without_names_of_parameters(added, tmp_path, tensor):
    """Its updates are counted too, and tell the places."""
    with zipfile.ZipFile(tmp_path / "graph") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    text = json.loads(members["graph.json"])
    text["kernels"][0]["parameters"] = []
    _write(tmp_path / "graph", members, text)
    with cu.Graph.load(tmp_path / "graph") as graph:
        with pytest.raises(ValueError, match="got elements: parameter 0 10, parameter 1 1000,"):
            graph.nodes[0].update({0: tensor(5, 10)})
        with pytest.raises(TypeError, match=r"parameter 0 of .* must be a tensor, not int"):
            graph.nodes[0].update({0: 7})


def test_a_file_that_lies_about_its_kernels(added, tmp_path):
    """Is refused before an update would compute with what it says."""
    with zipfile.ZipFile(tmp_path / "graph") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    text = json.loads(members["graph.json"])
    for work in ("fill", "copy", "conversion", "condition"):
        text["kernels"][0]["work"] = work
        _write(tmp_path / "graph", members, text)
        with pytest.raises(cu.GraphFileError, match=f"cannot be the {work} that kernel axpy is"):
            added()
    text["kernels"][0]["work"] = "elements"
    (node,) = text["nodes"]
    for place, wrong in ((-1, {"float": "00" * 8}), (-2, {"int": 1 << 40})):
        was, node["args"][place] = node["args"][place], wrong
        _write(tmp_path / "graph", members, text)
        with pytest.raises(cu.GraphFileError):
            added()
        node["args"][place] = was


def _write(path, members, text):
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, json.dumps(text) if name == "graph.json" else data)

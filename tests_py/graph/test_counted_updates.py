# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of nodes whose kernels count what they go over: expressions, and conditions' values."""

from __future__ import annotations

import pytest

import cudago as cu

N = 1000


@pytest.fixture
def squares():
    made = cu.reduce("float x", "float sum", "a + b", map="x * x", name="squares")
    yield made
    made._kernels.clear()


@pytest.fixture
def tensor(stream):
    """Return a function that makes a tensor of one value."""
    return lambda value, count=N, dtype="f4": cu.full(count, value, dtype, stream=stream)


@pytest.fixture(params=["graph", "executable"])
def held(request, stream):
    """Return a function that captures a call, and gives its node and what runs it."""
    steps = []

    def hold(call):
        call()  # compiled by now
        with stream.capture() as captured:
            call()
        graph = captured
        owner = graph.instantiate() if request.param == "executable" else graph
        (node,) = owner.nodes

        def run():
            step = owner if owner is not graph else graph.instantiate()
            steps.append(step)
            step.launch(stream)
            stream.sync()

        steps.append(graph)
        return node, run

    yield hold
    for step in steps:
        step.close()


@pytest.fixture
def added(held, axpy, tensor, stream):
    """Return the node of z = 2 * x + y, what runs it, and z."""
    x, y, z = tensor(1), tensor(2), tensor(0)
    node, run = held(lambda: axpy(x, y, 2.0, stream=stream, out=z))
    yield node, run, z
    z.close()


def told(node, change):
    with pytest.raises((TypeError, ValueError)) as e:
        node.update(**change)
    return f"{e.type.__name__}: {e.value}"


def test_no_tensor_becomes_smaller_alone(added, tensor, stream):
    """Of which the kernel would read or write what lies behind."""
    node, run, z = added
    small = tensor(5, 10)
    name = node.name
    each = f"ValueError: {name!r} needs tensors of one size, got elements: "
    assert told(node, {"x": small}) == each + "x 10, y 1000, z 1000"
    assert told(node, {"z": small}) == each + "x 1000, y 1000, z 10"
    assert told(node, {"x": small, "y": small}) == each + "x 10, y 10, z 1000"
    assert "is counted: give tensors" in told(node, {"n": 5})
    assert "is counted: give tensors" in told(node, {"n": 5, "x": small, "y": small, "z": small})
    with pytest.raises(ValueError, match="x 10, y 1000, z 1000"):
        node.update({0: small})
    run()
    assert (z.numpy(stream=stream) == 4).all()


def test_all_tensors_of_another_size(added, tensor, stream):
    """Are counted, and the configuration follows."""
    node, run, z = added
    small = tensor(5, 10)
    around = tensor(0, 30)
    node.update(x=small, y=small, z=around[10:20])
    assert node.params.config.grid[0] == 1
    run()
    assert around.numpy(stream=stream).tolist() == [0] * 10 + [15] * 10 + [0] * 10
    large, out = tensor(3, 5000), tensor(0, 5000)
    node.update(x=large, y=large, z=out, a=1.0)
    assert node.params.config.grid[0] == -(-5000 // 256)
    run()
    assert (out.numpy(stream=stream) == 6).all()
    assert (z.numpy(stream=stream) == 4).all()  # by the call


def test_a_configuration_of_one_dimension(added, stream):
    """Threads along the others would do elements again, of which an output may be an input too."""
    node, run, z = added
    node.update(y=z, x=z)
    for grid, block in ((1, 64), (7, 1), (1000, 256)):
        z.fill(1, stream=stream)
        node.update(cu.LaunchConfig(grid, block))
        run()
        assert (z.numpy(stream=stream) == 3).all()
    for grid, block in ((1, (32, 8)), ((4, 2), 256), (4, (8, 1, 2))):
        with pytest.raises(ValueError, match="those along y and z would do the same ones again"):
            node.update(cu.LaunchConfig(grid, block))


def test_tensors_of_the_same_size(added, tensor, stream):
    """Are exchanged one by one, again and again, as numbers are."""
    node, run, z = added
    for value in (7, 8, 9):
        node.update(x=tensor(value))
        node.update(a=float(value))
        run()
        assert (z.numpy(stream=stream) == value * value + 2).all()
    out = tensor(0)
    node.update({3: out})
    node.update(y=out)  # the same memory is read and written element by element
    run()
    assert (out.numpy(stream=stream) == 81).all()


def test_refused_memory(added, tensor, stream, device):
    node, run, z = added
    with device.allocate(4 * N + 4, stream=stream) as raw:
        assert "must be a tensor, not Buffer" in told(node, {"x": raw})
    assert "must be a tensor, not int" in told(node, {"x": z.handle})
    assert "must be a tensor, not NoneType" in told(node, {"z": None})
    assert "must have elements of type float32, got int32" in told(node, {"x": tensor(1, N, "i4")})
    gaps = tensor(1, 2 * N)[::2]
    assert "must have no gaps, got strides" in told(node, {"x": gaps})
    two = tensor(1, 2 * N)
    assert "z of " in told(node, {"x": two[:N], "z": two[5 : N + 5]})
    assert "overlaps with x in part" in told(node, {"x": two[:N], "z": two[5 : N + 5]})
    with pytest.raises(TypeError, match="has no parameter 'q'"):
        node.update(q=1)
    run()
    assert (z.numpy(stream=stream) == 4).all()


def test_an_output_that_is_a_number(axpy, tensor, stream):
    """Its elements, and whether inputs overlap with it, are not known by its address alone."""
    x, y, z = tensor(1), tensor(2), tensor(0)
    axpy(x, y, 2.0, stream=stream, out=z)
    with stream.capture() as captured:
        axpy(x, y, 2.0, stream=stream, out=z)
    params = captured.nodes[0].params
    with cu.Graph(x.device) as graph:
        graph.launch(params.config, params.kernel, x, y, 2.0, z.handle, N, name="axpy")
        with graph.instantiate() as step:
            for value in 5, 6, 7:
                with pytest.raises(ValueError, match="z of 'axpy' was given as an address"):
                    step["axpy"].update(x=tensor(value))
            step.launch(stream)
            assert (z.numpy(stream=stream) == 4).all()
    captured.close()


def test_an_overlap_that_comes_about_by_second_updates(added, tensor, stream):
    """The first update of an executable is made in Python, later ones are not."""
    node, run, _ = added
    two = tensor(1, 2 * N)
    node.update(x=two[:N])
    node.update(x=two[N:])
    node.update(z=two[:N])
    assert "overlaps with x in part" in told(node, {"x": two[5 : N + 5]})
    small = tensor(5, 10)
    assert "x 10, y 1000, z 1000" in told(node, {"x": small})
    run()
    assert (two.numpy(stream=stream)[:N] == 4).all()


def test_an_alignment_that_comes_about_by_second_updates(added, tensor, stream, device):
    node, run, z = added
    node.update(x=tensor(1))
    with device.allocate(4 * N + 4, stream=stream) as raw:
        raw.fill(0, stream=stream)
        bytes_of = raw[2 : 4 * N + 2]
        with pytest.raises(ValueError, match=r"align|must be a multiple of 4"):
            node.update(x=bytes_of.view("f4"))
    run()
    assert (z.numpy(stream=stream) == 4).all()


def test_a_reduction(held, squares, tensor, stream):
    """Has one result, whatever the number of elements."""
    x, out = tensor(1), tensor(0, 1)
    node, run = held(lambda: squares(x, stream=stream, out=out))
    small = tensor(5, 10)
    node.update(x=small)
    run()
    assert out.item(stream=stream) == 250
    node.update(x=tensor(1, 3000))
    run()
    assert out.item(stream=stream) == 3000
    assert "must have one element, got 10" in told(node, {"sum": small})
    assert "has no elements, of which the node makes no result" in told(node, {"x": small[:0]})
    with pytest.raises(ValueError, match="reduces with one block, so its config stays"):
        node.update(cu.LaunchConfig(2, 256))
    other = tensor(0, 1)
    node.update(sum=other)
    run()
    assert other.item(stream=stream) == 3000


def test_the_whole_of_a_node(added, tensor, stream, device):
    """A kernel of cudago's own is no other node's, and a node can become that of another kernel."""
    node, run, z = added
    params = node.params
    with pytest.raises(ValueError, match="is one of cudago's own"):
        node.update(params.config, params.kernel, *params.args)
    source = 'extern "C" __global__ void set(float* z, float a) { z[threadIdx.x] = a; }'
    kernel = cu.Program(source).compile(device=device)["set"]
    with pytest.raises(TypeError, match="counts the elements of its tensors"):
        node.update(kernel)
    node.update(cu.LaunchConfig(1, 4), kernel, z, 9.0)
    run()
    assert z.numpy(stream=stream)[:5].tolist() == [9, 9, 9, 9, 4]


def test_slots(axpy, tensor, stream):
    """Of the same size; or of another, for all of them."""
    x, y, z = tensor(1), tensor(2), tensor(0)
    axpy(x, y, 2.0, stream=stream, out=z)
    with stream.capture() as captured:
        axpy(x, y, 2.0, stream=stream, out=z)
    with captured.instantiate() as step:
        (node,) = step.nodes
        node.update(x=cu.slot("x", x), z=cu.slot("z", z))
        node.update(y=cu.slot("y", y))
        small, out = tensor(5, 10), tensor(0, 10)
        with pytest.raises(ValueError, match="x 10, y 1000, z 1000"):
            step.bind(x=small)
        with pytest.raises(ValueError, match="x 1000, y 1000, z 10"):
            step.bind(z=out)
        step.bind(x=tensor(3))
        step.bind(x=tensor(4))
        step.launch(stream)
        assert (z.numpy(stream=stream) == 10).all()
        step.bind(x=small, y=small, z=out)
        step.launch(stream)
        assert (out.numpy(stream=stream) == 15).all()
        with pytest.raises(ValueError, match="needs tensors of one size"):
            step.bind(x=x)
    captured.close()


def test_in_a_file(tmp_path, axpy, squares, tensor, stream):
    """The kernels are known again when they are loaded."""
    x, y, z, out = tensor(1), tensor(2), tensor(0), tensor(0, 1)

    def work():
        axpy(x, y, 2.0, stream=stream, out=z)
        squares(z, stream=stream, out=out)

    work()
    with stream.capture() as captured:
        work()
    captured.save(tmp_path / "file", contents=True)
    captured.close()
    with cu.Graph.load(tmp_path / "file") as graph, graph.instantiate() as step:
        adds, sums = step.nodes
        assert "needs tensors of one size" in told(adds, {"x": tensor(5, 10)})
        assert "must have one element, got 10" in told(sums, {"sum": tensor(5, 10)})
        result = tensor(0, 1)
        sums.update(sum=result)
        step.launch(stream)
        assert result.item(stream=stream) == 16 * N


def test_a_function_that_is_a_graph(axpy, tensor, stream):
    @cu.graph
    def step(stream, x, y, z):
        axpy(x, y, 2.0, stream=stream, out=z)

    y, z, two = tensor(2), tensor(0), tensor(3, 2 * N)
    for value in range(4):
        step(stream, tensor(value), y, z)
        assert (z.numpy(stream=stream) == 2 * value + 2).all()
    for _ in range(2):
        with pytest.raises(ValueError, match="overlaps with x"):
            step(stream, two[5 : N + 5], y, two[:N])
    step(stream, two[:N], y, two[:N])
    assert two.numpy(stream=stream)[N - 1 : N + 1].tolist() == [8, 3]


@pytest.mark.parametrize("kind", ["graph", "executable"])
def test_a_condition_is_set_from_memory_of_any_size(graph, stream, kind):
    """The kernel reads as much as there is."""
    wide, small = cu.asarray([1 << 33], "i8", stream=stream), cu.asarray([0], "u1", stream=stream)
    written = cu.zeros(4, "u1", stream=stream)
    stream.sync()
    condition = graph.condition(default=1)
    node = graph.set_condition(condition, wide)
    node.if_then(condition).body.memset(written, 7)
    owner = graph if kind == "graph" else graph.instantiate()
    setter = next(n for n in owner.nodes if n.name == node.name)

    values = small, wide, 0, 3, small.ptr, wide.ptr, small
    for value, runs in zip(values, (False, True, False, True, False, True, False), strict=True):
        setter.update(value)
        written.fill(0, stream=stream)
        step = graph.instantiate() if kind == "graph" else owner
        step.launch(stream)
        assert bool(written.numpy(stream=stream)[0]) == runs
        if kind == "graph":
            step.close()
    three = cu.zeros(3, "u1", stream=stream)
    for value in (three, three.buffer.ptr, "a", None, {1: small}, 1 << 32):
        with pytest.raises(
            (TypeError, ValueError, OverflowError), match=r"value must|update it with value"
        ):
            setter.update(value=value)
    with pytest.raises(TypeError, match="a node that sets a condition takes value: got"):
        setter.update(small, other=3)
    if kind == "executable":
        setter.update(value=cu.slot("value", wide))
        owner.bind(value=small)
        written.fill(0, stream=stream)
        owner.launch(stream)
        assert not written.numpy(stream=stream).any()
        owner.close()


class Answers:
    """Another library's object, which answers with other memory each time that it is asked."""

    def __init__(self, *tensors):
        self.tensors, self.nbytes, self.shape = list(tensors), tensors[0].nbytes, tensors[0].shape
        self.dtype = tensors[0].dtype

    def __dlpack__(self, **how):
        asked = self.tensors[0] if len(self.tensors) == 1 else self.tensors.pop(0)
        return asked.__dlpack__(**how)

    def __dlpack_device__(self):
        return self.tensors[0].__dlpack_device__()


def test_the_memory_that_was_counted_is_used(added, tensor, stream):
    node, run, _ = added
    out, small = tensor(0), tensor(0, 10)
    given = Answers(out, small)
    node.update(z=given)
    assert node.params.args[3] is given
    run()
    assert (out.numpy(stream=stream) == 4).all()
    assert not small.numpy(stream=stream).any()


def test_a_condition_is_read_from_the_memory_that_there_is(graph, stream):
    byte, wide = cu.asarray([1], "u1", stream=stream), cu.zeros(1, "i8", stream=stream)
    written = cu.zeros(4, "u1", stream=stream)
    condition = graph.condition()
    node = graph.set_condition(condition, wide)
    lies = Answers(wide, byte)
    lies.tensors.pop(0)
    node.update(lies)  # which says that it has 8 bytes
    node.if_then(condition).body.memset(written, 7)
    with graph.instantiate() as step:
        step.launch(stream)
        assert written.numpy(stream=stream).all()


def test_an_address_as_a_number_is_not_counted(added, tensor, stream, graph):
    node, run, z = added
    run()
    config, kernel, args = node.params.config, node.params.kernel, node.params.args
    graph.launch(config, kernel, *args[:3], z.handle, args[4])
    with graph.instantiate() as step:
        (own,) = step.nodes
        for change in ({"x": tensor(3)}, {"x": tensor(3)}, {"z": None}, {"a": 3.0, "z": tensor(0)}):
            assert "z of 'kernel_0' was given as an address" in told(own, change)


def test_no_elements(added, tensor, stream):
    node, run, _ = added
    none, x, out = tensor(0, 0), tensor(5, 10), tensor(0, 10)
    node.update(x=none, y=none, z=none)
    run()
    node.update(x=x, y=x, z=out)
    run()
    assert (out.numpy(stream=stream) == 15).all()


def test_an_overlap_of_other_elements(held, tensor, stream):
    """Begins at the same address, but one element lies where others are still read."""
    narrowed = cu.elementwise("double x", "float z", "z = (float)x")
    x, z = tensor(1.5, N, "f8"), tensor(0)
    node, run = held(lambda: narrowed(x, stream=stream, out=z))
    inside = x.buffer.view("f4")[:N]
    assert "overlaps with x in part" in told(node, {"z": inside})
    node.update(z=tensor(0))
    assert "overlaps with x in part" in told(node, {"z": inside})
    run()
    narrowed._kernels.clear()

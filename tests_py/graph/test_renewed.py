# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of fills and copies that kernels of cudago do: wide values, and any strides."""

from __future__ import annotations

import numpy as np
import pytest

import cudago as cu


@pytest.fixture(params=["graph", "executable"])
def updated(request, graph, stream):
    """Return a function that updates the node "n", launches, and waits."""

    def run(*args, **kwargs):
        if request.param == "graph":
            graph["n"].update(*args, **kwargs)
            step = graph.instantiate()
        else:
            step = graph.instantiate()
            step["n"].update(*args, **kwargs)
        with step:
            step.launch(stream)
            stream.sync()

    return run


def whole(stream, count=128, dtype="f8"):
    """Return memory that is all zeros, in which updates have to keep to a part."""
    return cu.zeros(count, dtype, stream=stream)


@pytest.mark.parametrize("position", [False, True])
def test_a_fill_of_smaller_memory_writes_no_more_than_that(updated, graph, stream, position):
    """The count of elements is that of the new memory."""
    graph.memset(cu.zeros(16, "f8", stream=stream), 2.5, name="n")
    big = whole(stream)
    part = big[4:8]
    updated(part) if position else updated(dst=part)
    assert big.numpy(stream=stream).tolist() == [0] * 4 + [2.5] * 4 + [0] * 120


def test_a_fill_of_larger_memory_writes_all_of_it(updated, graph, stream):
    """So does one of memory with more elements than the first."""
    graph.memset(cu.zeros(16, "i8", stream=stream), 1 << 40, name="n")
    big = whole(stream, 100, "i8")
    updated(dst=big)
    assert big.numpy(stream=stream).tolist() == [1 << 40] * 100


def test_strides_are_those_of_the_new_memory(updated, graph, stream):
    """A fill with gaps can become one without, and one with other gaps."""
    graph.memset(cu.zeros((4, 8), "f4", stream=stream)[:, 1:3], 2.5, name="n")
    small = cu.zeros((4, 2), "f4", stream=stream)
    updated(dst=small)
    assert (small.numpy(stream=stream) == 2.5).all()
    wide = cu.zeros((6, 6), "f4", stream=stream)
    updated(dst=wide[::2, 1:6:3])
    expected = np.zeros((6, 6), "f4")
    expected[::2, 1:6:3] = 2.5
    assert (wide.numpy(stream=stream) == expected).all()


@pytest.mark.parametrize(
    ("dtype", "value", "other"),
    [("f8", 2.5, 7.5), ("f8", 2.5, 0.0), ("i8", 1 << 40, -3), ("c16", 1 + 2j, 3j), ("u2", 7, 9)],
)
def test_the_value_is_updated_alone(updated, graph, stream, dtype, value, other):
    """It is converted to the element type, as the first was."""
    tensor = cu.zeros((4, 4), dtype, stream=stream)[:, 1:3]
    graph.memset(tensor, value, name="n")
    updated(value=other)
    assert (tensor.numpy(stream=stream) == other).all()


def test_memory_and_value_are_updated_together(updated, graph, stream):
    """In any element type."""
    graph.memset(cu.zeros(16, "f8", stream=stream), 2.5, name="n")
    ints = cu.zeros((4, 4), "i2", stream=stream)
    updated(ints[:, 1], -5)
    expected = np.zeros((4, 4), "i2")
    expected[:, 1] = -5
    assert (ints.numpy(stream=stream) == expected).all()


def test_bytes_are_filled_by_the_same_value(updated, graph, device, stream):
    """A buffer has as many elements as fit, a pointer those from there on."""
    graph.memset(cu.zeros(16, "f8", stream=stream), 2.5, name="n")
    with pytest.raises(ValueError, match="12 bytes, which is no multiple of the value's 8"):
        updated(dst=device.allocate(12, stream=stream))
    big = whole(stream, 8)
    updated(dst=big.buffer[:16])
    updated(dst=big.ptr + 48)
    assert big.numpy(stream=stream).tolist() == [2.5] * 2 + [0] * 4 + [2.5] * 2
    updated(big.buffer[16:24], b"\x01")
    assert big.numpy(stream=stream).view("u8")[2] == 0x0101010101010101


def test_what_one_fill_cannot_do_is_refused_in_its_words(updated, graph, stream):
    """Nothing is said of the kernel's own parameters."""
    graph.memset(cu.zeros(16, "f8", stream=stream), 2.5, name="n")
    with pytest.raises(ValueError, match="value of 8 bytes, and an element of dst has 4"):
        updated(dst=cu.zeros(16, "f4", stream=stream))
    with pytest.raises(ValueError, match="one node cannot fill"):
        updated(dst=cu.zeros(12, "u1", stream=stream).buffer[4:].view("f8"))
    with pytest.raises(ValueError, match="0 bytes"):
        updated(dst=cu.zeros(0, "f8", stream=stream))
    with pytest.raises(BufferError, match="fill the array itself"):
        updated(dst=np.zeros(4))
    with pytest.raises(TypeError, match=r"update of a fill takes dst, value: .*'n'"):
        updated(n=3)
    with pytest.raises(TypeError, match="update of a fill needs dst, value or both"):
        updated()
    for args in ((cu.LaunchConfig(1, 1),), ({0: cu.zeros(1, "f8", stream=stream)},)):
        with pytest.raises(TypeError, match=r"'n' is a fill, .* update it with dst, value"):
            updated(*args)


def test_kernels_of_cudago_are_not_given_to_other_nodes(updated, graph, kernels, stream):
    """Their arguments say where they write."""
    x = cu.zeros(16, "f8", stream=stream)
    fill = graph.memset(x, 2.5).params
    graph.launch(cu.LaunchConfig(1, 1), kernels["nothing"], name="n")
    with pytest.raises(ValueError, match="cudago's own"):
        updated(fill.config, fill.kernel, *fill.args)


def test_a_fill_can_become_a_kernel(updated, graph, kernels, stream):
    """If all of it is given."""
    x, y = cu.zeros(16, "f8", stream=stream), cu.zeros(16, "i4", stream=stream)
    graph.memset(x, 2.5, name="n")
    updated(cu.LaunchConfig(1, 16), kernels["add"], y, 3, 16)
    assert (y.numpy(stream=stream) == 3).all()
    assert (x.numpy(stream=stream) == 0).all()


def test_captured_fills_and_copies_are_updated_as_those_of_graphs(stream):
    """They keep the tensor that was passed."""
    x, z = (cu.zeros((4, 4), "f8", stream=stream) for _ in range(2))
    with stream.capture() as graph:
        x.fill(2.5, stream=stream)
        z.T.copy_from(x, stream=stream)
    fill, copy = graph.nodes
    assert fill.params.args[0] is x and copy.params.args[1] is x
    y = cu.zeros((8, 4), "f8", stream=stream)
    fill.update(dst=y[:2])
    copy.update(dst=y[2:4].T, src=y[:2].T)
    with graph.instantiate() as step:
        step.launch(stream)
    assert y.numpy(stream=stream).tolist() == [[2.5] * 4] * 4 + [[0] * 4] * 4
    assert not x.numpy(stream=stream).any()


def test_a_node_that_does_a_part_is_not_updated_by_itself(stream):
    """A fill of misaligned elements takes two nodes, each with one half of the value."""
    memory = cu.zeros(20, "u1", stream=stream)
    half = memory.buffer[4:].view("f8")
    with stream.capture() as graph:
        half.fill(2.5, stream=stream)
    assert len(graph.nodes) == 2
    for change in ({"dst": cu.zeros(2, "f8", stream=stream)}, {"value": 1.0}):
        with pytest.raises(ValueError, match="a part of a tensor: give dst= and value="):
            graph.nodes[0].update(**change)


def test_memory_of_a_capture_is_filled_with_bytes(stream, device):
    """Graphs keep its address, and not the tensor."""
    with stream.capture() as graph:
        memory = device.allocate(32, stream=stream)
        memory.view("f8").fill(2.5, stream=stream)
        memory.close()
    fill = graph.nodes[1]
    with pytest.raises(ValueError, match=r"element type .* is not known: give .* 8, or dst= too"):
        fill.update(value=1.0)
    fill.update(value=np.float64(7).tobytes())
    x = cu.zeros(3, "f8", stream=stream)
    fill.update(dst=x)
    with graph.instantiate() as step:
        step.launch(stream)
    assert x.numpy(stream=stream).tolist() == [7] * 3


def test_conversions_are_not_updated(stream):
    """Their memory is of two types."""
    x = cu.zeros(4, "f4", stream=stream)
    with stream.capture() as graph:
        y = x.astype("f8", stream=stream)
        y.close()
    node = next(n for n in graph.nodes if n.kind == "kernel")
    with pytest.raises(ValueError, match=r"is a conversion, .* capture it again"):
        node.update(dst=cu.zeros(1, "f8", stream=stream))


def test_copies_between_strides_keep_to_their_memory(updated, graph, stream):
    """Counts and strides are those of the new memory, and both sides have one shape."""
    a = cu.asarray(np.arange(16.0).reshape(4, 4), stream=stream)
    b = cu.zeros((4, 4), "f8", stream=stream)
    graph.memcpy(b.T, a, name="n")
    assert graph["n"].kind == "kernel"
    with pytest.raises(ValueError, match=r"dst has shape \(2, 2\) of float64, src \(4, 4\)"):
        updated(dst=b[:2, :2])
    with pytest.raises(TypeError, match=r"update of a copy takes dst=, src=: .*'n'"):
        updated(n=2)
    c = cu.zeros((8, 4), "f8", stream=stream)
    updated(dst=c[2:6].T)
    expected = np.zeros((8, 4))
    expected[2:6] = np.arange(16.0).reshape(4, 4).T
    assert (c.numpy(stream=stream) == expected).all()
    updated(dst=c[:2, :2], src=a[:2, :2].T)
    expected[:2, :2] = np.arange(16.0).reshape(4, 4)[:2, :2].T
    assert (c.numpy(stream=stream) == expected).all()


def test_a_copy_needs_the_side_that_was_closed(updated, graph, stream):
    """Of the closed one the shape would have to be guessed."""
    a, b = (cu.zeros((4, 4), "f8", stream=stream) for _ in range(2))
    graph.memcpy(b.T, a, name="n")
    a.close()
    with pytest.raises(ValueError, match=r"its src, .* was closed: give dst= and src="):
        updated(dst=b.T)
    with pytest.raises(ValueError, match="cannot use slots"):
        updated(src=cu.slot("s", b))


def test_slots_hold_the_memory_of_any_fill(graph, stream):
    """What is bound is filled, as much as there is of it."""
    t = cu.zeros(16, "f8", stream=stream)
    graph.memset(cu.slot("d", t), 2.5, name="wide")
    graph.memset(cu.slot("d", t), 0.0, name="narrow")
    graph["wide"].update(value=7.5)
    graph.add_edge(graph["narrow"], graph["wide"])
    with graph.instantiate() as step:
        big = whole(stream, 32)
        step.bind(d=big[4:8])
        step.launch(stream)
        assert big.numpy(stream=stream).tolist() == [0] * 4 + [7.5] * 4 + [0] * 24
        for wrong in (big[::2], big.buffer[:12], None):
            with pytest.raises((ValueError, TypeError, BufferError)):
                step.bind(d=wrong)
        step.launch(stream)
        stream.sync()
        assert big.numpy(stream=stream).tolist() == [0] * 4 + [7.5] * 4 + [0] * 24


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(
    ("dtype", "other"), [("f4", "f2"), ("f2", "f4"), ("f4", "u1"), ("f4", "f8")]
)
def test_a_value_fills_only_elements_of_its_size(updated, graph, stream, dtype, other, gaps):
    step = 2 if gaps else 1
    graph.memset(cu.zeros(16, dtype, stream=stream)[::step], 1.0, name="n")
    big = cu.ones(16, other, stream=stream)
    with pytest.raises(ValueError, match=r"an element of dst has \d: give value= too"):
        updated(dst=big[::step])
    updated(dst=big[::step], value=0)
    assert not big.numpy(stream=stream)[::step].any()


def test_zeros_fill_elements_of_all_sizes(updated, graph, stream):
    graph.memset(cu.zeros(16, "f4", stream=stream), 0, name="n")
    big = cu.ones(16, "f8", stream=stream)
    updated(dst=big)
    assert not big.numpy(stream=stream).any()


def test_a_slot_of_a_fill_keeps_the_size_of_elements(graph, stream):
    graph.memset(cu.slot("d", cu.zeros(16, "f4", stream=stream)), 1.0)
    with graph.instantiate() as step:
        for other in ("f2", "f8"):
            with pytest.raises(ValueError, match="'memset_0' fills with a value of 4 bytes"):
                step.bind(d=whole(stream, 16, other))
        big = whole(stream, 16, "f4")
        step.bind(d=big)
        step.launch(stream)
        assert big.numpy(stream=stream).tolist() == [1.0] * 16


def test_a_slot_of_one_fill_can_have_gaps(graph, stream):
    """If the first memory has some."""
    m, n = (cu.zeros((4, 4), "f4", stream=stream) for _ in range(2))
    graph.memset(cu.slot("d", m[:, 1]), 1)
    with graph.instantiate() as step:
        step.bind(d=n[1:3, 2:])
        step.launch(stream)
        expected = np.zeros((4, 4), "f4")
        expected[1:3, 2:] = 1
        assert (n.numpy(stream=stream) == expected).all()
        with pytest.raises(TypeError, match="the dst of fill 'kernel_0' cannot be None"):
            step.bind(d=None)


def test_fills_of_files_are_updated_as_others(graph, stream, tmp_path):
    """Their kernel is one of the file's code."""
    t = cu.zeros(16, "f8", stream=stream)
    graph.memset(cu.slot("d", t), 2.5, name="n").memcpy(
        cu.zeros((4, 4), "f8", stream=stream).T, t.buffer.view("f8", (4, 4)), name="copy"
    )
    graph.save(tmp_path / "g")
    big = whole(stream, 32)
    with cu.Graph.load(tmp_path / "g") as loaded, loaded.instantiate() as step:
        step["n"].update(value=7.5)
        step.bind(d=big[:4])
        step.launch(stream)
        assert big.numpy(stream=stream).tolist() == [7.5] * 4 + [0] * 28
        step["n"].update(dst=big[8:10])
        with pytest.raises(TypeError, match=r"'copy' is a copy, .* update it with dst=, src="):
            step["copy"].update({2: 1000})
        step.launch(stream)
        assert big.numpy(stream=stream).tolist() == [7.5] * 4 + [0] * 4 + [7.5] * 2 + [0] * 22


def test_a_fill_by_the_driver_says_that_it_has_no_wide_values(graph, stream):
    """The kind of a node cannot change."""
    t = cu.zeros(16, "f8", stream=stream)
    node = graph.memset(t, 0.0)
    assert node.kind == "memset"
    with graph.instantiate() as step:
        for one in (node, step.nodes[0]):
            with pytest.raises(
                ValueError, match=r"memset node, which fills with 1, 2 or 4 bytes, .* has 8"
            ):
                one.update(value=7.5)


def test_arrays_of_others_are_filled_with_wide_values(graph, stream):
    """They have an element type, as tensors have."""

    class Array:
        dtype = np.dtype("f8")

        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **kwargs):
            return self.tensor.__dlpack__(**kwargs)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    t = cu.zeros(16, "f8", stream=stream)
    array = Array(t)
    node = graph.memset(array, 2.5, name="n")
    assert node.params.args[0] is array
    with graph.instantiate() as step:
        step.launch(stream)
        assert (t.numpy(stream=stream) == 2.5).all()
        step["n"].update(value=3.5)
        step.launch(stream)
        assert (t.numpy(stream=stream) == 3.5).all()

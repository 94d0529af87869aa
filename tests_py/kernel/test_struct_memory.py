# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory in the fields of structs: kept as that of any other argument."""

from __future__ import annotations

import ctypes
import gc
import re
import subprocess
import sys
import weakref
from dataclasses import dataclass, make_dataclass, replace

import numpy as np
import pytest

import cudago as cu

SOURCE = """
struct P { int* p; int n; };
struct Two { char first; P inner; int* more[2]; };
struct Numbers { unsigned long long address; double x; };
extern "C" __global__ void st(P v) { if (v.p) *v.p = v.n; }
extern "C" __global__ void both(P a, P b) { *a.p = a.n; *b.p += b.n; }
extern "C" __global__ void two(Two t) {
    *t.inner.p = t.inner.n;
    for (int i = 0; i < 2; i++) if (t.more[i]) *t.more[i] = 10 + i;
}
extern "C" __global__ void numbers(Numbers v) { *(int*)v.address = 7; }
extern "C" __global__ void get(P v, int* to) { *to = *v.p + v.n; }
extern "C" __global__ void peek(P v, int* to) { *to = *v.p; }
"""
ONE = cu.LaunchConfig(1, 1)


@dataclass
class P:
    p: ctypes.c_void_p
    n: np.int32


@dataclass
class Two:
    first: np.int8
    inner: P
    more: ctypes.c_void_p * 2


@dataclass
class Numbers:
    address: np.uint64
    x: np.float64


@pytest.fixture(scope="module")
def code(driver):
    """Kernels that take structs with pointers."""
    return cu.Program(SOURCE).compile()


def ran(step, stream):
    """Launch twice, with new memory in between where what was freed would be taken again."""
    gc.collect()
    stream.sync()
    step.launch(stream)
    step.launch(stream)
    stream.sync()


def kept(owner):
    """What is kept of parameters, by their objects' types."""
    return [r.operand for r in owner.retained if r.operand.startswith("parameter")]


@pytest.mark.parametrize("of", [lambda x: x, lambda x: x.ptr, lambda x: x.buffer, lambda x: x[:]])
def test_a_graph_keeps_the_memory(code, stream, of):
    x = cu.zeros(4, "i4", stream=stream)
    other = x[:]
    g = cu.Graph()
    g.launch(ONE, code["st"], P(of(x), 6))
    e = g.instantiate()
    assert kept(g) == kept(e) == ["parameter 0"]
    assert [h.operand for h in cu.who_retains(x) if h.kind != "work"] == ["parameter 0"] * 2
    g.close()
    del x
    ran(e, stream)
    assert other.numpy(stream=stream)[0] == 6
    del other
    ran(e, stream)


def test_nobody_else_keeps_it(code, stream):
    x = cu.zeros(4, "i4", stream=stream)
    g = cu.Graph()
    g.launch(ONE, code["st"], P(x.ptr, 6))
    e = g.instantiate()
    g.close()
    gone = weakref.ref(x)
    del x
    ran(e, stream)
    e.close()
    gc.collect()
    assert gone() is None


def test_a_capture_and_a_bound_launch_keep_it(code, stream):
    def captured():
        x = cu.zeros(4, "i4", stream=stream)
        with stream.capture() as g:
            cu.launch(stream, ONE, code["st"], P(x, 6))
        return g.instantiate(), code["st"].bind(ONE, P(x, 7))

    e, bound = captured()
    assert kept(e) == ["parameter 0"]
    ran(e, stream)
    bound(stream)
    with stream.capture() as g:
        bound(stream)
    bound.close()
    again = g.instantiate()
    ran(again, stream)
    assert kept(again) == ["parameter 0"]


def test_memory_of_a_capture(code, device, stream):
    out = cu.zeros(1, "i4", stream=stream)
    with stream.capture() as g:
        x = device.allocate(16, stream=stream)
        cu.launch(stream, ONE, code["st"], P(x, 6))
        cu.launch(stream, ONE, code["get"], P(x.ptr, 1), out)
        x.close()
    ran(g.instantiate(), stream)
    assert out.numpy(stream=stream)[0] == 7


def test_a_launch_in_flight_keeps_it(code, device, stream):
    x = cu.zeros(4, "i4", stream=stream)
    view = x[:]
    other = device.create_stream()
    stream.sync()
    cu.launch(other, ONE, code["st"], P(x.ptr, 6))
    x.close()
    other.sync()
    assert view.numpy(stream=stream)[0] == 6
    x = device.allocate(16, stream=stream)
    stream.sync()
    cu.launch(other, ONE, code["st"], P(x, 6))
    x.close()
    device.allocate(16, stream=stream).fill(0, stream=stream)
    other.sync()


def test_updates_exchange_it(code, stream):
    x, y, z = (cu.zeros(1, "i4", stream=stream) for _ in range(3))
    g = cu.Graph()
    node = g.launch(ONE, code["both"], P(x.ptr, 1), P(y, 2), name="both")
    e = g.instantiate()
    mine = e["both"]
    for second in (P(z, 5), P(y.ptr, 3), P(z.ptr, 5)):
        mine.update({1: second})
    assert kept(e) == ["parameter 0", "parameter 1"]
    assert not [h for h in cu.who_retains(y) if h.holder is e]
    assert [h for h in cu.who_retains(z) if h.holder is e]
    ran(e, stream)
    assert [t.numpy(stream=stream)[0] for t in (x, y, z)] == [1, 0, 10]
    mine.update({1: bytes(P_bytes(z.handle, 1))})
    assert kept(e) == ["parameter 0"]
    mine.update({1: P(z, 1)})
    mine.update(ONE, code["both"], P(z, 1), P(z.ptr, 1))
    mine.update({0: P(x, 1)})
    assert kept(e) == ["parameter 0", "parameter 1"]
    node.update(ONE, code["both"], P(z, 1), P(z, 1))
    assert kept(g) == ["parameter 0", "parameter 1"]


def P_bytes(address, n):
    """The bytes of a P, in which the address is a number."""
    return np.array((address, n), np.dtype([("p", "u8"), ("n", "i4")], align=True)).tobytes()


def test_slots_exchange_it(code, stream):
    x, y = (cu.zeros(1, "i4", stream=stream) for _ in range(2))
    g = cu.Graph()
    g.launch(ONE, code["both"], cu.Slot("first", P(x.ptr, 1)), P(y, 2))
    e = g.instantiate()
    assert kept(e) == ["parameter 0", "parameter 1"]
    for value in (P(y, 4), P(x, 5), P(y.ptr, 4)):
        e.bind(first=value)
    assert not cu.who_retains(x) or all(h.holder is not e for h in cu.who_retains(x))
    ran(e, stream)
    assert y.numpy(stream=stream)[0] == 6


def test_an_argument_of_a_node_is_given_again(code, stream):
    x = cu.zeros(1, "i4", stream=stream)
    g = cu.Graph()
    node = g.launch(ONE, code["st"], P(x.ptr, 6))
    (arg,) = node.params.args
    assert bytes(arg) == P_bytes(x.handle, 6)
    assert repr(arg).startswith("<struct of 16 bytes with")
    h = cu.Graph()
    again = h.launch(ONE, code["both"], arg, arg)
    g.close()
    del x, node, g
    e = h.instantiate()
    ran(e, stream)
    assert kept(e) == ["parameter 0", "parameter 1"]
    y = cu.zeros(1, "i4", stream=stream)
    e[again.name].update({1: P(y, 1)})
    h.close()
    del arg, again, h
    ran(e, stream)
    assert y.numpy(stream=stream)[0] == 2


def test_pointers_anywhere_in_a_struct(code, stream):
    x = cu.zeros(4, "i4", stream=stream)
    two = Two(1, P(x, 9), [x.ptr + 4, None])
    cu.launch(stream, ONE, code["two"], two)
    assert x.numpy(stream=stream).tolist() == [9, 10, 0, 0]
    cu.launch(stream, ONE, code["two"], replace(two, more=(x.ptr + 8, x[3:])))
    assert x.numpy(stream=stream).tolist() == [9, 10, 10, 11]
    g = cu.Graph()
    g.launch(ONE, code["two"], two)
    assert kept(g) == ["parameter 0"] * 2


def test_null_and_numbers(code, stream):
    x = cu.zeros(1, "i4", stream=stream)
    cu.launch(stream, ONE, code["st"], P(None, 1))
    cu.launch(stream, ONE, code["st"], P(ctypes.c_void_p(), 1))
    cu.launch(stream, ONE, code["st"], P(int(x.ptr), 2))
    assert x.numpy(stream=stream)[0] == 2
    cu.launch(stream, ONE, code["st"], P(ctypes.c_void_p(x.handle), 3))
    assert x.numpy(stream=stream)[0] == 3
    g = cu.Graph()
    g.launch(ONE, code["st"], P(None, 1))
    g.launch(ONE, code["numbers"], Numbers(x.ptr, 1))
    assert kept(g) == ["parameter 0"]


@dataclass
class Typed:
    p: cu.Tensor | None
    n: np.int32


@dataclass
class OfBuffer:
    p: cu.Buffer
    n: np.int32


@dataclass
class OfPointer:
    p: cu.Pointer
    n: np.int32


@dataclass
class OfCtypes:
    p: ctypes.POINTER(ctypes.c_int)
    n: np.int32


@pytest.mark.parametrize("kind", [Typed, OfBuffer, OfPointer, OfCtypes])
def test_annotations_of_pointers(code, stream, kind):
    x = cu.zeros(1, "i4", stream=stream)
    cu.launch(stream, ONE, code["st"], kind(x, 3))
    assert x.numpy(stream=stream)[0] == 3
    cu.launch(stream, ONE, code["st"], kind(None, 3))


A_POINTER = "must be a pointer: memory, an address or None"


@pytest.mark.parametrize(
    ("value", "error", "match"),
    [
        (P("x", 1), TypeError, f"field 'p' of P {A_POINTER}, got 'x'"),
        (P(1.5, 1), TypeError, f"field 'p' of P {A_POINTER}, got 1.5"),
        (P(True, 1), TypeError, f"field 'p' of P {A_POINTER}, got True"),
        (P(ctypes.c_bool(True), 1), TypeError, f"field 'p' of P {A_POINTER}"),
        (P(-1, 1), OverflowError, f"field 'p' of P {A_POINTER}, got -1"),
        (P(1 << 64, 1), OverflowError, f"field 'p' of P {A_POINTER}"),
        (P(ctypes.pointer(ctypes.c_int(1)), 1), TypeError, f"field 'p' of P {A_POINTER}"),
        (P(cu.Tensor, 1), TypeError, f"field 'p' of P {A_POINTER}"),
        (Numbers(None, 1), TypeError, "'address' .* uint64, .* annotate the field as ctypes.c_voi"),
        (P(None, None), TypeError, r"'n' of P must be an int32, .* got None \(NoneType\)$"),
    ],
)
def test_what_is_no_pointer(code, stream, value, error, match):
    name = "numbers" if isinstance(value, Numbers) else "st"
    with pytest.raises(error, match=match):
        cu.launch(stream, ONE, code[name], value)


def test_an_array_with_gaps(code, stream):
    match = r"field 'p' of P: the array has gaps .* np\.ascontiguousarray\(x\)"
    with pytest.raises(BufferError, match=match):
        cu.launch(stream, ONE, code["st"], P(np.zeros(8, "i4")[::2], 1))


@pytest.mark.parametrize("driver", ["sim"], indirect=True)  # a GPU does not read an array
def test_read_only_memory_is_not_stored_through(driver, code, stream):
    array = cu.PinnedMemoryResource().allocate(4).view("i4").numpy(stream=stream)
    array.flags.writeable = False
    fixed = cu.from_dlpack(array)
    out = cu.zeros(1, "i4", stream=stream)
    cu.launch(stream, ONE, code["peek"], P(fixed, 1), out)
    with pytest.raises(TypeError, match="parameter 0 of kernel st is read-only memory"):
        cu.launch(stream, ONE, code["st"], P(fixed, 1))


def test_the_handle_of_a_texture_keeps_it(driver, stream):
    look = cu.Program("""
    struct Look { unsigned long long image; int at; };
    extern "C" __global__ void look(Look l, float* to) { *to = tex1Dfetch<float>(l.image, l.at); }
    """).compile()["look"]

    @dataclass
    class Look:
        image: np.uint64
        at: np.int32

    values = cu.asarray(np.arange(8, dtype="f4"), stream=stream)
    out = cu.zeros(1, "f4", stream=stream)
    texture = cu.Texture(values)
    g = cu.Graph()
    g.launch(ONE, look, Look(texture, 5), out)
    e = g.instantiate()
    g.close()
    texture.close()
    del texture, values
    ran(e, stream)
    assert out.numpy(stream=stream)[0] == 5


def test_a_pointer_is_no_value(driver, device, stream):
    words = cu.VirtualMemoryResource(device).allocate(16, stream=stream)
    g = cu.Graph()
    for on in (g, stream):
        with pytest.raises(TypeError, match="value must be an int, got a Pointer"):
            on.write_value(words[:8], words.ptr)


@pytest.mark.parametrize("letters", [100, 252, 253, 400])
def test_a_long_name_of_a_field_is_told_whole(code, device, stream, letters):
    name = "a" + "é" * letters
    long = make_dataclass("Long", [(name, ctypes.c_void_p), ("n", np.int32)])
    x = device.allocate(8, stream=stream)
    x.close()
    with pytest.raises(cu.ClosedError, match=f"^field '{name}' of Long: buffer is closed$"):
        cu.launch(stream, ONE, code["st"], long(x, 1))


def test_memory_in_other_fields(code, stream):
    x = cu.zeros(1, "i4", stream=stream)
    with pytest.raises(TypeError, match=r"'address' .* uint64, .* annotate .* cudago.Pointer"):
        cu.launch(stream, ONE, code["numbers"], Numbers(x, 1))
    for value in (P(x, x.ptr), Numbers(0, x.ptr)):
        with pytest.raises(TypeError, match=r"got .*Pointer"):
            cu.launch(stream, ONE, code["st"], value)


def test_memory_that_kernels_may_not_have(code, stream):
    x = cu.zeros(1, "i4", stream=stream)
    x.close()
    with pytest.raises(cu.ClosedError, match="field 'p' of P"):
        cu.launch(stream, ONE, code["st"], P(x, 1))
    y = cu.zeros((4, 4), "i4", stream=stream)
    with pytest.raises(BufferError, match="field 'p' of P: the tensor has gaps"):
        cu.launch(stream, ONE, code["st"], P(y[:, 0], 1))


@pytest.mark.parametrize("contents", [True, False])
def test_a_file_has_it(code, stream, contents, tmp_path):
    x = cu.full(4, 5, "i4", stream=stream)
    out = cu.zeros(1, "i4", stream=stream)
    g = cu.Graph()
    g.launch(ONE, code["two"], Two(1, P(x, 9), [x.ptr + 4, None]), name="two")
    g.launch(ONE, code["get"], P(x.ptr + 4, 1), out, name="get")
    g.save(tmp_path / "graph", contents=contents)
    g.close()
    del x, g
    run = [sys.executable, "-m", "cudago", "graph", str(tmp_path / "graph")]
    told = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert re.search(r"struct of 40 bytes with .* in memory \d at byte 8, .* at byte 24", told)
    loaded = cu.Graph.load(tmp_path / "graph")
    e = loaded.instantiate()
    assert kept(e).count("parameter 0") == 3
    ran(e, stream)


def test_many_pointers(code, stream):
    @dataclass
    class Many:
        p: ctypes.c_void_p * 500

    many = cu.Program("""
    struct Many { int* p[500]; };
    extern "C" __global__ void many(Many m) { *m.p[threadIdx.x] = threadIdx.x; }
    """).compile()["many"]
    x = cu.zeros(500, "i4", stream=stream)
    value = Many([x[i:] for i in range(500)])
    cu.launch(stream, cu.LaunchConfig(1, 500), many, value)
    assert x.numpy(stream=stream).tolist() == list(range(500))
    g = cu.Graph()
    node = g.launch(cu.LaunchConfig(1, 500), many, value, name="many")
    e = g.instantiate()
    e["many"].update({0: value})
    e["many"].update({0: value})
    node.update({0: value})
    assert len(kept(e)) == 500
    ran(e, stream)

# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that reduce a tensor to one number."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

import cudago as cu

np = pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def total(device) -> cu.ReduceKernel:
    """Sums, compiled before the tests count what is open."""
    made = cu.reduce("int x", "long long z", "a + b", identity=0)
    with device.create_stream() as stream:
        made(cu.zeros(10_000, "i4", stream=stream), stream=stream)
    return made


@pytest.mark.parametrize("n", [1, 2, 3, 31, 255, 256, 257, 512, 1000, 8192, 8193, 300_000])
def test_sums(total, stream, n):
    values = np.random.default_rng(n).integers(-1000, 1000, n, dtype="i4")
    got = total(cu.asarray(values, stream=stream), stream=stream)
    assert got.shape == ()
    assert got.item(stream=stream) == values.sum(dtype="i8")


def test_operations(device, stream):
    values = np.random.default_rng(1).standard_normal((40, 30)).astype("f4")
    x = cu.asarray(values, stream=stream)
    largest = cu.reduce("float x", "float z", "a > b ? a : b", name="largest")
    assert largest(x, stream=stream).item(stream=stream) == values.max()
    squares = cu.reduce("float v", "double z", "a + b", map="(double)v * v")
    want = (values.astype("f8") ** 2).sum()
    assert squares(x, stream=stream).item(stream=stream) == pytest.approx(want)
    assert repr(squares) == "<cudago.ReduceKernel reduce(float v) -> double z>"


def test_expressions_end_in_their_own_line(stream):
    total = cu.reduce("int x", "int z", "a + b // the sum", map="x // the element")
    x = cu.full(1000, 2, "i4", stream=stream)
    assert total(x, stream=stream).item(stream=stream) == 2000


def test_out_and_nothing(total, stream):
    out = cu.full(1, 7, "i8", stream=stream)
    assert total(cu.zeros(0, "i4", stream=stream), stream=stream, out=out) is out
    assert out.numpy(stream=stream)[0] == 0
    no_identity = cu.reduce("int x", "int z", "a + b")
    with pytest.raises(ValueError, match="reduce of no elements needs an identity"):
        no_identity(cu.zeros(0, "i4", stream=stream), stream=stream)


def test_capture(total, stream):
    x = cu.full(2000, 3, "i4", stream=stream)
    out = cu.zeros(1, "i8", stream=stream)
    total(x, stream=stream, out=out)
    with stream.capture() as graph:
        total(x, stream=stream, out=out)
    x.fill(4, stream=stream)
    graph.instantiate().launch(stream)
    assert out.numpy(stream=stream)[0] == 8000


def test_refusals(total, stream):
    x = cu.zeros(4, "i4", stream=stream)
    with pytest.raises(TypeError, match="x of reduce must have elements of type int32, got f"):
        total(cu.zeros(4, "f4", stream=stream), stream=stream)
    with pytest.raises(TypeError, match="z of reduce must have elements of type int64"):
        total(x, stream=stream, out=cu.zeros(1, "i4", stream=stream))
    with pytest.raises(ValueError, match="out must have one element, got 2"):
        total(x, stream=stream, out=cu.zeros(2, "i8", stream=stream))
    for args, text in [
        (("int x, int y", "int z", "a"), "map must be given, which makes one value of x, y"),
        (("int x, int x", "int z", "a"), "inputs must have different names, got x, x"),
        (("int x, int b", "int z", "a"), "another name than 'b'"),
        (("int x", "int y, int z", "a"), "output must be one type and name, got 'int y, int z'"),
        (("int a", "int z", "a + b"), "another name than 'a'"),
        (("int x", "int z", "a; b"), "operation must be one expression"),
        (("int x", "int z", " "), "operation must be one expression"),
        (("string x", "int z", "a"), "input must be types and names"),
    ]:
        with pytest.raises(ValueError, match=text):
            cu.reduce(*args)
    for count in (0, 2):
        told = r"takes 1 input\(s\), got " + (
            "0$" if not count else "2: what it writes to, z, is given by out="
        )
        with pytest.raises(TypeError, match=told):
            total(*[x] * count, stream=stream)
    with pytest.raises(TypeError, match="post_map must be a str, not int"):
        cu.reduce("int x", "int z", "a + b", post_map=1)
    with pytest.raises(ValueError, match="post_map must be one expression"):
        cu.reduce("int x", "int z", "a + b", post_map="z = a;")
    with pytest.raises(TypeError, match="operation must be a str, not int"):
        cu.reduce("int x", "int z", 1)
    with pytest.raises(ValueError, match="map must be one expression"):
        cu.reduce("int x", "int z", "a + b", map="")
    with pytest.raises(ValueError, match="name must be a C identifier"):
        cu.reduce("int x", "int z", "a + b", name="1")
    with pytest.raises(cu.CompileError, match=r"program\(1\): error.*nowhere"):
        cu.reduce("int x", "int z", "a + nowhere")(x, stream=stream)


def test_memory_of_a_resource_that_is_misaligned(device, stream, monkeypatch):
    """A kernel would fault, and with it all that the process has on the device."""
    whole = device.allocate(4096, stream=stream)
    places = []
    allocator = SimpleNamespace(
        allocate=lambda nbytes: whole.handle + places.pop(), deallocate=lambda *args: None
    )
    odd = cu.allocators.ForeignMemoryResource(allocator)
    reduced = cu.reduce("int x", "int z", "a + b")
    added = cu.elementwise("int x, int y", "int z", "z = x + y")
    x = cu.ones((2, 20_000), "i4", stream=stream)
    calls = {
        "whole": lambda: reduced(x, stream=stream),
        "axis": lambda: reduced(x, axis=1, stream=stream),
        "elements": lambda: added(x[0, :9], x[1, :9], stream=stream),
        "gaps": lambda: added(x[0, :9], x[1, :18:2], stream=stream),
    }
    for call in calls.values():
        call()
    with monkeypatch.context() as patch:
        patch.setattr(device, "memory_resource", odd)
        for name, call in calls.items():
            for given in ([1], [2049, 0]) if name in ("whole", "axis") else ([1], [2]):
                places[:] = given
                with pytest.raises(BufferError, match=r"aligned to 4 bytes; its memory resource"):
                    call()
    assert reduced(x, stream=stream).item(stream=stream) == 40_000
    whole.close()


def test_options_and_identity_are_checked_when_it_is_made():
    with pytest.raises(TypeError, match="options must be ProgramOptions, not int"):
        cu.reduce("float x", "float y", "a + b", options=5)
    for wrong in "a", b"a", [1], object():
        with pytest.raises(TypeError, match="identity must be a number of Python, NumPy or ctypes"):
            cu.reduce("float x", "float y", "a + b", identity=wrong)
    for right in 0, 1.5, True, np.float32(2), None:
        cu.reduce("float x", "float y", "a + b", identity=right)

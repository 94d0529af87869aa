# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Source in front of the kernels of expressions."""

from __future__ import annotations

import pickle

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

CUBE = """// it's here
#include <cmath>
#define ONE 1
template <class T> __device__ T cube(T x) { return x * x * x; }
struct Pair { double a, b; };
__device__ void split(float x, float& a) { a = x + ONE; } // the end"""


def test_elementwise(stream):
    made = cu.elementwise(
        "float x, int k", "float z, float w", "z = cube(x) + k; split(x, w)", preamble=CUBE
    )
    host = np.arange(12, dtype="f4").reshape(3, 4)
    x = cu.asarray(host, stream=stream)
    for again in (made, pickle.loads(pickle.dumps(made))):
        for view in (lambda t: t, lambda t: t[:, ::2]):
            z, w = again(view(x), 5, stream=stream)
            assert np.array_equal(z.numpy(stream=stream), view(host) ** 3 + 5)
            assert np.array_equal(w.numpy(stream=stream), view(host) + 1)


def test_reductions(stream):
    made = cu.reduce("half x", "float z", "max(a, cube(b))", map="cube(x)", preamble=CUBE)
    host = np.array([[1, 3], [2, 1]], "f2")
    x = cu.asarray(host, stream=stream)
    assert made(x[:, :1], axis=1, stream=stream).numpy(stream=stream).tolist() == [1, 8]
    assert made(x[:1, :1], stream=stream).item(stream=stream) == 1


def test_nodes_are_updated_by_name(stream):
    made = cu.elementwise("float x, float a", "float z", "z = a * cube(x)", preamble=CUBE)
    x, z = cu.full(5, 2, "f4", stream=stream), cu.zeros(5, "f4", stream=stream)
    made(x, 1, stream=stream, out=z)
    with stream.capture() as graph:
        made(x, 1, stream=stream, out=z)
    with graph, graph.instantiate() as step:
        step.nodes[0].update(a=3, x=cu.full(5, 1, "f4", stream=stream))
        step.launch(stream)
        assert z.numpy(stream=stream).tolist() == [3] * 5


@pytest.mark.parametrize("ctype", ["float", "half"])
def test_messages_tell_the_line(ctype, stream):
    """In the preamble, or in the operation."""
    x = cu.ones(3, "f4" if ctype == "float" else "f2", stream=stream)
    options = cu.ProgramOptions(name='a "b" \\ c')
    for preamble, operation, named, where in (
        ("\n__device__ int f() { return none; }", "z = x", None, r"preamble\(2\): error"),
        (CUBE, "z =\n none", None, r"program\(2\): error"),
        (CUBE, "z =\n none", options, r'a "b" \\ c\(2\): error'),
    ):
        made = cu.elementwise(f"{ctype} x", "int z", operation, options=named, preamble=preamble)
        with pytest.raises(cu.CompileError, match=where):
            made(x, stream=stream)
    made = cu.reduce(f"{ctype} x", "int z", "a +\n none", preamble=CUBE)
    with pytest.raises(cu.CompileError, match=r"program\(2\): error"):
        made(x, stream=stream)


@pytest.mark.parametrize("wrong", [None, b"", 1, ["int f();"]])
def test_what_is_no_source(wrong):
    told = f"preamble must be a str, not {type(wrong).__name__}"
    with pytest.raises(TypeError, match=told):
        cu.elementwise("int x", "int z", "z = x", preamble=wrong)
    with pytest.raises(TypeError, match=told):
        cu.reduce("int x", "int z", "a + b", preamble=wrong)

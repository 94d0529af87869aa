# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Where NumPy is not installed bytes are moved, and what needs it names it.

Each test is a process that finds neither NumPy nor ml_dtypes.
"""

from __future__ import annotations

import array

import numpy as np
import pytest

import cudago as cu
from cudago._tensor.element import element

BEGIN = """
import sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numpy", "ml_dtypes"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NotInstalled())
import array
import cudago as cu

stream = cu.Device().create_stream()
four = array.array("i", [1, 2, 3, 4])

def read(tensor):
    code = {"float32": "f", "float64": "d", "int32": "i"}[tensor.dtype_name]
    out = array.array(code, tensor.size * [0])
    tensor.copy_to(memoryview(out).cast("B").cast(code, tensor.shape), stream=stream)
    stream.sync()
    return out.tolist()

def raised(do):
    try:
        return do()
    except Exception as e:
        return f"{type(e).__name__}: {e}"
"""


@pytest.fixture
def alone(script, driver):
    def alone(program):
        run = script(BEGIN + script.dedent(program))
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout.splitlines()

    return alone


def test_what_is_made(alone):
    assert alone(
        """
        print(read(cu.full(2, 1.5, stream=stream)))
        print(read(cu.ones((2, 2), "i4", stream=stream)))
        print(read(cu.full_like(cu.zeros(2, "f8", stream=stream), -0.1, stream=stream)))
        print(read(cu.ones_like(cu.empty(2, "f4", stream=stream), stream=stream)))
        filled = cu.empty(3, "int32", stream=stream)
        filled.fill(-7, stream=stream)
        print(read(filled))
        graph = cu.Graph()
        graph.memset(filled, 9)
        graph.instantiate().launch(stream)
        print(read(filled))
        """
    ) == [
        "[1.5, 1.5]", "[1, 1, 1, 1]", "[-0.1, -0.1]", "[1.0, 1.0]", "[-7, -7, -7]", "[9, 9, 9]",
    ]  # fmt: skip


def test_bytes_are_moved(alone):
    assert alone(
        """
        tensor = cu.zeros(4, "i4", stream=stream)
        tensor.copy_from(four, stream=stream)
        print(read(tensor))
        tensor.reshape((2, 2)).copy_from(
            memoryview(four).cast("B").cast("i", (2, 2)), stream=stream)
        print(read(tensor))
        raw = tensor.buffer.view("u1")
        raw.copy_from(bytes(16), stream=stream)
        print(read(tensor))
        raw.copy_from(memoryview(four).cast("B"), stream=stream)
        print(read(cu.asarray(tensor, stream=stream)))
        print(read(cu.asarray(four, stream=stream)))
        print(read(cu.asarray(array.array("f", [0.5]), "float32", stream=stream)))
        print(read(cu.asarray(memoryview(four)[1:3], stream=stream)))
        print(cu.asarray(bytearray(b"ab"), stream=stream).dtype_name)
        """
    ) == [
        "[1, 2, 3, 4]", "[1, 2, 3, 4]", "[0, 0, 0, 0]", "[1, 2, 3, 4]", "[1, 2, 3, 4]", "[0.5]",
        "[2, 3]", "uint8",
    ]  # fmt: skip


def test_a_capture_reads_memory_at_each_launch(alone):
    assert alone(
        """
        tensor = cu.zeros(4, "i4", stream=stream)
        with stream.capture() as graph:
            tensor.copy_from(four, stream=stream)
        four[0] = 9
        graph.instantiate().launch(stream)
        print(read(tensor))
        """
    ) == ["[9, 2, 3, 4]"]


NEEDS = {
    "cu.arange(4, stream=stream)": "for numpy.",
    "cu.asarray([1, 2], stream=stream)": "for numpy.asarray",
    "cu.asarray(3, stream=stream)": "for numpy.asarray",
    "cu.asarray(four, 'f4', stream=stream)": "to convert obj from int32 to float32",
    "cu.asarray(memoryview(four)[::2], stream=stream)": "to read memory with gaps",
    "cu.asarray(memoryview(b'ab').cast('c'), stream=stream)": "to read memory of format 'c'",
    "t.copy_from([1, 2, 3, 4], stream=stream)": "for numpy.",
    "t.copy_from(array.array('f', 4 * [1]), stream=stream)": "to convert src between float32 and",
    "t[::2].copy_from(four[:2], stream=stream)": "to copy between src and a tensor with gaps",
    "t[::2].copy_to(four[:2], stream=stream)": "to copy between dst and a tensor with gaps",
    "t.numpy(stream=stream)": "for numpy.",
    "t[0].item(stream=stream)": "for numpy.",
    "cu.full(2, 1, 'bfloat16', stream=stream)": "for numpy.",
}
REFUSED = {
    "cu.asarray(b'ab', stream=stream)": "TypeError: obj must be a tensor, an array, or numbers in",
    "cu.full(2, 300, 'u1', stream=stream)": "OverflowError: fill value 300 does not fit uint8",
    "cu.full(2, 1e39, stream=stream)": "OverflowError: fill value 1e+39 does not fit float32",
    "t.copy_from(bytes(16), stream=stream)": "ValueError: src has shape (16,), the tensor (4,)",
    "t.copy_to(bytes(16), stream=stream)": "BufferError: dst is read-only",
    "t.copy_to([1], stream=stream)": "TypeError: dst must be a Buffer, Pointer or Tensor",
}


def test_the_rest_says_what_it_needs(alone):
    calls = [*NEEDS, *REFUSED]
    got = alone(
        "t = cu.zeros(4, 'i4', stream=stream)\n"
        + "\n".join(f"print(raised(lambda: {call}))" for call in calls)
        + "\nprint(len(read(t)), 'numpy' in sys.modules)"
    )
    assert got.pop() == "4 False"
    assert len(got) == len(calls)
    for call, line in zip(calls, got, strict=True):
        if call in NEEDS:
            assert line.startswith(f"ModuleNotFoundError: cudago needs NumPy {NEEDS[call]}"), call
            assert line.endswith("and it is not installed here: pip install numpy"), call
        else:
            assert line.startswith(REFUSED[call]), (call, line)


VALUES = [0, -0.0, 1, 2.5, 1e-8, 65504, 3.4028235677973366e38, 1e300, float("inf"), float("nan")]
VALUES += [True, 1 + 2j, 2**31, -(2**63), 2**64, 10**400, 0.1, -5e-324, 65519.99]


@pytest.mark.parametrize(
    "name", ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64", "complex128"]
)
def test_elements_are_those_of_numpy(name):
    """Python's struct makes them, with NumPy too."""
    for value in VALUES:
        try:
            got = element(value, name)
        except (OverflowError, TypeError, ValueError):
            continue
        with np.errstate(all="ignore"):
            assert got == np.asarray(value).astype(name).tobytes(), value
    wide = np.dtype(name).itemsize
    assert len(element(1, name)) == wide
    if name.startswith("float") and wide < 8:
        with pytest.raises(OverflowError, match="does not fit"):
            element(1e300, name)


def test_formats(stream):
    """array.array's types are the same with NumPy and without."""
    for code in "bBhHiIlLqQfd":
        values = array.array(code, [1, 2])
        tensor = cu.asarray(values, stream=stream)
        assert tensor.numpy(stream=stream).tolist() == [1, 2]

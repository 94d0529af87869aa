# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Arrays in the types that ml_dtypes adds to NumPy, of which NumPy exports none."""

from __future__ import annotations

import pytest

import cudago as cu

np = pytest.importorskip("numpy")
ml_dtypes = pytest.importorskip("ml_dtypes")

NAMES = [
    "bfloat16",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
]


HALF_COMPLEX = pytest.mark.skipif(
    not hasattr(ml_dtypes, "complex32"), reason="this ml_dtypes has no complex32"
)


@pytest.fixture(params=NAMES)
def array(request):
    """2 x 3 numbers that all these types have."""
    return np.array([[1, 2, 4], [1, 4, 8]], "f4").astype(getattr(ml_dtypes, request.param))


def test_copied_both_ways(array, stream):
    t = (
        cu.zeros((2, 3), str(array.dtype), stream=stream)
        if "e8m0" not in str(array.dtype)
        else None
    )
    t = cu.empty((2, 3), array.dtype, stream=stream) if t is None else t
    for source in (array, array[::-1], array.T.copy().T, array[:, ::-1]):
        t.copy_from(source, stream=stream)
        got = t.numpy(stream=stream)
        assert got.dtype == array.dtype
        assert got.astype("f4").tolist() == source.astype("f4").tolist()
        t.copy_from(got, stream=stream)
        for out in (np.zeros_like(array), np.zeros_like(array)[::-1], np.zeros_like(array.T).T):
            t.copy_to(out, stream=stream)
            assert out.astype("f4").tolist() == source.astype("f4").tolist()
    assert t[1, 2].item(stream=stream) == float(got[1, 2])
    assert cu.from_dlpack(t, device="cpu").numpy(stream=stream).tobytes() == got.tobytes()


def test_lists_and_numbers_are_converted(array, stream):
    t = cu.empty((2, 3), array.dtype, stream=stream)
    t.copy_from([[1, 2, 4], [8, 4, 2.0]], stream=stream)
    assert t.numpy(stream=stream).astype("f4").tolist() == [[1, 2, 4], [8, 4, 2]]
    t[0, 0].copy_from(4, stream=stream)
    t[0, 1].copy_from(array[1, 2], stream=stream)
    assert t[0, :2].numpy(stream=stream).astype("f4").tolist() == [4, 8]


def test_memory_of_the_host(array, stream):
    host = cu.from_dlpack(array.view(f"u{array.itemsize}"))
    t = host.buffer.view(str(array.dtype), (2, 3))
    assert t.device is None
    assert t.numpy(stream=stream).tobytes() == array.tobytes()
    assert t[1, 1].item(stream=stream) == 4
    assert t.T.numpy(stream=stream).tobytes() == array.T.tobytes()
    other = np.zeros_like(array)
    t.copy_to(other, stream=stream)
    assert other.tobytes() == array.tobytes()
    t.copy_from(np.ones_like(array), stream=stream)
    assert array.astype("f4").tolist() == [[1] * 3] * 2


def test_what_does_not_fit(array, stream):
    t = cu.empty((2, 3), "float16", stream=stream)
    for call, name in ((t.copy_from, "src"), (t.copy_to, "dst")):
        with pytest.raises(TypeError, match=f"{name} has element type {array.dtype}, the tensor f"):
            call(array, stream=stream)
    t = cu.empty((2, 3), array.dtype, stream=stream)
    with pytest.raises(ValueError, match=r"src has shape \(3, 2\)"):
        t.copy_from(array.T, stream=stream)
    array.flags.writeable = False
    t.copy_from(array, stream=stream)
    with pytest.raises(BufferError, match="read-only"):
        t.copy_to(array, stream=stream)


def test_captured_copies_keep_the_array(stream):
    array = np.ones(4, ml_dtypes.bfloat16)
    t, out = cu.zeros(4, "bfloat16", stream=stream), np.zeros(4, ml_dtypes.bfloat16)
    with stream.capture() as graph:
        t.copy_from(array, stream=stream)
        t.copy_to(out, stream=stream)
    array[:] = 3
    graph.instantiate().launch(stream)
    stream.sync()
    assert out.astype("f4").tolist() == [3] * 4


def test_a_structure_is_no_number(stream):
    t = cu.zeros(2, "float64", stream=stream)
    for wrong in (np.zeros(2, "i4,f4"), np.zeros(2, "V8"), np.zeros(2, "M8[s]")):
        with pytest.raises((TypeError, BufferError)):
            t.copy_from(wrong, stream=stream)


@HALF_COMPLEX
@pytest.mark.filterwarnings("error")
def test_complex32_keeps_imaginary_parts(stream):
    array = np.array([1 + 2j, 3 - 4j], ml_dtypes.complex32)
    t = cu.asarray(array, stream=stream)
    assert t.dtype_name == "complex32"
    assert t[1].item(stream=stream) == 3 - 4j
    assert cu.asarray(array, "c8", stream=stream).numpy(stream=stream).tolist() == [1 + 2j, 3 - 4j]
    for given in ([5j, 6], [array[1], array[0]], (array[0], 7)):
        t.copy_from(given, stream=stream)
        assert [complex(x) for x in t.numpy(stream=stream)] == [complex(x) for x in given]
    for scalar in (array[0], array[0].reshape(()), np.asarray(array[0])):
        t.fill(scalar, stream=stream)
        assert t[1].item(stream=stream) == 1 + 2j
        assert cu.full(1, scalar, "c16", stream=stream).item(stream=stream) == 1 + 2j


@HALF_COMPLEX
@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("dtype", ["f4", "i4", "bfloat16", "float8_e5m2"])
def test_complex32_does_not_become_real(dtype, stream):
    array = np.array([1 + 2j, 3 - 4j], ml_dtypes.complex32)
    t = cu.zeros(2, dtype, stream=stream)
    for given in (array, [array[0], array[1]], [array[0], 1.0]):
        with pytest.raises(TypeError, match="obj has complex numbers, which do not fit"):
            cu.asarray(given, dtype, stream=stream)
    with pytest.raises(TypeError, match="src has complex numbers, which do not fit"):
        t.copy_from([array[0], array[1]], stream=stream)
    with pytest.raises(TypeError, match="a complex value does not fit"):
        t.fill(array[0], stream=stream)

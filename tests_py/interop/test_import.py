# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Imports from a producer of our own, which makes the mistakes of other libraries one by one."""

from __future__ import annotations

import ctypes
import gc
import re

import pytest

import cudago as cu
from cudago import _core

np = pytest.importorskip("numpy")

READ_ONLY, IS_COPIED, PADDED = 1, 2, 4


def floats(tensor):
    """Elements of a host tensor, read through the buffer protocol."""
    return np.asarray(memoryview(tensor)).tolist()


@pytest.mark.parametrize("versioned", [True, False])
def test_shares_memory_and_deletes_once(producer, versioned):
    p = producer((4, 4), versioned=versioned)
    t = cu.from_dlpack(p)
    assert t.shape == (4, 4)
    assert t.dtype == np.dtype("f4")
    assert t.handle == ctypes.addressof(p.memory)
    p.memory[5] = 50
    assert floats(t)[1][1] == 50
    view = t[1]
    del t
    gc.collect()
    assert p.deleted == 0, "a view keeps the producer's tensor"
    assert floats(view) == [4, 50, 6, 7]
    view.close()
    assert p.deleted == 1
    view.close()
    assert p.deleted == 1


def test_by_name(producer):
    p = producer((4, 4))
    assert floats(cu.from_dlpack(obj=p)) == floats(p_by_place := cu.from_dlpack(p))
    assert cu.from_dlpack(copy=False, obj=p_by_place, device="cpu", stream=-1) == p_by_place


def test_what_is_asked_of_a_producer(producer):
    p = producer()
    cu.from_dlpack(p, copy=False)
    assert p.asked == [{"max_version": (1, 3), "copy": False}], "no stream for host memory"


def test_a_producer_from_before_1_0_is_asked_again_without_the_new_words(producer):
    class Old(producer):
        def __dlpack__(self, stream=None):
            return super().__dlpack__()

    p = Old(versioned=False)
    assert floats(cu.from_dlpack(p)) == list(range(16))
    assert p.deleted == 1


def test_an_error_of_the_producer_is_its_own(producer):
    class Broken(producer):
        def __dlpack__(self, **keywords):
            raise RuntimeError("no export today")

    with pytest.raises(RuntimeError, match="no export today"):
        cu.from_dlpack(Broken())


def test_a_refusal_of_the_producer_says_what_it_is_about():
    class Refusing:
        fatal = False
        dtype, device = "float99", property(lambda self: 1 / 0)

        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **keywords):
            raise BufferError("no export today\nand no tomorrow")

        @property
        def shape(self):
            if self.fatal:
                raise KeyboardInterrupt
            return (4, 4)

    p = Refusing()
    text = r"Refusing'> does not export it: no export today: it has shape \(4, 4\), type float99$"
    with pytest.raises(BufferError, match=text) as refused:
        cu.from_dlpack(p)
    assert "and no tomorrow" in str(refused.value.__cause__)
    p.fatal = True
    with pytest.raises(KeyboardInterrupt):
        cu.from_dlpack(p)


@pytest.mark.parametrize("versioned", [True, False])
def test_a_capsule_is_consumed_once(producer, opened, versioned):
    p = producer(versioned=versioned)
    capsule = p.__dlpack__()
    first = cu.from_dlpack(capsule)
    assert opened(capsule).name.startswith("used_")
    with pytest.raises(BufferError, match="consumed before"):
        cu.from_dlpack(capsule)
    assert p.deleted == 0
    del first
    gc.collect()
    assert p.deleted == 1


def test_a_missing_deleter_is_not_called(producer):
    t = cu.from_dlpack(producer(deleter=False))
    t.close()
    assert t.is_closed


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"version": (2, 0)}, "version is 2.0"),
        ({"ndim": -1}, "number of dimensions"),
        ({"ndim": 1000}, "number of dimensions"),
        ({"shape": None, "strides": None, "ndim": 1}, "shape is missing"),
        ({"shape": (-2,)}, "dimension is negative"),
        ({"shape": (2**40, 2**40)}, "size overflows"),
        ({"shape": (2, 2), "strides": (2**62, 1)}, "strides overflow"),
        ({"byte_offset": 2**63}, "byte offset overflows"),
        ({"data": 0}, "data pointer is missing"),
        ({"dtype": (2, 32, 4)}, "element type"),
        ({"dtype": (3, 64, 1)}, "element type"),
        ({"dtype": (77, 8, 1)}, "element type"),
        ({"dtype": (17, 4, 1), "flags": PADDED}, "padded"),
        ({"device": (7, 0)}, "neither the host nor a CUDA device"),
        ({"device": (1, -1)}, "device number is negative"),
    ],
)
def test_what_cannot_be_described_is_refused_and_left_alone(producer, opened, wrong, match):
    p = producer(**wrong)
    with pytest.raises(BufferError, match=match):
        cu.from_dlpack(p)
    assert opened(p.capsule).name == "dltensor_versioned", "its own destructor still frees it"
    assert p.deleted == 0


def test_not_a_producer(producer):
    class Half(producer):
        def __dlpack__(self, **keywords):
            return "capsule"

    with pytest.raises(TypeError, match="must give a DLPack capsule"):
        cu.from_dlpack(Half())
    with pytest.raises(TypeError, match="has no __dlpack_device__"):
        cu.from_dlpack([1, 2, 3])
    with pytest.raises(TypeError, match="takes one object, got 0"):
        cu.from_dlpack()
    with pytest.raises(TypeError, match="takes one object, got 2"):
        cu.from_dlpack(producer(), obj=producer())
    with pytest.raises(TypeError, match="copy must be"):
        cu.from_dlpack(producer(), copy=1)
    with pytest.raises(ValueError, match="stream must be"):
        cu.from_dlpack(producer(), stream=0)


def test_layouts(producer):
    backwards = producer((4,), (-2,), byte_offset=4 * 12)
    assert floats(cu.from_dlpack(backwards)) == [12, 10, 8, 6]
    broadcast = producer((3, 2), (0, 1), byte_offset=4)
    assert floats(cu.from_dlpack(broadcast)) == [[1, 2]] * 3
    assert floats(cu.from_dlpack(producer((2, 3), None))) == [[0, 1, 2], [3, 4, 5]]
    transposed = producer((4, 2), (1, 4))
    assert floats(cu.from_dlpack(transposed)) == [[0, 4], [1, 5], [2, 6], [3, 7]]
    scalar = cu.from_dlpack(producer((), None))
    assert (scalar.shape, scalar.size) == ((), 1)
    assert floats(scalar) == 0.0


def test_an_empty_tensor_is_still_deleted(producer):
    p = producer((0, 4), data=0)
    t = cu.from_dlpack(p)
    assert (t.shape, t.size, t.nbytes) == ((0, 4), 0, 0)
    t.close()
    assert p.deleted == 1


def test_read_only_stays_read_only(producer):
    t = cu.from_dlpack(producer(flags=READ_ONLY))
    assert t.is_readonly
    assert t[2:].is_readonly
    assert memoryview(t[2:]).readonly
    with pytest.raises(BufferError, match="older capsules cannot say read-only"):
        t.__dlpack__()
    assert not np.from_dlpack(t).flags.writeable
    assert not cu.from_dlpack(producer(versioned=False)).is_readonly, "a legacy capsule cannot say"


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            {"dtype": (0, 4, 1)},
            "float4_e2m1fn.*: it has shape (16,), type int of 4 bits, DLPack device (1, 0)",
        ),
        (
            {"dtype": (1, 2, 4)},
            "float4_e2m1fn.*: it has shape (16,), type uint of 2 bits in 4 lanes, ",
        ),
        ({"dtype": (6, 1, 1)}, "float4_e2m1fn.*: it has shape (16,), type bool of 1 bits, "),
        ({"dtype": (3, 64, 1)}, "knows: it has shape (16,), type opaque handle of 64 bits, "),
        ({"dtype": (99, 8, 1)}, "knows: it has shape (16,), type DLPack's code 99 of 8 bits, "),
        ({"shape": (-2, 3)}, "negative: it has shape (-2, 3), type float32, "),
        ({"shape": (2**40,) * 10}, "overflows: it has shape (" + "1099511627776, " * 8 + "...), "),
        ({"ndim": 1000}, "64: it has shape of 1000 dimensions, type float32, "),
        ({"shape": None, "strides": None, "ndim": 1}, "missing: it has shape of 1 dimensions, "),
        (
            {"device": (10, 3)},
            "CUDA device: it has shape (16,), type float32, DLPack device (10, 3)",
        ),
    ],
)
def test_an_error_says_what_the_tensor_has(producer, wrong, text):
    pattern = ".*".join(re.escape(part) for part in text.split(".*"))
    for versioned in (True, False):
        with pytest.raises(BufferError, match=pattern):
            cu.from_dlpack(producer(versioned=versioned, **wrong))


@pytest.mark.parametrize(
    ("dtype", "name", "itemsize"),
    [
        ((0, 8, 1), "int8", 1),
        ((1, 64, 1), "uint64", 8),
        ((2, 16, 1), "float16", 2),
        ((4, 16, 1), "bfloat16", 2),
        ((5, 128, 1), "complex128", 16),
        ((5, 32, 1), "complex32", 4),
        ((5, 64, 1), "complex64", 8),
        ((6, 8, 1), "bool", 1),
        ((7, 8, 1), "float8_e3m4", 1),
        ((8, 8, 1), "float8_e4m3", 1),
        ((9, 8, 1), "float8_e4m3b11fnuz", 1),
        ((10, 8, 1), "float8_e4m3fn", 1),
        ((11, 8, 1), "float8_e4m3fnuz", 1),
        ((12, 8, 1), "float8_e5m2", 1),
        ((13, 8, 1), "float8_e5m2fnuz", 1),
        ((14, 8, 1), "float8_e8m0fnu", 1),
        ((15, 6, 1), "float6_e2m3fn", 1),
        ((16, 6, 1), "float6_e3m2fn", 1),
        ((17, 4, 2), "float4_e2m1fn_x2", 1),
        ((17, 4, 1), "float4_e2m1fn", 1),
    ],
)
@pytest.mark.parametrize("versioned", [True, False])
def test_element_types(producer, opened, dtype, name, itemsize, versioned):
    t = cu.from_dlpack(producer((4,), dtype=dtype, versioned=versioned))
    assert (t.dtype_name, t.itemsize) == (name, itemsize)
    for version in (None, (1, 0)):
        out = opened(t.__dlpack__(max_version=version)).managed.tensor
        assert (out.code, out.bits, out.lanes) == dtype


@pytest.mark.parametrize("step", [1, 2])
def test_no_memory(producer, opened, step):
    p = producer()
    _core._dlpack_fail_at(step)
    try:
        if step == 1:
            with pytest.raises(MemoryError):
                cu.from_dlpack(p)
            assert opened(p.capsule).name == "dltensor_versioned"
        else:
            cu.from_dlpack(p)
    finally:
        _core._dlpack_fail_at(0)
    assert p.deleted == step - 1


def test_ten_thousand_imports_leave_nothing(producer):
    p = producer((4, 4))
    for _ in range(10_000):
        cu.from_dlpack(p)
    assert p.deleted == 10_000


def test_cycles_need_no_collector(producer):
    p = producer((4, 4))
    gc.disable()
    try:
        for _ in range(100):
            t = cu.from_dlpack(p)
            for _ in range(5):
                t = cu.from_dlpack(np.from_dlpack(t))
            del t
    finally:
        gc.enable()
    assert p.deleted == 100


def test_a_deleter_may_run_python_and_come_back(producer):
    class Nosy(producer):
        def _delete(self, _):
            super()._delete(_)
            self.seen = floats(cu.from_dlpack(producer((2,))))

    p = Nosy()
    cu.from_dlpack(p).close()
    assert (p.deleted, p.seen) == (1, [0, 1])


def test_an_exception_on_its_way_survives_a_deleter(producer):
    p = producer()

    def fail():
        t = cu.from_dlpack(p)
        raise KeyError(t.shape)

    with pytest.raises(KeyError):
        fail()
    gc.collect()
    assert p.deleted == 1


def test_an_exception_of_ours_survives_a_deleter(producer, device, stream, capfd):
    """Here it is raised before the imported tensor is released."""
    p = producer(flags=READ_ONLY)
    with (
        device.allocate(64, stream=stream) as buffer,
        pytest.raises(BufferError, match="dst is read-only"),
    ):
        buffer.copy_to(p, stream=stream)
    assert p.deleted == 1
    assert capfd.readouterr().err == ""


def test_an_exception_of_ours_survives_the_destructor_of_a_capsule(producer, capfd):
    p = producer(dtype=(99, 8, 1), destructor=True)
    with pytest.raises(BufferError, match="element type"):
        cu.from_dlpack(p)
    assert p.deleted == 1
    assert capfd.readouterr().err == ""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_exception_of_a_destructor_takes_the_place_of_none(producer, monkeypatch):
    class Failing(producer):
        def _delete(self, _):
            super()._delete(_)
            raise LookupError("of the destructor")

    reported = []
    monkeypatch.setattr("sys.unraisablehook", lambda u: reported.append(str(u.exc_value)))
    p = Failing(dtype=(99, 8, 1), destructor=True)
    with pytest.raises(BufferError, match="element type"):
        cu.from_dlpack(p)
    assert reported == ["of the destructor"]

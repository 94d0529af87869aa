# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""NumPy, both directions: legacy capsules with old versions, versioned ones from 2.1 on."""

from __future__ import annotations

import gc
import subprocess
import sys
import textwrap

import pytest

import cudago as cu

np = pytest.importorskip("numpy")

VERSIONED = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 1)
CPU = 1
TYPES = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]


@pytest.fixture
def pinned():
    """4 x 6 int32, 0 to 23, in pinned memory."""
    t = cu.PinnedMemoryResource().allocate(96).view("i4", (4, 6))
    np.asarray(memoryview(t))[:] = np.arange(24).reshape(4, 6)
    yield t
    t.close()


@pytest.mark.parametrize("dtype", TYPES)
def test_types_both_ways(dtype):
    array = np.arange(2).astype(dtype)
    t = cu.from_dlpack(array)
    assert t.dtype == array.dtype
    back = np.from_dlpack(t)
    assert back.dtype == array.dtype
    assert back.ctypes.data == array.ctypes.data
    assert (back == array).all()


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a,
        lambda a: a.T,
        lambda a: a[::2, 1:],
        lambda a: a[::-1, ::-2],
        lambda a: np.broadcast_to(a[0], (3, 6)).astype("i4"),
        lambda a: a[1:1],
        lambda a: a[0, 0, ...],
        lambda a: a[None, :, None],
    ],
    ids=["all", "T", "steps", "backwards", "broadcast", "empty", "scalar", "size 1"],
)
def test_layouts_from_numpy(change):
    array = change(np.arange(24, dtype="i4").reshape(4, 6))
    t = cu.from_dlpack(array)
    assert t.shape == array.shape
    assert np.array_equal(np.asarray(memoryview(t)), array)


def test_layouts_to_numpy(pinned):
    array = np.arange(24, dtype="i4").reshape(4, 6)
    for index in (..., slice(1, 3), (slice(None), slice(0, 6, 2)), (0, 0), slice(2, 2), None):
        got = np.from_dlpack(pinned[index])
        assert np.array_equal(got, array[index])
    assert np.array_equal(np.from_dlpack(pinned.T), array.T)
    with pytest.raises(BufferError, match="negative stride"):
        np.from_dlpack(pinned[::-1])


def test_memory_is_shared_and_outlives_its_owner(pinned):
    a = np.from_dlpack(pinned)
    a_view = a[1:]
    np.asarray(memoryview(pinned))[1, 0] = -1
    assert a_view[0, 0] == -1
    pinned.close()
    del a
    gc.collect()
    assert a_view[0, 0] == -1


def test_numpys_array_lives_as_long_as_the_tensor():
    array = np.arange(4)
    references = sys.getrefcount(array)
    t = cu.from_dlpack(array)
    view = t[1:]
    assert sys.getrefcount(array) > references
    t.close()
    assert sys.getrefcount(array) > references
    view.close()
    assert sys.getrefcount(array) == references


@pytest.mark.skipif(not VERSIONED, reason="NumPy before 2.1 has no versioned capsules")
def test_read_only_both_ways():
    array = np.arange(4)
    array.flags.writeable = False
    t = cu.from_dlpack(array)
    assert t.is_readonly
    assert not np.from_dlpack(t).flags.writeable
    assert np.from_dlpack(cu.from_dlpack(np.arange(4))).flags.writeable


@pytest.mark.skipif(not VERSIONED, reason="NumPy before 2.1 has neither copy= nor device=")
@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_empty_tensors(shape, pinned):
    array = np.zeros(shape, "i4")
    alone = cu.PinnedMemoryResource().allocate(0)
    for t in (cu.from_dlpack(array), pinned.reshape(-1)[:0], alone.view("i4", shape)):
        for copy in (True, False) if VERSIONED else ():
            got = np.from_dlpack(t, copy=copy)
            assert (got.size, got.dtype) == (0, array.dtype)
        assert np.from_dlpack(t).shape == t.shape
        assert bytes(memoryview(t)) == b""


def test_copy_and_device(pinned):
    copy = np.from_dlpack(pinned, copy=True)
    copy[:] = 0
    assert np.asarray(memoryview(pinned))[0, 1] == 1
    assert np.from_dlpack(pinned.T, copy=True).flags.c_contiguous
    shared = np.from_dlpack(pinned, copy=False, device="cpu")
    assert shared[0, 1] == 1
    taken = cu.from_dlpack(shared, copy=True)
    assert taken.handle != pinned.handle


def test_what_numpy_cannot_give():
    for wrong in (np.arange(3).astype(">i4"), np.array(["a"]), np.zeros(2, "f4,i4")):
        with pytest.raises(BufferError):
            cu.from_dlpack(wrong)


def test_ten_thousand_round_trips(pinned):
    for _ in range(10_000):
        np.from_dlpack(cu.from_dlpack(np.from_dlpack(pinned)))


def test_simulated_device_memory_is_shared(stream):
    t = cu.full((2, 3), 7, "i4", stream=stream)
    if t.__dlpack_device__()[0] != CPU:
        with pytest.raises((BufferError, RuntimeError)):
            np.from_dlpack(t)
        return
    a = np.from_dlpack(t)  # waits for the fill
    assert (a == 7).all()
    a[0] = 1
    assert t.numpy(stream=stream).tolist() == [[1, 1, 1], [7, 7, 7]]
    t.close()
    assert a[1, 2] == 7


def test_at_the_end_of_the_interpreter():
    """Arrays and tensors in module globals hold each other when Python exits."""
    script = """
        import numpy as np, cudago as cu
        host = np.arange(8.0)
        ours = cu.from_dlpack(host)
        theirs = np.from_dlpack(ours)
        pinned = np.from_dlpack(cu.PinnedMemoryResource().allocate(64).view("f8"))
        capsule = ours.__dlpack__(max_version=(1, 0))
        class Late:
            def __del__(self, theirs=theirs, pinned=pinned):
                assert theirs[7] + pinned[0] >= 7
        late = Late()
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert "Error" not in run.stderr


def test_in_a_forked_child():
    """A child silently releases what it inherited, and can make nothing new."""
    script = """
        import os, warnings
        warnings.simplefilter("ignore")
        import numpy as np, cudago as cu
        t = cu.from_dlpack(np.arange(8.0))
        a = np.from_dlpack(t)
        child = os.fork()
        if child == 0:
            assert a.sum() == 28
            del a
            for use in (lambda: cu.from_dlpack(np.ones(2)), t.__dlpack__, lambda: t[1:]):
                try:
                    use()
                except RuntimeError as e:
                    assert "forked child" in str(e), e
                else:
                    raise AssertionError("the child used cudago")
            del t
            raise SystemExit(7)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7, status
        assert np.from_dlpack(t).sum() == 28
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr

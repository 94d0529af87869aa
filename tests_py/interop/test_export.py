# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Exports, checked with a consumer of our own."""

from __future__ import annotations

import ctypes
import gc
import threading

import pytest

import cudago as cu
from cudago import _core

np = pytest.importorskip("numpy")

IS_COPIED = 2
CPU, CUDA, PINNED = 1, 2, 3


@pytest.fixture
def host(producer):
    """4 x 4 float32, 0.0 to 15.0, in host memory that is somebody else's."""
    t = cu.from_dlpack(producer((4, 4)))
    yield t
    t.close()


def export(tensor, opened, **keywords):
    """Export, and look into the capsule."""
    return opened(tensor.__dlpack__(**{"max_version": (1, 0), **keywords}))


def test_an_unconsumed_capsule_gives_back_its_count(host):
    before = cu.exchange_stats()
    for version in (None, (1, 0)):
        capsule = host.__dlpack__(max_version=version)
        del capsule
    after = cu.exchange_stats()
    assert after.exports_made - before.exports_made == 2
    assert after.exports_released - before.exports_released == 2


def test_a_capsule_dropped_while_an_exception_is_on_its_way(host):
    def fail():
        capsule = host.__dlpack__(max_version=(1, 0))
        raise KeyError(str(capsule))

    with pytest.raises(KeyError, match="dltensor_versioned"):
        fail()


@pytest.mark.parametrize(
    ("max_version", "name"),
    [
        (None, "dltensor"),
        ((0, 8), "dltensor"),
        ((1, 0), "dltensor_versioned"),
        ((2, 7), "dltensor_versioned"),
    ],
)
def test_the_consumer_chooses_the_version(host, opened, max_version, name):
    c = export(host, opened, max_version=max_version)
    assert c.name == name
    if name == "dltensor_versioned":
        assert (c.managed.major, c.managed.minor, c.managed.flags) == (1, 3, 0)


def test_what_is_exported(host, opened):
    t = export(host[1:, ::2], opened).managed.tensor
    assert t.data == host.handle + 16
    assert (t.ndim, t.shape[:2], t.strides[:2], t.byte_offset) == (2, [3, 2], [4, 2], 0)
    assert (t.device_type, t.device_id) == (CPU, 0)
    one = export(host[0:1, 3:4], opened).managed.tensor
    assert (one.shape[:2], one.strides[:2]) == ([1, 1], [1, 1])
    empty = export(host[2:2], opened).managed.tensor
    assert (empty.data, empty.shape[:2]) == (None, [0, 4])
    scalar = export(host[0, 0], opened).managed.tensor
    assert scalar.ndim == 0


def test_a_consumer_outlives_the_tensor(host, opened):
    c = export(host, opened)
    give_back = c.consume()
    data = c.managed.tensor.data
    host.close()
    gc.collect()
    assert (ctypes.c_float * 16).from_address(data)[15] == 15
    before = cu.exchange_stats().live["foreign"]
    give_back()  # a function pointer of ctypes: called without the GIL
    _core._drain()
    assert cu.exchange_stats().live["foreign"] == before - 1


def test_deleters_on_other_threads(host, opened):
    pile = [export(host, opened).consume() for _ in range(200)]
    threads = [
        threading.Thread(target=lambda part=pile[k::4]: [f() for f in part]) for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_negative_strides_are_refused_unless_copied(host, opened):
    with pytest.raises(BufferError, match="negative stride"):
        host[::-1].__dlpack__(max_version=(1, 0))
    c = export(host[::-1], opened, copy=True)
    assert c.managed.flags == IS_COPIED
    assert c.managed.tensor.strides[:2] == [4, 1]
    assert (ctypes.c_float * 4).from_address(c.managed.tensor.data)[:] == [12, 13, 14, 15]


def test_copies(host, opened):
    with_copy = export(host.T, opened, copy=True)
    assert with_copy.managed.tensor.data != host.handle
    assert (ctypes.c_float * 4).from_address(with_copy.managed.tensor.data)[:] == [0, 4, 8, 12]
    assert export(host, opened, copy=False).managed.tensor.data == host.handle
    assert export(host, opened, copy=None).managed.flags == 0
    copy = cu.from_dlpack(host, copy=True)
    assert copy.handle != host.handle
    assert np.from_dlpack(copy).tolist() == np.from_dlpack(host).tolist()


@pytest.mark.parametrize(
    ("keywords", "error", "match"),
    [
        ({"stream": 1}, ValueError, "stream must be None for memory that is exported to the host"),
        ({"stream": 0}, ValueError, "stream 0 is ambiguous"),
        ({"stream": -7}, ValueError, "stream must be -1, 1, 2 or a handle"),
        ({"stream": "legacy"}, TypeError, None),
        ({"max_version": 1}, TypeError, "max_version must be a tuple of two ints"),
        ({"dl_device": (CUDA, 0)}, BufferError, "cannot be exported to device"),
        ({"dl_device": (10, 0)}, BufferError, "cannot be exported to device"),
        ({"dl_device": 1}, TypeError, "dl_device must be a tuple"),
        ({"copy": "no"}, TypeError, "copy must be True, False or None"),
        ({"verbose": True}, TypeError, "unexpected argument"),
    ],
)
def test_what_a_consumer_must_not_ask(host, keywords, error, match):
    with pytest.raises(error, match=match):
        host.__dlpack__(**keywords)


def test_keywords_in_any_order_and_from_anywhere(host, opened):
    """Names that were seen before are recognised as a whole; others are read one by one."""

    class Name(str):
        __slots__ = ()

    def copied(capsule):
        seen = opened(capsule)
        return bool(seen.managed.flags & IS_COPIED)

    for _ in range(3):
        assert copied(host.__dlpack__(max_version=(1, 0), copy=True))
        assert not copied(host.__dlpack__(copy=False, max_version=(1, 0)))
        for words in ({"copy": True, "max_version": (1, 0)}, {"max_version": (1, 0), "copy": True}):
            made = {Name(name): value for name, value in words.items()}
            assert copied(host.__dlpack__(**made))
        with pytest.raises(TypeError, match="unexpected argument 'size'"):
            host.__dlpack__(copy=True, size=3)
        with pytest.raises(TypeError, match="unexpected argument 'size'"):
            cu.from_dlpack(host, copy=True, size=3)


def test_a_version_may_be_any_two_ints(host, opened):
    class One(int):
        pass

    class Pair(tuple):
        __slots__ = ()

    for version, name in (
        ((1, 0), "dltensor_versioned"),
        ((0, 8), "dltensor"),
        ((One(1), 0), "dltensor_versioned"),
        (Pair((One(0), 0)), "dltensor"),
        (Pair((2, 0)), "dltensor_versioned"),
    ):
        for _ in range(2):
            assert name in repr(host.__dlpack__(max_version=version)).split('"')
            assert "dltensor" in repr(host.__dlpack__(max_version=None)).split('"')
    with pytest.raises(TypeError, match="max_version"):
        host.__dlpack__(max_version=(1, "0"))


def test_what_a_consumer_may_ask(host, opened):
    assert host.__dlpack_device__() == (CPU, 0)
    for keywords in (
        {"stream": -1},
        {"stream": None},
        {"dl_device": (CPU, 0)},
        {"dl_device": None},
    ):
        assert export(host, opened, **keywords).managed.tensor.data == host.handle
    with pytest.raises(TypeError, match="keyword arguments only"):
        host.__dlpack__(1)


def test_no_memory_for_an_export(host):
    for version in (None, (1, 0)):
        _core._dlpack_fail_at(1)
        with pytest.raises(MemoryError):
            host.__dlpack__(max_version=version)


@pytest.mark.parametrize("number", [-1, 16, 2**31, 2**32, 2**32 + 1, 2**40])
def test_there_are_no_such_devices(producer, number):
    """Memory that host and devices share goes to whichever device asks."""
    tensor = cu.from_dlpack(producer(device=(PINNED, 0)), stream=-1)
    with pytest.raises(BufferError, match=rf"cannot be exported to device \(2, {number}\)"):
        tensor.__dlpack__(max_version=(1, 0), dl_device=(2, number), stream=-1)


def test_a_closed_tensor_exports_nothing(host):
    host.close()
    for use in (host.__dlpack__, host.__dlpack_device__, lambda: cu.from_dlpack(host)):
        with pytest.raises(cu.ClosedError, match="tensor is closed"):
            use()


def test_pinned_memory_is_the_hosts_on_request(opened):
    t = cu.PinnedMemoryResource().allocate(64).view("f4")
    c = export(t, opened, dl_device=(CPU, 0))
    assert (c.managed.tensor.device_type, c.managed.tensor.device_id) == (CPU, 0)
    np.from_dlpack(t)[:] = 3
    assert memoryview(t).tolist() == [3] * 16
    assert t.__dlpack_device__()[0] in (CPU, PINNED)

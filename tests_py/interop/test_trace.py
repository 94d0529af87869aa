# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""A trace says where the exchanges were made that are live."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from pathlib import Path

import pytest

import cudago as cu
from cudago import _core

np = pytest.importorskip("numpy")


def here():
    """The line of the caller, as a trace says it."""
    return f"{__file__}:{sys._getframe(1).f_lineno}"


def test_where_an_import_was_made(producer, trace):
    t, line = cu.from_dlpack(producer((4, 4), dtype=(2, 32, 1))), here()
    (found,) = trace.live
    assert found.where[0] == line
    peer = producer.__module__.split(".")[0]
    assert found == cu.dlpack.Exchange(
        "import", "capsule", peer, (4, 4), "float32", "cpu", found.where
    )
    assert line in str(found)
    assert not [w for w in found.where if w.startswith(str(Path(cu.__file__).parent))]
    t.close()
    assert trace.live == ()


def test_where_exports_were_made(tensor, device, trace):
    versioned, line = tensor.__dlpack__(max_version=(1, 0)), here()
    legacy = tensor.T.__dlpack__()
    first, second = trace.live
    assert first.where[0] == line
    assert (first.way, second.way) == ("capsule", "legacy capsule")
    assert (first.shape, second.shape) == ((2, 3), (3, 2))
    assert first.device == f"cuda:{device.ordinal}"
    del versioned
    assert trace.live == (second,)
    del legacy
    assert trace.live == ()


def test_numpy_is_a_peer_in_both_directions(pinned, trace):
    array = np.from_dlpack(pinned)
    theirs = cu.from_dlpack(np.ones(5, "i2"))
    found = {e.direction: e for e in trace.live}
    assert found["import"].peer == "numpy"
    assert (found["import"].shape, found["import"].dtype) == ((5,), "int16")
    assert found["export"].peer is None
    del array
    assert [e.direction for e in trace.live] == ["import"]
    theirs.close()
    assert trace.live == ()


@pytest.fixture
def pinned(device):
    """A tensor of pinned memory."""
    buffer = cu.PinnedMemoryResource().allocate(64)
    t = buffer.view("f4")
    yield t
    t.close()
    buffer.close()


def test_a_view_keeps_the_import_live(producer, trace):
    t = cu.from_dlpack(producer((4, 4)))
    view = t[1]
    t.close()
    assert len(trace.live) == 1
    view.close()
    assert trace.live == ()


def test_our_memory_that_comes_back_is_two_exchanges(changes, tensor, trace):
    back = cu.from_dlpack(tensor.__dlpack__(max_version=(1, 0)))
    assert [e.direction for e in trace.live] == ["export", "import"]
    assert {e.device for e in trace.live} == {"cuda:0"}
    back.close()
    assert trace.live == ()


def test_only_what_is_exchanged_while_it_is_on(producer):
    first = cu.from_dlpack(producer())
    outer = cu.dlpack.trace()
    second = cu.from_dlpack(producer())
    with cu.dlpack.trace() as inner:
        third = cu.from_dlpack(producer((3,)))
    fourth = cu.from_dlpack(producer((4,)))
    assert inner.is_on is False
    assert outer.is_on is True
    assert [e.shape for e in inner.live] == [(3,)]
    assert [e.shape for e in outer.live] == [(16,), (3,), (4,)]
    outer.stop()
    outer.stop()
    fifth = cu.from_dlpack(producer())
    assert len(outer.live) == 3
    for t in (first, second, third, fourth, fifth):
        t.close()
    assert inner.live == outer.live == ()


def test_nothing_is_noted_while_no_trace_is_on(producer):
    cu.dlpack.trace()  # is dropped, and so stops
    gc.collect()
    number = _core._dlpack_trace(0, "")
    t = cu.from_dlpack(producer())
    assert _core._dlpack_trace(0, "") == number
    t.close()


def test_what_a_launch_uses_is_live_until_it_has_ended(producer, device, stream, trace):
    with device.allocate(64, stream=stream) as buffer, cu.Graph() as graph:
        node, line = graph.memcpy(buffer, producer((16,))), here()
        (found,) = trace.live
        assert found.where[0] == line
        del node
    gc.collect()
    assert trace.live == ()


def test_a_file_with_a_strange_name(producer, trace):
    code = compile("t = take(p)", "no\nfile \udcff é", "exec")
    space = {"take": cu.from_dlpack, "p": producer()}
    exec(code, space)
    assert len(trace.live) == 1
    space["t"].close()


def test_deep_calls_leave_out_the_outermost(producer, trace):
    def deeper(n):
        return deeper(n - 1) if n else cu.from_dlpack(producer())

    t = deeper(500)
    (found,) = trace.live
    assert 1 < len(found.where) <= 32
    assert found.where[0].startswith(__file__)
    t.close()


# --- leaks, threads, enemies ----------------------------------------------------------------------


def test_ten_thousand_exchanges_leave_the_counts_where_they_began(changes, tensor):
    source = np.ones((8, 8), "f4")
    before = cu.dlpack.stats()
    with cu.dlpack.trace() as trace:
        for i in range(5_000):
            cu.from_dlpack(source).close()
            capsule = tensor.__dlpack__(max_version=(1, 0) if i % 2 else None)
            del capsule
    after = cu.dlpack.stats()
    assert trace.live == ()
    assert changes(before.peers, after.peers) == {"numpy": (5_000, 0)}
    assert sum(n for n, _ in changes(before.exports, after.exports).values()) == 5_000
    assert sum(live for _, live in changes(before.exports, after.exports).values()) == 0
    assert after.live == before.live


def test_threads_exchange_while_others_trace_and_look(changes, tensor):
    source = np.ones(4, "f4")
    failed = []
    before = cu.dlpack.stats()

    def guarded(work):
        def run():
            try:
                for i in range(300):
                    work(i)
            except BaseException as e:  # a thread's error is the test's
                failed.append(e)

        return run

    def exchange(i):
        held = [cu.from_dlpack(source), tensor.__dlpack__(max_version=(1, 0))]
        held.append(cu.from_dlpack(held[1]))

    def look(i):
        with cu.dlpack.trace() as t:
            for e in t.live:
                assert e.where
                assert e.shape in ((4,), (2, 3))
        t.stop()

    threads = [threading.Thread(target=guarded(w)) for w in [exchange, look] * 3]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failed == []
    _core._drain()
    after = cu.dlpack.stats()
    assert changes(before.imports, after.imports) == {"capsule": (1800, 0)}
    assert changes(before.exports, after.exports) == {"capsule": (900, 0)}


def test_a_deleter_on_a_thread_that_python_does_not_know(tensor, opened, trace):
    capsule = opened(tensor.__dlpack__(max_version=(1, 0)))
    managed = capsule.managed
    capsule.consume()
    (found,) = trace.live
    assert found.direction == "export"
    libc = ctypes.CDLL(None)
    thread = ctypes.c_ulong()
    deleter = ctypes.cast(managed.deleter, ctypes.c_void_p)
    assert (
        libc.pthread_create(
            ctypes.byref(thread), None, deleter, ctypes.c_void_p(ctypes.addressof(managed))
        )
        == 0
    )
    assert libc.pthread_join(thread, None) == 0
    assert trace.live == ()


def test_a_collection_that_exchanges_while_notes_are_read(producer, trace):
    """What a finalizer exchanges, and ends, while `live` makes its objects."""

    class Cycle:
        def __init__(self):
            self.me = self
            self.held = cu.from_dlpack(producer((3,)))

        def __del__(self):
            for _ in range(200):
                cu.from_dlpack(producer((2,))).close()

    kept = [cu.from_dlpack(producer((4,))) for _ in range(50)]
    threshold = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for _ in range(5):
            Cycle()
            assert sum(e.shape == (4,) for e in trace.live) == 50
    finally:
        gc.set_threshold(*threshold)
    kept.clear()
    gc.collect()
    assert trace.live == ()


def test_a_capsule_that_is_consumed_twice(producer, trace):
    p = producer()
    capsule = p.__dlpack__()
    t = cu.from_dlpack(capsule)
    with pytest.raises(BufferError, match="consumed before"):
        cu.from_dlpack(capsule)
    assert len(trace.live) == 1
    t.close()
    assert trace.live == ()
    assert p.deleted == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_deleter_that_raises(producer, trace):
    class Raising(producer):
        def _delete(self, _):
            super()._delete(_)
            raise LookupError("mine")

    p = Raising()
    t = cu.from_dlpack(p)
    before = cu.dlpack.stats()
    t.close()
    assert p.deleted == 1
    assert trace.live == ()
    assert cu.dlpack.stats().imports_released == before.imports_released + 1


def test_a_deleter_that_exchanges(changes, producer, trace):
    class Exchanging(producer):
        def _delete(self, _):
            super()._delete(_)
            with cu.dlpack.trace() as inner:
                t = cu.from_dlpack(producer((2,)))
                assert [e.shape for e in inner.live] == [(2,)]
                t.close()

    p = Exchanging()
    cu.from_dlpack(p).close()
    assert p.deleted == 1
    assert trace.live == ()


def test_a_deleter_does_not_meet_the_exception_of_a_failed_import(producer, trace):
    with pytest.raises(TypeError):
        cu.from_dlpack(producer(), nonsense=1)
    assert trace.live == ()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # JAX's, of forks
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_fork_while_a_trace_is_on(producer, trace):
    t = cu.from_dlpack(producer())
    child = os.fork()
    if not child:
        try:
            os._exit(0 if len(_core._dlpack_notes(0, 2**64 - 1)) >= 1 else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert len(trace.live) == 1
    t.close()
    assert trace.live == ()

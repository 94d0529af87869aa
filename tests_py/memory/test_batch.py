# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Several copies and several prefetches in one call."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import cudago as cu


def buffers(device, stream, n, size=64):
    made = [device.allocate(size, stream=stream) for _ in range(n)]
    for i, buffer in enumerate(made):
        buffer.fill(i, stream=stream)
    return made


def test_all_are_copied(device, stream, pinned):
    a, b, c = buffers(device, stream, 3)
    host, tensor = np.arange(8, dtype="u1"), c.view("u1")
    memoryview(pinned)[:4] = b"abcd"
    copies = [(a[:16], b[16:32]), (a[16:24], tensor[8:16]), (a[24:32], host), (a.ptr + 32, b.ptr)]
    with pytest.raises(ValueError, match="copy 3: src has 64 bytes, dst 32"):
        cu.copy_batch(copies, stream=stream)
    cu.copy_batch([*copies[:3], (a[32:36], pinned[:4]), (a[40:40], b[:0])], stream=stream)
    got = a.view("u1").numpy(stream=stream)
    want = [1] * 16 + [2] * 8 + [*range(8)] + [*b"abcd"] + [0] * 28
    assert got.tolist() == want


def test_one_call_for_device_memory(device, stream):
    a, b = buffers(device, stream, 2, 4096)
    cu.copy_batch(
        ((a[64 * i : 64 * i + 8], b[64 * i : 64 * i + 8]) for i in range(64)), stream=stream
    )
    got = a.view("u1", (64, 64)).numpy(stream=stream)
    assert (got[:, :8] == 1).all() and not got[:, 8:].any()


def test_to_the_host(device, stream, pinned):
    a, b = buffers(device, stream, 2)
    out = np.full(8, 9, "u1")
    cu.copy_batch([(out, b[:8]), (pinned[:4], b[:4]), (pinned[8:12], a[:4])], stream=stream)
    stream.sync()
    assert out.tolist() == [1] * 8
    assert bytes(memoryview(pinned)[:12]) == b"\1\1\1\1\0\0\0\0\0\0\0\0"


def test_on_the_default_streams(device):
    for stream in (device.default_stream, device.per_thread_default_stream):
        a, b = buffers(device, stream, 2)
        cu.copy_batch([(a[:4], b[:4]), (a[8:12], b[8:12])], stream=stream)
        assert a.view("u1").numpy(stream=stream)[:13].tolist() == [1] * 4 + [0] * 4 + [1] * 4 + [0]
        stream.sync()


def test_a_capture_gets_a_node_for_each(device, stream):
    a, b = buffers(device, stream, 2)
    host = np.arange(4, dtype="u1")
    died = weakref.ref(host)
    with stream.capture() as graph:
        cu.copy_batch([(a[:4], host), (b[:4], a[:4]), (b[8:8], a[:0])], stream=stream)
    assert [n.kind for n in graph.nodes] == ["memcpy", "memcpy"]
    del host
    gc.collect()
    assert died() is not None
    step = graph.instantiate()
    a.fill(0, stream=stream)
    step.launch(stream)
    assert b.view("u1").numpy(stream=stream)[:4].tolist() == [0, 1, 2, 3]
    graph.close()
    step.close()


def test_memory_is_kept_until_it_was_copied(device, stream):
    (a,) = buffers(device, stream, 1)
    with device.create_stream() as other:
        source = device.allocate(64, stream=other)
        source.fill(5, stream=other)
        stream.wait(other.record())
        cu.copy_batch([(a[:8], source[:8]), (a[8:16], source[8:16])], stream=stream)
        source.close()
        again = device.allocate(64, stream=other)
        again.fill(6, stream=other)
        other.sync()
        assert a.view("u1").numpy(stream=stream)[:17].tolist() == [5] * 16 + [0]
        again.close()
        other.sync()


@pytest.mark.parametrize(
    ("copies", "error", "text"),
    [
        (
            lambda a, b: [(a[:8], b[:8]), (a[4:12], b[8:16])],
            ValueError,
            "0 and 1 overlap.*copy 1: 8 b",
        ),
        (
            lambda a, b: [(b[:8], a[:8]), (a[8:12], a[10:14])],
            ValueError,
            "copy 1: dst .4 bytes at 0x",
        ),
        (lambda a, b: [(a[:8], b[:8]), (b[4:5], a[8:9])], ValueError, "0 and 1 overlap"),
        (lambda a, b: [(a, b), 5], TypeError, "item 1 must be a pair .dst, src., not int"),
        (lambda a, b: [(a, b, a)], TypeError, "item 0 must be a pair .dst, src., not tuple of 3"),
        (lambda a, b: [(a, 5)], TypeError, "copy 0: src"),
        (lambda a, b: [(b"12345678", b[:8])], BufferError, "copy 0: dst .*not writable"),
        (lambda a, b: [(a[:8], b[:8]), (b"8", b[8:9])], BufferError, "copy 1: dst"),
        (lambda a, b: 5, TypeError, "copies must be an iterable of pairs .dst, src., not int"),
        (lambda a, b: [(a, b[:5])], ValueError, "same size on both sides"),
    ],
)
def test_bad_copies(device, stream, copies, error, text):
    a, b = buffers(device, stream, 2)
    with pytest.raises(error, match=text):
        cu.copy_batch(copies(a, b), stream=stream)
    assert not a.view("u1").numpy(stream=stream).any()


def test_element_types_must_agree(device, stream):
    a, b = buffers(device, stream, 2)
    host = np.ones(8, "f4")
    text = "copy 1: src has element type float64, dst float32: convert it first"
    for dst, src in (
        (a.view("f4")[:8], b.view("f8")[:4]),
        (host, b.view("f8")[:4]),
        (a.view("f4")[:8], np.ones(4)),
    ):
        with pytest.raises(TypeError, match=text):
            cu.copy_batch([(a[32:40], b[32:40]), (dst, src)], stream=stream)
    assert not a.view("u1").numpy(stream=stream).any()
    with pytest.raises(TypeError, match="convert it first"):
        cu.copy_batch([(a.view("f4"), b.view("i4"))], stream=stream)
    swapped = np.ones(8, ">f4")
    for other in (swapped, memoryview(swapped)):
        with pytest.raises(TypeError, match="copy 0: the elements of src are not in native byte"):
            cu.copy_batch([(a.view("f4")[:8], other)], stream=stream)
        with pytest.raises(TypeError, match="copy 0: the elements of dst are not in native byte"):
            cu.copy_batch([(other, b.view("f4")[:8])], stream=stream)
    assert not a.view("u1").numpy(stream=stream).any()
    cu.copy_batch([(a[:32], swapped)], stream=stream)
    cu.copy_batch([(a.view("f4").buffer, b.view("f8"))], stream=stream)
    cu.copy_batch([(b[:32], host)], stream=stream)
    assert a.view("u1").numpy(stream=stream).tolist() == [1] * 64
    assert b.view("f4").numpy(stream=stream)[:8].tolist() == [1] * 8


def test_two_lists_are_no_batch(device, stream):
    a, b = buffers(device, stream, 2)
    text = r"copy_batch\(\) takes one iterable of \(dst, src\) pairs and stream=, got 3 positional"
    with pytest.raises(TypeError, match=text):
        cu.copy_batch(stream, [a], [b])
    with pytest.raises(TypeError, match="got 2 positional"):
        cu.copy_batch([b], [a], stream=stream)
    with pytest.raises(TypeError, match=r"takes one iterable of \(buffer, location\) pairs"):
        cu.prefetch_batch([a], ["host"], stream=stream)


def test_read_only_memory_is_named_by_its_copy(device, stream):
    a, b = buffers(device, stream, 2)
    host = np.zeros(8, "u1")
    host.flags.writeable = False
    with pytest.raises(BufferError, match="copy 1: dst"):
        cu.copy_batch([(a[:8], b[:8]), (host, b[:8])], stream=stream)
    b.close()
    with pytest.raises(cu.ClosedError, match="copy 1: src: "):
        cu.copy_batch([(a[:8], a[8:16]), (a[16:24], b)], stream=stream)


def test_closed_things(device, stream):
    a, b = buffers(device, stream, 2)
    b.close()
    with pytest.raises(cu.ClosedError):
        cu.copy_batch([(a[:8], a[8:16]), (a[16:24], b)], stream=stream)
    with device.create_stream() as other:
        pass
    with pytest.raises(cu.ClosedError):
        cu.copy_batch([], stream=other)

    class Closes:
        """Closes an operand that was read before, and is held by then."""

        @property
        def __cuda_stream__(self):
            a.close()
            return lambda: (0, stream.handle)

    c = device.allocate(64, stream=stream)
    cu.copy_batch([(c[:32], a[:32])], stream=stream)
    cu.copy_batch([(c, a)], stream=Closes())
    assert a.is_closed
    assert not c.view("u1").numpy(stream=stream).any()


def test_nothing_to_copy(device, stream):
    cu.copy_batch([], stream=stream)
    cu.prefetch_batch([], stream=stream)


def test_prefetches(device, stream):
    if not device.properties.concurrent_managed_access:
        pytest.skip("the device does not use managed memory concurrently")
    with cu.ManagedMemoryResource(device) as resource:
        a, b, c = (resource.allocate(1 << 16) for _ in range(3))
        cu.prefetch_batch([(a, device), (b, "host"), (c, device)], stream=stream)
        where = [x.last_prefetch_location for x in (a, b, c)]
        assert where == [device, "host", device]
        with pytest.raises(ValueError, match="must not be capturing"), stream.capture() as graph:
            cu.prefetch_batch([(a, device), (b, device)], stream=stream)
        graph.close()
        gone, other = resource.allocate(4), device.allocate(4, stream=stream)
        gone.close()
        for wrong, error, text in (
            ((a, "nowhere"), ValueError, "prefetch 1: location must be"),
            ((a, 0), TypeError, "prefetch 1: location must be"),
            ((5, device), TypeError, "prefetch 1 must be of a Buffer, not int"),
            ((other, device), TypeError, "prefetch 1: the buffer is device .*only managed memory"),
            ((gone, device), cu.ClosedError, "prefetch 1: buffer is closed"),
        ):
            with pytest.raises(error, match=text):
                cu.prefetch_batch([(b, device), wrong], stream=stream)
        assert b.last_prefetch_location == "host"
        for x in (a, b, c):
            x.close()


class Clearing:
    """Memory whose conversion empties the lists of the batch that it is in."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        frame = sys._getframe(1)
        if frame.f_code.co_name == "copy_batch":
            frame.f_locals["dsts"].clear()
            frame.f_locals["srcs"].clear()
        return self.array.__dlpack_device__()


def test_lists_that_a_conversion_empties(stream):
    def pairs():
        yield Clearing(np.zeros(8, "u1")), np.ones(8, "u1")
        yield np.zeros(8, "u1"), np.ones(8, "u1")

    with pytest.raises(IndexError):
        cu.copy_batch(pairs(), stream=stream)

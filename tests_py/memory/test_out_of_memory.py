# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What errors say when there is not enough memory."""

from __future__ import annotations

import pytest

import cudago as cu

MORE = 1 << 45  # than any device or host has


def refused(allocate) -> cu.OutOfMemoryError:
    with pytest.raises(cu.OutOfMemoryError) as caught:
        allocate()
    return caught.value


def test_every_allocation_says_who_holds_what(device, stream, pinned):
    kept = device.allocate(1 << 20, stream=stream)
    sizes = {
        "device": (MORE, lambda: device.allocate(MORE, stream=stream)),
        "virtual": (MORE, lambda: cu.VirtualMemoryResource(device).allocate(MORE, stream=stream)),
        "pinned": (MORE, lambda: cu.PinnedMemoryResource().allocate(MORE)),
        "graph": (MORE, lambda: cu.Graph(device).allocate(MORE)),
    }
    if device.total_memory < 1 << 32:  # arrays have a largest width and height
        array = cu.OpaqueArray
        sizes["array"] = (1 << 32, lambda: array((1 << 15, 1 << 15), "f4", stream=stream))
    for name, (size, allocate) in sizes.items():
        error = refused(allocate)
        assert error.held.startswith("device 0: "), name
        assert "  default pool" in error.held, name
        assert str(error).endswith(f"\n{error.held}"), name
        assert error.requested == size, name
    assert kept.size == 1 << 20


def test_growing_says_who_holds_what(device, stream):
    resource = cu.VirtualMemoryResource(device, reserve=device.total_memory * 4)
    buffer = resource.allocate(1 << 21, stream=stream)
    error = refused(lambda: buffer.grow(device.total_memory * 2))
    assert "virtual memory" in error.held
    buffer.close()


def test_a_limited_pool_says_its_limit_and_use(device, stream):
    with cu.DeviceMemoryResource(device, pool=cu.PoolOptions(max_size=1 << 26)) as pool:
        kept = pool.allocate(40 << 20, stream=stream)
        text = str(refused(lambda: pool.allocate(40 << 20, stream=stream)))
        limit = f"the pool is limited to {1 << 26} bytes, of which {40 << 20} are used"
        assert f"({40 << 20} bytes on device 0; {limit})" in text
        kept.close()
    text = str(refused(lambda: device.allocate(MORE, stream=stream)))
    assert f"({MORE} bytes on device 0)" in text


def test_host_memory_is_on_no_device(device, stream, pinned):
    error = refused(lambda: cu.PinnedMemoryResource().allocate(MORE))
    assert str(error).partition("\n")[0].endswith(f"({MORE} bytes of pinned host memory)")
    if cu.driver_name() == "sim":  # managed memory of NVIDIA's driver may be more than there is
        error = refused(lambda: cu.ManagedMemoryResource(device).allocate(MORE, stream=stream))
        assert str(error).partition("\n")[0].endswith(f"({MORE} bytes of managed memory)")


def test_the_table_says_what_graphs_keep(device, stream):
    buffer = device.allocate(3 << 20, stream=stream)
    title = "of all that, graphs and executables keep"
    assert title not in cu.memory_summary()
    with cu.Graph(device) as graph:
        graph.memset(buffer[:64], 0)
        graph.memset(buffer[64:128], 0)
        step = graph.instantiate()
    buffer.close()
    error = refused(lambda: device.allocate(MORE, stream=stream))
    for table in (error.held, cu.memory_summary()):
        head, _, rows = table.partition(f"{title}\n")
        assert head
        assert rows.splitlines()[0].split() == ["device", "0", "3.0", "MiB"]
    assert dict(table.uses)[title][0].live == 3 << 20
    assert "graphs and executables keep" in table._repr_html_()
    step.close()
    cu.testing.settle()
    assert title not in cu.memory_summary()


def test_the_table_has_no_row_for_what_is_called(device):
    with cu.Graph(device) as graph:
        graph.callback(print)
        assert "graphs and executables keep" not in cu.memory_summary()


def test_it_says_who_holds_the_most(device, stream):
    def rows() -> list[str]:
        held = refused(lambda: device.allocate(MORE, stream=stream)).held
        return held.partition("the largest allocations\n")[2].splitlines()

    before = cu._core._largest(16)
    kept = [device.allocate(n << 20, stream=stream) for n in (3, 7, 5, 1, 9, 4)]
    x = cu.zeros(12 << 20, "u1", stream=stream)
    small = device.allocate((1 << 20) - 1, stream=stream)
    if not before:
        assert [row.split()[0] for row in rows()] == ["12.0", "9.0", "7.0", "5.0", "4.0"]
    else:
        assert len(rows()) == 5
    largest = {address: line for _, address, _, _, line in cu._core._largest(16)}
    assert largest.keys() >= {x.handle, *(buffer.handle for buffer in kept)}
    assert small.handle not in largest
    assert largest[x.handle].startswith(f"{__file__}:")
    with cu.debug.record_origins(False):
        y = device.allocate(64 << 20, stream=stream)
    assert f"  64.0 MiB    device 0, {y.handle:#x}" in rows()
    for memory in (x, y, *kept):
        memory.close()
    assert cu._core._largest(16) == before


def test_what_has_grown_is_among_the_largest(device, stream):
    buffer = cu.VirtualMemoryResource(device).allocate(4096, stream=stream)
    assert buffer.handle not in {address for _, address, *_ in cu._core._largest(16)}
    for size in 1 << 21, 1 << 22:
        buffer.grow(size)
        (row,) = [row for row in cu._core._largest(16) if row[1] == buffer.handle]
        assert (row[0], row[4].partition(":")[0]) == (size, __file__)
    buffer.close()

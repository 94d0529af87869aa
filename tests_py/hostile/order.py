# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Situations in which memory outlives, or does not outlive, what streams do with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import cudago as cu
from cudago.testing import hold

from . import graphs_together
from .situations import SITUATIONS, ForeignStream, allowed, pinned_memory, situation
from .world import NBYTES, N, World, numbers

__all__ = ["SITUATIONS", "graphs_together"]  # those of situations.py, and of these files


def _overwritten_while_read(
    uses: list[cu.Stream], through: Callable[[cu.Stream], Any], closed: bool = False
) -> None:
    """Read a buffer on held streams, close it, and overwrite what is free: the reads win."""
    device = cu.Device()
    results = [pinned_memory() for _ in uses]
    with device.create_stream() as own:
        buffer = device.allocate(NBYTES, stream=own)
        buffer.copy_from(numbers(), stream=own)
        own.sync()
        with device.create_stream() as first, hold(first):
            for stream, result in zip(uses, results, strict=True):
                stream.wait(first)
                buffer.copy_to(result, stream=through(stream))
                if closed:
                    stream.close()
            buffer.close()
            for _ in range(8):
                with device.allocate(NBYTES, stream=own) as other:
                    other.fill(0xEE, stream=own)
    device.sync()
    for result in results:
        found = np.frombuffer(result, "i4").copy()
        result.close()
        assert (found == numbers()).all(), found


@situation
def a_buffer_is_closed_after_uses_on_two_other_streams() -> None:
    """Neither stream allocated it."""
    device = cu.Device()
    with device.create_stream() as a, device.create_stream() as b:
        _overwritten_while_read([a, b], lambda stream: stream)


@situation
def a_buffer_is_closed_after_a_use_through_a_wrapper_that_is_gone() -> None:
    """Only the handle in the driver tells that the stream is in use."""
    device = cu.Device()
    with device.create_stream() as a:
        _overwritten_while_read([a], lambda stream: ForeignStream(stream, lambda: None))


@situation
def a_buffer_is_closed_after_a_use_on_a_stream_that_is_closed() -> None:
    """The stream's work goes on after close()."""
    device = cu.Device()
    _overwritten_while_read([device.create_stream()], lambda stream: stream, closed=True)


@situation
def a_stream_of_a_wrapper_dies_at_once() -> None:
    """The answer of __cuda_stream__ outlives its stream: an error, or an ordered use."""
    device = cu.Device()
    with device.create_stream() as own:
        for _ in range(50):
            buffer = device.allocate(NBYTES, stream=own)
            own.sync()
            temporary = device.create_stream()
            allowed(lambda b=buffer, t=temporary: b.fill(7, stream=ForeignStream(t, t.close)))
            del temporary
            buffer.close()
            with device.allocate(NBYTES, stream=own) as other:
                other.fill(0xEE, stream=own)
        device.sync()


class OnHost:
    """A tensor that NumPy can read: a copy, unless the device's memory is the host's."""

    def __init__(self, tensor: cu.Tensor) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0

    def __dlpack__(self, **how: Any) -> object:
        how |= {"dl_device": (1, 0)}
        return self.tensor.__dlpack__(**how)


@situation
def an_export_right_after_a_launch_that_writes_it() -> None:
    """DLPack's consumer reads what the graph writes, not what was there before."""
    device = cu.Device()
    code = cu.ObjectCode.from_ptx(World().get("program").source)
    with device.create_stream() as s, device.allocate(NBYTES, stream=s) as buffer:
        buffer.fill(0, stream=s)
        with cu.Graph(device) as graph:
            node = graph.memset(buffer, 0)
            for _ in range(50):
                node = node.launch(cu.LaunchConfig(1, N), code["add"], buffer, 1, N)
            step = graph.instantiate()
        for _ in range(50):
            step.launch(s)
            found = np.from_dlpack(OnHost(buffer.view("int32"))).copy()
            assert (found == 50).all(), found
        step.close()

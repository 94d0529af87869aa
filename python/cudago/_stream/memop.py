# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Values that a stream writes into memory, and waits for there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import _core
from .._native import unnamed

if TYPE_CHECKING:
    from typing import SupportsIndex

    from .._memory.buffer import Buffer, Pointer
    from .._tensor.tensor import Tensor
    from ..typing import WaitCondition

# CU_STREAM_WAIT_VALUE_GEQ, EQ, AND and NOR of cuda.h, CUDA 12.4, in their order.
CONDITIONS: tuple[WaitCondition, ...] = (">=", "==", "&", "nor")


def condition_code(condition: object) -> int:
    """Return the driver's number of a condition."""
    if not isinstance(condition, str):
        raise TypeError(f"condition must be a str, not {type(condition).__name__}")
    for code, name in enumerate(CONDITIONS):
        if condition == name:
            return code
    raise ValueError(
        f"condition must be one of {', '.join(map(repr, CONDITIONS))}, got {condition!r}"
    )


@unnamed
class MemoryOperations:
    """The part of `Stream` that writes values into memory, and waits for them."""

    __slots__ = ()

    def write_value(self, dst: Buffer | Pointer | Tensor, value: SupportsIndex) -> None:
        """Write a value into memory once all earlier work on the stream is complete.

        Parameters
        ----------
        dst : Buffer, Pointer or Tensor
            4 or 8 bytes, aligned to their size, which is the width of the value:
            pinned memory, that of a `VirtualMemoryResource`, or a variable of `ObjectCode`.
        value : int
            Signed or unsigned, in that width.

        Raises
        ------
        ValueError
            If `dst` has another size or alignment, or is other memory: that of a pool, for
            example, which the driver refuses.
        OverflowError
            If the value does not fit.

        See Also
        --------
        Stream.wait_value : Waits for a value in memory.

        Notes
        -----
        Stream-ordered on this stream, at its front end: it needs no kernel and no copy engine. What
        earlier work wrote is visible to whoever sees the value. Captured as a node that keeps `dst`
        alive, and writes at each launch.

        References
        ----------
        ``cuStreamWriteValue32_v2``, ``cuStreamWriteValue64_v2``

        Examples
        --------
        >>> flag = cudago.PinnedMemoryResource().allocate(4)
        >>> stream.write_value(flag, 1)
        """
        _core._memop(self, dst, value, -1)  # type: ignore[arg-type]  # of Stream

    def wait_value(
        self,
        src: Buffer | Pointer | Tensor,
        value: SupportsIndex,
        condition: WaitCondition = ">=",
    ) -> None:
        """Make later work on the stream wait until memory has a value.

        Parameters
        ----------
        src : Buffer, Pointer or Tensor
            4 or 8 bytes, aligned to their size, which is the width of the comparison:
            pinned memory, that of a `VirtualMemoryResource`, or a variable of `ObjectCode`.
        value : int
            Signed or unsigned, in that width.
        condition : {">=", "==", "&", "nor"}
            What must hold of the number in memory: that subtracting `value` from it leaves no
            negative number, in signed arithmetic that wraps, so that counters may overflow; that it
            is equal; that it has a bit of `value`; or that a bit is set neither in it nor in
            `value`.

        Raises
        ------
        ValueError
            If `src` has another size or alignment, or is other memory: that of a pool, for
            example, which the driver refuses.
        OverflowError
            If the value does not fit.

        See Also
        --------
        Stream.write_value : Writes a value into memory.
        Stream.wait : Waits for an event or a stream, which cannot deadlock.

        Notes
        -----
        Stream-ordered on this stream: the host does not wait. Another stream, a kernel, another
        device or the host (in pinned memory) writes the value. Captured as a node that keeps `src`
        alive, and waits at each launch.

        CUDA does not know what the wait is for: if nothing writes the value, the stream waits
        forever, and work that must write it may be queued behind work that waits. Queue the write
        first where you can. On the simulated driver `sim.cancel` and `Device.reset` end a wait; its
        check for races does not know this order.

        References
        ----------
        ``cuStreamWaitValue32_v2``, ``cuStreamWaitValue64_v2``

        Examples
        --------
        >>> flag = cudago.PinnedMemoryResource().allocate(4)
        >>> stream.write_value(flag, 1)
        >>> with device.create_stream() as other:
        ...     other.wait(stream)
        ...     other.wait_value(flag, 1)
        """
        code = condition_code(condition)
        _core._memop(self, src, value, code)  # type: ignore[arg-type]  # of Stream

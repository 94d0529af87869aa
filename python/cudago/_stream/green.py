# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Green contexts: parts of a device's multiprocessors, with streams of their own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, SupportsIndex

from .. import _core
from .._gopy import api
from .._gopy_call import read
from .._native import final, number_text, text, whole
from .._ordinal import device_at
from .stream import _made

if TYPE_CHECKING:
    from .._memory.device import Device
    from .stream import Stream

__all__ = ["GreenContext", "SMPartition"]


class SMPartition:
    """A part of a device's multiprocessors (SMs).

    Made by `Device.split_sms`. It reserves nothing and need not be closed: a green context is made
    of it, by `Device.green_context`.

    Examples
    --------
    >>> part, *_ = device.split_sms(2)
    >>> part.sm_count >= 2
    True
    """

    __slots__ = ("_ordinal", "_resource", "_sm_count", "_split")

    def __init__(self, ordinal: int, resource: bytes, sm_count: int) -> None:
        self._ordinal = ordinal
        self._resource = resource
        self._sm_count = sm_count
        self._split: object = resource  # the same for all parts of one call of split_sms

    @property
    def device(self) -> Device:
        """The device whose multiprocessors these are."""
        return device_at(self._ordinal)

    @property
    def sm_count(self) -> int:
        """Number of multiprocessors."""
        return self._sm_count

    def __repr__(self) -> str:
        return f"<cudago.SMPartition: {self._sm_count} SMs of device {self._ordinal}>"


@final
class GreenContext(_core.GreenContext):
    """A part of a device's multiprocessors, and streams whose kernels run on that part alone.

    Created by `Device.green_context`. Two such parts let kernels run side by side without slowing
    each other down. A context manager: leaving the ``with`` block closes it.

    Notes
    -----
    Only streams belong to a green context. Memory, events, code and graphs are the device's, as
    ever, and nothing has to be made current. Its streams can be captured; the kernels then run on
    the green context's multiprocessors, whichever stream launches the graph. Copies and fills are
    not bound to multiprocessors.

    It lives until it is closed, all its streams are gone, and all graphs that were captured in
    them; the device cannot be reset before. A stream whose handle was handed out is never
    destroyed, and so keeps it for good.

    On the simulated driver the kernels of its streams run as all others do: `sm_count` is all that
    differs.

    References
    ----------
    ``cuGreenCtxCreate``

    Examples
    --------
    >>> part, rest = device.split_sms(4, groups=1, remainder=True)
    >>> with device.green_context(part) as green:
    ...     urgent = green.create_stream(name="urgent")
    >>> cudago.zeros(4, stream=urgent).numpy(stream=urgent)
    array([0., 0., 0., 0.], dtype=float32)
    """

    __slots__ = ()

    @property
    def device(self) -> Device:
        """The device that the multiprocessors belong to."""
        return device_at(self._ordinal)

    def create_stream(self, *, priority: int = 0, name: str = "") -> Stream:
        """Create a stream whose kernels run on this part of the device.

        Parameters
        ----------
        priority : int
            Lower numbers have higher priority; values outside `Device.stream_priority_range` are
            clamped.
        name : str
            Shown in reprs; need not be unique.

        Returns
        -------
        Stream
            A new stream, which does not wait for the legacy default stream. It keeps the green
            context.

        Raises
        ------
        UnsupportedError
            If the driver is older than CUDA 12.5.

        References
        ----------
        ``cuGreenCtxStreamCreate``
        """
        shown = text(name, "name")
        stream = self._stream(whole(priority, "priority"))
        _made[stream._id] = stream
        if shown:
            stream._name = shown
        return stream

    def __repr__(self) -> str:
        if self.is_closed:
            return "<cudago.GreenContext: closed>"
        return f"<cudago.GreenContext: {self.sm_count} SMs of device {self._ordinal}>"


def split_sms(
    ordinal: int, count: SupportsIndex, groups: SupportsIndex | None, coscheduled: bool
) -> tuple[SMPartition, ...]:
    """Return parts of a device, and last what is left."""
    size, most = whole(count, "count"), 0 if groups is None else whole(groups, "groups")
    if groups is not None and most < 1:
        raise ValueError(f"groups must be at least 1, got {number_text(most)}")
    for name, value in (("count", size), ("groups", most)):
        if not -(1 << 31) <= value < 1 << 31:
            raise ValueError(f"{name} must fit 32 bits, got {number_text(value)}")
    found = json.loads(read(api.device_split, ordinal, size, most, not coscheduled))
    parts = tuple(SMPartition(ordinal, bytes.fromhex(p["Resource"]), p["SMCount"]) for p in found)
    for part in parts:
        part._split = found
    return parts


_core._set_class("GreenContext", GreenContext)

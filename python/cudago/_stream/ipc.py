# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Events that processes share, and what multiprocessing does with shared things."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from typing import TYPE_CHECKING, Any

from .. import _core
from .._gopy import api
from .._gopy_call import read
from .._ordinal import device_at
from .event import Event

if TYPE_CHECKING:
    from .._memory.device import Device

__all__ = ["IPCEventDescriptor"]


@dataclass(frozen=True)
class IPCEventDescriptor:
    """Names an event to other processes: see `Event.ipc_descriptor`. It is plain data.

    Parameters
    ----------
    handle : bytes
        What the driver calls the event, a ``CUipcEventHandle``.
    """

    handle: bytes


def describe_event(event: Event) -> IPCEventDescriptor:
    """Return the descriptor of an event."""
    return IPCEventDescriptor(event._export())


def open_event(device: Device, descriptor: IPCEventDescriptor) -> Event:
    """Open an event of another process."""
    if not isinstance(descriptor, IPCEventDescriptor):
        raise TypeError(
            f"descriptor must be an IPCEventDescriptor, not {type(descriptor).__name__}"
        )
    if not isinstance(descriptor.handle, bytes):
        raise TypeError(f"its handle must be bytes, not {type(descriptor.handle).__name__}")
    event: Event = _core._event_open(device, descriptor.handle)
    sends(Event, reduce_event)
    return event


def sends(cls: type[Any], reduce: Callable[[Any], tuple[Any, ...]]) -> None:
    """Let multiprocessing send objects of a class; `pickle` still cannot."""
    ForkingPickler.register(cls, reduce)


def device_of(uuid: str) -> Device:
    """Return the device of another process, which may have another number here."""
    for ordinal in range(read(api.device_count)):
        if read(api.device_uuid, ordinal) == uuid:
            return device_at(ordinal)  # the others get no context, which takes memory
    raise ValueError(
        f"no device here has the UUID {uuid}: the process that shares its memory or event uses "
        "another driver, or sees other devices"
    )


def _rebuild_event(uuid: str, descriptor: IPCEventDescriptor) -> Event:
    return open_event(device_of(uuid), descriptor)


def reduce_event(event: Event) -> tuple[Any, ...]:
    """Return how multiprocessing sends an event."""
    if not event.is_ipc_enabled:
        raise TypeError("cannot send this event to another process: create it with ipc_enabled")
    return _rebuild_event, (event.device.uuid, describe_event(event))

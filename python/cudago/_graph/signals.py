# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes for events and for semaphores of other APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from .. import _core
from .._native import unnamed
from .memop import MemoryOperationNodes

if TYPE_CHECKING:
    from typing import SupportsIndex

    from .._stream.event import Event
    from .._stream.semaphore import ExternalSemaphore
    from .node import Node


@unnamed
class SignalNodes(MemoryOperationNodes):
    """The part of `Builder` that orders a graph with what is outside it."""

    __slots__ = ()

    def record(self, event: Event, *, name: str | None = None) -> Node:
        """Add a node that records an event, for other streams and for the host.

        Parameters
        ----------
        event : Event
            Recorded at each launch, once the nodes before this one have completed. The graph keeps
            it.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node.

        References
        ----------
        ``cuGraphAddEventRecordNode``

        Examples
        --------
        >>> graph, event = cudago.Graph(device), device.create_event()
        >>> graph.memset(device.allocate(4, stream=stream), 0).record(event).kind
        'event record'
        """
        return self._new(_core.Graph._add_event, event, True, name)

    @overload
    def wait(self, event: Event, *, name: str | None = None) -> Node: ...
    @overload
    def wait(
        self,
        event: ExternalSemaphore,
        value: SupportsIndex | None = None,
        *,
        name: str | None = None,
    ) -> Node: ...
    def wait(
        self,
        event: Event | ExternalSemaphore,
        value: SupportsIndex | None = None,
        *,
        name: str | None = None,
    ) -> Node:
        """Add a node that waits, for an event or for a semaphore of another API.

        Parameters
        ----------
        event : Event or ExternalSemaphore
            What to wait for: the latest recording of an event at the time the node runs, or a
            semaphore. The graph keeps it.
        value : int, optional
            Of a timeline semaphore: the value that it has to have at least, 0 to 2**64 - 1; the
            same at each launch, unless it is updated.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node.

        Raises
        ------
        TypeError
            If a timeline semaphore has no value, or anything else has one.

        See Also
        --------
        Stream.wait : Waits in a stream.

        Notes
        -----
        A launch waits for the event's latest recording before it: not for one by a node of the
        same graph, nor for a later one.

        References
        ----------
        ``cuGraphAddEventWaitNode``, ``cuGraphAddExternalSemaphoresWaitNode``
        """
        if isinstance(event, _core.ExternalSemaphore):
            return self._new(_core.Graph._add_semaphore, event, value, True, name)
        if value is not None:
            raise TypeError("value is for an ExternalSemaphore that is a timeline")
        return self._new(_core.Graph._add_event, event, False, name)

    def signal(
        self,
        semaphore: ExternalSemaphore,
        value: SupportsIndex | None = None,
        *,
        name: str | None = None,
    ) -> Node:
        """Add a node that signals a semaphore of another API.

        Parameters
        ----------
        semaphore : ExternalSemaphore
            The semaphore; the graph keeps it.
        value : int, optional
            Of a timeline: what it is set to, 0 to 2**64 - 1. It is the same at each launch, so
            update it for the next one: a timeline must grow.
        name : str, optional
            Unique in the graph.

        Returns
        -------
        Node
            The new node.

        Raises
        ------
        TypeError
            If a timeline has no value, or another semaphore has one.

        See Also
        --------
        Stream.signal : Signals in a stream.

        References
        ----------
        ``cuGraphAddExternalSemaphoresSignalNode``

        Examples
        --------
        >>> exported = cudago.sim.create_semaphore()
        >>> done = cudago.ExternalSemaphore.from_fd(device, exported)
        >>> graph = cudago.Graph(device)
        >>> node = graph.signal(done, 1, name="done")
        >>> step = graph.instantiate()
        >>> step.launch(stream)
        >>> step["done"].update(value=2)
        >>> step.launch(stream)
        >>> stream.sync()
        >>> exported.value
        2
        """
        return self._new(_core.Graph._add_semaphore, semaphore, value, False, name)

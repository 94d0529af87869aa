# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs that other code has too, by their handles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from .._native import unnamed
from .._ordinal import device_at

if TYPE_CHECKING:
    from typing import Self

    from .._memory.device import Device

__all__: list[str] = []


@unnamed
class Shared:
    """The part of `Graph` that deals with handles."""

    __slots__ = ()

    @classmethod
    def from_handle(
        cls, handle: int, *, device: Device | None = None, owner: object = None
    ) -> Self:
        """Wrap a ``CUgraph`` of another library.

        Parameters
        ----------
        handle : int
            The ``CUgraph``, of a graph that nothing captures. No driver can tell a number that is
            none.
        device : Device, optional
            The graph's device, which is not checked; by default device 0.
        owner : object, optional
            Object that keeps the handle valid and the graph's operands alive. It lives as long as
            this graph, or a clone, a graph that embeds it, or an executable made of it.

        Returns
        -------
        Graph
            With the nodes that the graph has now, named after their kinds; what they do is not
            known (`Node.params` is None). Closing it does not destroy the handle.

        Raises
        ------
        CUDAError
            If the driver does not know the graph.
        ValueError
            If it is a body of a conditional node of cudago.

        See Also
        --------
        handle : The ``CUgraph`` of a graph.

        Notes
        -----
        Both have one graph: nodes that you add here are in the other library's, which does not keep
        their operands. Keep this graph open while it uses them. What the library adds or removes
        from now on is not noticed here: wrap the handle again. Without an owner, keep the graph and
        what its nodes use alive yourself. A graph of cudago can be wrapped too, and lives as long
        as one of both.

        References
        ----------
        ``cuGraphGetNodes``, ``cuGraphNodeGetType``, ``cuGraphGetEdges``

        Examples
        --------
        >>> theirs = cudago.Graph(device)
        >>> node = theirs.memset(device.allocate(4, stream=stream), 0)
        >>> graph = cudago.Graph.from_handle(theirs.handle, owner=theirs)
        >>> graph.nodes, graph.retained[0].operand
        ((<cudago.Node 'memset_0': memset>,), 'owner')
        >>> theirs.close()
        """
        made: Any = _core._graph_from_handle(
            device_at() if device is None else device, handle, owner
        )
        return made  # type: ignore[no-any-return]

    def retain(self, *objects: object) -> None:
        """Keep objects alive that work of other libraries in this graph uses.

        Parameters
        ----------
        *objects : object
            What the graph keeps: tensors, arrays, communicators, anything. Of memory it keeps the
            allocation, as nodes do: closing or resizing the object takes nothing away from it.

        Raises
        ------
        TypeError
            If an object is None or an int: neither keeps anything alive.
        ValueError
            If the graph is a view of one in another graph, which cannot be changed.

        See Also
        --------
        retained : Lists them, with no node.

        Notes
        -----
        In a capture the kernels of other libraries become nodes, of whose operands cudago knows
        nothing. Hand those over, in the block or after it. They live as long as this graph, a
        clone, a graph that embeds it, an executable made of it from now on, and their launches.
        What a library allocates itself while it is being captured, it may use again as soon as its
        own objects are gone: retain these objects too.

        Examples
        --------
        >>> class Communicator: ...
        >>> communicator, x = Communicator(), device.allocate(4, stream=stream)
        >>> with stream.capture() as graph:
        ...     pass  # the communicator queues work on x in this stream
        >>> graph.retain(communicator, x)
        >>> x.close()
        >>> [(kept.operand, kept.nbytes) for kept in graph.retained]
        [('object', 0), ('object', 4)]
        """
        graph: Any = self
        graph._retain(*objects)

    @property
    def handle(self) -> int:
        """The ``CUgraph``, as an integer, for other libraries.

        What they make of it (clones, executables, graphs that embed it) keeps no operand alive, and
        nobody here knows of it. So reading this once changes what the graph does: from then on it
        holds everything that it has held, replaced operands and those of removed nodes too, until
        `close`; dropping the last reference does not close it any more. Close it once nothing that
        was made of the handle can run. Executables and clones that cudago makes hold their operands
        themselves, as always. Other code may add nodes, which are not noticed here; it must neither
        destroy the graph nor remove nodes of it.
        """
        graph: Any = self
        number: int = graph._export()
        return number

# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._import_at_exit import late
from .._native import unnamed
from .._ordinal import device_at

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from typing import Self

    from .._memory.device import Device

__all__: list[str] = []


@unnamed
class Stored:
    """The part of `Graph` that deals with files."""

    __slots__ = ()

    def save(self, path: str | PathLike[str], *, contents: bool = False) -> None:
        """Write the graph to a file, from which `load` makes it again, elsewhere too.

        Parameters
        ----------
        path : str or path-like
            The file. It is replaced once all is written.
        contents : bool
            Whether the contents of all memory that the graph uses are saved, as they are once all
            work on the device has completed; and those of the variables of its kernels' code, if
            the code is PTX.

        Raises
        ------
        ValueError
            If a node cannot be saved: what another library has captured, or memory that is not
            there any more. The message names the node.
        OSError
            If the file cannot be written. Nothing is left of it.

        See Also
        --------
        load : Reads the file.

        Notes
        -----
        Blocks until the file is written; with `contents`, until all work on the device has
        completed.

        The file has the nodes with their names, edges, arguments and slots, the graphs inside,
        and kernels as PTX, or as machine code if their PTX is not known. Operands refer to the
        allocations that they are in, so those that share memory share it in the loaded graph. It
        has no Python functions, and nothing that Python runs. An argument that is an address, as an
        int, is understood if another operand is in that memory; otherwise it stays that number. A
        struct with such an address, at any of its bytes, cannot be saved.
        Updates of executables are not part of the graph.

        It is a zip file without compression: ``graph.json``, ``code/N`` and ``memory/N``.

        Examples
        --------
        >>> import tempfile
        >>> x = cudago.asarray([1, 2], "i4", stream=stream)
        >>> graph = cudago.Graph(device)
        >>> node = graph.memset(x[:1], 7, name="fill")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graph.save(f"{folder}/step.cudago", contents=True)
        ...     again = cudago.Graph.load(f"{folder}/step.cudago")
        >>> again["fill"].params.dst.numpy(stream=stream)
        array([1], dtype=int32)
        """
        with late:
            from .._graph_file.save import save

        graph: Any = self
        save(graph, path, bool(contents))

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        *,
        device: Device | None = None,
        bind: Mapping[str, Any] | None = None,
        memory_limit: int = 1 << 28,
    ) -> Self:
        """Make a graph from a file that `save` wrote, on any driver.

        Parameters
        ----------
        path : str or path-like
            The file.
        device : Device, optional
            The device that the graph runs on, and that has its device memory; by default device 0.
        bind : mapping of str to object, optional
            What to use instead of saved memory: by the names of slots, or of operands, as in
            ``"upload.src"``, ``"saxpy.x"`` and ``"saxpy.2"``. Arguments that are numbers, and
            ``"mark.event"`` of nodes that record or wait for events, can be given too. What fills,
            copies and expressions are given is counted as in `Node.update`, or refused. Every host
            node needs a function, by the node's name. Nodes inside are called as in ``"loop/fill"``
            and ``"choose[1]/fill"``.
        memory_limit : int
            How many bytes a load may take that the file does not have: pinned, managed and pageable
            memory without contents counts, and 512 KiB for every graph in a conditional node, for
            which GPUs set memory aside. Device memory does not count.

        Returns
        -------
        Graph
            With the same nodes, names and slots.

        Raises
        ------
        GraphFileError
            If it is not such a file, or is damaged, or a later version made it.
        KeyError
            If `bind` has a name that nothing has; the message lists those that exist.
        ValueError
            If a host node has no function.
        OutOfMemoryError
            If it asks for more than `memory_limit`, or than there is.
        CUDAError
            If this driver or device cannot have such a graph, as when its code is for
            another one. The simulated driver runs only PTX.

        See Also
        --------
        save : Writes the file.

        Notes
        -----
        Blocks until the memory is there. What is not bound is new memory of the same kind and size,
        with the saved contents if there are any, and zeros otherwise; memory of other libraries
        becomes memory of cudago, and memory of several devices comes to be on one. Device memory
        that nodes write values into is of a `VirtualMemoryResource`. ``node.params`` has what was
        made, as `Tensor`, `Buffer`, and NumPy arrays for pageable host memory. Events are new too.

        The file is checked before anything is made, and if anything fails, nothing is left. Besides
        device memory and `memory_limit`, a load takes time and memory as the file has bytes. Its
        kernels are programs all the same: on a GPU, launch only graphs that you trust.

        Examples
        --------
        >>> import tempfile
        >>> x = cudago.zeros(4, "u1", stream=stream)
        >>> graph = cudago.Graph(device)
        >>> node = graph.memcpy(x, cudago.slot("source", b"abcd"), name="up")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     graph.save(f"{folder}/step.cudago")
        ...     again = cudago.Graph.load(f"{folder}/step.cudago", bind={"source": b"efgh"})
        >>> again.instantiate().launch(stream)
        >>> again["up"].params.dst.numpy(stream=stream).tobytes()
        b'efgh'
        """
        with late:
            from .._graph_file.load import load

        if bind is not None and not hasattr(bind, "items"):
            raise TypeError(f"bind must be a mapping, not {type(bind).__name__}")
        graph: Any = cls
        on = device_at() if device is None else device
        made: Any = load(graph, path, on, bind or {}, memory_limit)
        return made  # type: ignore[no-any-return]

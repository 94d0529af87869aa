# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What is open, where it was made, what died without being closed, and memory over time.

Python's own ``tracemalloc`` knows where an object was made, once it has been started::

    python -X tracemalloc=5 program.py

Without it this module says what, but not where.
"""

from __future__ import annotations

import inspect
import warnings
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from . import _core
from ._graph.exec import GraphExec
from ._graph.graph import Graph
from ._graph.watch import Watcher, is_watching
from ._import_at_exit import late
from ._memory.buffer import Buffer
from ._memory.resource import MemoryResource
from ._memory.timeline import MemorySample, MemoryTimeline
from ._native import or_closed, shown
from ._ordinal import devices_in_use
from ._stream.event import Event
from ._stream.stream import Stream
from ._tensor.tensor import Tensor
from .errors import ClosedError
from .testing import settle

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Leak",
    "MemorySample",
    "MemoryTimeline",
    "leaks",
    "record_origins",
    "resource_warnings",
    "watch_pointers",
]

_T = TypeVar("_T")
_CLOSABLE = (Buffer, Event, Graph, GraphExec, MemoryResource, Stream, Tensor)
_WARNED = (Event, Graph, GraphExec, Stream)  # and buffers; views such as tensors need no close()


@dataclass(frozen=True)
class Leak:
    """An object that is open.

    Parameters
    ----------
    kind : str
        Name of its class.
    text : str
        Its ``repr``; that of ``object`` if its own raises.
    where : tuple of str
        The lines that made it, as ``"file.py:12"``, the innermost first; those of cudago are left
        out. Empty if ``tracemalloc`` did not run then.
    object : object
        The object itself, which this keeps: ``gc.get_referrers(leak.object)`` says who else does.

    Examples
    --------
    >>> print(cudago.debug.leaks()[0].kind)
    Stream
    """

    kind: str
    text: str
    where: tuple[str, ...]
    object: Any = field(repr=False, compare=False)

    def __str__(self) -> str:
        made = f", made at {self.where[0]}" if self.where else ""
        return f"{self.text}{made}"


def leaks() -> tuple[Leak, ...]:
    """Return everything that is open and that somebody still holds.

    Returns
    -------
    tuple of Leak
        Buffers, tensors, streams, events, graphs, executables and memory resources, sorted by
        where they were made. A device's own default streams and default resource are not among
        them.

    See Also
    --------
    cudago.live_objects : Counts also what only a graph or another library holds.
    cudago.testing.no_leaks : Checks that a ``with`` block releases what it takes.

    Notes
    -----
    Collects garbage first, and waits up to 10 s, with the GIL released, for what device work may
    still use. Looks at every object of the process, which takes some 0.1 s per million,
    with the GIL held. Objects that only a running function's variables hold are found, tensors
    excepted.

    Examples
    --------
    >>> kept = device.allocate(64, stream=stream)
    >>> any(leak.object is kept for leak in cudago.debug.leaks())
    True
    """
    with suppress(TimeoutError):
        settle()
    own = {id(o) for o in _own()}
    found = {id(o): o for o in _objects() if id(o) not in own and not o.is_closed}
    made = [Leak(type(o).__name__, shown(o), _where(o), o) for o in found.values()]
    return tuple(sorted(made, key=lambda leak: (leak.where, leak.kind, leak.text)))


def resource_warnings(on: bool = True) -> None:
    """Say whether an object that dies open is a `ResourceWarning`.

    Parameters
    ----------
    on : bool
        Off when the program starts: that collection closes what nobody uses is no mistake, but a
        program that closes everything itself may want to hear of what it forgot.

    Notes
    -----
    Of streams, events, graphs, executables and whole buffers. Tensors, views and pointers need no
    ``close()``. Python shows such warnings with ``-W default`` or ``-X dev``, and with
    ``-X tracemalloc`` where the object was made.

    Examples
    --------
    >>> cudago.debug.resource_warnings()
    >>> cudago.debug.resource_warnings(False)
    """
    _core._set_dying(_warn if on else None)
    kind: Any
    for kind in _WARNED:
        if on:
            kind.__del__ = _warn
        elif "__del__" in vars(kind):
            del kind.__del__


def _switch(cls: type[_T]) -> type[_T]:
    """Give a class the signature of its `_row`: its constructor is native, see ``block.c``."""
    switch: Any = cls
    switch.__signature__ = inspect.signature(switch._row).replace(return_annotation=None)
    switch._row.__qualname__ = cls.__name__  # in errors
    return cls


@_switch
class record_origins(_core.Switch):
    """Say whether nodes of graphs, and large allocations, note the line that makes them.

    Called, it is a switch; in a ``with`` statement, it is undone at the end of the block. The
    process has one such switch.

    Parameters
    ----------
    on : bool
        Whether what is made from now on notes its line. On when the program starts.

    See Also
    --------
    cudago.Node.made_at : The line of a node.
    cudago.OutOfMemoryError : Its message tells the lines of the largest allocations.

    Notes
    -----
    A node keeps a number. The text of a line is kept once, for good; neither frames nor code are
    kept. Adding a kernel costs some 100 ns more, other nodes and allocations of 1 MiB or more up to
    200; switched off, one test of a flag.

    Examples
    --------
    >>> with cudago.debug.record_origins(False):
    ...     print(cudago.Graph(device).join().made_at)
    None
    """

    __slots__ = ()

    if TYPE_CHECKING:
        __signature__: ClassVar[inspect.Signature]

        def __init__(self, on: bool = True) -> None: ...

    @staticmethod
    def _row(on: bool = True) -> tuple[Any, ...]:
        return _core._record_sites, bool(on)

    @or_closed
    def __repr__(self) -> str:
        return f"<cudago.debug.record_origins: {'on' if _core._record_sites(None) else 'off'}>"


@_switch
class watch_pointers(_core.Switch):
    """Refuse launches of graphs whose kernels have addresses, as ints, of memory that was freed.

    Called, it is a switch; in a ``with`` statement, it is undone at the end of the block. The
    process has one such switch.

    Parameters
    ----------
    on : bool
        Whether addresses are watched from now on.

    Raises
    ------
    CheckError
        Before anything runs, by `GraphExec.launch`, `GraphExec.profile`, calls of a `BoundLaunch`
        and of a `GraphFunction`, and launches into a capture: it names the node, the parameter and
        the address.

    See Also
    --------
    cudago.init : Its simulated driver finds such addresses too, and the access itself.

    Notes
    -----
    When a kernel is added to a graph or updated, and at the end of a capture, the driver is asked
    for the number of the allocation that each int is in, if it is given for 8 bytes; it never uses
    a number twice. At each launch it is asked again: that finds freed memory even where other
    memory has the address by now. An executable that is older than the switch is judged by
    its first launch. Numbers in no memory are accepted. Nodes of embedded graphs and of bodies are
    watched, disabled nodes are not.

    Each launch then costs about a microsecond more, and as much for each address. Off, it costs
    nothing.

    References
    ----------
    ``cuPointerGetAttribute``

    Examples
    --------
    >>> source = 'extern "C" __global__ void set(int* x) { *x = 1; }'
    >>> kernel = cudago.Program(source).compile()["set"]
    >>> x = device.allocate(4, stream=stream)
    >>> with cudago.debug.watch_pointers():
    ...     graph = cudago.Graph(device)
    ...     node = graph.launch(cudago.LaunchConfig(1, 1), kernel, x.handle, name="set")
    ...     step = graph.instantiate()
    ...     x.close()
    ...     stream.sync()
    ...     try:
    ...         step.launch(stream)
    ...     except cudago.CheckError as e:
    ...         print(str(e)[:66])
    graph launch refused, nothing ran: node 'set': kernel set, paramet
    """

    __slots__ = ()

    if TYPE_CHECKING:
        __signature__: ClassVar[inspect.Signature]

        def __init__(self, on: bool = True) -> None: ...

    @staticmethod
    def _row(on: bool = True) -> tuple[Any, ...]:
        return _core._set_watcher, Watcher if on else None

    def __repr__(self) -> str:
        return f"<cudago.debug.watch_pointers: {'on' if is_watching() else 'off'}>"


def _warn(self: Any) -> None:
    if self.is_closed or (isinstance(self, Buffer) and not self._is_whole):
        return
    warnings.warn(f"unclosed {_told(self)}", ResourceWarning, stacklevel=2, source=self)


def _told(unclosed: Any) -> str:
    if isinstance(unclosed, Buffer):
        # Without its values: a collection is no time to look into memory.
        return unclosed._described(lambda _: "")
    if isinstance(unclosed, Graph | GraphExec):
        try:
            unclosed._count()
        except ClosedError:  # the interpreter is ending, and cudago answers no more
            return f"<cudago.{type(unclosed).__name__}>"
        except ValueError:
            pass  # it is being captured
    return repr(unclosed)


def _own() -> Iterator[object]:
    """Yield what devices keep for themselves."""
    for device in devices_in_use() if _core._is_open() else ():
        for name in ("_default_stream", "_per_thread_stream"):
            yield getattr(device, name, None)
        yield device.memory_resource


def _objects() -> Iterator[Any]:
    """Yield the objects with a close().

    The collector knows neither buffers, of which there is a list, nor tensors: whoever holds one
    is asked.
    """
    yield from _core._all_buffers()
    yield from _core._objects_of(_CLOSABLE, Tensor)


def _where(of: object) -> tuple[str, ...]:
    """Return the lines that made an object, outside of this package."""
    with late:
        import tracemalloc  # loads pickle

    traceback = tracemalloc.get_object_traceback(of)
    package = __file__.rpartition("debug")[0]
    if traceback is None:
        return ()
    lines = [frame for frame in reversed(traceback) if not frame.filename.startswith(package)]
    return tuple(f"{frame.filename}:{frame.lineno}" for frame in lines)

# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Who keeps an object alive: graphs, executables, and work under way."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from .. import _core
from .._numpy import np
from ..errors import ClosedError
from .exec import GraphExec
from .graph import Graph
from .retained import object_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .._core import Operand

__all__ = ["Holder", "who_retains"]

_NEVER = (bool, int, float, complex, str)  # values, which are copied
_COUNTED = ("device", "pinned", "managed", "array")  # of `Operand.kind`, for memory_summary


@dataclass(frozen=True, eq=False)
class Holder:
    """One place where an object is kept alive. Found with `who_retains`.

    Parameters
    ----------
    holder : Graph, GraphExec or None
        What holds it; None for work under way, whose executable may be gone.
    node : str
        Name of the node that uses it; empty for work under way.
    operand : str
        Its role in the node, as in `Retained`; empty for work under way.
    nbytes : int
        Bytes of memory that are kept there.
    reason : str
        Kind of the node, as in `Retained`, or ``"under way"``.
    """

    holder: Graph | GraphExec | None
    node: str
    operand: str
    nbytes: int
    reason: str

    @property
    def kind(self) -> Literal["graph", "executable", "work"]:
        """What holds it, in a word."""
        if self.holder is None:
            return "work"
        return "graph" if isinstance(self.holder, Graph) else "executable"

    def __str__(self) -> str:
        if self.holder is None:
            return f"work under way keeps {self.nbytes} bytes"
        return f"{self.holder!r} keeps it as {self.operand} of node {self.node!r}"


def who_retains(obj: object) -> tuple[Holder, ...]:
    """Return what cudago has that keeps an object, or memory that it shares, alive.

    Parameters
    ----------
    obj : object
        Something that was given to a graph or a launch: a Buffer, Tensor or Pointer, an array,
        ``bytes``, a callback, a Kernel, an Event. Views of the same memory count too, those of
        arrays of other libraries only if they have an ``__array_interface__``.

    Returns
    -------
    tuple of Holder
        One for each node of each open graph and executable that keeps it, then those for work
        under way: a launch or copy that has not completed, an executable that was closed or updated
        since, a capture, or a graph that another library captured.

    Raises
    ------
    TypeError
        If the object is None, a number or a str: nothing keeps those.

    See Also
    --------
    Graph.retained, GraphExec.retained : The same question asked the other way.
    cudago.debug.leaks : What is open.

    Notes
    -----
    Looks at every object of the process, which takes some 0.05 s per million. Releases nothing, and
    does not wait. Your own variables are not among the answers: ``gc.get_referrers`` tells of them.

    Examples
    --------
    >>> x = device.allocate(4, stream=stream)
    >>> graph = cudago.Graph(device)
    >>> node = graph.memset(x, 7, name="fill")
    >>> for holder in cudago.who_retains(x):
    ...     print(holder)
    <cudago.Graph of 1 nodes> keeps it as dst of node 'fill'
    """
    if obj is None or type(obj) in _NEVER:
        raise TypeError(
            "obj must be something that a graph or a launch can keep, such as a Buffer, a Tensor, "
            f"an array, a callback, a Kernel or an Event, not {type(obj).__name__}"
        )
    wanted = _span(obj)
    found: list[Holder] = []
    seen: set[int] = set()
    operands: list[Operand] = []
    things = _core._objects_of((Graph, GraphExec, _core.Operand), None)
    for thing in sorted(things, key=_graphs_first):  # they come as the collector has them
        if type(thing) is _core.Operand:
            operands.append(thing)
        else:
            found += _held_by(thing, obj, wanted, seen)
    for o in operands:
        if id(o) not in seen and _is(o, obj, wanted):
            found.append(Holder(None, "", "", o.nbytes, "under way"))
    return tuple(found)


def _graphs_first(thing: object) -> bool:
    return not isinstance(thing, Graph)


def _held_by(
    holder: Graph | GraphExec, obj: object, wanted: tuple[int, int] | None, seen: set[int]
) -> Iterator[Holder]:
    """Yield the places in a graph or an executable."""
    for held, nbytes, node, operand, reason in _rows(holder):
        seen.add(id(held))
        if _is(held, obj, wanted):
            yield Holder(holder, node, operand, nbytes, reason)


def _rows(holder: Graph | GraphExec) -> tuple[tuple[Any, int, str, str, str], ...]:
    """Return what a graph or an executable retains; what a body does, its graph tells."""
    if isinstance(holder, GraphExec):
        with suppress(ClosedError):
            return holder._retained()
    elif not holder._body_id:
        with suppress(ValueError):  # closed, or being captured
            return holder._retained(0)
    return ()


def kept_bytes() -> dict[str, int]:
    """Return how much memory graphs and executables keep, by where it is.

    Whole allocations, each once. What graphs allocate themselves is not among it.
    """
    ranges: dict[str, list[tuple[int, int]]] = {}
    for holder in _core._objects_of((Graph, GraphExec), None):
        for held, nbytes, *_ in _rows(holder):
            if type(held) is _core.Operand and held.kind in _COUNTED:
                name, low, high = _allocation(held, nbytes)
                if high > low:  # what is called has no memory
                    ranges.setdefault(name, []).append((low, high))
    return {name: covered(them) for name, them in ranges.items()}


def kept_size(rows: Iterable[tuple[Any, int, str, str, str]]) -> int:
    """Return how much memory of all kinds the rows of `_retained` keep: each allocation once."""
    return covered(
        _allocation(held, nbytes)[1:] for held, nbytes, *_ in rows if type(held) is _core.Operand
    )


def covered(ranges: Iterable[tuple[int, int]]) -> int:
    """Return how many addresses are in ranges, which may overlap."""
    total = end = 0
    for low, high in sorted(ranges):
        total += max(0, high - max(low, end))
        end = max(end, high)
    return total


def _allocation(held: Operand, nbytes: int) -> tuple[str, int, int]:
    """Return where what an operand keeps is, as a name and as a range of addresses."""
    try:
        whole = held.whole
    except ClosedError:  # a reset has taken it
        return held.kind, held.address, held.address
    if whole is None:
        return held.kind, held.address, held.address + nbytes
    device = whole.device
    name = held.kind if device is None or held.kind != "device" else f"device {device.ordinal}"
    return name, whole.handle, whole.handle + whole.size


def _is(held: Any, obj: object, wanted: tuple[int, int] | None) -> bool:
    """Whether what is held is the object, or has memory in common with it."""
    if object_of(held) is obj:
        return True
    if wanted is None or type(held) is not _core.Operand:
        return False
    begin, size = wanted
    return held.address < begin + size and begin < held.address + held.nbytes


def _span(obj: Any) -> tuple[int, int] | None:
    """Return address and size of an object's memory; None if it has none that is known here."""
    try:
        if isinstance(obj, _core.Buffer):
            return obj.handle, obj.size
        if isinstance(obj, _core.Pointer):
            return int(obj), obj.buffer.size - obj.offset
        if isinstance(obj, _core.Tensor):
            span, _ = obj._span  # from the lowest element to the highest, whatever the strides
            return span.handle, span.size
        if isinstance(getattr(obj, "__array_interface__", None), dict):
            return _reach(np.asarray(obj))
    except ClosedError:
        pass
    return None


def _reach(array: np.ndarray) -> tuple[int, int]:
    """Return where the lowest element of an array is, and the bytes to the end of the highest."""
    first = int(array.__array_interface__["data"][0])
    if not array.size:
        return first, 0
    steps = [(n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)]
    low = sum(step for step in steps if step < 0)
    return first + low, sum(map(abs, steps)) + array.itemsize

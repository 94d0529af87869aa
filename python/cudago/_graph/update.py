# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Updates of nodes, in graphs and in executables."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from .. import _core
from .._kernel.work import COUNTED, WALKED
from .._stream.callee import with_arguments
from .._stream.memop import condition_code
from .._tensor import copy, renewed
from .._tensor.element import check_pattern, is_narrow, pattern_for
from .._tensor.operand import as_tensor, has_gaps
from . import own_kernel
from .params import changed, is_change
from .retained import object_of
from .slot import Slot, check_update, noted, plain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .._stream.event import Event
    from .exec import GraphExec
    from .exec_node import ExecNode
    from .graph import Graph
    from .node import Node


def update_node(
    node: Node | ExecNode, owner: Graph | GraphExec, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Change a node's parameters to what the arguments of `update` say."""
    change = _UPDATES.get(node.kind)
    if node.kind == "kernel":
        change = _of_kernel(node, owner, args, kwargs)
    if node.kind == "batch mem op" and _memory_operation(node, owner)[1][2]:
        change = _wait
    if change is None:
        raise TypeError(
            f"{node.name!r} is of kind {node.kind}, whose parameters cannot be updated; "
            f"only {', '.join(_UPDATES)} nodes can be"
        )
    try:
        change(node, owner, *args, **kwargs)
    except TypeError:
        _check_form(node, change, args, kwargs)
        raise


def _check_form(
    node: Node | ExecNode,
    change: Callable[..., None],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> None:
    """Raise a TypeError that says which arguments the node's kind takes, if these differ."""
    form = signature(change)
    try:
        form.bind(node, None, *args, **kwargs)
    except TypeError as e:
        marks = {"VAR_POSITIONAL": "*{}", "KEYWORD_ONLY": "{}="}
        own = list(form.parameters.values())[2:]
        takes = ", ".join(marks.get(p.kind.name, "{}").format(p.name) for p in own)
        # An unknown name explains more than a missing one.
        unknown = [n for n in kwargs if n not in form.parameters]
        wrong = f"got an unexpected keyword argument {unknown[0]!r}" if unknown else e
        what = _TITLES.get(change, f"{node.kind} node")
        article = "an" if what[0] in "aeiou" else "a"
        raise TypeError(f"update of {article} {what} takes {takes}: {wrong}") from None


# The first two parameters are positional only, so that a kernel's parameters can have any name.


def _memcpy(
    node: Node | ExecNode, owner: Graph | GraphExec, /, *, dst: Any = None, src: Any = None
) -> None:
    if dst is None and src is None:
        raise TypeError("update of a memcpy node needs dst=, src= or both")
    check_update(owner, (dst, src))
    rows = _rows(node, owner, (dst, src)) if isinstance(owner, _core.Graph) else None
    if rows is not None:
        owner._update_box(node._id, *rows)  # type: ignore[union-attr]
    else:
        note = noted(owner, "memcpy", (("dst", dst), ("src", src)))
        owner._update_memcpy(node._id, plain(dst), plain(src), note)


def _rows(
    node: Node | ExecNode, graph: Graph, given: tuple[Any, Any]
) -> tuple[_core.Operand, _core.Operand, tuple[int, ...]] | None:
    """Return what _update_box takes, if an update changes a copy of rows or makes one; else None.

    Only a graph's: in an executable the driver changes none.
    """
    row, held = graph._params(node._id)
    if row is None or any(isinstance(thing, _core.OpaqueArray) for thing in given):
        return None
    if row[1] * row[2] <= 1 and not any(map(has_gaps, given)):
        return None
    if any(type(thing) is Slot for thing in given):
        raise ValueError(f"{node.name!r} copies rows with gaps between them, and cannot use slots")
    sides: list[Any] = []
    for name, thing in zip(("dst", "src"), given, strict=True):
        kept = thing is None
        own = next((object_of(it) for it, _, _, role, _ in held if role == name), None)
        if kept and (own is None or isinstance(own, _core.OpaqueArray)):
            return None  # another library's, or an array: Go says so
        if kept and getattr(own, "is_closed", False):
            raise ValueError(
                f"{node.name!r} copies rows with gaps between them, and its {name}, which tells "
                "where the rows are, was closed: give dst= and src="
            )
        sides.append(own if kept else thing)
    return _rows_of(node, *sides)


def _rows_of(
    node: Node | ExecNode, dst: Any, src: Any
) -> tuple[_core.Operand, _core.Operand, tuple[int, ...]]:
    to, of = as_tensor(dst), as_tensor(src)
    if to.is_contiguous and of.is_contiguous:
        size = to.nbytes
        if size != of.nbytes:
            raise ValueError(
                f"dst has {size} bytes, src {of.nbytes}: a copy needs the same size on both sides"
            )
        box = size, 1, 1, size, 1, size, 1
        return _core._operand(dst, dst, True), _core._operand(src, src, False), box
    rows = copy.box(to, of, (dst, src))
    if rows is None:
        raise ValueError(
            f"one copy of {node.name!r} cannot be between strides {to.strides} and {of.strides} of "
            f"shape {to.shape}: remove the node, and add another"
        )
    return rows


def _memset(
    node: Node | ExecNode, owner: Graph | GraphExec, /, dst: Any = None, value: Any = None
) -> None:
    if dst is None and value is None:
        raise TypeError("update of a memset node needs dst, value or both")
    check_update(owner, (dst,))
    memory: Any = plain(dst)
    if dst is None or value is None:
        memory, pattern = _other_half(node, owner, memory, value)
    else:
        pattern = pattern_for(memory, value)
    if isinstance(pattern, bytes) and not is_narrow(pattern):
        raise ValueError(
            f"{node.name!r} is a memset node, which fills with 1, 2 or 4 bytes, and this "
            f"value of an element has {len(pattern)}: remove the node, and add another fill"
        )
    note = noted(owner, "memset", (("dst", dst),))
    owner._update_memset(node._id, memory, pattern, note)


def _other_half(
    node: Node | ExecNode, owner: Graph | GraphExec, memory: Any, value: Any
) -> tuple[Any, bytes]:
    """Return the memory and the pattern of a fill, of which one stays as it is."""
    held, row = _memory_operation(node, owner)
    if value is not None:
        return held, pattern_for(held.object, value)
    pattern: bytes = row[0].to_bytes(row[1], "little")
    check_pattern(pattern, node.name, held.object, memory)
    return memory, pattern


def _write(
    node: Node | ExecNode, owner: Graph | GraphExec, /, *, dst: Any = None, value: Any = None
) -> None:
    if dst is None and value is None:
        raise TypeError("update of a node that writes a value needs what is to change")
    _memop(node, owner, dst, value, -1)


def _wait(
    node: Node | ExecNode,
    owner: Graph | GraphExec,
    /,
    *,
    src: Any = None,
    value: Any = None,
    condition: Any = None,
) -> None:
    if src is None and value is None and condition is None:
        raise TypeError("update of a node that waits for a value needs what is to change")
    _, row = _memory_operation(node, owner)
    code = row[3] if condition is None else condition_code(condition)
    _memop(node, owner, src, value, code)


def _memop(
    node: Node | ExecNode, owner: Graph | GraphExec, memory: Any, value: Any, code: int
) -> None:
    """Change a memory operation; None stays as it is."""
    held, row = _memory_operation(node, owner)
    owner._update_memop(
        node._id, held if memory is None else memory, row[0] if value is None else value, code
    )


def _memory_operation(
    node: Node | ExecNode, owner: Graph | GraphExec
) -> tuple[Any, tuple[Any, ...]]:
    """Return the memory and the numbers of a memory operation."""
    row, rows = owner._params(node._id)
    if row is None:
        raise TypeError(f"{node.name!r} was captured by another library, and is not known")
    return next(it for it, _, _, operand, _ in rows if operand in ("dst", "src")), row


def _semaphore(
    node: Node | ExecNode,
    owner: Graph | GraphExec,
    /,
    *,
    semaphore: Any = None,
    value: Any = None,
) -> None:
    if semaphore is None and value is None:
        raise TypeError(f"update of a {node.kind} node needs semaphore=, value= or both")
    row, rows = owner._params(node._id)
    if row is None:
        raise TypeError(f"{node.name!r} was captured by another library, and is not known")
    is_own = semaphore is None
    if is_own:
        semaphore = next(it for it, _, _, operand, _ in rows if operand == "semaphore")
    if value is None and semaphore.is_timeline:
        value = row[0]
    owner._update_semaphore(node._id, semaphore, value, node.kind == "semaphore wait", is_own)


def _of_kernel(
    node: Node | ExecNode, owner: Graph | GraphExec, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., None]:
    """Return what updates a kernel node: it may be a fill or a copy, by a kernel of ours."""
    is_whole = not kwargs and not is_change(args)
    if is_whole and isinstance(args[1], _core.Kernel):
        return _kernel
    record = owner._record(node._id)
    work = "" if record is None else record[0]._work
    own = own_kernel.WORKS.get(work)
    if own is not None and not own.takes:
        raise ValueError(own_kernel.together(own, node.name))
    if own is not None and args and isinstance(args[0], dict | _core.LaunchConfig | _core.Kernel):
        raise TypeError(own_kernel.together(own, node.name))
    return _OWN.get(work, _kernel if is_whole else _change_kernel)


def _own(node: Node | ExecNode, owner: Graph | GraphExec, given: dict[str, Any]) -> None:
    """Update what a kernel of ours does, by what its operands are called."""
    record = owner._record(node._id)
    assert record is not None
    work = own_kernel.WORKS[record[0]._work]
    if len(given) > 1 and all(thing is None for thing in given.values()):
        raise TypeError(f"update of a {work.title} needs {work.takes} or both")
    placed = {own: given[own] for own in work.places}
    check_update(owner, placed.values())
    plains = given | {own: plain(thing) for own, thing in placed.items()}
    slots = [(work.places[own], placed[own]) for own in placed]
    _renew(node, owner, own_kernel.named(record, node.name, owner.device, plains), slots)


def _fill(
    node: Node | ExecNode, owner: Graph | GraphExec, /, dst: Any = None, value: Any = None
) -> None:
    _own(node, owner, {"dst": dst, "value": value})


def _copy(
    node: Node | ExecNode, owner: Graph | GraphExec, /, *, dst: Any = None, src: Any = None
) -> None:
    if Slot in (type(dst), type(src)):
        raise ValueError(f"{node.name!r} copies between strides, and cannot use slots")
    _own(node, owner, {"dst": dst, "src": src})


def _condition(node: Node | ExecNode, owner: Graph | GraphExec, /, value: Any) -> None:
    _own(node, owner, {"value": value})


def _counted(
    node: Node | ExecNode, owner: Graph | GraphExec, /, *change: Any, **named: Any
) -> None:
    record = owner._record(node._id)
    assert record is not None
    launched = changed(record, change, named)
    if launched[1] is not record[0]:
        raise TypeError(
            f"{node.name!r} is of a kernel that counts the elements of its tensors: update it with "
            "other tensors and numbers, or as a whole with config, kernel and all arguments"
        )
    check_update(owner, launched)
    plains = tuple(map(plain, launched))
    _renew(node, owner, renewed.counted(record, node.name, plains), enumerate(launched[2:]))


def _walked(node: Node | ExecNode, owner: Graph | GraphExec, /, *change: Any, **named: Any) -> None:
    record = owner._record(node._id)
    assert record is not None
    launched = changed(record, change, named)
    if any(type(thing) is Slot for thing in launched):
        raise ValueError(
            f"{node.name!r} goes over strides, or writes several tensors, and cannot use slots"
        )
    _renew(node, owner, renewed.walked(record, node.name, launched), ())


def _renew(
    node: Node | ExecNode,
    owner: Graph | GraphExec,
    launched: tuple[Any, ...],
    given: Iterable[tuple[str | int, Any]],
) -> None:
    config, kernel, *args = launched
    note = noted(owner, "kernel", given)
    owner._update_kernel(node._id, config, kernel, tuple(args), note)


def _kernel(
    node: Node | ExecNode, owner: Graph | GraphExec, /, config: Any, kernel: Any, *args: Any
) -> None:
    record = owner._record(node._id) if owner._uses else None
    _set_kernel(node, owner, config, kernel, args, record is None or record[0] != kernel)


def _set_kernel(
    node: Node | ExecNode,
    owner: Graph | GraphExec,
    config: Any,
    kernel: Any,
    args: tuple[Any, ...],
    is_new: bool,
) -> None:
    """Update a kernel node as a whole; `is_new` if its parameters are other ones than before."""
    if isinstance(kernel, _core.Kernel) and kernel._work:
        raise ValueError(
            f"kernel {kernel.name} is one of cudago's own, which are not checked for what their "
            f"arguments have them write: capture the {kernel._work} by itself"
        )
    check_update(owner, args)
    note = noted(owner, "kernel", enumerate(args), is_new)
    owner._update_kernel(node._id, config, kernel, tuple(map(plain, args)), note)


def _change_kernel(
    node: Node | ExecNode, owner: Graph | GraphExec, /, *change: Any, **named: Any
) -> None:
    """Update a kernel node with the record of what it is, some of it replaced."""
    record = owner._record(node._id)
    if record is None:
        raise TypeError(
            f"{node.name!r} was captured by another library, and its arguments are not known: "
            "update it with config, kernel and all arguments"
        )
    config, kernel, *args = changed(record, change, named)
    _set_kernel(node, owner, config, kernel, tuple(args), is_new=False)


def _host(
    node: Node | ExecNode, owner: Graph | GraphExec, /, func: Callable[..., Any], *args: Any
) -> None:
    owner._update_host(node._id, with_arguments(func, args))


def _event(node: Node | ExecNode, owner: Graph | GraphExec, /, event: Event) -> None:
    owner._update_event(node._id, event)


def _child(node: Node | ExecNode, owner: Graph | GraphExec, /, graph: Graph) -> None:
    owner._update_child(node._id, graph)


_UPDATES: dict[str, Callable[..., None]] = {
    "kernel": _kernel,
    "memcpy": _memcpy,
    "memset": _memset,
    "batch mem op": _write,
    "host": _host,
    "child graph": _child,
    "event record": _event,
    "event wait": _event,
    "semaphore signal": _semaphore,
    "semaphore wait": _semaphore,
}
_OWN: dict[str, Callable[..., None]] = {
    "fill": _fill,
    "copy": _copy,
    "condition": _condition,
    **dict.fromkeys(COUNTED, _counted),
    **dict.fromkeys(WALKED, _walked),
}
_TITLES = {_OWN[work]: own.title for work, own in own_kernel.WORKS.items() if own.takes}

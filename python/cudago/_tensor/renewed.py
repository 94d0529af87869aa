# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Other memory and other values for nodes of graphs that a kernel of ours does.

The arguments of such a kernel describe the memory together: its address, how many elements there
are, and their strides. So none is changed alone; an update computes all of them anew. A node that
does all of what was passed keeps what was passed, by which an update knows shape and element type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _core
from .._native import number_text
from . import copy, strided
from .element import check_pattern, element, shortest
from .expression import config_for
from .number import is_number
from .operand import as_tensor

if TYPE_CHECKING:
    from .._memory.device import Device
    from .tensor import Tensor

_GOES = "goes over tensors whose strides are arguments too"
_WORDS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}


class Was(NamedTuple):
    """What is known of the memory that an argument was, where nobody has that memory any more."""

    nbytes: int
    dtype_name: str | None


# --- fills ----------------------------------------------------------------------------------------


def filled(
    record: tuple[Any, ...], name: str, device: Device, dst: Any = None, value: Any = None
) -> Any:
    """Return the launch of a fill with other memory or another value; None stays as it is."""
    kernel, config, held, low, high, *rest = record
    word = int(kernel.name.removeprefix("fill_"))
    was = getattr(held, "object", held)
    if dst is None:
        pattern = _element_for(was, value, word, name, rest)
        return config, kernel, held, *strided.halves(pattern), *rest
    if value is None:
        if not _is_whole(was, word, rest):
            raise _unknown(name, "fills", "dst= and value=")
        if not (isinstance(low, int) and isinstance(high, int)):  # of a file, where memory moved
            raise ValueError(f"{name!r} fills with an address: give value= too")
        tensor = _over(dst, word)
        pattern = b"".join(part.to_bytes(8, "little") for part in (low, high))[:word]
    else:
        tensor, pattern = _with_value(dst, value)
    pattern = shortest(pattern)
    if value is None:
        check_pattern(pattern, name, was, tensor)
    return strided.one_fill(tensor, pattern, dst, device)


def _is_bytes(memory: Any) -> bool:
    """Whether memory has no element type."""
    return isinstance(memory, _core.Buffer | _core.Pointer) or not hasattr(memory, "dtype")


def _is_whole(was: Any, word: int, rest: list[Any]) -> bool:
    """Whether what a node fills is all of `was`, in elements of one word."""
    count, first, step = rest[0], rest[1], rest[4]
    if isinstance(was, Was):
        return bool(count == first and step == word and count * word == was.nbytes)
    if not _is_bytes(was):
        return int(_core._dtype(was.dtype)[1]) == 8 * word
    return isinstance(was, _core.Buffer) and count == first and step == word


def _element_for(was: Any, value: Any, word: int, name: str, rest: list[Any]) -> bytes:
    """Return the bytes of another value for the memory that a node fills."""
    if not _is_whole(was, word, rest):
        raise _unknown(name, "fills", "dst= and value=")
    if not _is_bytes(was):
        return element(value, _core._dtype(was.dtype)[0])
    if not isinstance(value, bytes | bytearray) or len(value) != word:
        raise ValueError(
            f"the element type of what {name!r} fills is not known: give the value as bytes of one "
            f"element, of which it has {word}, or dst= too"
        )
    return bytes(value)


def _with_value(dst: Any, value: Any) -> tuple[Tensor, bytes]:
    if not _is_bytes(dst):
        tensor = as_tensor(dst)
        return tensor, element(value, tensor.dtype_name)
    if isinstance(value, int) and not 0 <= value < 256:
        raise OverflowError(f"fill value of bytes must be 0 to 255, got {number_text(value)}")
    pattern = bytes([value]) if isinstance(value, int) else memoryview(value).tobytes()
    if len(pattern) not in _WORDS:
        raise ValueError(f"fill value must have 1, 2, 4, 8 or 16 bytes, got {len(pattern)}")
    return _over(dst, len(pattern)), pattern


def _over(memory: Any, word: int) -> Tensor:
    """Return a tensor over memory; of bytes, with elements of one word."""
    if not _is_bytes(memory):
        return as_tensor(memory)
    if isinstance(memory, _core.Pointer):
        memory = memory.buffer[memory.offset :]
    tensor = as_tensor(memory)
    if tensor.nbytes % word:
        raise ValueError(
            f"dst has {tensor.nbytes} bytes, which is no multiple of the value's {word}"
        )
    made: Tensor = tensor.buffer.view(_WORDS[word])
    return made


# --- copies ---------------------------------------------------------------------------------------


def copied(
    record: tuple[Any, ...], name: str, device: Device, dst: Any = None, src: Any = None
) -> Any:
    """Return the launch of a copy with other memory; None stays as it is."""
    sides = [
        _kept(held, name, side) if given is None else given
        for side, given, held in (("dst", dst, record[2]), ("src", src, record[3]))
    ]
    to, of = map(as_tensor, sides)
    return copy.one_launch(to, of, (sides[0], sides[1]), device)


def _kept(held: Any, name: str, side: str) -> Any:
    was = getattr(held, "object", held)
    if _is_bytes(was):
        raise _unknown(name, "copies", "dst= and src=")
    if getattr(was, "is_closed", False):
        raise ValueError(
            f"{name!r} copies between strides, and its {side}, which tells where its elements are, "
            "was closed: give dst= and src="
        )
    return was


# --- what goes over elements ----------------------------------------------------------------------


class _Elements(NamedTuple):
    """The elements that an argument has: how many, their bytes, and where they begin."""

    number: int
    nbytes: int
    address: int


def counted(record: tuple[Any, ...], name: str, launched: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a launch of an expression's kernel, some of it changed, that fits its tensors.

    Where all tensors have another number of elements than before, that is counted anew.
    """
    kernel, before, *held, n = record
    config, _, *args, given = launched
    # A file may not tell the names, and an expression can have text that hides them.
    names = kernel.parameter_names or [f"parameter {at}" for at in range(len(held) + 1)]
    named = [f"{parameter} of {name!r}" for parameter in names]
    if given is not n and given != n:
        raise ValueError(f"{named[-1]} is the number of elements, which is counted: give tensors")
    is_reduction = kernel._work == "reduction"
    if is_reduction and config != before:
        raise ValueError(f"{name!r} reduces with one block, so its config stays as it is")
    if any(extent != 1 for extent in (*config.grid[1:], *config.block[1:])):
        raise ValueError(
            f"{name!r} divides its elements among threads along x, and those along y and z would "
            f"do the same ones again: got {config!r}"
        )
    if not isinstance(held[-1], _core.Operand | Was):
        raise ValueError(f"{named[-2]} was given as an address, whose elements nobody knows")
    spans: dict[int, _Elements] = {}
    for at, (was, now) in enumerate(zip(held, args, strict=True)):
        if isinstance(was, _core.Operand | Was):
            is_one = is_reduction and at == len(held) - 1
            spans[at], args[at] = _elements(was, now, 1 if is_one else n, named[at])
    last, out = spans.popitem()
    if is_reduction and out.number != 1:
        raise ValueError(f"{named[last]} must have one element, got {out.number}")
    counts = {at: of.number for at, of in spans.items()}
    if not is_reduction:
        counts[last] = out.number
    if len(set(counts.values())) > 1:
        told = ", ".join(f"{names[at]} {count}" for at, count in counts.items())
        raise ValueError(f"{name!r} needs tensors of one size, got elements: {told}")
    for at, of in spans.items():
        apart = of.address >= out.address + out.nbytes or out.address >= of.address + of.nbytes
        same = of.address == out.address and (of.nbytes == out.nbytes or is_reduction)
        if not apart and not same:
            raise ValueError(f"{named[last]} overlaps with {names[at]} in part")
    count = next(iter(counts.values()))
    if is_reduction and not count:
        raise ValueError(f"{named[0]} has no elements, of which the node makes no result")
    if count != n and config == before and not is_reduction:
        config = config_for(count)
    return config, kernel, *args, count


def _elements(was: _core.Operand | Was, now: Any, n: int, which: str) -> tuple[_Elements, Any]:
    """Return the elements of memory that replaces another, which had `n`; and what passes it."""
    if now is was and isinstance(was, _core.Operand):
        return _Elements(n, was.nbytes, was.address), was
    if _is_bytes(now):
        raise TypeError(f"{which} must be a tensor, not {type(now).__name__}")
    tensor = as_tensor(now)
    before = was if isinstance(was, Was) else was.object
    wanted = getattr(before, "dtype_name", None) or tensor.dtype_name
    itemsize = was.nbytes // n if n else tensor.itemsize
    if tensor.dtype_name != wanted or tensor.itemsize != itemsize:
        what = f"elements of type {wanted}" if tensor.dtype_name != wanted else f"{itemsize} bytes"
        raise TypeError(f"{which} must have {what}, got {tensor.dtype_name}")
    if not tensor.is_contiguous:
        raise ValueError(f"{which} must have no gaps, got strides {tensor.strides}")
    if tensor.handle % itemsize and tensor.size:
        raise ValueError(
            f"{which} must be aligned to the {itemsize} bytes of an element, but begins at "
            f"{tensor.handle:#x}"
        )
    # Asked a second time, another library's object may answer with other memory.
    passed = now if tensor is now else _core._operand(tensor, now, False)
    return _Elements(tensor.size, tensor.nbytes, tensor.handle), passed


def walked(record: tuple[Any, ...], name: str, launched: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a launch of a kernel that goes over strides, if no more than numbers are changed."""
    kernel, before, *held = record
    config, other, *args = launched
    names = kernel.parameter_names
    free = names.index("n") if "n" in names else 0  # what the user declared comes before
    is_same = config == before and other is kernel
    for at, (was, now) in enumerate(zip(held, args, strict=True)):
        if now is was:
            continue
        is_same = is_same and at < free and not isinstance(was, _core.Operand | Was)
        if is_same and not is_number(now):
            raise TypeError(f"{names[at]} of {name!r} must be a number, not {type(now).__name__}")
    if not is_same:
        raise ValueError(
            f"{name!r} {'writes several tensors' if free == len(held) - 1 else _GOES}, so only its "
            "numbers can be updated by themselves: capture the call again, and update with that "
            "graph"
        )
    return launched


def _unknown(name: str, does: str, give: str) -> ValueError:
    return ValueError(
        f"{name!r} {does} memory whose shape is not known any more, or a part of a tensor: "
        f"give {give}"
    )

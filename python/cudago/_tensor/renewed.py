# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Other memory and other values for nodes of graphs that a kernel of ours does.

The arguments of such a kernel describe the memory together: its address, how many elements there
are, and their strides. So none is changed alone; an update computes all of them anew. A node that
does all of what was passed keeps what was passed, by which an update knows shape and element type.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .. import _core
from .._native import number_text
from . import copy, strided
from .element import element, shortest
from .operand import as_tensor

if TYPE_CHECKING:
    from .._kernel.kernel import Kernel
    from .._memory.device import Device
    from .tensor import Tensor

_OURS = re.compile(r"(?:(fill|copy)_(?:1|2|4|8|16)|[a-z]+[0-9]*_to_[a-z]+[0-9]*)")
_SHAPE = ("n", "n0", "n1", "n2")
_DST, _SRC = (tuple(f"{side}{dim}" for dim in range(4)) for side in "ds")
_FILL = ("dst", "low", "high", *_SHAPE, *_DST)
_COPY = ("dst", "src", *_SHAPE, *_DST, *_SRC)
_WORDS = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}


def work_of(kernel: Kernel) -> str:
    """Return "fill", "copy" or "conversion" for a kernel of ours, also of a file; "" for others."""
    found = _OURS.fullmatch(kernel.name)
    if found is None:
        return ""
    work = found[1] or "conversion"
    return work if kernel.parameter_names == (_FILL if work == "fill" else _COPY) else ""


# --- fills ----------------------------------------------------------------------------------------


def filled(record: tuple[Any, ...], name: str, device: Device, dst: Any, value: Any) -> Any:
    """Return the launch of a fill with other memory or another value; None stays as it is."""
    kernel, config, held, low, high, *rest = record
    word = int(kernel.name.removeprefix("fill_"))
    pattern = b"".join(part.to_bytes(8, "little") for part in (low, high))[:word]
    was = getattr(held, "object", held)
    if dst is None:
        pattern = _element_for(was, value, word, name, rest)
        return config, kernel, held, *strided.halves(pattern), *rest
    if value is None:
        if not _is_whole(was, word, rest):
            raise _unknown(name, "fills", "dst= and value=")
        tensor = _over(dst, word)
    else:
        tensor, pattern = _with_value(dst, value)
    pattern = shortest(pattern)
    if tensor.itemsize % len(pattern):
        raise ValueError(
            f"{name!r} fills with a value of {len(pattern)} bytes, and an element of dst has "
            f"{tensor.itemsize}: give value= too"
        )
    return strided.one_fill(tensor, pattern, dst, device)


def _is_bytes(memory: Any) -> bool:
    """Whether memory has no element type."""
    return isinstance(memory, _core.Buffer | _core.Pointer) or not hasattr(memory, "dtype")


def _is_whole(was: Any, word: int, rest: list[Any]) -> bool:
    """Whether what a node fills is all of `was`, in elements of one word."""
    if not _is_bytes(was):
        return int(_core._dtype(was.dtype)[1]) == 8 * word
    count, first, step = rest[0], rest[1], rest[4]
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


def copied(record: tuple[Any, ...], name: str, device: Device, dst: Any, src: Any) -> Any:
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


def _unknown(name: str, does: str, give: str) -> ValueError:
    return ValueError(
        f"{name!r} {does} memory whose shape is not known any more, or a part of a tensor: "
        f"give {give}"
    )

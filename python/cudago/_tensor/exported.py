# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Memory with the buffer protocol alone, such as array.array's, where NumPy is not installed.

NumPy would read, order and convert it. Without it the bytes are moved as they are, which they must
be good for: the same type, and no gaps.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from .._numpy import is_installed, needed

if TYPE_CHECKING:
    from .tensor import Tensor

_KINDS = {
    **dict.fromkeys("bhilqn", "int"),
    **dict.fromkeys("BHILQN", "uint"),
    **dict.fromkeys("efd", "float"),
}
_NATIVE = "@=<" if sys.byteorder == "little" else "@=>"


class Exported(NamedTuple):
    """Memory, its shape, and the name of its element type."""

    view: memoryview
    shape: tuple[int, ...]
    dtype_name: str


def exported(memory: Any) -> Exported | None:
    """Return what the buffer protocol tells of memory; None if NumPy has to read it."""
    if hasattr(memory, "__dlpack__"):
        return None
    try:
        view = memoryview(memory)
    except (TypeError, BufferError):
        return None
    if is_installed():
        return None
    name = _name_of(view)
    if name is None:
        needed(f"to read memory of format {view.format!r}")
    if not view.c_contiguous:
        needed("to read memory with gaps")
    return Exported(view, tuple(view.shape or ()), name)


def _name_of(view: memoryview) -> str | None:
    code = view.format
    if code[:1] in _NATIVE:
        code = code[1:]
    if code == "?":
        return "bool"
    kind = _KINDS.get(code)
    return kind and f"{kind}{view.itemsize * 8}"


def check_moves(of: Exported, tensor: Tensor, what: str) -> None:
    """Refuse memory whose bytes are not those of a tensor's elements."""
    if of.shape != tensor.shape:
        raise ValueError(f"{what} has shape {of.shape}, the tensor {tensor.shape}")
    if of.dtype_name != tensor.dtype_name:
        needed(f"to convert {what} between {of.dtype_name} and {tensor.dtype_name}")
    if not tensor.is_contiguous:
        needed(f"to copy between {what} and a tensor with gaps")


def moved_from(tensor: Tensor, src: Any, stream: Any) -> bool:
    """Copy the bytes of such memory into a tensor; return whether it was such."""
    of = exported(memoryview(src) if isinstance(src, bytes) else src)
    if of is None:
        return False
    check_moves(of, tensor, "src")
    if tensor.nbytes:
        tensor.buffer.copy_from(of.view, stream=stream)
    return True


def moved_to(tensor: Tensor, dst: Any, stream: Any) -> bool:
    """Copy a tensor's bytes into such memory; return whether it was such."""
    of = exported(dst)
    if of is None:
        return False
    if of.view.readonly:
        raise BufferError("dst is read-only")
    check_moves(of, tensor, "dst")
    if tensor.nbytes:
        tensor.buffer.copy_to(of.view, stream=stream)
    return True

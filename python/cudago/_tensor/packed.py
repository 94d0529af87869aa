# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Elements of less than a byte, which tensors keep packed as DLPack does: the lowest bits first.

NumPy (with ml_dtypes) keeps each in a byte of its own; the arrays of bytes here are such, and are
called codes. What no copy of whole bytes can do, the host does: it reads the bytes that a tensor
reaches, takes elements out or puts some in, and writes the bytes back.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import _core
from .._numpy import np
from .place import is_pageable

if TYPE_CHECKING:
    from .._memory.buffer import Buffer
    from .._stream.stream import Stream
    from .tensor import Tensor


def _group(bits: int) -> tuple[int, int]:
    """Return the fewest whole bytes that are whole elements, and how many elements."""
    nbytes = math.lcm(bits, 8) // 8
    return nbytes, nbytes * 8 // bits


def pack(codes: np.ndarray, bits: int) -> np.ndarray:
    """Return the bytes that have all elements, in row-major order."""
    nbytes, count = _group(bits)
    groups = -(-codes.size // count)
    rows = np.zeros((groups, count), "u4")
    rows.reshape(-1)[: codes.size] = codes.reshape(-1) & (1 << bits) - 1
    words = np.bitwise_or.reduce(rows << np.arange(0, count * bits, bits, dtype="u4"), axis=1)
    out: np.ndarray = (words[:, None] >> np.arange(0, nbytes * 8, 8, dtype="u4")).astype("u1")
    return out.reshape(-1)[: (codes.size * bits + 7) // 8]


def unpack(raw: np.ndarray, bits: int, size: int) -> np.ndarray:
    """Return the codes of the first elements in an array of bytes."""
    nbytes, count = _group(bits)
    groups = -(-size // count)
    rows = np.zeros((groups, nbytes), "u4")
    used = (size * bits + 7) // 8
    rows.reshape(-1)[:used] = raw[:used]
    words = np.bitwise_or.reduce(rows << np.arange(0, nbytes * 8, 8, dtype="u4"), axis=1)
    out: np.ndarray = (
        words[:, None] >> np.arange(0, count * bits, bits, dtype="u4") & (1 << bits) - 1
    )
    return out.astype("u1").reshape(-1)[:size]


def bits_of(t: Tensor) -> int:
    return _core._dtype(t.dtype_name)[1]


def is_whole(t: Tensor) -> bool:
    """Whether the tensor's bytes have its elements, in order, and no others."""
    return t.is_contiguous and not t._packing[1]


# --- elements anywhere ----------------------------------------------------------------------------


def _elements(ones: np.ndarray, t: Tensor, first: int) -> np.ndarray:
    """Return a view of an array of bits, in which the last dimension is the bits of an element."""
    bits = bits_of(t)
    start = first * 8 + t._packing[0]
    strides = (*(s * bits for s in t.strides), 1)
    return np.lib.stride_tricks.as_strided(ones[start:], (*t.shape, bits), strides)


def _check_waits(name: str, stream: Stream) -> None:
    if stream.is_capturing:
        raise BufferError(
            f"elements of {name} have less than a byte: those of a tensor with gaps, or that share "
            "a byte with others, are put in place on the host, which a capture cannot wait for; "
            "copy whole bytes, or copy before the capture"
        )


def _bytes_of(span: Buffer, t: Tensor, stream: Stream) -> np.ndarray:
    """Return a copy of the bytes that a tensor reaches, and wait for it."""
    if is_pageable(t):
        stream.sync()  # what is queued may write it
        return np.frombuffer(memoryview(span), "u1").copy()
    raw = np.empty(span.size, "u1")
    span.copy_to(_core.from_dlpack(raw), stream=stream)
    stream.sync()
    return raw


def read(t: Tensor, stream: Stream) -> np.ndarray:
    """Return the codes of a tensor's elements, in its shape, and wait for them."""
    _check_waits(t.dtype_name, stream)
    if not t.size:
        return np.empty(t.shape, "u1")
    span, first = t._span
    raw, bits = _bytes_of(span, t, stream), bits_of(t)
    if t.is_contiguous:
        return unpack(raw, bits, t.size).reshape(t.shape)
    ones = _elements(np.unpackbits(raw, bitorder="little"), t, first)
    return np.packbits(ones, axis=-1, bitorder="little").reshape(t.shape)


def _store(memory: Buffer, raw: np.ndarray, t: Tensor, stream: Stream) -> None:
    if is_pageable(t):
        stream.sync()  # what is queued may read it
        np.frombuffer(memoryview(memory), "u1")[:] = raw
    else:
        memory.copy_from(_core.from_dlpack(raw), stream=stream)


def _write(t: Tensor, codes: np.ndarray, stream: Stream) -> None:
    """Put elements into a tensor, among what else its bytes have."""
    span, first = t._span
    bits = bits_of(t)
    ones = np.unpackbits(_bytes_of(span, t, stream), bitorder="little")
    split = np.unpackbits(codes[..., None], axis=-1, count=bits, bitorder="little")
    _elements(ones, t, first)[...] = split
    _store(span, np.packbits(ones, bitorder="little"), t, stream)


def copy(dst: Tensor, src: Tensor, stream: Stream) -> None:
    """Copy between tensors of one shape and type, of which one at least is not whole bytes."""
    _check_waits(dst.dtype_name, stream)
    codes = read(src, stream)
    if is_whole(dst):
        _store(dst.buffer, pack(codes, bits_of(dst)), dst, stream)
    else:
        _write(dst, codes, stream)


# --- NumPy's arrays -------------------------------------------------------------------------------


def as_tensor(codes: np.ndarray, name: str) -> Tensor:
    """Return a host tensor with the elements of an array, packed."""
    raw = pack(codes.view("u1"), _core._dtype(name)[1])
    return _core.from_dlpack(raw).buffer.view(name, codes.shape)


def check_captured(dtype: Any, what: str, stream: Stream) -> None:
    """Refuse an array in a capture: no launch can pack what the array then has."""
    if stream.is_capturing:
        raise BufferError(
            f"{what} is an array of {dtype}, which NumPy keeps in a byte each and a capture does "
            "not pack, as each launch copies what the array then has; make a tensor of it before "
            "the capture"
        )


def copy_to(array: np.ndarray, t: Tensor, stream: Stream) -> None:
    """Copy elements to an array of their type, and wait."""
    array.view("u1")[...] = read(t, stream)

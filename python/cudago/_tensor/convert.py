# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Conversion between element types: a kernel of ours for each pair, made when it is needed.

They are PTX, as those of `strided`, so no compiler is needed. An element is loaded into a register
of the least type that holds it exactly, and stored from there with at most one rounding; to the
floats of 8 bits by way of float32, as ml_dtypes does.
"""

from __future__ import annotations

import math
import struct
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from .. import _core
from .._kernel.launch import launch
from . import strided, words
from .copy import copy
from .place import is_pageable

if TYPE_CHECKING:
    from .._kernel.kernel import Kernel
    from .._stream.stream import Stream
    from .tensor import Tensor

# A float of 8 bits, by way of the float16 that has its exponent in the same place, of which another
# bias is multiplied out; a NaN keeps its sign, and no more.
_FROM_FLOAT8 = """\
ld.u8 %w, [%b];
and.b32 %q, %w, 0x7f;
setp.gt.u32 %p, %q, {largest};
shl.b32 %q, %q, {shift};
cvt.u16.u32 %h, %q;
cvt.f32.f16 %f, %h;
mul.rn.f32 %f, %f, {scale};
mov.b32 %q, %f;
selp.b32 %q, 0x7fc00000, %q, %p;
and.b32 %w, %w, 0x80;
shl.b32 %w, %w, 24;
or.b32 %w, %w, %q;
mov.b32 %f, %w;"""

# The same as ml_dtypes, from a float32: rounded to nearest even, where the least numbers are those
# that a float32 near a power of two steps by. What is too large gets the code after the largest.
_TO_FLOAT8 = """\
mov.b32 %w, %f;
and.b32 %q, %w, 0x7fffffff;
mov.b32 %f, %q;
shr.u32 %w, %w, 24;
and.b32 %w, %w, 0x80;
setp.gt.u32 %p, %q, 0x7f800000;
@%p or.b32 %w, %w, {nan};
@%p bra stored;
setp.lt.u32 %p, %q, {normal};
add.rn.f32 %f, %f, {step};
@%p mov.b32 %q, %f;
@%p sub.u32 %q, %q, {step_bits};
@%p bra rounded;
sub.u32 %q, %q, {bias};
shr.u32 %x, %q, {cut};
and.b32 %x, %x, 1;
add.u32 %q, %q, %x;
add.u32 %q, %q, {half};
shr.u32 %q, %q, {cut};
min.u32 %q, %q, {over};
rounded:
or.b32 %w, %w, %q;
stored:
st.u8 [%a], %w;"""

# A float32's NaN as another float: where an instruction converts it, the bits are the device's.
_NANS = {
    "float16": """\
mov.b32 %w, %f;
shr.u32 %w, %w, 16;
and.b32 %w, %w, 0x8000;
or.b32 %w, %w, 0x7e00;
@%p cvt.u16.u32 %h, %w;
""",
    "float64": """\
mov.b32 %w, %f;
and.b32 %w, %w, 0x80000000;
or.b32 %w, %w, 0x7ff80000;
cvt.u64.u32 %v, %w;
shl.b64 %v, %v, 32;
@%p mov.b64 %d, %v;
""",
}

# The sign of what was converted to a float32, for the same reason.
_SIGNS = {
    "float16": "cvt.u32.u16 %q, %h;\nshl.b32 %q, %q, 16;\n",
    "float64": "mov.b64 %v, %d;\nshr.u64 %v, %v, 32;\ncvt.u32.u64 %q, %v;\n",
}
_WITH_SIGN = """\
and.b32 %q, %q, 0x80000000;
mov.b32 %w, %f;
and.b32 %w, %w, 0x7fffffff;
or.b32 %w, %w, %q;
mov.b32 %f, %w;
"""


class _Float8(NamedTuple):
    """A float of 8 bits, as the texts above take it."""

    mantissa: int  # bits
    bias: int
    largest: int  # the code after which come only NaNs
    over: int  # the code of what is too large
    nan: int

    def load(self) -> str:
        """Return PTX that loads an element into %f."""
        scale = _bits(2.0 ** (15 - self.bias))
        shift = 10 - self.mantissa
        return _FROM_FLOAT8.format(largest=self.largest, shift=shift, scale=f"0f{scale:08x}")

    def store(self) -> str:
        """Return PTX that stores %f."""
        cut, least = 23 - self.mantissa, 1 - self.bias
        step = _bits(2.0 ** (least - self.mantissa + 23))
        return _TO_FLOAT8.format(
            nan=self.nan,
            normal=_bits(2.0**least),
            step=f"0f{step:08x}",
            step_bits=step,
            bias=(127 - self.bias) << 23,
            cut=cut,
            half=(1 << (cut - 1)) - 1,
            over=self.over,
        )


def _bits(value: float) -> int:
    """Return the bits of a float32."""
    return int.from_bytes(struct.pack("<f", value), "little")


_FLOAT8 = {
    "float8_e4m3fn": _Float8(3, 7, largest=0x7E, over=0x7F, nan=0x7F),
    "float8_e5m2": _Float8(2, 15, largest=0x7C, over=0x7C, nan=0x7E),
}

# Each element type's load, and what is then in which register: %w 32 bits, %v 64, %f and %d floats.
_LOADS = {
    "bool": ("ld.u8 %w, [%b];\nsetp.ne.u32 %p, %w, 0;\nselp.u32 %w, 1, 0, %p;", "u32"),
    "int8": ("ld.s8 %w, [%b];", "s32"),
    "int16": ("ld.s16 %w, [%b];", "s32"),
    "int32": ("ld.s32 %w, [%b];", "s32"),
    "int64": ("ld.s64 %v, [%b];", "s64"),
    "uint8": ("ld.u8 %w, [%b];", "u32"),
    "uint16": ("ld.u16 %w, [%b];", "u32"),
    "uint32": ("ld.u32 %w, [%b];", "u32"),
    "uint64": ("ld.u64 %v, [%b];", "u64"),
    "float16": ("ld.b16 %h, [%b];\ncvt.f32.f16 %f, %h;", "f32"),
    "bfloat16": ("ld.u16 %w, [%b];\nshl.b32 %w, %w, 16;\nmov.b32 %f, %w;", "f32"),
    "float32": ("ld.f32 %f, [%b];", "f32"),
    "float64": ("ld.f64 %d, [%b];", "f64"),
    **{name: (of.load(), "f32") for name, of in _FLOAT8.items()},
}
_PARTS = {"complex64": "float32", "complex128": "float64"}  # of which each element has two
_REGISTERS = {"s32": "%w", "u32": "%w", "s64": "%v", "u64": "%v", "f32": "%f", "f64": "%d"}
_REAL = ("f32", "f64")

# The upper half of a float32, rounded to nearest even; a NaN stays one. cvt.rn.bf16 is of sm_90.
_TO_BFLOAT16 = """\
mov.b32 %w, %f;
shr.u32 %q, %w, 16;
and.b32 %q, %q, 1;
add.u32 %q, %q, 0x7fff;
add.u32 %q, %q, %w;
shr.u32 %q, %q, 16;
shr.u32 %w, %w, 16;
or.b32 %w, %w, 0x40;
setp.nan.f32 %p, %f, %f;
selp.b32 %w, %w, %q, %p;
st.b16 [%a], %w;"""


def _store(name: str, held: str) -> str:
    """Return PTX that stores what a register holds as an element of type `name`."""
    register = _REGISTERS[held]
    if name == "bool":
        compare = "setp.neu" if held in _REAL else "setp.ne"  # a NaN is not zero
        zero = {"f32": "0f00000000", "f64": "0d0000000000000000"}.get(held, "0")
        test = f"{compare}.{held} %p, {register}, {zero};"
        return f"{test}\nselp.u32 %w, 1, 0, %p;\nst.u8 [%a], %w;"
    if name == "float16":
        return f"cvt.rn.f16.{held} %h, {register};\nst.b16 [%a], %h;"
    if name == "bfloat16":
        return _to_float("f32", held) + _TO_BFLOAT16
    if name in _FLOAT8:
        return _to_float("f32", held) + _FLOAT8[name].store()
    if name.startswith("float"):
        kind = f"f{name[5:]}"
        return f"{_to_float(kind, held)}st.{kind} [%a], {_REGISTERS[kind]};"
    bits = int(name.lstrip("uint"))
    return _to_int(name[0].replace("i", "s"), bits, held)


def _to_float(kind: str, held: str) -> str:
    if kind == held:
        return ""
    rounding = "" if (kind, held) == ("f64", "f32") else ".rn"
    return f"cvt{rounding}.{kind}.{held} {_REGISTERS[kind]}, {_REGISTERS[held]};\n"


def _to_int(sign: str, bits: int, held: str) -> str:
    to = "%v" if bits == 64 else "%w"
    if held in _REAL:
        cvt = f"cvt.rzi.{sign}{bits}.{held} {to}, {_REGISTERS[held]};\n"
    elif to == _REGISTERS[held]:  # the store takes the lowest bits
        cvt = ""
    else:
        cvt = f"cvt.{held[0]}{64 if bits == 64 else 32}.{held} {to}, {_REGISTERS[held]};\n"
    return f"{cvt}st.b{bits} [%a], {to};"


def _text(source: str, target: str) -> str:
    """Return the kernel that converts between two element types."""
    load, held = _LOADS[source]
    store = _store(target, held)
    if source in _FLOAT8 and target in _NANS:
        convert, _, stored = store.rpartition("st.")
        store = f"{convert}setp.nan.f32 %p, %f, %f;\n{_NANS[target]}st.{stored}"
    if source in _SIGNS and target in _FLOAT8:
        signed = _to_float("f32", held) + _SIGNS[source] + _WITH_SIGN
        store = signed + _FLOAT8[target].store()
    registers = {
        "pred": ["%p"],
        "b16": ["%h"],
        "b32": ["%w", "%q", "%x"],
        "b64": ["%v"],
        "f32": ["%f"],
        "f64": ["%d"],
    }
    return words.entry(
        f"{source}_to_{target}",
        ".param .u64 dst, .param .u64 src",
        {"d": "%a", "s": "%b"},
        registers,
        (load, store),
        labels=("rounded", "stored"),
    )


def check_convertible(source: str, target: str) -> None:
    """Raise TypeError if elements of one type cannot be converted to the other."""
    if source in _PARTS and target in _LOADS:
        raise TypeError(
            f"astype cannot convert {source} to {target}, which would lose the imaginary parts: "
            f"{_parts_of(source)}"
        )
    for name in (source, target):
        if name in _LOADS or name in _PARTS:
            continue
        hint = "convert it in a kernel of your own"
        hint += ", or on the host with ml_dtypes" if name.startswith("float") else ""
        raise TypeError(
            f"astype cannot convert {source} to {target}: {name} is not converted; {hint}"
        )


def _parts_of(name: str) -> str:
    part = _PARTS[name]
    return f"its parts are {part}: view them with t.buffer.view({part!r}, (*t.shape, 2))"


def converted(tensor: Tensor, target: str, stream: Stream) -> Tensor:
    """Return a new tensor, without gaps, with the elements as another type."""
    source = tensor.dtype_name
    if not tensor.size or target == source:
        out = _empty(tensor, target, stream)
        copy(out, tensor, stream)
        return out
    if not _is_reachable(tensor, stream):
        with _reachable(_empty(tensor, source, stream), stream) as packed:
            copy(packed, tensor, stream)
            return converted(packed, target, stream)
    out = _reachable(_empty(tensor, target, stream), stream)
    sides = [strided.Side.of(out), strided.Side.of(tensor)]
    shape = out.shape
    if source in _PARTS:  # the two parts are one dimension more
        shape += (2,)
        sides = [s._replace(strides=(*s.strides, s.tensor.itemsize // 2)) for s in sides]
    elif target in _PARTS:
        out.buffer.fill(0, stream=stream)
    kernel = _kernel(_PARTS.get(source, source), _PARTS.get(target, target), stream)
    for box in strided.boxes(shape, [side.strides for side in sides]):
        launch(stream, *strided.launched(kernel, sides, box))
    return out


def _kernel(source: str, target: str, stream: Stream) -> Kernel:
    name, text = f"{source}_to_{target}", partial(_text, source, target)
    return strided.kernel_of(name, text, name, "conversion", stream.device.ordinal)


def _empty(like: Tensor, name: str, stream: Stream) -> Tensor:
    nbytes = (math.prod(like.shape) * _core._dtype(name)[1] + 7) // 8
    memory = stream.device.allocate(nbytes, stream=stream)
    return memory.view(name, like.shape)


def _reachable(made: Tensor, stream: Stream) -> Tensor:
    """Return memory for the kernel; a resource written in Python may answer with any."""
    if not _is_reachable(made, stream):
        raise BufferError(
            f"astype needs memory of {stream.device} aligned to {made.itemsize} bytes; its "
            f"memory resource answered with memory at {made.handle:#x}"
        )
    return made


def _is_reachable(tensor: Tensor, stream: Stream) -> bool:
    """Whether a kernel on the stream can load the elements, each whole, where they are."""
    if is_pageable(tensor) or tensor._ordinal not in (None, stream.device.ordinal):
        return False
    side = strided.Side.of(tensor)
    return strided.word_of(tensor.itemsize, [side], tensor.shape) == tensor.itemsize

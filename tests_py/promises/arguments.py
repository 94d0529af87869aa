# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The rules of arguments, as tables: kinds of parameters, kinds of objects, ways to a kernel.

What a kernel then sees, or which exception is raised, follows from a row of each: `expected`.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import math
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import cudago as cu

ONE = cu.LaunchConfig(grid=1, block=1)
NBYTES = 64  # of the memory that is passed
ROOM = 128  # of what a kernel writes down

_SEEN = {  # what kernels take, to write down its bytes
    **{"u64": "unsigned long long", "u32": "unsigned", "u16": "unsigned short"},
    **{"u8": "unsigned char", "f32": "float", "f64": "double"},
    **{"b2": "Half", "b8": "B8", "b16": "B16", "map": "Map"},
}
SOURCE = """
struct B8 { unsigned a, b; };
struct B16 { unsigned a[4]; };
struct alignas(64) Map { unsigned a[32]; };
struct Half { unsigned short a; };
extern "C" __global__ void reads(const float* p, unsigned char* out) {
    if (out[127]) *(float*)out = *p;
}
extern "C" __global__ void nothing() {}
""" + "".join(
    f"""
extern "C" __global__ void {name}({ctype} p, unsigned char* out) {{
    const unsigned char* from = (const unsigned char*)&p;
    for (int i = 0; i < sizeof p; i++) out[i] = from[i];
}}"""
    for name, ctype in _SEEN.items()
)

# --- parameters -----------------------------------------------------------------------------------

# What C++ calls the numbers that pointers point to: the types of NumPy that may be there besides
# bytes, or None for all, and the bytes of one.
_INTEGERS = {2: ("i2", "u2"), 4: ("i4", "u4"), 8: ("i8", "u8")}
POINTEES: dict[str, tuple[tuple[str, ...] | None, int]] = {
    "float": (("f4",), 4),
    "double": (("f8",), 8),
    **dict.fromkeys(("half", "__half", "_Float16"), (("f2",), 2)),
    **dict.fromkeys(("nv_bfloat16", "__nv_bfloat16", "__bf16"), (("bfloat16",), 2)),
    **dict.fromkeys(("half2", "__half2"), (("f2",), 4)),
    **dict.fromkeys(("nv_bfloat162", "__nv_bfloat162"), (("bfloat16",), 4)),
    **dict.fromkeys(("int16_t", "uint16_t", "ushort", "short"), (_INTEGERS[2], 2)),
    **dict.fromkeys(("int32_t", "uint32_t", "uint", "int", "unsigned"), (_INTEGERS[4], 4)),
    **dict.fromkeys(("int64_t", "uint64_t", "size_t", "ulong", "long"), (_INTEGERS[8], 8)),
    **dict.fromkeys(("intptr_t", "uintptr_t", "ptrdiff_t"), (_INTEGERS[8], 8)),
    **dict.fromkeys(("float*", "void*"), (_INTEGERS[8], 8)),
    **dict.fromkeys(("bool", "_Bool"), (("?",), 1)),
    **dict.fromkeys(("cuComplex", "cuFloatComplex", "cufftComplex"), (("c8",), 8)),
    **dict.fromkeys(("cuDoubleComplex", "cufftDoubleComplex"), (("c16",), 16)),
    **dict.fromkeys(("complex<float>", "cuda::std::complex<float>"), (("c8",), 8)),
    **dict.fromkeys(("complex<double>", "thrust::complex<double>"), (("c16",), 16)),
    **dict.fromkeys(("void", "char", "unsigned char", "Particle"), (None, 0)),
    **{
        f"{name}{count}": (types, nbytes * count)
        for names, types, nbytes in (
            (("char", "uchar"), None, 1),
            (("short", "ushort"), _INTEGERS[2], 2),
            (("int", "uint"), _INTEGERS[4], 4),
            (("long", "ulong", "longlong", "ulonglong"), _INTEGERS[8], 8),
            (("float",), ("f4", "c8"), 4),
            (("double",), ("f8", "c16"), 8),
        )
        for name in names
        for count in (1, 2, 3, 4)
    },
    **{
        f"{name}4_{suffix}": (types, 32)
        for suffix in ("16a", "32a")
        for names, types in (
            (("long", "ulong", "longlong", "ulonglong"), _INTEGERS[8]),
            (("double",), ("f8", "c16")),
        )
        for name in names
    },
    **{
        f"{name}1": ((kind,), nbytes)
        for name, kind, nbytes in (("float", "f4", 4), ("double", "f8", 8))
    },
}


def alignment(unit: int) -> int:
    """Return how memory must be aligned for something of this size."""
    return min(unit & -unit, 16) or 1


@dataclass(frozen=True)
class Parameter:
    """A type of parameter, and the kernel that has it."""

    ctype: str
    kernel: str
    kind: str  # pointer, integer, float, small, struct, texture, surface, condition, map
    low: int = 0  # of an integer
    high: int = 0
    takes_memory: bool = False
    good: Any = 0  # an argument that is taken
    reads: bool = False

    @property
    def nbytes(self) -> int:
        """The size of the parameter."""
        of = {"u8": 1, "u16": 2, "b2": 2, "u32": 4, "f32": 4, "b16": 16, "map": 128}
        return of.get(self.kernel, 8)


def _integer(ctype: str, kernel: str, low: int, high: int, memory: bool = False) -> Parameter:
    return Parameter(ctype, kernel, "integer", low, high, memory)


_HANDLE = (-(1 << 63), (1 << 64) - 1)
PARAMETERS = {
    **{
        f"{name}*": Parameter(f"{name}*", "u64", "pointer", takes_memory=True, good=None)
        for name in (
            *("float", "double", "__half", "__nv_bfloat16", "int", "unsigned", "long", "short"),
            *("bool", "char", "void", "float2", "float4", "double3", "uchar4", "half2", "int2"),
            *("cuda::std::complex<float>", "cuDoubleComplex", "float*", "Particle"),
        )
    },
    "const float*": Parameter(
        "const float*", "reads", "pointer", takes_memory=True, good=None, reads=True
    ),
    "bool": _integer("bool", "u8", 0, 1),
    "signed char": _integer("signed char", "u8", -128, 127),
    "unsigned char": _integer("unsigned char", "u8", 0, 255),
    "short": _integer("short", "u16", -(1 << 15), (1 << 15) - 1),
    "int": _integer("int", "u32", -(1 << 31), (1 << 31) - 1),
    "unsigned": _integer("unsigned", "u32", 0, (1 << 32) - 1),
    "long long": _integer("long long", "u64", -(1 << 63), (1 << 63) - 1),
    "size_t": _integer("size_t", "u64", 0, (1 << 64) - 1),
    "unsigned long long": _integer("unsigned long long", "u64", 0, (1 << 64) - 1, memory=True),
    "float": Parameter("float", "f32", "float", good=0.0),
    "double": Parameter("double", "f64", "float", good=0.0),
    "__half": Parameter("__half", "b2", "small", good=0.0),
    "__nv_bfloat16": Parameter("__nv_bfloat16", "b2", "small", good=0.0),
    "B8": Parameter("B8", "b8", "struct", good=bytes(8)),
    "B16": Parameter("B16", "b16", "struct", good=bytes(16)),
    "CUtensorMap": Parameter("CUtensorMap", "map", "map", good=bytes(128)),
    "cudaTextureObject_t": Parameter("cudaTextureObject_t", "u64", "texture", *_HANDLE),
    "cudaSurfaceObject_t": Parameter("cudaSurfaceObject_t", "u64", "surface", *_HANDLE),
    "cudaGraphConditionalHandle": Parameter(
        "cudaGraphConditionalHandle", "u64", "condition", *_HANDLE
    ),
}

# --- objects --------------------------------------------------------------------------------------


@dataclass
class World:
    """What objects are made of, on one device."""

    device: cu.Device
    stream: cu.Stream
    code: cu.ObjectCode
    open: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def allocate(self, size: int = NBYTES) -> cu.Buffer:
        """Memory of the device's pool, that is 0."""
        buffer = self.open.enter_context(self.device.allocate(size, stream=self.stream))
        buffer.fill(0, stream=self.stream)
        return buffer

    def tensor(self, dtype: str, nbytes: int = NBYTES, at: int = 0) -> cu.Tensor:
        """A tensor in such memory, from a byte on."""
        return self.allocate()[at : at + nbytes].view(dtype)

    def of(self, resource: Any) -> cu.Buffer:
        """Memory of a resource."""
        self.open.enter_context(resource)
        return self.open.enter_context(resource.allocate(NBYTES, stream=self.stream))


class Dlpack:
    """An object of another library, with memory of ours or of NumPy's."""

    def __init__(self, of: Any) -> None:
        self.of = of

    def __dlpack_device__(self) -> Any:
        return self.of.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        return self.of.__dlpack__(**options)


class Interface:
    """An object that has an array interface, of memory of ours."""

    def __init__(self, buffer: cu.Buffer, **fields: Any) -> None:
        self.buffer = buffer
        read_only, shape = fields.pop("read_only", False), fields.pop("shape", (16,))
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": "<f4",
            "data": (buffer.handle + fields.pop("at", 0), read_only),
            "version": 3,
            **fields,
        }


class HostInterface:
    """An object that has NumPy's array interface alone."""

    def __init__(self) -> None:
        self.array = np.zeros(16, "f4")
        self.__array_interface__ = self.array.__array_interface__


class Raising:
    """An object whose library fails."""

    def __dlpack_device__(self) -> Any:
        raise LookupError

    def __dlpack__(self, **options: Any) -> Any:
        raise LookupError


class Index:
    """A number by ``__index__``."""

    def __index__(self) -> int:
        return 48


class Real:
    """A number by ``__float__``."""

    def __float__(self) -> float:
        return 1.5


@dataclass
class Pair:
    """A struct of 8 bytes."""

    a: np.uint32
    b: np.uint32


@dataclass
class Pointing:
    """A struct of 8 bytes that is a pointer."""

    at: cu.Pointer


class Structure(ctypes.Structure):
    """A struct of 8 bytes."""

    _fields_ = (("a", ctypes.c_uint), ("b", ctypes.c_uint))


@dataclass(frozen=True)
class Memory:
    """What is said of an object with memory."""

    dtype: str | None = None  # its elements; None: bytes, or nobody knows; "other": no numbers
    nbytes: int = NBYTES
    read_only: bool = False
    ordinary: bool = False  # host memory that the driver does not know
    refused: type[Exception] | None = None  # as memory of any parameter


@dataclass(frozen=True)
class Kind:
    """A kind of object. What is not said of it, it is not."""

    make: Callable[[World], Any]
    memory: Memory | None = None
    number: Any = None
    raw: bytes | None = None  # as a struct
    handle: str | None = None  # texture, surface, condition, map
    own: bool = False  # memory of cudago's objects, which are no structs
    exports: bool = False  # the buffer protocol
    unread: type[Exception] | None = None  # as a struct


def own(make: Callable[[World], Any], dtype: str | None = None, **facts: Any) -> Kind:
    """A kind of object of cudago's."""
    return Kind(make, Memory(dtype, **facts), own=True)


def host(make: Callable[[World], Any], dtype: str | None = None, **facts: Any) -> Kind:
    """A kind of object with host memory."""
    unread = facts.pop("unread", None)
    return Kind(make, Memory(dtype, ordinary=True, **facts), exports=True, unread=unread)


def number(value: Any, same: Any = None) -> Kind:
    """A kind of number: the object, and what it is."""
    same = value if same is None else same
    raw = None
    if isinstance(value, np.generic | ctypes.c_int | ctypes.c_float | ctypes.c_void_p):
        raw = memoryview(value).tobytes()
    return Kind(lambda w: value, number=same, raw=raw, exports=raw is not None)


def closed(thing: Any) -> Any:
    """Close it."""
    thing.close()
    return thing


def pointer_of_closed(w: World) -> cu.Pointer:
    """A pointer of a buffer that is closed."""
    buffer = w.allocate()
    pointer = buffer.ptr
    buffer.close()
    return pointer


def read_only(values: Any) -> Any:
    """Make an array read-only."""
    values.flags.writeable = False
    return values


def _surface(w: World) -> cu.Surface:
    return cu.Surface(cu.OpaqueArray((4, 4), "f4", stream=w.stream, surfaces=True))


def _tensor_map(w: World) -> Any:
    """A tensor map; None on a device that has none."""
    if w.device.compute_capability < (9, 0):
        return None
    return cu.TensorMap(w.allocate().view("f4", (4, 4)), (4, 4))


KINDS: dict[str, Kind] = {
    # memory of cudago's
    "buffer": own(lambda w: w.allocate()),
    "view": own(lambda w: w.allocate()[16:48], nbytes=32),
    "view at byte 1": own(lambda w: w.allocate()[1:33], nbytes=32),
    "view at byte 2": own(lambda w: w.allocate()[2:34], nbytes=32),
    "view at byte 4": own(lambda w: w.allocate()[4:36], nbytes=32),
    "view at byte 8": own(lambda w: w.allocate()[8:40], nbytes=32),
    "view of 1 byte": own(lambda w: w.allocate()[:1], nbytes=1),
    "view of 2 bytes": own(lambda w: w.allocate()[:2], nbytes=2),
    "view of 12 bytes": own(lambda w: w.allocate()[:12], nbytes=12),
    "view of no bytes": own(lambda w: w.allocate()[16:16], nbytes=0),
    "pointer": own(lambda w: w.allocate().ptr),
    "pointer into it": own(lambda w: w.allocate().ptr + 16, nbytes=48),
    "pointer to the end": own(lambda w: w.allocate().ptr + NBYTES, nbytes=0),
    "pointer before the end": own(lambda w: w.allocate().ptr + NBYTES - 2, nbytes=2),
    **{
        f"tensor {name}": own(lambda w, name=name: w.tensor(name), name)
        for name in ("f2", "bfloat16", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")
    },
    **{
        f"tensor {name}": own(lambda w, name=name: w.tensor(name), name)
        for name in ("?", "c8", "c16")
    },
    "tensor float8_e4m3fn": own(lambda w: w.tensor("float8_e4m3fn"), "other"),
    "tensor at byte 4": own(lambda w: w.tensor("f4", 32, 4), "f4", nbytes=32),
    "tensor of 1 element": own(lambda w: w.tensor("f4", 4), "f4", nbytes=4),
    "tensor of no elements": own(lambda w: w.tensor("f4", 0), "f4", nbytes=0),
    "tensor with gaps": own(lambda w: w.tensor("f4")[::2], "f4", refused=BufferError),
    "tensor turned": own(lambda w: w.allocate().view("f4", (4, 4)).T, "f4", refused=BufferError),
    "pinned buffer": own(lambda w: w.of(cu.PinnedMemoryResource())),
    "managed buffer": own(lambda w: w.of(cu.ManagedMemoryResource(w.device))),
    "read-only buffer": own(
        lambda w: cu.from_dlpack(read_only(np.zeros(16, "f4"))).buffer,
        read_only=True,
        ordinary=True,
    ),
    "closed buffer": own(lambda w: closed(w.allocate()), refused=cu.ClosedError),
    "closed tensor": own(lambda w: closed(w.tensor("f4")), "f4", refused=cu.ClosedError),
    "pointer of a closed buffer": own(pointer_of_closed, refused=cu.ClosedError),
    # the buffer protocol
    "array f4": host(lambda w: np.zeros(16, "f4"), "f4"),
    "array f8": host(lambda w: np.zeros(8, "f8"), "f8"),
    "array of 2 numbers": host(lambda w: np.zeros(2, "f4"), "f4", nbytes=8),
    "read-only array": host(lambda w: read_only(np.zeros(16, "f4")), "f4", read_only=True),
    "array with gaps": host(
        lambda w: np.zeros(32, "f4")[::2], "f4", refused=BufferError, unread=BufferError
    ),
    "masked array": host(
        lambda w: np.ma.masked_array(np.zeros(16, "f4"), np.ones(16, "?")),
        "f4",
        refused=TypeError,
        unread=TypeError,
    ),
    "array with a mask of none": host(
        lambda w: np.ma.masked_array(np.zeros(2, "f4")), "f4", refused=TypeError, unread=TypeError
    ),
    "array of text": host(lambda w: np.array([b"abcd"] * 16), "other"),
    "array of letters": host(lambda w: np.array(["a"] * 16), "other"),
    "array of dates": host(
        lambda w: np.zeros(8, "M8[s]"), "other", refused=BufferError, unread=ValueError
    ),
    "big-endian array": host(lambda w: np.zeros(16, ">f4"), "other", unread=TypeError),
    "array of objects": host(
        lambda w: np.array([None] * 8), "other", refused=TypeError, unread=TypeError
    ),
    "array of structs": host(lambda w: np.zeros(8, [("a", "f4"), ("b", "f4")])),
    "array of 1 struct": host(lambda w: np.zeros(1, [("a", "u4"), ("b", "u4")]), nbytes=8),
    "bytes": host(lambda w: bytes(NBYTES), read_only=True),
    "bytes of a struct": host(lambda w: bytes(range(8)), nbytes=8, read_only=True),
    "bytearray": host(lambda w: bytearray(NBYTES)),
    "memoryview": host(lambda w: memoryview(bytearray(16)), nbytes=16),
    "array.array": host(lambda w: array.array("f", [0] * 16), "f4"),
    "ctypes array": host(lambda w: (ctypes.c_float * 16)(), "f4"),
    "ctypes structure": host(lambda w: Structure(3, 4), nbytes=8),
    # protocols of other libraries
    "dlpack f4": Kind(lambda w: Dlpack(w.tensor("f4")), Memory("f4")),
    "dlpack f8": Kind(lambda w: Dlpack(w.tensor("f8")), Memory("f8")),
    "dlpack at byte 4": Kind(lambda w: Dlpack(w.tensor("f4", 32, 4)), Memory("f4", 32)),
    "dlpack with gaps": Kind(
        lambda w: Dlpack(w.tensor("f4")[::2]), Memory("f4", refused=BufferError)
    ),
    "dlpack of the host": Kind(lambda w: Dlpack(np.zeros(16, "f4")), Memory("f4", ordinary=True)),
    "dlpack that fails": Kind(lambda w: Raising(), Memory(refused=LookupError)),
    "interface f4": Kind(lambda w: Interface(w.allocate()), Memory("f4")),
    "interface f8": Kind(
        lambda w: Interface(w.allocate(), typestr="<f8", shape=(8,)), Memory("f8")
    ),
    "interface ?": Kind(lambda w: Interface(w.allocate(), typestr="|b1", shape=(64,)), Memory("?")),
    "interface of bytes": Kind(
        lambda w: Interface(w.allocate(), typestr="|u1", shape=(64,)), Memory()
    ),
    "interface of text": Kind(lambda w: Interface(w.allocate(), typestr="|S4"), Memory("other")),
    "interface at byte 2": Kind(
        lambda w: Interface(w.allocate(), at=2, shape=(8,)), Memory("f4", 32)
    ),
    "interface that is read-only": Kind(
        lambda w: Interface(w.allocate(), read_only=True), Memory("f4", read_only=True)
    ),
    "interface with a mask": Kind(
        lambda w: Interface(w.allocate(), mask=np.ones(16)), Memory(refused=TypeError)
    ),
    "interface with gaps": Kind(
        lambda w: Interface(w.allocate(), shape=(8,), strides=(8,)), Memory(refused=BufferError)
    ),
    "array interface alone": Kind(lambda w: HostInterface()),
    # numbers
    "0": number(0),
    "1": number(1),
    "-1": number(-1),
    "48": number(48),
    "2**40": number(1 << 40),
    "2**64 - 16": number((1 << 64) - 16),
    "2**70": number(1 << 70),
    "-2**70": number(-(1 << 70)),
    "True": number(True),
    "1.5": number(1.5),
    "1e300": number(1e300),
    "inf": number(math.inf),
    "1j": number(1j),
    "np.int32": number(np.int32(48), 48),
    "np.uint64": number(np.uint64(48), 48),
    "np.bool": number(np.bool_(True), True),
    "np.float32": number(np.float32(1.5), 1.5),
    "np.float64": number(np.float64(1.5), 1.5),
    "array without dimensions": Kind(
        lambda w: np.array(48, "i4"), number=48, raw=struct.pack("i", 48), exports=True
    ),
    "ctypes int": number(ctypes.c_int(48), 48),
    "ctypes float": number(ctypes.c_float(1.5), 1.5),
    "ctypes null": number(ctypes.c_void_p(), 0),
    "index": Kind(lambda w: Index(), number=48),
    "float by method": Kind(lambda w: Real(), number=1.5),
    # structs
    "structured scalar": Kind(
        lambda w: np.array((1, 2), "u4,u4")[()], raw=struct.pack("II", 1, 2), exports=True
    ),
    "dataclass": Kind(lambda w: Pair(np.uint32(1), np.uint32(2)), raw=struct.pack("II", 1, 2)),
    "dataclass with a pointer": Kind(lambda w: Pointing(w.allocate().ptr), raw=b"address "),
    "dataclass with a closed one": Kind(
        lambda w: Pointing(pointer_of_closed(w)), raw=bytes(8), unread=cu.ClosedError
    ),
    "class of a dataclass": Kind(lambda w: Pair),
    # handles
    "texture": Kind(lambda w: cu.Texture(w.tensor("f4")), handle="texture"),
    "surface": Kind(_surface, handle="surface"),
    "condition": Kind(lambda w: cu.Graph(w.device).condition(), handle="condition"),
    "tensor map": Kind(lambda w: _tensor_map(w), handle="map"),
    # what is none of these
    "None": Kind(lambda w: None),
    "text": Kind(lambda w: "1"),
    "list": Kind(lambda w: [0] * 16),
    "tuple": Kind(lambda w: (0, 0)),
    "object": Kind(lambda w: object()),
    "stream": Kind(lambda w: w.stream),
    "device": Kind(lambda w: w.device),
    "kernel": Kind(lambda w: w.code["nothing"]),
    "code": Kind(lambda w: w.code),
    "config": Kind(lambda w: ONE),
    "graph": Kind(lambda w: cu.Graph(w.device)),
    "opaque array": Kind(lambda w: cu.OpaqueArray((4, 4), "f4", stream=w.stream)),
}


# --- rules ----------------------------------------------------------------------------------------

# By name, in the order of the documentation's table: what breaks them raises this.
RULES: dict[str, type[Exception]] = {
    "count": TypeError,
    "kind": TypeError,
    "width": OverflowError,
    "element type": TypeError,
    "layout": BufferError,
    "mask": TypeError,
    "alignment": ValueError,
    "size": ValueError,
    "access": TypeError,
    "device": ValueError,
    "read-only": TypeError,
    "open": cu.ClosedError,
}


def address_of(thing: Any) -> int:
    """Return the address that a kernel sees."""
    if isinstance(thing, Dlpack):
        return address_of(thing.of)
    if isinstance(thing, Interface):
        return int(thing.__cuda_array_interface__["data"][0])
    if isinstance(thing, cu.Buffer):
        return int(thing.handle)
    if isinstance(thing, cu.Pointer):
        return int(thing)
    if isinstance(thing, cu.Tensor):
        return int(thing.ptr)
    array = thing if isinstance(thing, np.ndarray) else np.frombuffer(thing, "u1")
    return int(array.ctypes.data)


def expected(p: Parameter, kind: Kind, thing: Any, device: cu.Device) -> bytes | type[Exception]:
    """Return what the parameter is when the kernel runs, or what is raised."""
    if kind.handle == "map" and thing is not None:
        return b"map" if p.kind == "map" else RULES["kind"]
    if p.kind in ("struct", "map"):
        return _as_struct(p, kind, thing)
    is_raw = kind.exports or kind.raw is not None
    if p.kind == "small" and is_raw and not isinstance(thing, float):
        return _as_struct(p, kind, thing)
    if kind.memory is not None:
        return _as_memory(p, kind, kind.memory, thing, device)
    if isinstance(thing, ctypes.c_void_p) and p.nbytes != 8:  # an address
        return RULES["kind"]
    if kind.number is not None:
        return _as_number(p, kind.number, thing)
    if kind.handle is not None and thing is not None:
        takes = kind.handle == p.kind or p.ctype == "unsigned long long"
        return (ValueError if kind.handle == "condition" else b"handle") if takes else TypeError
    return bytes(8) if thing is None and p.takes_memory else RULES["kind"]


def _as_memory(
    p: Parameter, kind: Kind, memory: Memory, thing: Any, device: cu.Device
) -> bytes | type[Exception]:
    if not p.takes_memory:
        return RULES["kind"]
    types, unit = POINTEES.get(p.ctype.removeprefix("const ")[:-1], (None, 0))
    if p.kind != "pointer":
        types, unit = None, 0
    name = None if memory.dtype in ("i1", "u1") else memory.dtype
    differs = types is not None and name is not None and name not in types
    if memory.refused is not None and not (kind.own and differs):
        return memory.refused
    if differs:
        return RULES["element type"]
    address = address_of(thing)
    if address % alignment(unit):
        return RULES["alignment"]
    if 0 < memory.nbytes < unit:
        return RULES["size"]
    if memory.ordinary and not device.reads_pageable_memory:
        return RULES["access"]
    if memory.read_only and not p.reads:
        return RULES["read-only"]
    if not p.reads:
        return struct.pack("Q", address)
    return memoryview(thing).tobytes()[:4] if kind.exports else bytes(4)


def _as_number(p: Parameter, value: Any, thing: Any) -> bytes | type[Exception]:
    if isinstance(value, complex) or (isinstance(thing, ctypes.c_void_p) and p.kind == "float"):
        return RULES["kind"]
    if p.kind == "float":
        return _as_float(value, p.nbytes)
    if p.kind == "small":
        return _as_small(p, value) if isinstance(thing, int | float) else RULES["kind"]
    if isinstance(value, float):
        return RULES["kind"]
    if p.kind != "pointer":
        fits = p.low <= value <= p.high
        return (
            (int(value) & (1 << 64) - 1).to_bytes(8, "little")[: p.nbytes]
            if fits
            else RULES["width"]
        )
    if isinstance(value, bool):
        return RULES["kind"]
    if not 0 <= value < 1 << 64:
        return RULES["width"]
    unit = POINTEES[p.ctype.removeprefix("const ")[:-1]][1]
    return struct.pack("Q", value) if not value % alignment(unit) else RULES["alignment"]


def _as_float(value: Any, nbytes: int) -> bytes | type[Exception]:
    if nbytes == 8:
        return struct.pack("d", value)
    with np.errstate(over="ignore"):
        made = np.float32(float(value))
    return RULES["width"] if np.isinf(made) and not math.isinf(value) else made.tobytes()


def _as_small(p: Parameter, value: Any) -> bytes | type[Exception]:
    if p.ctype == "__half":
        with np.errstate(over="ignore"):
            made = np.float16(float(value))
        return RULES["width"] if np.isinf(made) and not math.isinf(value) else made.tobytes()
    if math.isfinite(value) and abs(value) > 3.39e38:
        return RULES["width"]
    return np.float32(value).tobytes()[2:]  # all are such that nothing is rounded


def _as_struct(p: Parameter, kind: Kind, thing: Any) -> bytes | type[Exception]:
    if isinstance(thing, complex) and p.kernel in ("b8", "b16"):
        return struct.pack("ff" if p.nbytes == 8 else "dd", thing.real, thing.imag)
    if kind.handle in ("texture", "surface"):  # of a struct that has nothing else
        return b"handle" if p.kernel == "b8" else RULES["kind"]
    if kind.own or (kind.memory is not None and not kind.exports):
        return RULES["kind"]
    if kind.unread is not None and kind.raw is None:
        return kind.unread
    raw = kind.raw
    if raw is None and kind.exports:
        raw = memoryview(thing).tobytes()
    if raw is None:
        return RULES["kind"]
    if len(raw) != p.nbytes:
        return RULES["size"]
    if kind.unread is not None:
        return kind.unread
    return struct.pack("Q", int(thing.at)) if isinstance(thing, Pointing) else raw


def expected_by_expression(
    kind: Kind, thing: Any, what: str, device: cu.Device
) -> type[Exception] | None:
    """Return what is raised where `elementwise` and `reduce` are given this for a ``float x``."""
    memory = kind.memory
    if memory is None or (kind.exports and not isinstance(thing, np.ndarray)):
        return RULES["kind"]  # numbers alone do not say how many there are
    if isinstance(thing, np.ndarray) and memory.dtype in (None, "other"):
        return BufferError  # which NumPy does not lend
    has_strides = kind.own or isinstance(thing, Dlpack)
    if memory.refused is not None and not (has_strides and memory.refused is BufferError):
        return memory.refused
    if memory.dtype != "f4":
        return RULES["element type"]
    if address_of(thing) % 4:
        return RULES["alignment"]
    if memory.ordinary and not device.reads_pageable_memory:
        return RULES["access"]
    return ValueError if what == "reduce" and not memory.nbytes else None

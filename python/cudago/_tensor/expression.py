# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What kernels of expressions have in common: declared types, their source, and its compiling."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from .._kernel.launch import LaunchConfig
from .._kernel.program import Program
from .._kernel.program_options import ProgramOptions
from .._kernel.work import set_work
from .creation import empty
from .number import is_of_numpy, number_as
from .operand import shared
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._kernel.kernel import Kernel
    from .._memory.device import Device
    from .._stream.stream import Stream
    from ..typing import Dims

_TAKEN = ("i", "n")  # the element's index, and the number of elements
BLOCK = 256
EACH = 4  # elements that a thread loads at a time
_FULL = 1 << 10  # blocks that a device can run at a time, more or less
_MOST_BLOCKS = 1 << 20  # the kernel's loop does the rest


class Element(NamedTuple):
    """A type that can be declared.

    Attributes
    ----------
    name
        Of the element type.
    stored
        What it is in memory, in the source: NVRTC has no <cstdint>.
    value
        What an expression sees: a float in the place of a float of 16 bits.
    strict
        Its name as the type of a parameter, for kernels whose source does not tell it.
    """

    name: str
    stored: str
    value: str
    strict: str

    @property
    def is_narrow(self) -> bool:
        """Whether it is computed in another type than it is stored in."""
        return self.stored != self.value

    def load(self, stored: str) -> str:
        """Return the value of what is stored."""
        return f"cudago_value({stored})" if self.is_narrow else stored

    def store(self, value: str) -> str:
        """Return what is stored for a value."""
        return f"{self.stored}_of({value})" if self.is_narrow else value


def _plain(name: str, spelled: str) -> Element:
    return Element(name, spelled, spelled, spelled)


_ELEMENTS = {
    "float16": Element("float16", "cudago_f16", "float", "__half"),
    "bfloat16": Element("bfloat16", "cudago_bf16", "float", "__nv_bfloat16"),
    "float32": _plain("float32", "float"),
    "float64": _plain("float64", "double"),
    "int8": _plain("int8", "signed char"),
    "int16": _plain("int16", "short"),
    "int32": _plain("int32", "int"),
    "int64": _plain("int64", "long long"),
    "uint8": _plain("uint8", "unsigned char"),
    "uint16": _plain("uint16", "unsigned short"),
    "uint32": _plain("uint32", "unsigned int"),
    "uint64": _plain("uint64", "unsigned long long"),
    "bool": _plain("bool", "bool"),
}
# How C++ calls them, without what `_plainest` leaves out. A char has a sign on every host, as int8.
_SPELLED = {
    "float16": ["half", "__half"],
    "bfloat16": ["nv_bfloat16", "__nv_bfloat16"],
    "float32": ["float"],
    "float64": ["double"],
    "int8": ["signed char", "char", "int8_t"],
    "int16": ["short", "int16_t"],
    "int32": ["int", "int32_t"],
    "int64": ["long long", "long", "int64_t", "ptrdiff_t"],
    "uint8": ["unsigned char", "uint8_t"],
    "uint16": ["unsigned short", "uint16_t"],
    "uint32": ["unsigned", "uint32_t"],
    "uint64": ["unsigned long long", "unsigned long", "uint64_t", "size_t"],
}
TYPES = _ELEMENTS | {c: _ELEMENTS[name] for name, of in _SPELLED.items() for c in of}

# Floats of 16 bits, without CUDA's headers, which NVRTC does not bring along. To nearest even; a
# NaN stays one. cvt.rn.bf16 is of sm_90.
_NARROW = """\
struct cudago_f16 { unsigned short bits; };
struct cudago_bf16 { unsigned short bits; };
__device__ __forceinline__ float cudago_value(cudago_f16 x) {
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(x.bits));
    return f;
}
__device__ __forceinline__ float cudago_value(cudago_bf16 x) {
    return __uint_as_float((unsigned)x.bits << 16);
}
__device__ __forceinline__ cudago_f16 cudago_f16_of(float f) {
    cudago_f16 x;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(x.bits) : "f"(f));
    return x;
}
__device__ __forceinline__ cudago_bf16 cudago_bf16_of(float f) {
    unsigned w = __float_as_uint(f);
    unsigned r = f != f ? w >> 16 | 0x40 : w + 0x7fff + (w >> 16 & 1) >> 16;
    cudago_bf16 x;
    x.bits = (unsigned short)r;
    return x;
}
"""


def _is_letter(spelled: str) -> bool:
    return len(spelled) == 1 and "A" <= spelled <= "Z"


class Declared(NamedTuple):
    """A type, as it was spelled, and a name."""

    spelled: str
    name: str
    element: Element

    @property
    def is_open(self) -> bool:
        """Whether the tensors of a call tell the type, for which this has a letter."""
        return _is_letter(self.spelled)

    def __str__(self) -> str:
        return f"{self.spelled} {self.name}"


def _plainest(words: Sequence[str]) -> str:
    """Return a type of C++ without the words that may be left out, and with its sign first."""
    found = [w for w in words if w != "const"]
    found.sort(key=lambda w: w not in ("signed", "unsigned"))
    if len(found) > 1 and found.count("int") == 1:
        found.remove("int")
    if found[:1] == ["signed"] and found != ["signed", "char"]:
        found[:1] = [] if len(found) > 1 else ["int"]
    return " ".join(found)


def _advice(part: str) -> str:
    """Return what else to do where a declaration is what other libraries have, or kernels."""
    if "*" in part or part.split()[:1] == ["raw"]:
        return "an expression sees one element, so write a kernel that takes pointers"
    if "complex" in part:
        return "complex numbers are not computed, so view them as floats, and write a kernel"
    return "the types are float, double, half, __nv_bfloat16, bool and the integers of C++, or " + (
        ", ".join(_ELEMENTS) + ", or a letter such as T for that of the tensors"
    )


def declared(text: str, what: str) -> list[Declared]:
    """Return the types and names in ``"float x, int y"``."""
    if not isinstance(text, str):
        raise TypeError(f"{what} must be a str, not {type(text).__name__}")
    found: list[Declared] = []
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\w[\w\s]*)\s([A-Za-z_]\w*)\s*", part)
        words = match[1].split() if match else []
        plainest = _plainest(words)
        element = _plain(plainest, plainest) if _is_letter(plainest) else TYPES.get(plainest)
        if match is None or element is None:
            raise ValueError(
                f"{what} must be types and names such as 'float x, int32 y', got {part.strip()!r}; "
                + _advice(part)
            )
        if match[2] in _TAKEN:
            raise ValueError(
                f"{what} must not be called {match[2]!r}: i is the element's index, n "
                "the number of elements"
            )
        spelled = plainest if _is_letter(plainest) else " ".join(words)
        found.append(Declared(spelled, match[2], element))
    return found


def check_name(name: Any) -> None:
    """Raise ValueError if a kernel cannot have the name."""
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        raise ValueError(f"name must be a C identifier, got {name!r}")


def wrong_count(
    got: int, inputs: Sequence[Declared], outputs: Sequence[Declared], name: str
) -> TypeError:
    """Return the error of a call with another number of arguments than inputs were declared."""
    told = f"{name} takes {len(inputs)} input(s), got {got}"
    if got > len(inputs):
        names = " and ".join(d.name for d in outputs)
        told += f": what it writes to, {names}, is given by out="
    return TypeError(told)


def check(tensor: Any, declaration: Declared, name: str) -> None:
    """Raise an error if this is no tensor of the type that was declared, or is misaligned."""
    _, parameter, element = declaration
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{parameter} of {name} must be a Tensor, not {type(tensor).__name__}")
    want, got = element.name, tensor.dtype_name
    if want != got:
        raise TypeError(f"{parameter} of {name} must have elements of type {want}, got {got}")
    if tensor.handle % tensor.itemsize and tensor.size:
        raise ValueError(
            f"{parameter} of {name} must be aligned to the {tensor.itemsize} bytes of an element, "
            f"but begins at {tensor.handle:#x}: copy it with t.astype({got!r}, stream=s)"
        )


def argument(value: Any, declaration: Declared, name: str, stream: Stream) -> Any:
    """Return a tensor of the type that was declared, or a number that fits it."""
    what = f"{declaration.name} of {name}"
    tensor = None if is_of_numpy(value) else shared(value, stream, what)
    if tensor is None:
        return number_as(value, declaration.element.name, what)
    check(tensor, declaration, name)
    return tensor


def room(shape: Dims, element: Element, name: str, stream: Stream) -> Tensor:
    """Return memory for a kernel, which faults where a user's resource has misaligned it."""
    tensor = empty(shape, element.name, stream=stream)
    if tensor.handle % tensor.itemsize and tensor.size:
        raise BufferError(
            f"{name} needs memory of {stream.device} aligned to {tensor.itemsize} bytes; its "
            f"memory resource answered with memory at {tensor.handle:#x}"
        )
    return tensor


def is_several(out: Any) -> bool:
    """Whether `out` of a call is a tuple of outputs, or a list."""
    return isinstance(out, tuple | list)


def check_preamble(preamble: Any) -> None:
    """Raise TypeError if this is no source."""
    if not isinstance(preamble, str):
        raise TypeError(f"preamble must be a str, not {type(preamble).__name__}")


def behind(preamble: str, options: ProgramOptions | None) -> str:
    """Return what stands before the source of a kernel; each has lines of its own in messages."""
    if not preamble:
        return ""
    name = (options or ProgramOptions()).name.replace("\\", "\\\\").replace('"', '\\"')
    return f'#line 1 "preamble"\n{preamble}\n#line 1 "{name}"\n'


class Parameter(NamedTuple):
    """A parameter of a kernel: a number, or elements that it reads or writes."""

    element: Element
    name: str
    is_memory: bool
    is_written: bool = False

    def _of(self, spelled: str) -> str:
        return f"{'' if self.is_written else 'const '}{spelled}*" if self.is_memory else spelled

    @property
    def text(self) -> str:
        """Its declaration in the source."""
        return f"{self._of(self.element.stored)} {self.name}"

    @property
    def strict(self) -> str:
        """Its type, as arguments are checked for it."""
        return self._of(self.element.strict)


def compiled(
    source: str,
    name: str,
    parameters: Sequence[Parameter],
    rest: Sequence[str],
    work: str,
    device: Device,
    options: ProgramOptions | None,
) -> Kernel:
    """Compile a kernel, whose first parameters are these.

    The number of elements follows, and then others, which have the types in `rest`.
    """
    is_narrow = any(p.element.is_narrow for p in parameters)
    program = Program(_NARROW + source if is_narrow else source, "c++", options=options)
    kernel = program.compile(device=device).get_kernel(name, device=device)
    if is_narrow:
        kernel.parameter_types = (*(p.strict for p in parameters), "unsigned long long", *rest)
    set_work(kernel, work)
    return kernel


def config_for(size: int) -> LaunchConfig:
    """Return the configuration for a number of elements.

    A thread has several only where there are more of them than the device runs at a time.
    """
    blocks = min(-(-size // BLOCK), max(_FULL, -(-size // (BLOCK * EACH))))
    return LaunchConfig(max(1, min(blocks, _MOST_BLOCKS)), BLOCK)

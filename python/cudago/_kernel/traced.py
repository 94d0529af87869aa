# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""What an operator of JAX launches, while JAX traces it, and the programs that come of it."""

from __future__ import annotations

import hashlib
import math
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import WeakKeyDictionary

from .. import _core
from .._native import number_text, or_closed
from .named import arranged

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .kernel import Kernel
    from .launch import LaunchConfig

# By NumPy's names: XLA's number (xla_data.proto), and DLPack's code and bits. DLPack's code 3 is of
# opaque bits, for what no C++ type is known.
_TYPES = {
    "bool": (1, 6, 8),
    "int8": (2, 0, 8),
    "int16": (3, 0, 16),
    "int32": (4, 0, 32),
    "int64": (5, 0, 64),
    "uint8": (6, 1, 8),
    "uint16": (7, 1, 16),
    "uint32": (8, 1, 32),
    "uint64": (9, 1, 64),
    "float16": (10, 2, 16),
    "float32": (11, 2, 32),
    "float64": (12, 2, 64),
    "complex64": (15, 5, 64),
    "bfloat16": (16, 4, 16),
    "complex128": (18, 5, 128),
    "float8_e5m2": (19, 3, 8),
    "float8_e4m3fn": (20, 3, 8),
    "float8_e4m3b11fnuz": (23, 3, 8),
    "float8_e5m2fnuz": (24, 3, 8),
    "float8_e4m3fnuz": (25, 3, 8),
    "float8_e4m3": (28, 3, 8),
    "float8_e3m4": (29, 3, 8),
    "float8_e8m0fnu": (33, 3, 8),
}


class _Launch(NamedTuple):
    kernel: Kernel
    config: LaunchConfig
    values: bytes  # all parameters but the addresses
    addresses: tuple[tuple[int, TracedArray], ...]  # parameters that arrays are given for


class TracedArray:
    """An array while JAX traces an operator: its shape and its type, for which there is no memory.

    Attributes
    ----------
    shape : tuple of int
        Its shape. The elements are in row-major order, without gaps.
    dtype : numpy.dtype
        The type of its elements.
    size, nbytes, ndim : int
        Number of elements, size in bytes, number of dimensions.
    """

    __slots__ = ("_of", "_type", "dtype", "nbytes", "ndim", "shape", "size")

    def __init__(self, of: TracedStream, shape: tuple[int, ...], dtype: Any) -> None:
        name = str(dtype)
        if not all(isinstance(n, int) for n in shape):
            raise TypeError(f"{of.name}: kernels need shapes that are known, got {shape}")
        if name not in _TYPES:
            raise TypeError(
                f"{of.name}: kernels take no arrays of {name}, only of {', '.join(_TYPES)}"
            )
        self._of = of
        self._type = _TYPES[name]
        self.shape: tuple[int, ...] = shape
        self.dtype: Any = dtype
        self.ndim: int = len(shape)
        self.size: int = math.prod(shape)
        self.nbytes: int = self.size * self._type[2] // 8

    @or_closed
    def __repr__(self) -> str:
        return f"TracedArray({self.shape}, {self.dtype})"


class TracedStream:
    """What an operator's function launches on: it notes the launches, which XLA will make.

    Attributes
    ----------
    name : str
        The operator's name.
    """

    def __init__(self, jax: Any, name: str, simulated: bool, devices: tuple[int, ...]) -> None:
        self.name = name
        self._simulated = simulated
        self._jax = jax
        self._devices = devices
        self._launches: list[_Launch] = []
        self._stored: dict[TracedArray, str] = {}  # what may be stored through: a kernel's name

    def empty(self, shape: int | Sequence[int], dtype: Any) -> TracedArray:
        """Make an array that kernels write to: a result, or memory that is used on the way.

        Parameters
        ----------
        shape : int or sequence of int
            Its shape.
        dtype : numpy.dtype or what makes one
            The type of its elements.

        Returns
        -------
        TracedArray
            Its content is undefined. XLA allocates it whenever the operator runs.

        Raises
        ------
        TypeError
            For types whose elements have no bytes of their own, such as int4.
        """
        jnp = self._jax.numpy
        whole = (shape,) if isinstance(shape, int) else tuple(shape)
        dims: list[int] = [n.__index__() for n in whole]
        if any(n < 0 for n in dims):
            raise ValueError(
                f"{self.name}: a shape has no negative numbers, got {number_text(shape)}"
            )
        return TracedArray(self, tuple(dims), jnp.dtype(dtype))

    def empty_like(self, x: TracedArray) -> TracedArray:
        """Make an array of the shape and type of another: see `empty`.

        Parameters
        ----------
        x : TracedArray
            The other array.

        Returns
        -------
        TracedArray
            Its content is undefined.
        """
        return TracedArray(self, x.shape, x.dtype)

    def launch(self, config: LaunchConfig, kernel: Kernel, /, *args: Any, **named: Any) -> None:
        """Launch a kernel whenever the operator runs.

        Parameters
        ----------
        config : LaunchConfig
            The launch shape.
        kernel : Kernel
            The kernel. It stays loaded for as long as what JAX makes of the operator.
        *args, **named
            The kernel's arguments, as for `cudago.launch`, where names are known also by name:
            arrays, and numbers and structs, which are what they are when JAX traces the operator.

        Raises
        ------
        TypeError
            An argument does not suit its parameter, or is memory that is no argument of the
            operator.
        ValueError
            The device cannot launch such a shape.
        """
        if not isinstance(kernel, _core.Kernel):
            raise TypeError(f"kernel must be a Kernel, not {type(kernel).__name__}")
        given = arranged(kernel, args, named) if named else args
        types: list[int] = []
        addresses: list[tuple[int, TracedArray]] = []
        values: list[Any] = []
        for i, value in enumerate(given):
            if isinstance(value, TracedArray):
                self._own(value)
                addresses.append((i, value))
            elif isinstance(value, self._jax.Array):
                raise TypeError(
                    f"{self.name}: parameter {i} of kernel {kernel.name} is an array of JAX that "
                    "is no argument of the operator"
                )
            code, bits = value._type[1:] if isinstance(value, TracedArray) else (0, 0)
            types.append(code << 8 | bits if isinstance(value, TracedArray) else -1)
            values.append(None if isinstance(value, TracedArray) else value)
        names = tuple(str(getattr(v, "dtype", "")) for v in given)
        packed, stores = _core._xla_pack(
            kernel, config, self._devices, tuple(values), tuple(types), names
        )
        for i, array in addresses:
            if stores[i]:
                self._stored.setdefault(array, f"parameter {i} of kernel {kernel.name}")
        self._launches.append(_Launch(kernel, config, packed, tuple(addresses)))

    def _own(self, array: TracedArray) -> None:
        if array._of is not self:
            raise TypeError(f"{self.name}: {array} is of another call of an operator")


class Key(str):
    """A program's key, which JAX knows the program by, and which holds the program."""

    __slots__ = ("__weakref__", "_program")
    _program: object

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


class Program(NamedTuple):
    key: Key
    results: list[TracedArray]  # what XLA allocates
    aliases: dict[int, int]  # arguments that are results


def program_of(stream: TracedStream, given: list[TracedArray], wanted: list[Any]) -> Program:
    """Write down what a function has launched and returned, and name it by its content."""
    results = _results(stream, given, wanted)
    aliases = {i: results.index(a) for i, a in enumerate(given) if a in results}
    places = {a: len(given) + i for i, a in reversed(list(enumerate(results)))}
    places = {a: i for i, a in enumerate(given)} | places
    arrays = tuple(
        (a._type[0], a.size, a.nbytes, aliases.get(i, -1) if i < len(given) else -1)
        for i, a in enumerate([*given, *results])
    )
    launches = tuple(
        (kernel, config, values, tuple((i, places[a]) for i, a in addresses))
        for kernel, config, values, addresses in stream._launches
    )
    text = repr((
        stream.name, stream._simulated, stream._devices, len(given), arrays,
        [(_code_name(k), k.name, c, v, a) for k, c, v, a in launches],
    ))  # fmt: skip
    key = Key(hashlib.sha256(text.encode()).hexdigest())
    key._program = _core._xla_program(
        key, stream.name, stream._simulated, stream._devices, len(given), arrays, launches
    )
    return Program(key, results, aliases)


def _results(
    stream: TracedStream, given: list[TracedArray], wanted: list[Any]
) -> list[TracedArray]:
    """Return what XLA allocates: what is returned, then what is only used on the way."""
    used = {a: None for *_, addresses in stream._launches for _, a in addresses}
    for a in wanted:
        if not isinstance(a, TracedArray):
            raise TypeError(
                f"{stream.name} must return arrays that were made by stream.empty, or arguments, "
                f"got {type(cast('object', a)).__name__}"
            )
        stream._own(a)
        if a.nbytes and a not in used and a not in given:
            raise ValueError(f"{stream.name} returns {a}, which no kernel was given to write to")
    for i, a in enumerate(given):
        if a in stream._stored and a not in wanted:
            raise TypeError(
                f"{stream.name}: array {i} among the arguments may be stored to through "
                f"{stream._stored[a]}: return it too, or declare the kernel's parameter so that "
                "nothing is stored through it"
            )
    return list(dict.fromkeys([*wanted, *(a for a in used if a not in given)]))


# By content: code that lives, each with variables of its own, and its number among those.
_codes: dict[str, WeakKeyDictionary[_core.Handle, int]] = {}
_contents: WeakKeyDictionary[_core.Handle, str] = WeakKeyDictionary()
_lock = threading.RLock()  # guards the two; a collection meanwhile may run a tracer in this thread


def _code_name(kernel: Kernel) -> tuple[str, int]:
    """Name a kernel's code by its content, and number code of the same content.

    So another process finds its compiled functions again in JAX's cache of them.
    """
    handle = kernel._code
    content = _contents.get(handle)
    if content is None:
        content = hashlib.sha256(bytes(_core._code_data(handle.id, "data", None))).hexdigest()
    return content, _core._locked(_lock, _number, handle, content)


def _number(handle: _core.Handle, content: str) -> int:
    _contents[handle] = content
    same = _codes.get(content)
    if same is None:
        for other in [c for c, living in _codes.items() if not living]:
            del _codes[other]
        same = _codes[content] = WeakKeyDictionary()
    if handle not in same:
        # The least that is free: code that is gone has no program any more.
        taken = set(same.values())
        same[handle] = next(i for i in range(len(taken) + 1) if i not in taken)
    return same[handle]

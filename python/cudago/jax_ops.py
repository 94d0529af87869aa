# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""JAX operators that launch kernels of cudago."""

from __future__ import annotations

import functools
import hashlib
import inspect
import math
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from . import _core
from ._driver import driver_name
from ._kernel.named import arranged
from .errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ._kernel.kernel import Kernel
    from ._kernel.launch import LaunchConfig

__all__ = ["Residuals", "TracedArray", "TracedStream", "operator"]

_TARGET = "cudago_launches"  # XLA's name of the function in pyext/xla/run.c

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

_Launch: TypeAlias = "tuple[Kernel, LaunchConfig, bytes, tuple[tuple[int, TracedArray], ...]]"


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

    def __repr__(self) -> str:
        return f"TracedArray({self.shape}, {self.dtype})"


class TracedStream:
    """What an operator's function launches on: it notes the launches, which XLA will make.

    Attributes
    ----------
    name : str
        The operator's name.
    """

    def __init__(self, jax: Any, name: str, devices: tuple[int, ...]) -> None:
        self.name = name
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
            raise ValueError(f"{self.name}: a shape has no negative numbers, got {shape}")
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
            The kernel. It stays loaded for good.
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
        self._launches.append((kernel, config, packed, tuple(addresses)))

    def _own(self, array: TracedArray) -> None:
        if array._of is not self:
            raise TypeError(f"{self.name}: {array} is of another call of an operator")


class Residuals:
    """What an operator's `backward` is given of the call whose gradients it makes.

    Attributes
    ----------
    saved_arrays : tuple
        The arguments that were arrays.
    saved_results : tuple
        What the operator returned.
    arguments : tuple
        All arguments, with None in place of the arrays.
    """

    __slots__ = ("arguments", "saved_arrays", "saved_results")

    def __init__(
        self,
        saved_arrays: tuple[Any, ...],
        saved_results: tuple[Any, ...],
        arguments: tuple[Any, ...],
    ) -> None:
        self.saved_arrays = saved_arrays
        self.saved_results = saved_results
        self.arguments = arguments


def operator(
    name: str, *, backward: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a JAX operator of a function that launches kernels.

    The function takes a `TracedStream`, and then the operator's arguments: a `TracedArray` for each
    array, and all other values as they are. It makes arrays with ``stream.empty`` and
    ``stream.empty_like``, launches with ``stream.launch``, and returns an array or a tuple of
    arrays. JAX calls it when it traces the operator; what runs later are the launches alone.

    Parameters
    ----------
    name : str
        A name for error messages, such as ``"mine::scale"``.
    backward : callable, optional
        Called as ``backward(ctx, *gradients)`` with `Residuals` and the gradient of each result:
        returns a gradient, or None, for each argument. It calls JAX's functions and operators.
        Without it the operator has no gradient.

    Returns
    -------
    callable
        Decorator for the function. The operator runs in ``jax.jit``, ``jax.grad``, and in
        ``jax.vmap`` once for each element of the axis.

    Raises
    ------
    ImportError
        JAX is not installed.
    UnsupportedError
        JAX has no device that the driver's kernels can use, or is older than 0.5.
    TypeError
        From the operator: the function returns anything else, or has a kernel write to an argument
        that it does not return.

    Notes
    -----
    An argument that the function returns is written to in place: XLA gives the kernels a copy if
    the array is still needed.

    On CUDA devices the launches go into XLA's own stream, in the order of its own work, and may
    become part of the graphs that XLA captures. Python does not run. On JAX's CPU backend the
    simulated driver runs the kernels, and the operator waits for them. If the driver and the
    backend do not go together, JAX raises an error that says what to choose.

    What was traced stays for good, with kernels and their code: nobody knows how long JAX keeps a
    compiled function. Launches that are the same in all are kept once.

    References
    ----------
    ``cuLaunchKernelEx``

    Examples
    --------
    >>> @cudago.jax_ops.operator(  # doctest: +SKIP
    ...     "mine::scale", backward=lambda ctx, g: (scale(g, ctx.arguments[1]), None)
    ... )
    ... def scale(stream, x, a: float):
    ...     y = stream.empty_like(x)
    ...     config = cudago.LaunchConfig.for_elements(x.size, kernel)
    ...     stream.launch(config, kernel, x, a, y, x.size)
    ...     return y
    """
    jax: Any = import_module("jax")
    if not hasattr(jax, "ffi"):
        raise UnsupportedError(f"operators need JAX 0.5 or newer, this is {jax.__version__}")

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())
        if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
            raise TypeError(f"{function!r} must take a stream as its first argument")
        first = parameters[0].kind is inspect.Parameter.VAR_POSITIONAL
        signature = signature.replace(parameters=parameters if first else parameters[1:])

        @functools.wraps(function)
        def call(*args: Any, **words: Any) -> Any:
            return _Call(jax, name, function, signature.bind(*args, **words)).run(backward)

        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return decorate


class _Call:
    """One call of an operator: its arguments, apart as arrays and as values."""

    def __init__(
        self, jax: Any, name: str, function: Callable[..., Any], bound: inspect.BoundArguments
    ) -> None:
        bound.apply_defaults()
        self.jax, self.name, self.function = jax, name, function
        self.names = tuple(bound.kwargs)
        values = [*bound.args, *bound.kwargs.values()]
        arrays = (jax.Array, import_module("numpy").ndarray)
        self.places = [i for i, v in enumerate(values) if isinstance(v, arrays)]
        self.arrays: list[Any] = [jax.numpy.asarray(values[i]) for i in self.places]
        self.values = [None if i in self.places else v for i, v in enumerate(values)]
        for v in self.values:
            if any(isinstance(leaf, arrays) for leaf in jax.tree_util.tree_leaves(v)):
                raise TypeError(
                    f"{name}: an argument is an array or a value, got {type(v).__name__} with "
                    "arrays in it: take them as *arrays"
                )

    def run(self, backward: Callable[..., Any] | None) -> Any:
        """Run the operator, or have JAX trace it."""
        if backward is None:
            return self.launch(*self.arrays)
        made = self.jax.custom_vjp(self.launch)
        made.defvjp(self.forward, functools.partial(self.gradients, backward))
        return made(*self.arrays)

    def forward(self, *arrays: Any) -> tuple[Any, Any]:
        result = self.launch(*arrays)
        return result, (arrays, result if isinstance(result, tuple) else (result,))

    def gradients(self, backward: Callable[..., Any], saved: Any, gradient: Any) -> tuple[Any, ...]:
        """Return the gradients of the arrays."""
        ctx = Residuals(*saved, tuple(self.values))
        given = gradient if isinstance(gradient, tuple) else (gradient,)
        made = backward(ctx, *given)
        found = tuple(cast("Sequence[Any]", made)) if isinstance(made, tuple | list) else (made,)
        if len(found) != len(self.values):
            raise TypeError(
                f"{self.name}: backward= must return a gradient or None for each of the "
                f"{len(self.values)} argument(s), got {len(found)}"
            )
        return tuple(found[i] for i in self.places)

    def launch(self, *arrays: Any) -> Any:
        """Trace the function, and have XLA make its launches."""
        stream = TracedStream(self.jax, self.name, _devices(self.jax, self.name))
        given = [TracedArray(stream, tuple(x.shape), x.dtype) for x in arrays]
        values = list(self.values)
        for i, array in zip(self.places, given, strict=True):
            values[i] = array
        n = len(values) - len(self.names)
        returned = self.function(
            stream, *values[:n], **dict(zip(self.names, values[n:], strict=True))
        )
        several = isinstance(returned, tuple | list)
        wanted = list(cast("Sequence[Any]", returned)) if several else [returned]
        program = _program(stream, given, wanted)
        results = self.jax.ffi.ffi_call(
            _TARGET,
            [self.jax.ShapeDtypeStruct(a.shape, a.dtype) for a in program.results],
            vmap_method="sequential",
            input_output_aliases=program.aliases,
        )(*arrays, program=program.key)
        made = tuple(results[program.results.index(a)] for a in wanted)
        return made if several else made[0]


class _Program(NamedTuple):
    key: str
    results: list[TracedArray]  # what XLA allocates
    aliases: dict[int, int]  # arguments that are results


def _program(stream: TracedStream, given: list[TracedArray], wanted: list[Any]) -> _Program:
    """Keep what a function has launched and returned, and name it by its content."""
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
    simulated = driver_name() == "sim"
    text = repr((
        _TARGET, stream.name, simulated, stream._devices, len(given), arrays,
        [(_code_name(k), k.name, c, v, a) for k, c, v, a in launches],
    ))  # fmt: skip
    key = hashlib.sha256(text.encode()).hexdigest()
    _core._xla_program(key, stream.name, simulated, stream._devices, len(given), arrays, launches)
    return _Program(key, results, aliases)


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


# --- the process's codes, devices and registration ------------------------------------------------

_codes: dict[str, list[int]] = {}  # by content: code objects, each with variables of its own
_contents: dict[int, str] = {}
_registered: set[str] = set()
_lock = threading.Lock()  # guards the three


def _code_name(kernel: Kernel) -> tuple[str, int]:
    """Name a kernel's code by its content, and number code of the same content.

    So another process finds its compiled functions again in JAX's cache of them.
    """
    handle = kernel._code
    content = _contents.get(handle.id)
    if content is None:
        content = hashlib.sha256(bytes(_core._code_data(handle.id, "data", None))).hexdigest()
    with _lock:
        _contents[handle.id] = content
        same = _codes.setdefault(content, [])
        if handle.id not in same:
            same.append(handle.id)
        return content, same.index(handle.id)


def _devices(jax: Any, name: str) -> tuple[int, ...]:
    """Return the ordinals of the devices that JAX may run the operator on."""
    simulated = driver_name() == "sim"
    with _lock:
        if not _registered:
            for platform in ("cpu", "CUDA"):
                jax.ffi.register_ffi_target(
                    _TARGET, _core._xla_handler(platform), platform=platform
                )
            _registered.add(_TARGET)
    if simulated:
        return (0,)
    try:
        devices: list[Any] = jax.local_devices(backend="cuda")
    except RuntimeError as e:
        raise UnsupportedError(
            f"{name}: cudago uses NVIDIA's driver, and JAX has no CUDA device: install jax[cuda13], "
            "or choose the simulated driver (CUDAGO_DRIVER=sim)"
        ) from e
    return tuple(sorted(d.local_hardware_id for d in devices))

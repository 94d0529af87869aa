# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""JAX operators that launch kernels of cudago."""

from __future__ import annotations

import functools
import inspect
import threading
from collections import OrderedDict
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from . import _core
from ._driver import driver_name
from ._kernel.traced import Key, TracedArray, TracedStream, program_of
from ._memory.device import Device
from .errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Residuals", "TracedArray", "TracedStream", "operator"]

_TARGET = "cudago_launches"  # XLA's name of the function in pyext/xla/run.c


class Residuals:
    """What an operator's ``backward`` is given of the call whose gradients it makes.

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
        self.saved_arrays: tuple[Any, ...] = saved_arrays
        self.saved_results: tuple[Any, ...] = saved_results
        self.arguments: tuple[Any, ...] = arguments


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

    What was traced stays, with kernels and their code, for as long as JAX keeps what it made of it:
    traced, lowered and compiled functions. ``jax.clear_caches()`` lets go of what nobody else
    refers to. Launches that are the same in all are kept once.

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
        known: dict[object, _Variant] = {}

        @functools.wraps(function)
        def call(*args: Any, **words: Any) -> Any:
            bound = signature.bind(*args, **words)
            bound.apply_defaults()
            made, arrays = _Variant.of(jax, name, function, bound)
            made = _known(known, made)
            return made.run(backward)(*_alike(jax, arrays))

        call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return decorate


class _Variant:
    """An operator with values for all arguments but its arrays."""

    def __init__(
        self,
        jax: Any,
        name: str,
        function: Callable[..., Any],
        values: Sequence[Any],
        places: tuple[int, ...],
        words: tuple[str, ...],
    ) -> None:
        self.jax, self.name, self.function = jax, name, function
        self.values = tuple(values)  # of all arguments, with None for the arrays
        self.places = places  # of the arrays
        self.words = words  # names of the last arguments
        self.compiled: Any = None

    @classmethod
    def of(
        cls, jax: Any, name: str, function: Callable[..., Any], bound: inspect.BoundArguments
    ) -> tuple[_Variant, list[Any]]:
        """Take the arrays out of the arguments."""
        given = [*bound.args, *bound.kwargs.values()]
        kinds = (jax.Array, import_module("numpy").ndarray)
        places = tuple(i for i, v in enumerate(given) if isinstance(v, kinds))
        arrays: list[Any] = [jax.numpy.asarray(given[i]) for i in places]
        values = [None if i in places else v for i, v in enumerate(given)]
        for v in values:
            if any(isinstance(leaf, kinds) for leaf in jax.tree_util.tree_leaves(v)):
                raise TypeError(
                    f"{name}: an argument is an array or a value, got {type(v).__name__} with "
                    "arrays in it: take them as *arrays"
                )
        return cls(jax, name, function, values, places, tuple(bound.kwargs)), arrays

    def run(self, backward: Callable[..., Any] | None) -> Any:
        """Return the operator as a function of the arrays that JAX knows again."""
        if self.compiled is None:

            def whole(*arrays: Any) -> Any:
                return self.launch(*arrays)

            whole.__name__ = getattr(self.function, "__name__", "operator")  # for JAX's profiles
            made: Any = whole
            if backward is not None:
                made = self.jax.custom_vjp(whole)

                def forward(*arrays: Any) -> tuple[Any, Any]:
                    result = made(*arrays)  # which has a gradient too, for those of higher order
                    return result, (arrays, result if isinstance(result, tuple) else (result,))

                made.defvjp(forward, functools.partial(self.gradients, backward))
            self.compiled = self.jax.jit(made)
        return self.compiled

    def gradients(self, backward: Callable[..., Any], saved: Any, gradient: Any) -> tuple[Any, ...]:
        """Return the gradients of the arrays."""
        arrays, results = saved
        ctx = Residuals(arrays, results, self.values)
        several = isinstance(gradient, tuple)
        given = cast("tuple[Any, ...]", gradient) if several else (gradient,)
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
        simulated = driver_name() == "sim"
        devices = _devices(self.jax, self.name, simulated)
        stream = TracedStream(self.jax, self.name, simulated, devices)
        given = [TracedArray(stream, tuple(x.shape), x.dtype) for x in arrays]
        values = list(self.values)
        for i, array in zip(self.places, given, strict=True):
            values[i] = array
        n = len(values) - len(self.words)
        words = dict(zip(self.words, values[n:], strict=True))
        returned = self.function(stream, *values[:n], **words)
        several = isinstance(returned, tuple | list)
        wanted = list(cast("Sequence[Any]", returned)) if several else [returned]
        program = program_of(stream, given, wanted)
        if _kept is not None:
            _kept.add(program.key)
        results = self.jax.ffi.ffi_call(
            _TARGET,
            [self.jax.ShapeDtypeStruct(a.shape, a.dtype) for a in program.results],
            vmap_method="sequential",
            input_output_aliases=program.aliases,
        )(*arrays, program=program.key)
        # JAX takes what others make of arrays for the same on all devices of a mesh.
        axes = _axes(self.jax, arrays[0]) if arrays else frozenset[Any]()
        results = [_vary(self.jax, x, axes) for x in results]
        made = tuple(results[program.results.index(a)] for a in wanted)
        return made if several else made[0]


_MOST_KNOWN = 256  # variants of an operator; JAX compiles those that come again anew


def _known(known: dict[object, _Variant], made: _Variant) -> _Variant:
    """Return a variant with the same values that JAX may have compiled already."""
    values = made.values
    if not all(type(v) in (bool, int, float, str, bytes, type(None)) for v in values):
        return made  # what else is equal may not be the same
    exact: list[object] = [(type(v), v.hex() if isinstance(v, float) else v) for v in values]
    key: object = (tuple(exact), made.places, made.words)
    if len(known) >= _MOST_KNOWN:
        known.clear()
    return known.setdefault(key, made)


# --- jax.shard_map --------------------------------------------------------------------------------


def _axes(jax: Any, x: Any) -> frozenset[Any]:
    """Return the axes of a mesh along which JAX knows that an array differs between devices."""
    kind: Any = jax.typeof(x) if hasattr(jax, "typeof") else None
    kind = getattr(kind, "mat", kind)  # since JAX 0.10
    return frozenset(getattr(kind, "varying", getattr(kind, "vma", ())))


def _vary(jax: Any, x: Any, axes: frozenset[Any]) -> Any:
    """Have JAX know of an array that it may differ along more axes."""
    more = tuple(sorted(axes - _axes(jax, x), key=str))
    if not more:
        return x
    return (
        jax.lax.pcast(x, more, to="varying")
        if hasattr(jax.lax, "pcast")
        else jax.lax.pvary(x, more)
    )


def _alike(jax: Any, arrays: list[Any]) -> list[Any]:
    """Have arrays differ along the same axes, as JAX does for its own functions of several arrays.

    For functions of others it does not, and would not sum gradients over the devices.
    """
    axes = frozenset[Any]().union(*(_axes(jax, x) for x in arrays))
    return [_vary(jax, x, axes) for x in arrays]


# --- JAX's devices --------------------------------------------------------------------------------


_MOST_LOWERED = 1024  # programs that a context of modules holds
_kept: set[Key] | None = None  # for good, by a JAX that does not say which module it makes


def _watch_modules() -> None:
    """Have a module that JAX lowers hold its programs, which may be all that is left to compile."""
    global _kept
    try:
        mlir: Any = import_module("jax._src.interpreters.mlir")  # what follows has no public name
        ir: Any = import_module("jaxlib.mlir.ir")

        def attribute(key: Key) -> Any:
            # Which the module holds. JAX before 0.11 makes one for each module, later ones have one
            # for all: there the last programs stay until others follow.
            context = ir.Context.current
            keys: OrderedDict[Key, None] | None = getattr(context, "_cudago_keys", None)
            if keys is None:
                keys = OrderedDict[Key, None]()
                context._cudago_keys = keys
            keys[key] = None
            keys.move_to_end(key)
            while len(keys) > _MOST_LOWERED:
                keys.popitem(last=False)
            return ir.StringAttr.get(str(key))

        mlir.register_attribute_handler(Key, attribute)
        # JAX remembers what types a call makes by its parameters: otherwise for 2048 calls more.
        weak: Any = getattr(import_module("jax._src.util"), "weakref_cache_key_types", None)
        if isinstance(weak, set):
            cast("set[type]", weak).add(Key)
    except (ImportError, AttributeError):
        _kept = set()


_registered: set[str] = set()
_lock = threading.Lock()  # guards it


def _register(jax: Any) -> None:
    """Tell JAX once of the function that XLA calls."""
    if not _registered:
        _watch_modules()
        for platform in ("cpu", "CUDA"):
            handler = _core._xla_handler(platform)
            stages = {"instantiate": handler, "execute": handler}
            jax.ffi.register_ffi_target(_TARGET, stages, platform=platform)
        _registered.add(_TARGET)


def _devices(jax: Any, name: str, simulated: bool) -> tuple[int, ...]:
    """Return the ordinals of the devices that JAX may run the operator on."""
    _core._locked(_lock, _register, jax)
    if simulated:
        if not Device(0).properties.pageable_memory_access:
            raise UnsupportedError(
                f"{name}: the simulated device is set not to read memory of the host "
                "(CUDAGO_SIM=pageable=0), where JAX has its arrays"
            )
        return (0,)
    try:
        devices: list[Any] = jax.local_devices(backend="cuda")
    except RuntimeError as e:
        raise UnsupportedError(
            f"{name}: cudago uses NVIDIA's driver, and JAX has no CUDA device: install "
            "jax[cuda13], or choose the simulated driver (CUDAGO_DRIVER=sim)"
        ) from e
    return tuple(sorted(d.local_hardware_id for d in devices))

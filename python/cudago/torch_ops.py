# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch operators that launch kernels of cudago."""

from __future__ import annotations

import functools
import inspect
import typing
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._driver import driver_name
from ._memory.device import Device
from ._stream.stream import Stream
from .errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

__all__ = ["operator"]


def operator(
    name: str,
    *,
    backward: Callable[..., Any] | None = None,
    setup_context: Callable[..., None] | None = None,
    fake: Callable[..., Any] | None = None,
    mutates: str | Iterable[str] = (),
) -> Callable[[Callable[..., Any]], Any]:
    """Make a PyTorch operator of a function that launches kernels.

    The function takes a stream, and then the operator's arguments, with PyTorch's annotations. It
    launches on the stream, and returns what it made, or None. Tensors that it does not write to
    reach it without gaps, copied if need be.

    Parameters
    ----------
    name : str
        Namespace and name, such as ``"mine::scale"``: the operator is ``torch.ops.mine.scale``.
    backward : callable, optional
        Called as ``backward(ctx, *gradients)``: returns a gradient, or None, for each argument. For
        ``torch.compile`` it launches kernels through operators only.
    setup_context : callable, optional
        Called as ``setup_context(ctx, inputs, output)``, to keep what `backward` needs. Without it,
        ``ctx.saved_tensors`` has the arguments that are tensors, and ``ctx.arguments`` all others,
        with None in place of the tensors.
    fake : callable, optional
        Takes the operator's arguments and makes tensors of the shapes, types and strides of the
        results, which are never looked into. Without it, the result is row-major and of the shape
        and type of the first tensor among the arguments.
    mutates : str or iterable of str, optional
        The names of the arguments that kernels write to.

    Returns
    -------
    callable
        Decorator for the function. It makes a ``torch.library.CustomOpDef``.

    Raises
    ------
    ImportError
        PyTorch is not installed.
    UnsupportedError
        From the operator: tensors of a CUDA device on the simulated driver, or of the host on
        NVIDIA's.

    Notes
    -----
    Tensors of a CUDA device: the stream is PyTorch's current one on that device. So the operator
    has its place in PyTorch's order, in its allocator and under ``torch.cuda.graph``.

    Tensors of the host, on the simulated driver: the operator waits for the kernels, so that tests
    need no GPU.

    Examples
    --------
    >>> @cudago.torch_ops.operator(  # doctest: +SKIP
    ...     "mine::scale", backward=lambda ctx, g: (scale(g, ctx.arguments[1]), None)
    ... )
    ... def scale(stream, x: torch.Tensor, a: float) -> torch.Tensor:
    ...     y = torch.empty_like(x)
    ...     config = cudago.LaunchConfig.for_elements(x.numel(), kernel)
    ...     cudago.launch(stream, config, kernel, x, a, y, x.numel())
    ...     return y
    """
    torch: Any = import_module("torch")

    def decorate(function: Callable[..., Any]) -> Any:
        signature = _signature(function)
        if fake is None and signature.return_annotation not in (None, torch.Tensor):
            raise ValueError(
                f"operator {name!r} returns {signature.return_annotation}: fake= must make it, "
                "because only one tensor or None can be made without"
            )
        written = _names(mutates)
        launch = _launcher(torch, name, function, signature, written)
        made = torch.library.custom_op(name, launch, mutates_args=written)
        made.register_fake(fake or functools.partial(_like_the_first, torch, signature))
        if backward is not None:
            keep = setup_context or functools.partial(_keep, torch)
            made.register_autograd(backward, setup_context=keep)
        return made

    return decorate


def _names(mutates: str | Iterable[str]) -> str | tuple[str, ...]:
    if not isinstance(mutates, str):
        return tuple(mutates)
    return "unknown" if mutates == "unknown" else (mutates,)  # PyTorch's word for any of them


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return the signature of the operator, which has no stream."""
    signature = inspect.signature(function)
    types = typing.get_type_hints(function)
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise TypeError(f"{function!r} must take a stream as its first argument")
    rest = [p.replace(annotation=types.get(p.name, p.annotation)) for p in parameters[1:]]
    result = types.get("return", signature.return_annotation)
    if result is inspect.Signature.empty:
        raise TypeError(
            f"{function!r} must be annotated with what it returns: torch.Tensor or None"
        )
    return signature.replace(
        parameters=rest, return_annotation=None if result is type(None) else result
    )


def _tensors(torch: Any, values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(torch, typing.cast("Sequence[Any]", value))


def _passed(torch: Any, value: Any, is_written: bool) -> Any:
    """Return what a function gets of an argument.

    A tensor that requires a gradient has no ``__dlpack__``; gradients often have strides of 0.
    """
    if isinstance(value, torch.Tensor):
        return value.detach() if is_written else value.detach().contiguous()
    if isinstance(value, list | tuple):
        return [_passed(torch, v, is_written) for v in typing.cast("Sequence[Any]", value)]
    return value


def _launcher(
    torch: Any,
    name: str,
    function: Callable[..., Any],
    signature: inspect.Signature,
    written: str | tuple[str, ...],
) -> Callable[..., Any]:
    """Return the operator's implementation: the function on the stream that is right."""

    @functools.wraps(function)
    def launch(*args: Any, **words: Any) -> Any:
        given = signature.bind(*args, **words)
        for key, value in given.arguments.items():
            is_written = written == "unknown" or key in written
            given.arguments[key] = _passed(torch, value, is_written)
        args, words = given.args, given.kwargs
        first = next(_tensors(torch, (*args, *words.values())), None)
        if first is None:
            raise TypeError(f"{name}: a tensor must be among the arguments, to say where to run")
        simulated = driver_name() == "sim"
        kind = first.device.type
        if kind == "cuda" and not simulated:
            current = torch.cuda.current_stream(first.device)
            return function(Stream(current), *args, **words)
        if kind != "cpu" or not simulated:
            raise UnsupportedError(
                f"{name}: a tensor of {first.device} has no device of the "
                f"{'simulated' if simulated else 'NVIDIA'} driver: expected "
                f"{'cpu' if simulated else 'cuda'}"
            )
        stream = Device().default_stream
        try:
            return function(stream, *args, **words)
        finally:
            stream.sync()

    launch.__signature__ = signature  # type: ignore[attr-defined]
    launch.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
    launch.__annotations__["return"] = signature.return_annotation
    return launch


def _like_the_first(torch: Any, signature: inspect.Signature, /, *args: Any, **words: Any) -> Any:
    if signature.return_annotation is None:
        return None
    first = next(_tensors(torch, (*args, *words.values())))
    return torch.empty_like(first, memory_format=torch.contiguous_format)


def _keep(
    torch: Any,
    ctx: Any,
    inputs: tuple[Any, ...],
    output: object,
    keyword_only_inputs: dict[str, Any] | None = None,
) -> None:
    """Keep the arguments for the backward pass."""
    values = (*inputs, *(keyword_only_inputs or {}).values())
    lists: list[Any] = [v for v in values if isinstance(v, list | tuple)]
    if next(_tensors(torch, lists), None) is not None:
        raise TypeError("lists of tensors are kept by setup_context= alone")
    ctx.save_for_backward(*(v for v in inputs if isinstance(v, torch.Tensor)))
    ctx.arguments = tuple(None if isinstance(v, torch.Tensor) else v for v in values)

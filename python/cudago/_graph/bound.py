# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Launches whose arguments are checked once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _core
from .._kernel.kernel import Kernel
from .._kernel.launch import LaunchConfig, launch
from .._memory.buffer import Buffer, Pointer
from .._native import into_native, or_closed
from .._ordinal import device_at
from .._tensor.tensor import Tensor
from ..errors import ClosedError
from .classes import Graph
from .params import KernelNodeParams

if TYPE_CHECKING:
    from .._memory.device import Device
    from .._stream.stream import Stream
    from ..typing import KernelArgument

__all__ = ["BoundLaunch"]


@into_native
class BoundLaunch(_core.BoundLaunch):
    """A launch with its arguments, which calling it puts into a stream. Made by `Kernel.bind`.

    An executable graph of one node: it keeps its arguments alive until it is closed and its last
    launch has completed. A context manager: leaving the ``with`` block closes it.

    Examples
    --------
    >>> source = 'extern "C" __global__ void add(int* x, int value) { *x += value; }'
    >>> kernel = cudago.Program(source).compile()["add"]
    >>> x = cudago.zeros(1, "int32", stream=stream)
    >>> add = kernel.bind(cudago.LaunchConfig(grid=1, block=1), x, 5)
    >>> add(stream)
    >>> add.update(value=2)
    >>> add(stream)
    >>> x.numpy(stream=stream)
    array([7], dtype=int32)
    """

    __slots__ = ()

    def __init__(self, kernel: Kernel, config: LaunchConfig, args: tuple[Any, ...]) -> None:
        if isinstance(config, LaunchConfig) and config.programmatic:
            raise ValueError(
                "config must not be programmatic: a bound launch is a graph of its own, which "
                "starts when the work before it on the stream is done"
            )
        with Graph(_device_of(args)) as graph:
            graph.launch(config, kernel, *args)
            step = graph.instantiate(priorities=config.priority is not None)
        self._open(step, *step.nodes)

    def _call_captured(self, stream: Stream) -> None:
        """Call on a stream that is capturing; the native call calls this."""
        record = self._step._record(self._node._id)
        assert record is not None
        kernel, config, *args = record
        launch(stream, config, kernel, *args)

    def update(self, /, *args: Any, **kwargs: KernelArgument) -> None:
        """Change arguments, the configuration or the kernel, for later calls.

        Parameters
        ----------
        *args, **kwargs
            As for `ExecNode.update` of a kernel: arguments by name or in a dict by position, a
            `LaunchConfig`, a `Kernel`; or all of them.

        Notes
        -----
        Launches under way are not affected. What is replaced is released as soon as the last launch
        that uses it has completed.

        References
        ----------
        ``cuGraphExecKernelNodeSetParams_v2``
        """
        try:
            self._node.update(*args, **kwargs)
        except ClosedError:
            _ = self._node  # if this was closed meanwhile, the error names it, and no executable
            raise

    @property
    def params(self) -> KernelNodeParams:
        """Configuration, kernel and arguments of the next call."""
        params = self._node.params
        assert isinstance(params, KernelNodeParams)
        return params

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._step.is_closed

    def close(self) -> None:
        """Release the arguments; launches under way complete. Closing twice is fine.

        References
        ----------
        ``cuGraphExecDestroy``
        """
        self._step.close()

    def __enter__(self) -> BoundLaunch:
        self._step.__enter__()
        return self

    def __exit__(self, *args: object) -> None:
        self.close()

    @or_closed
    def __repr__(self) -> str:
        if self.is_closed:
            return "<cudago.BoundLaunch: closed>"
        params = self.params
        return f"<cudago.BoundLaunch of {params.kernel.name}: {params.config!r}>"


def _device_of(args: tuple[Any, ...]) -> Device:
    """Return the device of the first argument that has memory on one, or device 0."""
    for arg in args:
        memory = arg.buffer if isinstance(arg, Pointer) else arg
        if isinstance(memory, (Buffer, Tensor)):
            device = memory.device
            if device is not None:
                return device
    return device_at()

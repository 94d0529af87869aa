# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that know their launch shape and stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .launch import LaunchConfig, launch

if TYPE_CHECKING:
    from ..typing import KernelArgument, StreamLike
    from .kernel import Kernel

__all__ = ["ConfiguredKernel"]


class ConfiguredKernel:
    """A kernel with a launch shape and a stream: calling it launches.

    Obtained from a kernel: ``kernel[grid, block, stream]``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    config : LaunchConfig
        The launch shape.
    stream : Stream
        Stream that orders the launches, or an object with ``__cuda_stream__``.

    Notes
    -----
    Stream-ordered on `stream`. Can be kept and called many times, which saves making the shape
    anew. Its parameters are its attributes.

    Examples
    --------
    >>> kernel = cudago.Program('extern "C" __global__ void f() {}').compile()["f"]
    >>> run = kernel[1, 32, stream]
    >>> run()
    >>> run.config
    LaunchConfig(grid=(1, 1, 1), block=(32, 1, 1))
    """

    __slots__ = ("config", "kernel", "stream")

    def __init__(self, kernel: Kernel, config: LaunchConfig, stream: StreamLike) -> None:
        self.kernel: Kernel = kernel
        self.config: LaunchConfig = config
        self.stream: StreamLike = stream

    @classmethod
    def _of(cls, kernel: Kernel, shape: tuple[Any, ...]) -> ConfiguredKernel:
        match shape:
            case (LaunchConfig() as config, stream):
                return cls(kernel, config, stream)
            case (grid, block, stream):
                return cls(kernel, LaunchConfig(grid, block), stream)
            case (grid, block, stream, shared):
                return cls(kernel, LaunchConfig(grid, block, shared_memory=shared), stream)
            case _:
                pass
        count = len(shape) if isinstance(shape, tuple) else 1
        raise TypeError(
            f"kernel {kernel.name} is launched as kernel[grid, block, stream](*args) or "
            f"kernel[config, stream](*args), got {count} value(s) in the brackets; every launch "
            "names its stream, such as Device().default_stream"
        )

    def __call__(self, /, *args: KernelArgument, **kwargs: KernelArgument) -> None:
        """Launch the kernel.

        Parameters
        ----------
        *args, **kwargs
            One for each parameter, in order or by name, as for `launch`.

        See Also
        --------
        launch : The same; says what may be an argument, what is raised and what is kept.

        Notes
        -----
        Stream-ordered on the stream that was given in the brackets. Captured as a kernel node, as
        `launch` is.
        """
        launch(self.stream, self.config, self.kernel, *args, **kwargs)

    def __repr__(self) -> str:
        return f"<cudago.ConfiguredKernel {self.kernel.name}: {self.config!r}, {self.stream!r}>"

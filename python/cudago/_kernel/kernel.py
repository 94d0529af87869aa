# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels and their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from .. import _core
from .._import_at_exit import late
from .._native import final, items
from .._ordinal import device_at, device_or_first
from .attributes import KernelAttributes
from .configured import ConfiguredKernel
from .elements import element_of, nbytes_of, unit_of
from .named import arranged
from .object_code import ObjectCode
from .parameter_names import parameter_names

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._graph.bound import BoundLaunch
    from .._memory.device import Device
    from ..typing import KernelArgument
    from .info import KernelInfo
    from .launch import LaunchConfig

__all__ = ["Kernel", "Parameter"]


class Parameter(str):
    """The type of a kernel parameter: ``f32``, ``u64``, or ``b8[24]`` for a struct of 24 bytes.

    Attributes
    ----------
    size, offset : int
        Size of the parameter and its offset among the others, in bytes.

    Notes
    -----
    A str, so that it compares with one. Found in `Kernel.signature`.
    """

    __slots__ = ("offset", "size")
    size: int
    offset: int

    def __new__(cls, kind: str, size: int, offset: int) -> Parameter:
        """Create a parameter."""
        self = super().__new__(cls, kind)
        self.size, self.offset = size, offset
        return self

    def __reduce__(self) -> tuple[type[Parameter], tuple[str, int, int]]:
        return Parameter, (str(self), self.size, self.offset)

    def __repr__(self) -> str:
        return str(self)


def _fits(ctype: str, parameter: Parameter) -> bool:
    """Whether a parameter can be of a type, as far as the type is known."""
    known = nbytes_of(ctype)
    if known is None:
        return True
    nbytes, is_float = known
    return nbytes == parameter.size and (is_float or not parameter.startswith("f"))


@final
class Kernel(_core.Kernel):
    """A function that runs on a device.

    Obtained from `ObjectCode.get_kernel`; launched with `launch`, ``kernel[grid, block, stream]``
    and `Graph.launch`. It keeps its code loaded, even if that is closed, and runs on every device
    that the code supports.

    Examples
    --------
    >>> source = 'extern "C" __global__ void scale(float* x, float by, int n) {}'
    >>> kernel = cudago.Program(source).compile()["scale"]
    >>> kernel.signature
    (u64, f32, u32)
    """

    __slots__ = ("_code", "_described", "_made", "_names", "_of", "_source", "_types")
    _code: _core.Handle
    _of: Callable[[], ObjectCode | None]  # a weak reference: the code refers to its kernels
    _described: tuple[str, ...]  # names of the parameters by the PTX's debug information
    _made: tuple[str, str]  # kind and log of the code
    _source: tuple[str, str] | None  # as ObjectCode's; None: the code may be PTX
    _names: tuple[str, ...]  # once asked for
    _types: tuple[str, ...]

    @property
    def object_code(self) -> ObjectCode:
        """The ObjectCode that contains the kernel; another one over the code if that was closed."""
        code = self._of()
        if code is None or code.is_closed:  # or nobody had it any more
            code = ObjectCode(self._code, *self._made)
            code._source = self._source
            code._kernels[self.name] = self
            self._of = ref(code)
        return code

    @property
    def signature(self) -> tuple[Parameter, ...]:
        """Types of the parameters, such as ``(f32, u64, u64, u32)``. Arguments must suit them.

        They come from PTX if there is any, which does not distinguish signed from unsigned
        integers, nor pointers from 64-bit integers. Otherwise only the sizes are known, from the
        driver.
        """
        return tuple(Parameter(*p) for p in self._parameters())

    @property
    def parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters, or an empty tuple if they are not known.

        They come from the C++ source that was compiled, from PTX that was written with names, or
        from the debug information of PTX.
        """
        try:
            return self._names
        except AttributeError:
            pass
        kind, text = self._source or ("ptx", self._ptx())
        name = self._fact("plain" if kind == "c++" else "symbol")
        named = parameter_names(kind, text, name, len(self._parameters()))
        self._names = named or self._described
        # As keyword arguments of an update these two mean something else.
        self._set_names(tuple(None if n in ("config", "kernel") else n for n in self._names))
        return self._names

    @property
    def parameter_types(self) -> tuple[str, ...]:
        """Types of the parameters in C++, such as ``"const float*"``; empty if they are not known.

        They come from the C++ source that was compiled, or from the debug information of PTX, where
        a ``typedef`` is replaced by what it means. Where one is a pointer to numbers, a tensor or
        another library's array that is passed for it must have elements of that type, whatever the
        sign of integers; of a vector such as ``float4`` its parts, or complex numbers; and the
        address must be aligned for it, with room for one element or none. A Buffer and a tensor of
        bytes hold anything, and will do, as will anything for a pointer to bytes, other structs and
        template parameters. Where one
        is an integer or a bool, what is passed for it must be in its range. What is of 8 bytes in
        the code may be memory, a number or a handle: a pointer takes no `Texture`; ``size_t`` and
        integers with a sign take no memory, and others do, as programs pass addresses in them; a
        ``cudaTextureObject_t`` takes a `Texture`, a ``cudaSurfaceObject_t`` a `Surface`, a
        ``cudaGraphConditionalHandle`` a condition of the graph, or a handle. Set it to types for
        code that has neither, as `ObjectCode.get_kernel` does for ``strict_types``, or to an empty
        tuple so that nothing is checked. What the code shows to be of another size or kind is a
        ValueError.
        """
        return self._types

    @parameter_types.setter
    def parameter_types(self, value: Sequence[str]) -> None:
        self._set_types(value, "parameter_types")

    def _set_types(self, value: Sequence[str], name: str) -> None:
        types = () if isinstance(value, str) else tuple(items(value, name, "str"))
        if isinstance(value, str) or not all(isinstance(v, str) for v in types):
            raise TypeError(f"{name} must be a sequence of str, got {value!r}")
        count = len(self._parameters())
        if types and len(types) != count:
            raise ValueError(
                f"kernel {self.name} has {count} parameter(s), got {len(types)} type(s) for them"
            )
        for index, (given, parameter) in enumerate(zip(types, self.signature, strict=bool(types))):
            if not _fits(given, parameter):
                raise ValueError(
                    f"parameter {index} of kernel {self.name} is {parameter} in its code, and "
                    f"cannot be of type {given!r}"
                )
        self._know(types, "")

    def _know(self, types: tuple[str, ...], source: str) -> None:
        """Check arguments for these types, as names of `source`.

        Of what the code shows to be something else, nothing is known: a macro may have its name.
        """
        known = zip(types, self.signature, strict=bool(types))
        elements = bytes(
            of(t, source) if _fits(t, p) else 0 for t, p in known for of in (element_of, unit_of)
        )
        self._set_elements(elements if any(elements) else b"")
        self._types = types

    def _ptx(self) -> str:
        return bytes(_core._code_data(self._code.id, "ptx", None)).decode()

    @property
    def attributes(self) -> KernelAttributes:
        """Attributes of the kernel on device 0; see `attributes_on` for other devices."""
        return KernelAttributes(self, device_at())

    def attributes_on(self, device: Device) -> KernelAttributes:
        """Return the attributes of the kernel on a device.

        Parameters
        ----------
        device : Device
            The device.

        Returns
        -------
        KernelAttributes
            Each attribute is read on access.
        """
        return KernelAttributes(self, device)

    def bind(
        self, config: LaunchConfig, /, *args: KernelArgument, **kwargs: KernelArgument
    ) -> BoundLaunch:
        """Check a launch and its arguments now, to launch often and fast.

        Parameters
        ----------
        config : LaunchConfig
            The launch shape. Updates cannot change its cluster, cooperative and priority.
        *args, **kwargs
            As for `cudago.launch`, which they stay until `BoundLaunch.update` changes them.

        Returns
        -------
        BoundLaunch
            Calling it with a stream launches. It runs on the device of the first argument that has
            memory on one, else on device 0.

        See Also
        --------
        cudago.launch : Checks its arguments each time.

        Notes
        -----
        Calls on a stream that is capturing add a kernel node to its graph.

        References
        ----------
        ``cuGraphAddKernelNode_v2``, ``cuGraphInstantiateWithParams``, ``cuGraphLaunch``

        Examples
        --------
        >>> source = 'extern "C" __global__ void set(int* x, int value) { *x = value; }'
        >>> kernel = cudago.Program(source).compile()["set"]
        >>> x = cudago.empty(1, "int32", stream=stream)
        >>> kernel.bind(cudago.LaunchConfig(grid=1, block=1), x, 5)
        <cudago.BoundLaunch of set: LaunchConfig(grid=(1, 1, 1), block=(1, 1, 1))>
        """
        if kwargs:
            args = arranged(self, args, kwargs)
        _core._drain()  # raises at exit, where the import would fail in another way
        with late:
            from .._graph.bound import BoundLaunch

        return BoundLaunch(self, config, args)

    def max_active_blocks(
        self, block: int, *, shared_memory: int = 0, device: Device | None = None
    ) -> int:
        """Return how many blocks can run on one multiprocessor at the same time.

        Parameters
        ----------
        block : int
            Block size in threads.
        shared_memory : int
            Dynamic shared memory per block, in bytes.
        device : Device, optional
            By default device 0.

        Returns
        -------
        int
            Number of blocks.

        References
        ----------
        ``cuOccupancyMaxActiveBlocksPerMultiprocessor``

        Examples
        --------
        >>> kernel = cudago.Program('extern "C" __global__ void f() {}').compile()["f"]
        >>> kernel.max_active_blocks(256) > 0
        True
        """
        return int(self._max_active_blocks(device_or_first(device), block, shared_memory))

    def max_cluster_size(self, config: LaunchConfig, *, device: Device | None = None) -> int:
        """Return how many blocks a cluster of the kernel can have at most.

        Parameters
        ----------
        config : LaunchConfig
            Shape of the launch. Its own cluster does not count.
        device : Device, optional
            By default device 0.

        Returns
        -------
        int
            Number of blocks: the kernel's own, if it was compiled for clusters of one size
            (``__cluster_dims__``).

        Raises
        ------
        UnsupportedError
            If the device has no clusters.

        See Also
        --------
        max_active_clusters : How many of them run at the same time.

        References
        ----------
        ``cuOccupancyMaxPotentialClusterSize``

        Examples
        --------
        >>> kernel = cudago.Program('extern "C" __global__ void f() {}').compile()["f"]
        >>> if device.properties.cluster_launch:
        ...     largest = kernel.max_cluster_size(cudago.LaunchConfig(16, 64))
        """
        on = device_or_first(device)
        return int(self._clusters(on, config, False))

    def max_active_clusters(self, config: LaunchConfig, *, device: Device | None = None) -> int:
        """Return how many clusters of a launch can run on the device at the same time.

        Parameters
        ----------
        config : LaunchConfig
            Shape of the launch, with its cluster.
        device : Device, optional
            By default device 0.

        Returns
        -------
        int
            Number of clusters.

        Raises
        ------
        UnsupportedError
            If the device has no clusters.
        ValueError
            If `config` has no cluster, or the grid is not a multiple of it.

        See Also
        --------
        max_active_blocks : The same of blocks, for one multiprocessor.

        References
        ----------
        ``cuOccupancyMaxActiveClusters``

        Examples
        --------
        >>> kernel = cudago.Program('extern "C" __global__ void f() {}').compile()["f"]
        >>> if device.properties.cluster_launch:
        ...     count = kernel.max_active_clusters(cudago.LaunchConfig(16, 64, cluster=2))
        """
        on = device_or_first(device)
        return int(self._clusters(on, config, True))

    def info(self, *, device: Device | None = None) -> KernelInfo:
        """Return what the kernel needs of a device: registers, memory, spills, largest block.

        Parameters
        ----------
        device : Device, optional
            By default device 0.

        Returns
        -------
        KernelInfo
            As it is now: `attributes` can be set.

        See Also
        --------
        attributes : Reads single attributes, and sets some.

        Notes
        -----
        How much is spilled is known if the kernel uses no local memory, or if the code was
        compiled to machine code with ``options=["--ptxas-options=-v"]``.

        References
        ----------
        ``cuFuncGetAttribute``

        Examples
        --------
        >>> kernel = cudago.Program('extern "C" __global__ void f() {}').compile()["f"]
        >>> kernel.info().max_threads
        1024
        """
        on = device_or_first(device)
        a = KernelAttributes(self, on)
        local = a.local_size  # before the import, which fails in another way at exit
        with late:
            from .info import KernelInfo, spilled

        return KernelInfo(
            name=self.name,
            device=on.ordinal,
            registers=a.register_count,
            shared=a.shared_size,
            local=local,
            constant=a.const_size,
            spills=spilled(self._fact("log"), self._fact("symbol")) if local else 0,
            max_threads=a.max_threads_per_block,
            max_shared=a.max_dynamic_shared_size,
            ptx_version=a.ptx_version,
            binary_version=a.binary_version,
        )

    def __getitem__(self, shape: tuple[Any, ...]) -> ConfiguredKernel:
        """Return the kernel with a launch shape and a stream: call that to launch.

        Parameters
        ----------
        shape : tuple
            ``grid, block, stream`` or ``grid, block, stream, shared_memory``, as Numba spells it;
            or ``config, stream`` with a `LaunchConfig`.

        Returns
        -------
        ConfiguredKernel
            Launches when it is called with the kernel's arguments.

        Raises
        ------
        TypeError
            If there is no stream: unlike Numba, every launch names the stream that orders it.

        See Also
        --------
        launch : The same, with the stream first.

        Examples
        --------
        >>> source = 'extern "C" __global__ void set(int* x, int value) { *x = value; }'
        >>> kernel = cudago.Program(source).compile()["set"]
        >>> x = cudago.empty(1, "int32", stream=stream)
        >>> kernel[1, 1, stream](x, 7)
        >>> x.numpy(stream=stream)
        array([7], dtype=int32)
        """
        return ConfiguredKernel._of(self, shape)

    def _fact(self, what: str) -> str:
        """Return what the code knows of this kernel."""
        return bytes(_core._code_data(self._code.id, f"{what} {self.name}", None)).decode()

    def __repr__(self) -> str:
        return f"<cudago.Kernel {self.name}({', '.join(self.signature)})>"


_core._set_class("Kernel", Kernel)

# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA for Python, with a core in Go.

Graphs keep what they are given, tensors are exchanged without copies, and the same program runs on
NVIDIA's driver and on a simulated one.
"""

from __future__ import annotations

import atexit
import sys
from contextlib import contextmanager as _contextmanager
from typing import TYPE_CHECKING

try:
    if "t" in getattr(
        sys, "abiflags", ""
    ):  # its objects have another shape: the module would crash
        raise ImportError("cudago needs a Python with the GIL")
    if f"{__name__}._core" not in sys.modules:
        from . import _limits

        _limits.check()
    from . import _core, _gopy
except ImportError as _reason:
    from ._host import why_no_module

    raise why_no_module(_reason) from None
from ._version import __version__ as __version__

if _core.__version__ != __version__:
    raise ImportError(
        f"cudago {__version__} found a native module of version {_core.__version__}: "
        "the installation is damaged, or the module has to be built again"
    )
_core._check_interpreter()
if sys.is_finalizing():  # other threads get no GIL any more
    raise ImportError("cudago cannot be imported: the interpreter is ending")
if hasattr(_core.Buffer, "__final__") and f"{__name__}._memory.buffer" not in sys.modules:
    raise ImportError(
        "cudago cannot be imported twice in one process: it has been removed from sys.modules, and "
        "the native module goes on with the classes of the first import; leave it there, or start "
        "a new process"
    )
_gopy._gobind = sys.modules["cudago._gopy._gobind"] = _core._gobind

from . import _exit  # noqa: E402
from ._driver import driver_name, driver_version, init, live_objects  # noqa: E402
from ._finalize import Finalizer, finalize  # noqa: E402
from ._import_at_exit import imported as _imported  # noqa: E402
from ._kernel.attributes import KernelAttributes  # noqa: E402
from ._kernel.configured import ConfiguredKernel  # noqa: E402
from ._kernel.kernel import Kernel, Parameter  # noqa: E402
from ._kernel.launch import LaunchConfig, launch  # noqa: E402
from ._kernel.object_code import ObjectCode  # noqa: E402
from ._memory.allocation import Allocation  # noqa: E402
from ._memory.batch import copy_batch, prefetch_batch  # noqa: E402
from ._memory.buffer import Buffer, Pointer, pin  # noqa: E402
from ._memory.device import Device  # noqa: E402
from ._memory.external import ExternalMemory  # noqa: E402
from ._memory.hooks import memory_hooks  # noqa: E402
from ._memory.host_resource import ManagedMemoryResource, PinnedMemoryResource  # noqa: E402
from ._memory.limits import DeviceLimits  # noqa: E402
from ._memory.profiler import profiler  # noqa: E402
from ._memory.properties import DeviceProperties  # noqa: E402
from ._memory.resource import (  # noqa: E402
    DeviceMemoryResource,
    MemoryResource,
    VirtualMemoryResource,
)
from ._stream.event import Event  # noqa: E402
from ._stream.fork import Fork  # noqa: E402
from ._stream.green import GreenContext, SMPartition  # noqa: E402
from ._stream.semaphore import ExternalSemaphore  # noqa: E402
from ._stream.stream import Stream  # noqa: E402
from ._stream.timer import timer  # noqa: E402
from ._tensor.creation import asarray, empty, full, zeros  # noqa: E402
from ._tensor.creation_like import arange, empty_like, full_like, ones, ones_like, zeros_like  # noqa: E402
from ._tensor.dlpack import (  # noqa: E402
    ExchangeCount,
    ExchangeStats,
    exchange_stats,
    from_dlpack,
    to_torch,
)
from ._tensor.tensor import Tensor  # noqa: E402
from .errors import (  # noqa: E402
    CheckError,
    ClosedError,
    CompileError,
    CUDAError,
    CUDAWarning,
    DeviceFaultError,
    DriverNotFoundError,
    GraphFileError,
    GraphUpdateError,
    InternalError,
    KernelNotFoundError,
    OutOfMemoryError,
    PTXError,
    UnsupportedError,
)

if TYPE_CHECKING:  # what is loaded when it is first used: _LATER
    from . import allocators as allocators
    from . import compile_cache as compile_cache
    from . import debug as debug
    from . import dlpack as dlpack
    from . import jax_ops as jax_ops
    from . import nvtx as nvtx
    from . import sim as sim
    from . import testing as testing
    from . import torch_ops as torch_ops
    from ._graph.bound import BoundLaunch
    from ._graph.classes import (
        ExecNode,
        Graph,
        GraphExec,
        Node,
        Slot,
    )
    from ._graph.condition import Condition
    from ._graph.diff import GraphDiff
    from ._graph.function import (
        GraphFunction,
        graph,
    )
    from ._graph.neighbors import Neighbors
    from ._graph.params import (
        AllocNodeParams,
        BatchMemOpNodeParams,
        ChildGraphNodeParams,
        ConditionalNodeParams,
        EventNodeParams,
        FreeNodeParams,
        HostNodeParams,
        KernelNodeParams,
        MemcpyNodeParams,
        MemsetNodeParams,
        SemaphoreNodeParams,
    )
    from ._graph.profile import (
        GraphProfile,
        NodeTime,
    )
    from ._graph.retained import Retained
    from ._graph.slot import slot
    from ._graph.who import (
        Holder,
        who_retains,
    )
    from ._kernel.info import KernelInfo
    from ._kernel.linker import (
        Linker,
        LinkerOptions,
    )
    from ._kernel.program import Program
    from ._kernel.program_options import ProgramOptions
    from ._memory.arena import ArenaMemoryResource, ArenaStatistics
    from ._memory.graph_memory import GraphMemory
    from ._memory.ipc import IPCAllocationHandle, IPCBufferDescriptor
    from ._memory.monitor import (
        DeviceMonitor,
        DeviceProcess,
    )
    from ._memory.pool import PoolOptions, PoolStatistics
    from ._memory.summary import memory_summary
    from ._memory.tracking import TrackingMemoryResource, TrackingStatistics
    from ._stream.ipc import IPCEventDescriptor
    from ._tensor.array import OpaqueArray
    from ._tensor.elementwise import (
        ElementwiseKernel,
        elementwise,
    )
    from ._tensor.mipmap import MipmappedArray
    from ._tensor.reduce import (
        ReduceKernel,
        reduce,
    )
    from ._tensor.surface import Surface
    from ._tensor.tensor_map import TensorMap
    from ._tensor.texture import Texture

__all__ = [
    "AllocNodeParams",
    "Allocation",
    "ArenaMemoryResource",
    "ArenaStatistics",
    "BatchMemOpNodeParams",
    "BoundLaunch",
    "Buffer",
    "CUDAError",
    "CUDAWarning",
    "CheckError",
    "ChildGraphNodeParams",
    "ClosedError",
    "CompileError",
    "Condition",
    "ConditionalNodeParams",
    "ConfiguredKernel",
    "Device",
    "DeviceFaultError",
    "DeviceLimits",
    "DeviceMemoryResource",
    "DeviceMonitor",
    "DeviceProcess",
    "DeviceProperties",
    "DriverNotFoundError",
    "ElementwiseKernel",
    "Event",
    "EventNodeParams",
    "ExchangeCount",
    "ExchangeStats",
    "ExecNode",
    "ExternalMemory",
    "ExternalSemaphore",
    "Finalizer",
    "Fork",
    "FreeNodeParams",
    "Graph",
    "GraphDiff",
    "GraphExec",
    "GraphFileError",
    "GraphFunction",
    "GraphMemory",
    "GraphProfile",
    "GraphUpdateError",
    "GreenContext",
    "Holder",
    "HostNodeParams",
    "IPCAllocationHandle",
    "IPCBufferDescriptor",
    "IPCEventDescriptor",
    "InternalError",
    "Kernel",
    "KernelAttributes",
    "KernelInfo",
    "KernelNodeParams",
    "KernelNotFoundError",
    "LaunchConfig",
    "Linker",
    "LinkerOptions",
    "ManagedMemoryResource",
    "MemcpyNodeParams",
    "MemoryResource",
    "MemsetNodeParams",
    "MipmappedArray",
    "Neighbors",
    "Node",
    "NodeTime",
    "ObjectCode",
    "OpaqueArray",
    "OutOfMemoryError",
    "PTXError",
    "Parameter",
    "PinnedMemoryResource",
    "Pointer",
    "PoolOptions",
    "PoolStatistics",
    "Program",
    "ProgramOptions",
    "ReduceKernel",
    "Retained",
    "SMPartition",
    "SemaphoreNodeParams",
    "Slot",
    "Stream",
    "Surface",
    "Tensor",
    "TensorMap",
    "Texture",
    "TrackingMemoryResource",
    "TrackingStatistics",
    "UnsupportedError",
    "VirtualMemoryResource",
    "arange",
    "asarray",
    "copy_batch",
    "driver_name",
    "driver_version",
    "elementwise",
    "empty",
    "empty_like",
    "exchange_stats",
    "finalize",
    "from_dlpack",
    "full",
    "full_like",
    "graph",
    "init",
    "launch",
    "live_objects",
    "memory_hooks",
    "memory_summary",
    "ones",
    "ones_like",
    "pin",
    "prefetch_batch",
    "profiler",
    "reduce",
    "slot",
    "timer",
    "to_torch",
    "who_retains",
    "zeros",
    "zeros_like",
]


# Names that are loaded when they are first used, by module: most programs use few of them.
_LATER = {
    "_graph.bound": "BoundLaunch",
    "_graph.classes": "ExecNode Graph GraphExec Node Slot",
    "_graph.condition": "Condition",
    "_graph.diff": "GraphDiff",
    "_graph.function": "GraphFunction graph",
    "_graph.neighbors": "Neighbors",
    "_graph.params": (
        "AllocNodeParams BatchMemOpNodeParams ChildGraphNodeParams ConditionalNodeParams "
        "EventNodeParams FreeNodeParams HostNodeParams KernelNodeParams MemcpyNodeParams "
        "MemsetNodeParams SemaphoreNodeParams"
    ),
    "_graph.profile": "GraphProfile NodeTime",
    "_graph.retained": "Retained",
    "_graph.slot": "slot",
    "_graph.who": "Holder who_retains",
    "_kernel.info": "KernelInfo",
    "_kernel.linker": "Linker LinkerOptions",
    "_kernel.program": "Program",
    "_kernel.program_options": "ProgramOptions",
    "_memory.ipc": "IPCAllocationHandle IPCBufferDescriptor",
    "_memory.arena": "ArenaMemoryResource ArenaStatistics",
    "_memory.graph_memory": "GraphMemory",
    "_memory.monitor": "DeviceMonitor DeviceProcess",
    "_memory.pool": "PoolOptions PoolStatistics",
    "_memory.summary": "memory_summary",
    "_stream.ipc": "IPCEventDescriptor",
    "_memory.tracking": "TrackingMemoryResource TrackingStatistics",
    "_tensor.array": "OpaqueArray",
    "_tensor.elementwise": "ElementwiseKernel elementwise",
    "_tensor.mipmap": "MipmappedArray",
    "_tensor.reduce": "ReduceKernel reduce",
    "_tensor.surface": "Surface",
    "_tensor.tensor_map": "TensorMap",
    "_tensor.texture": "Texture",
}
_WHERE = {name: module for module, names in _LATER.items() for name in names.split()}
_MODULES = {
    "allocators", "compile_cache", "debug", "dlpack", "jax_ops", "nvtx", "sim", "testing",
    "torch_ops",
}  # fmt: skip

if not TYPE_CHECKING:  # type checkers would accept any name

    def __getattr__(name: str) -> object:
        if name in _MODULES:
            return _imported(f"{__name__}.{name}")
        if name not in _WHERE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = getattr(_imported(f"{__name__}.{_WHERE[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    used_here = {"TYPE_CHECKING", "annotations", "atexit", "sys"}
    return sorted({*globals(), *_WHERE, *_MODULES} - used_here)


# Whose lines are nobody's where a line of the program is told.
_core._set_package(f"{__path__[0]}/", _contextmanager.__code__.co_filename)
atexit.register(_exit.shutdown)

# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""CUDA for Python, with a core in Go.

Graphs keep what they are given, tensors are exchanged without copies, and the same program runs on
NVIDIA's driver and on a simulated one.
"""

from __future__ import annotations

import atexit
import os
import sys

try:
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
_gopy._gobind = sys.modules["cudago._gopy._gobind"] = _core._gobind

from . import _exit  # noqa: E402
from . import allocators as allocators  # noqa: E402
from . import compile_cache as compile_cache  # noqa: E402
from . import debug as debug  # noqa: E402
from . import dlpack as dlpack  # noqa: E402
from . import nvtx as nvtx  # noqa: E402
from . import sim as sim  # noqa: E402
from . import torch_ops as torch_ops  # noqa: E402
from ._driver import driver_name, driver_version, init, live_objects  # noqa: E402
from ._finalize import Finalizer, finalize  # noqa: E402
from ._gopy import api as _api  # noqa: E402
from ._gopy import go as _go  # noqa: E402
from ._graph.bound import BoundLaunch  # noqa: E402
from ._graph.condition import Condition  # noqa: E402
from ._graph.diff import GraphDiff  # noqa: E402
from ._graph.exec import GraphExec  # noqa: E402
from ._graph.exec_node import ExecNode  # noqa: E402
from ._graph.function import GraphFunction, graph  # noqa: E402
from ._graph.graph import Graph  # noqa: E402
from ._graph.node import Node  # noqa: E402
from ._graph.params import (  # noqa: E402
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
)
from ._graph.profile import GraphProfile, NodeTime  # noqa: E402
from ._graph.retained import Retained  # noqa: E402
from ._graph.slot import Slot, slot  # noqa: E402
from ._graph.who import Holder, who_retains  # noqa: E402
from ._kernel.attributes import KernelAttributes  # noqa: E402
from ._kernel.configured import ConfiguredKernel  # noqa: E402
from ._kernel.info import KernelInfo  # noqa: E402
from ._kernel.kernel import Kernel, Parameter  # noqa: E402
from ._kernel.launch import LaunchConfig, launch  # noqa: E402
from ._kernel.linker import Linker, LinkerOptions  # noqa: E402
from ._kernel.object_code import ObjectCode  # noqa: E402
from ._kernel.program import Program  # noqa: E402
from ._kernel.program_options import ProgramOptions  # noqa: E402
from ._memory.buffer import Buffer, Pointer, pin  # noqa: E402
from ._memory.device import Device  # noqa: E402
from ._memory.limits import DeviceLimits  # noqa: E402
from ._memory.monitor import DeviceMonitor, DeviceProcess  # noqa: E402
from ._memory.profiler import profiler  # noqa: E402
from ._memory.properties import DeviceProperties  # noqa: E402
from ._memory.resource import (  # noqa: E402
    DeviceMemoryResource,
    ManagedMemoryResource,
    MemoryResource,
    PinnedMemoryResource,
    PoolOptions,
    PoolStatistics,
    VirtualMemoryResource,
)
from ._memory.summary import memory_summary  # noqa: E402
from ._stream.event import Event  # noqa: E402
from ._stream.fork import Fork  # noqa: E402
from ._stream.green import GreenContext, SMPartition  # noqa: E402
from ._stream.stream import Stream  # noqa: E402
from ._stream.timer import timer  # noqa: E402
from ._tensor.creation import asarray, empty, full, zeros  # noqa: E402
from ._tensor.creation_like import (  # noqa: E402
    arange,
    empty_like,
    full_like,
    ones,
    ones_like,
    zeros_like,
)
from ._tensor.dlpack import (  # noqa: E402
    ExchangeCount,
    ExchangeStats,
    exchange_stats,
    from_dlpack,
    to_torch,
)
from ._tensor.elementwise import ElementwiseKernel, elementwise  # noqa: E402
from ._tensor.reduce import ReduceKernel, reduce  # noqa: E402
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

__all__ = [
    "AllocNodeParams",
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
    "Finalizer",
    "Fork",
    "FreeNodeParams",
    "Graph",
    "GraphDiff",
    "GraphExec",
    "GraphFileError",
    "GraphFunction",
    "GraphProfile",
    "GraphUpdateError",
    "GreenContext",
    "Holder",
    "HostNodeParams",
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
    "Node",
    "NodeTime",
    "ObjectCode",
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
    "Slot",
    "Stream",
    "Tensor",
    "UnsupportedError",
    "VirtualMemoryResource",
    "arange",
    "asarray",
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
    "memory_summary",
    "ones",
    "ones_like",
    "pin",
    "profiler",
    "reduce",
    "slot",
    "timer",
    "to_torch",
    "who_retains",
    "zeros",
    "zeros_like",
]


def _drop(handle: int) -> None: ...


class _Forked:
    """Stands in for gopy's half in a forked child, where Go must not be entered."""

    def __getattr__(self, name: str) -> object:
        if name in ("DecRef", "IncRef"):  # from __del__ of gopy's wrappers
            return _drop
        raise RuntimeError("cudago cannot be used in a forked child: use the 'spawn' start method")


def _after_fork_in_child() -> None:
    _core._after_fork()
    _api._gobind = _go._gobind = _Forked()


os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_exit.shutdown)

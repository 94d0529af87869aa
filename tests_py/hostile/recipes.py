# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Recipes: an object for each class, and good values for each parameter.

A new class needs a line in RECEIVERS, a new parameter one in VALUES: under ``Class.method.name``,
``method.name`` or ``name``, whichever is the first that is right for it. What has no recipe is a
failure. Several values are several variants: the first one is used where another parameter is
hostile, the others take part where they are the operand that is closed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

import cudago as cu

from .expansions import EXPANSIONS
from .surface import Parameter, Target, targets
from .world import NBYTES, PTX, N, World

Value = Callable[[World], Any]


def thing(name: str) -> Value:
    """Value that a world makes."""
    return lambda w: w.get(name)


def things(*names: str) -> list[Value]:
    """Variants that a world makes."""
    return [thing(name) for name in names]


def plain(*values: Any) -> list[Value]:
    """Variants that are no object of the world."""
    return [lambda w, v=v: v for v in values]


# Name of the object to call methods of, by class; by class and method where it matters.
RECEIVERS = {
    **{
        f"{kind}NodeParams": f"{kind.lower()}_params"
        for kind in ("Kernel", "Memcpy", "Memset", "Host", "Event", "Alloc", "Free")
    },
    "ChildGraphNodeParams": "child_params",
    "BatchMemOpNodeParams": "memop_params",
    "ConditionalNodeParams": "conditional_params",
    "Allocation": "allocation",
    "ArenaMemoryResource": "arena",
    "ArenaStatistics": "arena_statistics",
    "BoundLaunch": "bound",
    "Buffer": "buffer",
    "Buffer.accessed_by": "managed",
    "Buffer.preferred_location": "managed",
    "Buffer.read_mostly": "managed",
    "Buffer.prefetch": "managed",
    "Buffer.last_prefetch_location": "managed",
    "Buffer.grow": "virtual",
    "Buffer.free": "graph_buffer",
    "Buffer.__buffer__": "pinned",
    "Condition": "condition",
    "ConfiguredKernel": "configured",
    "Device": "device",
    "DeviceMemoryResource": "resource",
    "DeviceMemoryResource.get_allocation_handle": "shared_pool",
    "Buffer.ipc_descriptor": "shared_buffer",
    "Event.ipc_descriptor": "shared_event",
    "IPCAllocationHandle": "pool_handle",
    "IPCBufferDescriptor": "buffer_descriptor",
    "IPCEventDescriptor": "event_descriptor",
    "DeviceLimits": "limits",
    "DeviceMonitor": "monitor",
    "DeviceProcess": "device_process",
    "DeviceProperties": "properties",
    "ElementwiseKernel": "elementwise",
    "ReduceKernel": "reduce",
    "Event": "event",
    "Event.__sub__": "recorded_later",
    "Event.elapsed_ms": "recorded_later",
    "Event.sync": "recorded",
    "Event.is_done": "recorded",
    "ExchangeCount": "exchange_count",
    "ExchangeStats": "exchange_stats",
    "ExecNode": "exec_memset",
    "Finalizer": "finalizer",
    "finalize": "finalizer",
    "Fork": "fork",
    "Graph": "graph",
    "Graph.fork": "captured",
    "Graph.free": "memory_graph",
    "GraphExec": "exec",
    "GreenContext": "green",
    "SMPartition": "sm_part",
    "GraphFunction": "graph_function",
    "GraphProfile": "graph_profile",
    "GraphDiff": "graph_diff",
    "Holder": "holder",
    "Kernel": "kernel",
    "KernelAttributes": "attributes",
    "KernelInfo": "kernel_info",
    "LaunchConfig": "config",
    "Linker": "linker",
    "LinkerOptions": "linker_options",
    "ManagedMemoryResource": "managed_resource",
    "MemoryResource": "resource",
    "Node": "node",
    "NodeTime": "node_time",
    "Node.buffer": "memory_node",
    "Node.free": "memory_node",
    "ObjectCode": "code",
    "Parameter": "parameter",
    "PinnedMemoryResource": "pinned_resource",
    "Pointer": "pointer",
    "PoolOptions": "pool_options",
    "PoolStatistics": "statistics",
    "Program": "program",
    "ProgramOptions": "program_options",
    "Retained": "retained",
    "Slot": "slot",
    "Stream": "stream",
    "Tensor": "tensor",
    "TensorMap": "tensor_map",
    "Texture": "texture",
    "Tensor.__buffer__": "host_tensor",
    "TrackingMemoryResource": "tracking",
    "TrackingStatistics": "tracking_statistics",
    "memory_hooks": "hooks",
    "timer": "timer",
    "profiler": "profiler",
    "VirtualMemoryResource": "virtual_resource",
    # of modules
    "allocators.ForeignMemoryResource": "foreign_resource",
    "compile_cache.Statistics": "cache_statistics",
    "debug.Leak": "leak",
    "debug.MemorySample": "memory_sample",
    "debug.MemoryTimeline": "timeline",
    "debug.watch_pointers": "watch",
    "dlpack.Exchange": "exchange",
    "dlpack.Trace": "trace",
    "nvtx.range": "range",
}

MEMORY = things("other_buffer", "array", "other_tensor", "other_pointer", "pinned", "bytearray")
PATTERNS = plain(7, b"\1\0\0\0", np.int32(1))
LOCATIONS = [*plain("host"), thing("device")]
NAME = plain("name")
INT = plain(0)
STRING = plain("text")


def peer(_: World) -> cu.Device:
    """The other device; where there is none, the only one, which the call refuses."""
    return cu.Device.all()[-1]


def lend(w: World) -> int:
    """Address of memory that stays allocated, whatever happens to its owner."""
    w.lent.append(cu.Device().allocate(NBYTES, stream=w.get("stream")))
    return w.lent[-1].handle


def null_file(_: World) -> int:
    """Return a file descriptor of one's own, to be given away."""
    return os.open(os.devnull, os.O_RDWR)


VALUES: dict[str, list[Value]] = {
    # streams, devices, events
    "stream": things("stream"),
    "fork.stream": things("other_stream"),
    "branch": things("other_stream"),
    "origin": things("stream"),
    "__dlpack__.stream": [lambda w: w.get("stream").handle, *plain(1, -1)],
    "device": things("device"),
    "peer": [peer],
    "peers": [lambda w: [peer(w)]],
    "peer_accessible_by.value": [lambda w: [peer(w)]],
    "event": things("event"),
    "start": things("recorded"),
    "work": things("recorded", "other_stream"),
    "capture.mode": plain("relaxed", "global"),
    "ordinal": INT,
    "timing_enabled": plain(True),
    "timing": plain(True),
    "blocking_sync": plain(True),
    "ipc_enabled": plain(False),
    "IPCEventDescriptor.handle": plain(bytes(64)),
    "Event.from_ipc_descriptor.descriptor": things("event_descriptor"),
    "priority": INT,
    "blocking": plain(True),
    "split_sms.count": plain(2),
    "groups": plain(1),
    "remainder": plain(True),
    "coscheduled": plain(False),
    "green_context.parts": things("sm_part"),
    "sm_count": INT,
    "SMPartition.resource": plain(bytes(144)),
    "Stream.obj": things("other_stream"),
    "from_handle.handle": [lambda w: w.get("other_stream").handle],
    "Graph.from_handle.handle": things("graph_handle"),
    "Graph.from_handle.owner": things("graph"),
    "owner": things("array"),
    # memory
    "src": MEMORY,
    "dst": MEMORY,
    **dict.fromkeys(["ExecNode.update[write].dst", "Node.update[wait].src"], things("word")),
    "Node.update[wait].condition": plain(">=", "nor"),
    "Graph.memcpy.dst": things("buffer", "bytearray", "tensor", "pinned"),
    "Node.memcpy.dst": things("buffer", "bytearray", "tensor", "pinned"),
    "memset.dst": things("buffer", "tensor", "other_pointer", "pinned"),
    "fill.value": PATTERNS,
    # a wait that nothing satisfies would last forever
    **dict.fromkeys(["write_value.dst", "wait_value.src"], things("word")),
    "write_value.value": plain(7, np.int32(7)),
    "wait_value.value": plain(0, np.int32(0)),
    "wait_value.condition": plain(">=", "nor"),
    "Tensor.fill.value": plain(7, b"\1\0\0\0", np.float64(1)),
    "memset.value": PATTERNS,
    "size": plain(NBYTES, np.int64(NBYTES)),
    "grow.size": plain(1 << 21),
    "dtype": plain("int32", np.dtype("i4")),
    "shape": plain((8, 8), [8, 8]),
    "reshape.shape": plain(4, (4, 16)),
    "strides": plain((8, 1)),
    "max_version": plain((1, 0)),
    "dl_device": plain((1, 0)),
    "copy": plain(True, False),
    "Buffer.__getitem__.key": plain(slice(4, 8)),
    "Tensor.__getitem__.key": plain(3, slice(1, 7, 2), (1, slice(0, 4)), (..., None, 1)),
    "accessed_by.value": [lambda w: ["host", cu.Device(0)]],
    "preferred_location.value": LOCATIONS,
    "location": LOCATIONS,
    "read_mostly.value": plain(True),
    "memory_resource.value": things("resource"),
    "pool": things("pool_options"),
    "DeviceMemoryResource.options.value": things("pool_options"),
    "options.value": things("pool_options"),
    "reset": plain(True),
    **dict.fromkeys(["reuse_follow_event_dependencies", "reuse_allow_opportunistic"], plain(True)),
    "reuse_allow_internal_dependencies": plain(False),
    **{
        f"{name}.value": plain(2048, np.int64(4096))
        for name in vars(cu.DeviceLimits)
        if not name.startswith("_")
    },
    "message": STRING,
    "nvtx.range.__call__.function": [lambda w: lambda *a: None],
    "allocator": things("allocator"),
    "upstream": things("resource"),
    "numa": plain(None),
    "ArenaMemoryResource.size": plain(1 << 16, np.int64(1 << 16)),
    "on_allocate": [lambda w: lambda allocation: None],
    "on_free": [lambda w: lambda allocation: None],
    **dict.fromkeys(["used", "used_high", "count", "count_high", "total"], INT),
    **dict.fromkeys(["total_count", "waiting", "largest"], INT),
    "text": STRING,
    **dict.fromkeys(["direction", "way", "Exchange.peer", "Exchange.dtype"], STRING),
    "Exchange.device": plain((1, 0)),
    "where": plain(()),
    "at_ms": plain(1.5),
    "interval_ms": plain(None, 5.0),
    **dict.fromkeys(["resource_warnings.on", "watch_pointers.on"], plain(True, False)),
    **dict.fromkeys(["Trace.__exit__.kind", "error", "traceback"], plain(None)),
    **dict.fromkeys(["memory_hits", "disk_hits", "misses", "uncacheable", "evicted"], INT),
    **dict.fromkeys(["damaged", "failed", "memory_entries", "memory_bytes"], INT),
    **dict.fromkeys(["disk_entries", "disk_bytes"], INT),
    "color": plain("green", 0xFF00FF00),
    "domain": NAME,
    "keep": INT,
    "reserve": plain(1 << 24),
    "from_allocation_handle.handle": things("pool_handle"),
    "Buffer.from_ipc_descriptor.resource": things("imported_pool"),
    "Buffer.from_ipc_descriptor.descriptor": things("buffer_descriptor"),
    "IPCAllocationHandle.pool": [null_file],
    "leases": [null_file],
    "IPCAllocationHandle.id": plain(bytes(16)),
    "IPCBufferDescriptor.data": plain(bytes(64)),
    "IPCBufferDescriptor.pool": plain(bytes(16)),
    **dict.fromkeys(["allocation_size", "slot", "IPCBufferDescriptor.offset"], INT),
    "resource": things("resource", "pinned_resource", "foreign_resource"),
    "from_handle.ptr": [lend],
    "Tensor.copy_from.src": things("other_tensor", "matrix", "host_tensor"),
    "Tensor.copy_to.dst": things("other_tensor", "matrix", "host_tensor"),
    "asarray.obj": [*things("matrix"), lambda w: w.get("matrix").tolist(), thing("tensor")],
    "from_dlpack.obj": things("matrix", "tensor", "other_buffer"),
    "from_dlpack.device": [*plain("cpu", "cuda:0", (1, 0)), lambda w: cu.Device()],
    "pin.obj": things("page", "page_bytes"),
    "copies": [
        lambda w: [(w.get("buffer"), w.get("array")), (w.get("other_buffer"), w.get("pinned"))]
    ],
    "prefetches": [lambda w: [(w.get("managed"), cu.Device())]],
    "read_only": plain(True),
    "full.value": plain(7, np.float64(7)),
    "full_like.value": plain(7, np.float64(7)),
    "arange.start": plain(4),
    "stop": plain(8),
    "step": plain(2),
    "tensor": things("tensor", "host_tensor"),
    "nbytes": plain(16),
    "__rsub__.other": plain(16),
    # programs, kernels, launches
    "source": plain(PTX),
    "Program.kind": plain("ptx"),
    "Program.options": things("program_options"),
    "Linker.options": things("linker_options"),
    **dict.fromkeys(["link_time_optimization", "optimize_unused_variables"], plain(True)),
    **dict.fromkeys(["verbose", "no_cache", "LinkerOptions.time"], plain(True)),
    **dict.fromkeys(["kernels_used", "variables_used"], plain("add")),
    "optimization_level": plain(3),
    "LinkerOptions.options": plain(["-maxrregcount=32"]),
    "LinkerOptions.name": NAME,
    "Linker.codes": things("code"),
    "link.target": plain("ptx"),
    "from_file.path": [lambda w: w.get("path")],
    "from_file.kind": plain("ptx"),
    "from_file.options": things("program_options"),
    "target": plain("ptx"),
    "cache": plain(False),
    "configure.kind": plain("memory"),
    "directory": plain("/nowhere"),
    "max_bytes": plain(1 << 20),
    "code": [*plain(PTX, PTX.encode()), lambda w: w.get("path")],
    "ObjectCode.handle": [lambda w: w.get("code")._handle],
    "Kernel.__getitem__.shape": [
        lambda w: (1, N, w.get("stream")),
        lambda w: (w.get("config"), w.get("stream")),
    ],
    "for_elements.n": plain(N, np.int64(N)),
    "ObjectCode.__getitem__.name": plain("add", "total"),
    "get_kernel.name": plain("add"),
    "get_global.name": plain("total"),
    "KernelAttributes.__getattr__.name": plain("max_threads_per_block"),
    "KernelAttributes.__setattr__.name": plain("max_dynamic_shared_size"),
    "Kernel.parameter_types.value": plain(("int*", "int", "int"), ()),
    "DeviceProperties.__getattr__.name": plain("warp_size"),
    "__setattr__.value": plain(1024),
    "config": things("config"),
    "Graph.launch.config": things("config", "together"),
    "Node.launch.config": things("config", "together"),
    "Node.update.config": things("config", "together"),
    "kernel": things("kernel"),
    "grid": plain((1, 1, 1), 1),
    "block": plain(64, [64, 1, 1]),
    "cluster": plain((1, 1, 1)),
    "shared_memory": INT,
    "cooperative": plain(False),
    "programmatic": plain(False),
    "y": things("buffer", "tensor", "pointer", "pinned", "managed"),
    "BoundLaunch.update.y": things("buffer", "tensor", "pinned", "managed"),
    "Node.update.y": things("buffer", "tensor", "pinned", "managed"),
    "ExecNode.update.y": things("buffer", "tensor", "pinned", "managed"),  # of N elements
    "a": plain(2.0, np.float32(2), 3),
    "b": plain(3, np.int64(3)),
    "c": plain(bytes([5, *[0] * 11]), np.zeros((), "i4,i4,i4")[()]),
    "n": plain(8, np.int32(8)),
    "MemsetNodeParams.value": INT,
    "BatchMemOpNodeParams.memory": things("word"),
    "BatchMemOpNodeParams.value": INT,
    "BatchMemOpNodeParams.condition": plain(">="),
    "address": INT,
    "type": plain("if"),
    "bodies": plain(()),
    "launch.value": plain(3, np.int32(3)),
    "update.value": plain(3, np.int32(3)),
    "bind.value": plain(3, np.int32(3)),
    "enabled.value": plain(False, True),
    "__call__.value": plain(3, np.int32(3)),
    "inputs": plain("int x, int y"),
    "output": plain("int z"),
    "operation": plain("z = x + y"),
    "ElementwiseKernel.name": plain("sum"),
    "elementwise.name": plain("sum"),
    "input": plain("int x"),
    "reduce.operation": plain("a + b"),
    "ReduceKernel.operation": plain("a + b"),
    "Texture.tensor": things("tensor"),
    "Texture.channels": plain(None),
    "Texture.address_mode": plain("clamp", ("border", "clamp")),
    "Texture.filter_mode": plain("point"),
    **dict.fromkeys(["normalized_coordinates", "promote"], plain(False)),
    "Texture.border": plain((1.0, 2.0)),
    "TensorMap.tensor": things("tensor"),
    "TensorMap.box": plain((1, 4), [np.int64(1), 4]),
    "TensorMap.element_strides": plain((1, 1)),
    "TensorMap.data_type": plain(None),
    "TensorMap.interleave": plain("none"),
    "TensorMap.swizzle": plain("none"),
    "TensorMap.l2_promotion": plain("64B"),
    "TensorMap.oob_fill": plain("zeros"),
    "map": plain("x * x"),
    "identity": plain(0),
    **dict.fromkeys(["reduce.name", "ReduceKernel.name"], plain("sum")),
    **dict.fromkeys(["reduce.options", "ReduceKernel.options"], things("program_options")),
    "ReduceKernel.__call__.out": [lambda w: w.get("tensor")[0, :1]],
    "elementwise.options": things("program_options"),
    "ElementwiseKernel.options": things("program_options"),
    "x": things("tensor", "other_tensor", "matrix"),
    "scalar": plain(3, np.int32(3)),
    "out": things("tensor"),
    # graphs
    "graph": things("graph"),
    "GraphExec.update.graph": things("graph"),
    "update_or_instantiate.graph": things("graph", "small_graph"),
    "Graph.remove.node": things("node"),
    "add_edge.start": things("node"),
    "remove_edge.start": things("node"),
    "end": [lambda w: w.get("graph")["host"]],
    "add_edge.programmatic": plain(False),  # the nodes are no kernels
    "remove_edge.end": [lambda w: w.get("graph")["memcpy"]],
    "Condition.default": INT,
    "default": INT,
    "exec": things("exec"),
    "Graph.__getitem__.name": plain("memset"),
    "GraphExec.__getitem__.name": plain("memset"),
    "func": [lambda w: lambda *a: None],
    "embed.other": things("small_graph"),
    "move": plain(True, False),
    "slot.object": things("array", "buffer"),
    "Slot.object": things("array", "buffer"),
    "who_retains.obj": things("buffer", "array", "tensor", "kernel"),
    "lines": plain(()),
    "save.path": [thing("new_file")],
    "contents": plain(True, False),
    "load.path": [thing("graph_file")],
    "bind": [lambda w: {"memset_0.dst": w.get("buffer")}],
    "holder": things("graph"),
    "buffer": things("graph_buffer"),
    "condition": things("condition"),
    "count": plain(2),
    "auto_free": plain(True),
    "fold": plain(1),
    "max_graphs": plain(2),
    "rows": [lambda w: w.get("graph_profile").rows],
    "edges": plain(((0, 1), (1, 2))),
    "path": plain("/dev/null"),
    "microseconds": plain(1.5),
    "NodeTime.start": plain(1.5),
    "memo": [lambda w: {}],
    "upload": things("stream"),
    "priorities": plain(True),
    "nodes": things("node"),
    "set_condition.value": [*plain(1), thing("word")],
    # the rest
    "args": plain(None),
    "finalize.obj": things("watched"),
    "Finalizer.obj": things("watched"),
    "obj": things("array"),
    "names": plain("races"),
    "raises": plain(True),
    "driver": plain("sim"),
    "atexit.value": plain(True),
    "name": NAME,
    "kind": NAME,
    "id": INT,
    "log": STRING,
    "offset": INT,
    "live": plain({"pool": 1}),
    **dict.fromkeys(["exports", "imports", "peers"], plain({"capsule": cu.ExchangeCount(1, 0)})),
    **dict.fromkeys(["ExchangeCount.total", "ExchangeCount.live"], INT),
    "object": things("array"),
    "node": STRING,
    "operand": STRING,
    "reason": STRING,
    "release_threshold": INT,
    "max_size": INT,
    "arch": plain("sm_75"),
    "std": plain("c++17"),
    "include_path": plain(["/nowhere"]),
    "define_macro": plain({"A": 1}),
    "undefine_macro": plain(["A"]),
    "fast_math": plain(True),
    "debug": plain(True),
    "lineinfo": plain(True),
    "max_registers": plain(32),
    "ProgramOptions.options": plain(["-w"]),
    "name_expressions": plain(["x"]),
    "headers": plain({"a.h": "#define A"}),
    "find_headers": plain(False),
    **dict.fromkeys(["pre_include", "create_pch", "use_pch", "pch_dir"], plain("a.h")),
    **dict.fromkeys(["ftz", "prec_div", "prec_sqrt", "fma"], plain(True)),
    **dict.fromkeys(["relocatable_device_code", "extensible_whole_program"], plain(True)),
    **dict.fromkeys(["extra_device_vectorization", "restrict", "minimal", "pch"], plain(True)),
    **dict.fromkeys(["device_as_default_execution_space", "no_source_include"], plain(True)),
    **dict.fromkeys(["builtin_move_forward", "builtin_initializer_list"], plain(True)),
    **dict.fromkeys(["disable_warnings", "no_display_error_number"], plain(True)),
    **dict.fromkeys(["diag_error", "diag_suppress", "diag_warn"], plain([177], 177)),
    "ptxas_options": plain("-v"),
    "optimization_info": plain("inline"),
    "split_compile": plain(2),
    **dict.fromkeys(["pch_verbose", "pch_messages", "instantiate_templates_in_pch"], plain(True)),
    **dict.fromkeys(["device_code_optimize", "gen_opt_lto", "brief_diagnostics"], plain(True)),
    **dict.fromkeys(["device_stack_protector", "modify_stack_limit"], plain(True)),
    **dict.fromkeys(["device_int128", "device_float128", "fdevice_syntax_only"], plain(True)),
    "jump_table_density": plain(50),
    **dict.fromkeys(["pid", "used_memory"], INT),
    "ofast_compile": plain("min"),
    "frandom_seed": STRING,
    "fdevice_time_trace": plain("trace.json"),
    "warning_as_error": plain("all-warnings"),
    "ProgramOptions.time": plain("times.csv"),
    **dict.fromkeys(["registers", "shared", "local", "constant", "spills", "max_threads"], INT),
    **dict.fromkeys(["max_shared", "ptx_version", "binary_version"], INT),
    **dict.fromkeys(["exports_made", "exports_released", "imports_taken"], INT),
    **dict.fromkeys(["imports_released", "used", "used_high", "reserved", "reserved_high"], INT),
}

OTHERS = {
    "Buffer": "other_buffer",
    "Tensor": "other_tensor",
    "Pointer": "other_pointer",
    "Stream": "other_stream",
    "Graph": "small_graph",
}


@cache
def all_targets() -> tuple[Target, ...]:
    """Every target, the expanded ones in their meanings."""
    found: list[Target] = []
    for target in targets():
        meanings = EXPANSIONS.get(target.name)
        if meanings is None:
            found.append(target)
            continue
        for meaning, (_, parameters) in meanings.items():
            found.append(replace(target, name=f"{target.name}[{meaning}]", parameters=parameters))
    return tuple(found)


def receiver(target: Target) -> str:
    """Name of the object that a target is called on; empty for functions and constructors."""
    base, _, meaning = target.name.rstrip("]=").partition("[")
    if meaning:
        return EXPANSIONS[base][meaning][0]
    if not target.owner or target.how == "construct":
        return ""
    return RECEIVERS.get(base) or RECEIVERS[target.owner]


def values(target: Target, parameter: Parameter) -> list[Value]:
    """Good values of a parameter."""
    if "[mix]" in target.name and parameter.name == "kernel":
        return [lambda w: w.get("code")["mix"]]
    base = re.sub(r"\[\w+\]$|=$", "", target.name)
    name = parameter.name
    names = target.name, base, base.rpartition(".")[2]
    for key in (*(f"{of}.{name}" for of in names), name):
        if key in VALUES:
            return VALUES[key]
    if name == "other" and target.owner:
        return things(OTHERS.get(target.owner, receiver(target)))
    raise LookupError(f"{target.name} has a parameter {name!r} without a recipe")


def missing() -> list[str]:
    """What is public and has no recipe."""
    found = []
    for target in all_targets():
        try:
            receiver(target)
            for parameter in target.parameters:
                values(target, parameter)
        except LookupError as e:
            found.append(str(e))
    return found


__all__ = ["N", "all_targets", "missing", "receiver", "values"]

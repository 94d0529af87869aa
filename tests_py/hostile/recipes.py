# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Recipes: an object for each class, and good values for each parameter.

A new class needs a line in RECEIVERS, a new parameter one in VALUES of values.py: under
``Class.method.name``, ``method.name`` or ``name``, whichever is the first that is right for it.
What has no recipe is a failure. Several values are several variants: the first one is used where
another parameter is hostile, the others take part where they are the operand that is closed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from . import traced
from .expansions import EXPANSIONS
from .surface import Parameter, Target, targets
from .values import VALUES, Value, things

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
    "PinnedMemoryResource.get_allocation_handle": "shared_pinned",
    "Buffer.ipc_descriptor": "shared_buffer",
    "Event.ipc_descriptor": "shared_event",
    "IPCAllocationHandle": "pool_handle",
    "IPCBufferDescriptor": "buffer_descriptor",
    "IPCEventDescriptor": "event_descriptor",
    "DeviceLimits": "limits",
    "GraphMemory": "graph_memory",
    "DeviceMonitor": "monitor",
    "DeviceProcess": "device_process",
    "DeviceProperties": "properties",
    "ElementwiseKernel": "elementwise",
    "ReduceKernel": "reduce",
    "Event": "event",
    "ExternalSemaphore": "semaphore",
    "ExternalMemory": "external",
    "sim.ExportedSemaphore": "exported_semaphore",
    "sim.ExportedMemory": "exported_memory",
    "SemaphoreNodeParams": "semaphore_params",
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
    "MemoryResource.device": "own_resource",  # that of others cannot be set
    "Neighbors": "neighbors",
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
    "OpaqueArray": "opaque",
    "MipmappedArray": "mipmapped",
    "Surface": "surface",
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
    "debug.record_origins": "origins",
    "debug.watch_pointers": "watch",
    "dlpack.Exchange": "exchange",
    "dlpack.Trace": "trace",
    "nvtx.range": "range",
    **traced.RECEIVERS,
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


__all__ = ["all_targets", "missing", "receiver", "values"]

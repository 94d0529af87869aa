# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""Targets whose variadic parameters mean different things: each meaning is a target."""

from __future__ import annotations

from . import traced
from .surface import Parameter

_ADD = (Parameter("y"), Parameter("value"), Parameter("n"))
_MIX = (Parameter("y"), Parameter("a"), Parameter("b"), Parameter("c"))
_LAUNCH = (Parameter("config"), Parameter("kernel"))
_NAMED = (Parameter("value", True), Parameter("n", True))
_CONDITION = Parameter("condition", True)
EXPANSIONS: dict[str, dict[str, tuple[str, tuple[Parameter, ...]]]] = {
    **traced.EXPANSIONS,
    "launch": {
        "add": ("", (Parameter("stream"), *_LAUNCH, *_ADD)),
        "mix": ("", (Parameter("stream"), *_LAUNCH, *_MIX)),
        "named": ("", (Parameter("stream"), *_LAUNCH, Parameter("y"), *_NAMED)),
    },
    "Stream.wait": {
        "event": ("stream", (Parameter("work"),)),
        "semaphore": ("stream", (Parameter("work"), Parameter("value"))),
    },
    "Graph.wait": {
        "event": ("graph", (Parameter("event"), Parameter("name", True))),
        "semaphore": ("graph", (Parameter("event"), Parameter("value"), Parameter("name", True))),
    },
    "Node.wait": {
        "event": ("node", (Parameter("event"), Parameter("name", True))),
        "semaphore": ("node", (Parameter("event"), Parameter("value"), Parameter("name", True))),
    },
    "Graph.launch": {"add": ("graph", (*_LAUNCH, *_ADD)), "mix": ("graph", (*_LAUNCH, *_MIX))},
    "Node.launch": {"add": ("node", (*_LAUNCH, *_ADD)), "mix": ("node", (*_LAUNCH, *_MIX))},
    "Kernel.bind": {"add": ("kernel", (Parameter("config"), *_ADD))},
    "BoundLaunch.update": {"argument": ("bound", (Parameter("y", True),))},
    "GraphExec.bind": {
        "slots": ("slot_exec", (Parameter("src", True),)),
    },
    "GraphFunction.__call__": {"add": ("graph_function", (Parameter("stream"), *_ADD))},
    "ConfiguredKernel.__call__": {
        "add": ("configured", _ADD),
        "mix": ("configured_mix", _MIX),
        "named": ("configured", (Parameter("y"), *_NAMED)),
    },
    "ElementwiseKernel.__call__": {
        "add": ("elementwise", (Parameter("x"), Parameter("scalar"), Parameter("stream", True))),
        "out": (
            "elementwise",
            (
                Parameter("x"),
                Parameter("scalar"),
                Parameter("stream", True),
                Parameter("out", True),
            ),
        ),
        "shape": (
            "elementwise",
            (
                Parameter("scalar"),
                Parameter("scalar"),
                Parameter("stream", True),
                Parameter("shape", True),
            ),
        ),
    },
    "ReduceKernel.__call__": {
        "all": ("reduce", (Parameter("x"), Parameter("stream", True), Parameter("out", True))),
        "axes": (
            "reduce",
            (
                Parameter("x"),
                Parameter("stream", True),
                Parameter("axis", True),
                Parameter("keepdims", True),
            ),
        ),
    },
    "ExecNode.update": {
        "memset": ("exec_memset", (Parameter("dst"), Parameter("value"))),
        "memcpy": ("exec_memcpy", (Parameter("dst", True), Parameter("src", True))),
        "kernel": ("exec_kernel", (*_LAUNCH, *_ADD)),
        "argument": ("exec_kernel", (Parameter("y", True),)),
        "config": ("exec_kernel", (Parameter("config", True), Parameter("kernel", True))),
        "host": ("exec_host", (Parameter("func"),)),
        "write": ("exec_write", (Parameter("dst", True), Parameter("value", True))),
        "event": ("exec_event", (Parameter("event"),)),
        "child": ("exec_child", (Parameter("graph"),)),
    },
    "Node.update": {
        "memset": ("node", (Parameter("dst"), Parameter("value"))),
        "memcpy": ("memcpy_node", (Parameter("dst", True), Parameter("src", True))),
        "kernel": ("kernel_node", (*_LAUNCH, *_ADD)),
        "argument": ("kernel_node", (Parameter("y", True),)),
        "config": ("kernel_node", (Parameter("config", True), Parameter("kernel", True))),
        "host": ("host_node", (Parameter("func"),)),
        "wait": ("wait_node", (Parameter("src", True), Parameter("value", True), _CONDITION)),
        "event": ("event_node", (Parameter("event"),)),
        "child": ("child_node", (Parameter("graph"),)),
    },
}

# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""No native way to build or launch a graph passes who watches by."""

from __future__ import annotations

import re

import pytest

from .c_source import Program
from .rooms import texts

# What adds kernels to graphs, copies graphs, makes executables, changes and launches them.
SINKS = {
    "cuGraphLaunch",
    "cuGraphAddKernelNode",
    "cuGraphExecKernelNodeSetParams",
    "cudagoGraphKernel",
    "cudagoGraphClone",
    "cudagoGraphChild",
    "cudagoGraphChildOf",
    "cudagoGraphInstantiate",
    "cudagoExecUpdate",
    "cudagoUpdateKernel",
    "cudagoCaptureGraph",
    "cudagoCaptureExec",
    "cudagoCaptureEnd",
}
ASKS = {"CUDAGO_WATCH", "cudago_watcher", "cudago_exec_is_calm"}

# function: why it need not ask.
EXEMPT = {
    "discard": "discards what was captured",
}
TABLE_TYPE = "cudago_kernel_use"
TABLE = re.compile(rf"^(?:static )?const {TABLE_TYPE} (\w+) = \{{([^}}]*)\}}", re.M)


def passing_by(sources: dict[str, str]) -> list[str]:
    """Return the functions that Python calls, and that come to a sink without asking."""
    program = Program(sources)
    bodies = {
        (f.file, f.name): set(program.sources[f.file].t[f.body[0] : f.body[1]])
        for s in program.sources.values()
        for f in s.functions
        if f.body is not None
    }
    static = {(f.file, f.name) for s in program.sources.values() for f in s.functions if f.static}
    for file, text in sources.items():
        for name, inside in TABLE.findall(text):
            bodies[file, name] = set(re.findall(r"\w+", inside))
            if f"static const {TABLE_TYPE}" in text:
                static.add((file, name))
    found, seen = [], set()
    todo = [key for key, tokens in bodies.items() if tokens & SINKS]
    while todo:
        key = todo.pop()
        file, name = key
        if key in seen or bodies[key] & ASKS or name in EXEMPT:
            continue
        seen.add(key)
        users = [
            user
            for user, tokens in bodies.items()
            if user != key and name in tokens and (key not in static or user[0] == file)
        ]
        is_method = re.search(rf"\bMETHOD\({name}\)|, {name}, METH_", "".join(sources.values()))
        if is_method or not users:
            found.append(f"{file}:{name}")
        todo += users
    return sorted(found)


def test_every_way_asks_who_watches():
    assert passing_by(texts()) == []


@pytest.mark.parametrize(
    "code",
    [
        "static PyObject *f(ExecObject *self) { return launch_it(cu.cuGraphLaunch(1, 2)); }",
        "static QUIET int now(ExecObject *x) { return cudagoExecUpdate(x); }\n"
        "static PyObject *f(ExecObject *self) { return through(self, now); }\n"
        'static PyMethodDef m[] = {{"f", METHOD(f), METH_O, NULL}};',
    ],
)
def test_what_passes_by_is_found(code):
    assert passing_by(texts() | {"graph/planted.c": code}) == ["graph/planted.c:f"]


def test_each_exemption_is_needed(monkeypatch):
    for name in list(EXEMPT):
        with monkeypatch.context() as m:
            m.delitem(EXEMPT, name)
            assert passing_by(texts()) != []


def test_each_question_is_needed():
    """Without any of them something passes by, unless a function asks twice or for others."""
    for file in ("exec.c", "graph.c", "node.c", "set.c", "embed.c", "capture.c"):
        text = texts()[f"graph/{file}"]
        without = re.sub(r"\bCUDAGO_WATCH\b|\bcudago_watcher\b", "no_question", text)
        assert passing_by(texts() | {f"graph/{file}": without}) != [], file
    for file, function in (("node_kernel.c", "add_kernel"), ("update.c", "cudago_update_graph")):
        text = texts()[f"graph/{file}"]
        at = text.index(" CUDAGO_WATCH(", text.index(f" *{function}("))
        without = text[:at] + " no_question(" + text[at + len(" CUDAGO_WATCH(") :]
        assert passing_by(texts() | {f"graph/{file}": without}) != [], file

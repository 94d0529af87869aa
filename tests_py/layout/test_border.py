# SPDX-FileCopyrightText: The cudago authors
# SPDX-License-Identifier: Apache-2.0
"""The C of pyext keeps the rules that border.h states, and the test finds violations."""

from __future__ import annotations

import re

import pytest

from . import border_tables
from .border_rules import Rules
from .rooms import PYEXT, go_texts, texts

EXCEPTIONS = ("GO_QUIET", "QUIET_CALLS", "NOW", "READERS", "LOOKS", "WITH_GIL", "ENTRY", "INSIDE")


def findings(code: str) -> list[str]:
    """Return what is found in a file that is added to the sources."""
    return Rules(texts() | {"planted.c": code}, "planted.c").all()


def test_the_sources_keep_the_rules():
    assert Rules(texts()).all() == []


def test_what_is_used_through_a_pointer_is_quiet():
    """The rules do not follow pointers; they do hold a function to its name."""
    c = "".join(texts().values())
    uses = re.findall(r"cudago_kernel_use \w+ = \{\w+, (\w+)\}", c)
    assert sorted(uses) == ["kernel_now", "kernel_now", "update_kernel"]  # the last passes a gate
    (records,) = re.findall(r"cudago_recorder \w+ = \{(.*)\}", c)
    assert all(f"static QUIET int {name}(" in c for name in records.split(", "))


def test_each_call_that_the_border_has_is_made():
    calls_h = (PYEXT / "border" / "zcalls.h").read_text()
    (table,) = re.findall(r"#define CUDAGO_CALLS\(X\)(.*?)\n\n", calls_h, re.S)
    calls = re.findall(r"X\((\w+),", table)
    assert len(calls) > 10
    made = set(re.findall(r"\bcu\.(\w+)", "".join(texts().values())))
    assert [call for call in calls if call not in made] == []


def test_events_are_recorded_beside_no_end_of_a_capture():
    """See cudago_record_begins in stream.h; a cover is recorded while no capture is open."""
    made = {name for name, text in texts().items() if "cu.cuEventRecord(" in text}
    assert made == {"stream/record.c", "stream/cover.c"}


def test_each_exception_is_needed():
    rules = Rules(texts())
    rules.all()
    listed = {key for name in EXCEPTIONS for key in getattr(border_tables, name)}
    assert listed - rules.used == set()


def test_what_is_said_of_go_is_said_of_functions_that_are_there():
    go = "\n".join(go_texts().values())
    assert border_tables.GO_QUIET - set(re.findall(r"^//export (\w+)$", go, re.M)) == set()


# --- broken sources ---------------------------------------------------------------------------

QUIET_BREAKS = {
    "a conversion": (
        "static QUIET int f(PyObject *o) { long v = PyLong_AsLong(o); return (int)v; }",
        "calls PyLong_AsLong, which is loud",
    ),
    "in a condition": (
        "static QUIET int f(PyObject *o) { if (PyObject_IsTrue(o)) return 1; return 0; }",
        "calls PyObject_IsTrue, which is loud",
    ),
    "a function of ours": (
        "static int loud(void) { return 0; }\nstatic QUIET int f(void) { int r = loud(); return "
        "r; }",
        "calls loud, which is loud",
    ),
    "quiet by its prototype alone": (
        "QUIET int f(void);\nint f(void) { cudago_drain(); return 0; }",
        "calls cudago_drain, which is loud",
    ),
    "an exported function of Go that runs Python": (
        "static QUIET int f(void) { cudagoDrain(); return 0; }",
        "calls cudagoDrain, which is loud",
    ),
    "an exported function of Go that waits": (
        "static QUIET int f(uint64_t s) { cudagoLineAwait(s); return 0; }",
        "calls cudagoLineAwait, which is loud",
    ),
    "the last reference": (
        "static QUIET int f(PyObject *o) { Py_DECREF(o); return 0; }",
        "calls Py_DECREF, which is loud",
    ),
    "the GIL": (
        "static QUIET int f(void) { Py_BEGIN_ALLOW_THREADS Py_END_ALLOW_THREADS return 0; }",
        "gives the GIL away",
    ),
    "the GIL, by hand": (
        "static QUIET int f(void) { PyThreadState *t = PyEval_SaveThread(); return t != 0; }",
        "gives the GIL away",
    ),
    "a function pointer": (
        "static QUIET int f(cudago_cell *c) { c->release(c); return 0; }",
        "calls a pointer, which is loud",
    ),
    "a function pointer in a cast": (
        "static QUIET int f(void *p) { ((void (*)(void))p)(); return 0; }",
        "calls a pointer, which is loud",
    ),
    "an error that is not last": (
        'static QUIET int f(int x) { if (x) PyErr_SetString(PyExc_ValueError, "x"); x++; return '
        "x; }",
        "calls PyErr_SetString, which is loud",
    ),
    "a use behind it in the statement that returns": (
        "static QUIET int f(ExecObject *e, PyObject *o) { return PyObject_IsTrue(o) ? 0 : 1; }\n"
        "static QUIET int g(cudago_stream *s, PyObject *o) { return PyObject_IsTrue(o) && "
        "cudago_keeps_gil(s); }",
        "calls cudago_keeps_gil after PyObject_IsTrue",
    ),
    "a QUIET function that returns from a loud one": (
        "static int away(void) { cudago_drain(); return 0; }\n"
        "static QUIET int ends(void) { return away(); }\n"
        "static QUIET int f(cudago_stream *s) { if (ends()) return -1; return "
        "cudago_keeps_gil(s); }",
        "calls ends, which ends loud",
    ),
}
READ_BREAKS = {
    "a field": ("static int f(StreamObject *o) { return o->s != NULL; }", "reads StreamObject.s"),
    "a local's": (
        "static int f(PyObject *o) { BufferObject *b = (BufferObject *)o; return !b->cell; }",
        "reads BufferObject.cell",
    ),
    "the second of two": (
        "static int f(void) { TensorObject *a = NULL, *b = NULL; (void)a; return !b->cell; }",
        "reads TensorObject.cell",
    ),
    "in a cast": (
        "static int f(PyObject *o) { return !((ExecObject *)o)->x; }",
        "reads ExecObject.x",
    ),
    "through a struct": (
        "typedef struct { GraphObject *graph; } holder;\nstatic int f(holder *h) { return "
        "!h->graph->id; }",
        "reads GraphObject.id",
    ),
    "through an array": (
        "static int f(EventObject **e) { return !e[1]->h; }",
        "reads EventObject.h",
    ),
    "of what a function returns": (
        "static GraphObject *of(PyObject *o) { return (GraphObject *)o; }\n"
        "static int f(PyObject *o) { return !of(o)->capturing; }",
        "reads GraphObject.capturing",
    ),
}
OTHER_BREAKS = {
    "a call that waits": (
        "static void f(cudago_stream *s, uintptr_t e) { cu.cuEventRecord(e, s->h); }",
        "calls cu.cuEventRecord, which waits, with the GIL",
    ),
    "a lock that is held across such a call": (
        "static void f(uint64_t s) { PyThreadState *t = cudago_step_aside(); "
        "cudago_step_back(t); cudagoLineExpose(s); }",
        "calls cudagoLineExpose, which waits, with the GIL",
    ),
    "a look at a capture": (
        "static int f(cudago_stream *s) { return cudago_capturing(s); }",
        "asks whether a stream captures",
    ),
    "a name": (
        "static int f_now(StreamObject *o) { (void)o; return 0; }",
        "is called _now, and is not QUIET",
    ),
    "a conversion between a look and its use": (
        "static long f(StreamObject *o, PyObject *x) { cudago_stream *s = cudago_stream_now(o);\n"
        "long n = s ? PyLong_AsLong(x) : -1; return s ? n + s->device : n; }",
        "calls PyLong_AsLong, which is loud, before using what cudago_stream_now said",
    ),
    "the GIL between a look and its use": (
        "static uint64_t f(BufferObject *o) { cudago_span b; if (cudago_buffer_now(o, &b)) "
        "return 0; cudago_drain(); return b.ptr; }",
        "calls cudago_drain, which is loud, before using what cudago_buffer_now said",
    ),
    "a wrapper without the GIL": (
        "static int f(ExecObject *e) { int n; Py_BEGIN_ALLOW_THREADS n = e->device; "
        "Py_END_ALLOW_THREADS return n; }",
        "touches device (ExecObject) without the GIL",
    ),
    "what a wrapper points to, without the GIL": (
        "static uint64_t f(OperandObject *o) { Py_BEGIN_ALLOW_THREADS take(o->cell->ptr); "
        "Py_END_ALLOW_THREADS return 0; }",
        "touches cell (OperandObject) without the GIL",
    ),
    "a wrapper in a call into a stream": (
        "static int f(cudago_stream *s, BufferObject *b) { cudago_leave l = cudago_gil_leave(s);\n"
        "use(b);\ncudago_gil_back(&l, 0); return 0; }",
        "touches b (BufferObject) without the GIL",
    ),
    "Python without the GIL": (
        "static void f(void) { PyThreadState *t = PyEval_SaveThread(); PyErr_Clear(); "
        "PyEval_RestoreThread(t); }",
        "calls PyErr_Clear without the GIL",
    ),
    "an entry": (
        "static PyObject *f(PyObject *o, PyObject *x) { cudagoDrain(); return x; }\n"
        'static PyMethodDef m[] = {{"f", METHOD(f), METH_O, NULL}, {0}};',
        "does not begin with CUDAGO_ENTER",
    ),
    "an entry that does something first": (
        "static PyObject *f(PyObject *o, void *x) { PyErr_Clear(); CUDAGO_ENTER(NULL); "
        "cu.cuEventQuery(0); return o; }\n"
        'static PyGetSetDef m[] = {{"f", (getter)f, NULL, NULL, NULL}, {0}};',
        "does not begin with CUDAGO_ENTER",
    ),
    "a slot, by way of another function": (
        "static void g(void) { cudagoDrain(); }\n"
        "static PyObject *f(PyObject *o) { g(); return o; }\n"
        "static PyType_Slot m[] = {{Py_tp_repr, f}, {0, NULL}};",
        "does not begin with CUDAGO_ENTER",
    ),
}
GATE = "static void g(ExecObject *e) { cudago_update_gate(e, f, NULL); }"
GATE_BREAKS = {
    "an error in a gate": (
        "static QUIET void f(ExecObject *e, void *at, cudago_refusal *why) {\n"
        "if (!at) { PyErr_NoMemory(); return; } }\n" + GATE,
        "f, inside of cudago_update_gate, may run Python: f calls PyErr_NoMemory",
    ),
    "an error in a function that is called in a gate": (
        "static QUIET int deep(OperandObject *o) { return o ? 0 : (PyErr_NoMemory(), -1); }\n"
        "static QUIET void f(ExecObject *e, void *at, cudago_refusal *why) { deep(at); }\n" + GATE,
        "f, inside of cudago_update_gate, may run Python: f: deep calls PyErr_NoMemory",
    ),
    "a conversion in a gate": (
        "static void f(ExecObject *e, void *at, cudago_refusal *why) { PyObject_IsTrue(at); }\n"
        + GATE,
        "may run Python: f calls PyObject_IsTrue",
    ),
    "an error in a turn": (
        "static QUIET int f(void *at, int mine) { return PyErr_NoMemory(), -1; }\n"
        "static int g(void) { return cudago_turn_take(f, NULL); }",
        "f, inside of cudago_turn_take, may run Python: f calls PyErr_NoMemory",
    ),
    "a gate that is passed with something else": (
        "static void g(ExecObject *e, void **f) { cudago_update_gate(e, f[0], NULL); }",
        "calls cudago_update_gate with '', which is no function",
    ),
    "an error while others wait for a launch": (
        "static int f(cudago_exec *x) { x->inside++; int r = cudago_raise_closed(0); leave(x); "
        "return r; }",
        "calls cudago_raise_closed, which may raise, and others wait: inside",
    ),
    "a signal handler while all others wait": (
        "static int g(void) { return PyErr_CheckSignals(); }\n"
        "static int f(void) { cudago_exclusive++; int r = g(); cudago_exclusive--; return r; }",
        "calls g, which may raise, and others wait: cudago_exclusive",
    ),
}
BREAKS = QUIET_BREAKS | READ_BREAKS | OTHER_BREAKS | GATE_BREAKS


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_is_found(name):
    code, want = BREAKS[name]
    found = findings(code)
    assert len(found) == 1, found
    assert want in found[0]


FINE = {
    "a call that waits, aside": (
        "static void f(uint64_t s) { PyThreadState *t = cudago_step_aside(); cudagoLineExpose(s); "
        "cudago_step_back(t); }"
    ),
    "a look, and a hold": (
        "static int f(StreamObject *o) { cudago_stream *s = cudago_stream_now(o); "
        "if (!s) return -1; cudago_stream_retain(s); cudago_drain(); "
        "cudago_stream_release(s); return 0; }"
    ),
    "a first look": (
        "static int f(BufferObject *o) { cudago_span b; if (cudago_buffer_now(o, &b)) return -1;\n"
        "cudago_drain(); return 0; }"
    ),
    "an error last": (
        "static QUIET int f(int x) { if (x) return PyErr_SetString(PyExc_ValueError, 0), -1; "
        "return 0; }"
    ),
    "an error, and a return": (
        "static QUIET int f(void) { PyErr_SetString(PyExc_ValueError, 0); return -1; }"
    ),
    "in another case": (
        "static QUIET int f(cudago_stream *s, int c) { return c ? cudago_raise_result(0, c) : "
        "cudago_keeps_gil(s); }"
    ),
    "in a comment or a string": (
        'static QUIET const char *f(void) { /* PyErr_Clear(); */ return "PyErr_Clear()"; } // '
        "PyErr_Clear();"
    ),
    "writing": "static void f(StreamObject *o) { o->s = NULL; }",
    "the same name in a block": "static uint64_t f(cudago_stream *s) { return s->id; }",
    "locals without the GIL": (
        "static int f(ExecObject *e) { int n = e->device; Py_BEGIN_ALLOW_THREADS n++; "
        "Py_END_ALLOW_THREADS return n; }"
    ),
    "a reason in a gate": (
        "static QUIET void f(ExecObject *e, void *at, cudago_refusal *why) { why->no_memory = 1; "
        "}\n" + GATE
    ),
    "an error once nobody waits": (
        "static int f(cudago_exec *x) { x->inside++; leave(x); return cudago_raise_closed(0); }"
    ),
    "an entry that does enter": (
        "static PyObject *g(PyObject *o) { CUDAGO_ENTER(NULL); cudagoDrain(); return o; }\n"
        "static PyObject *f(PyObject *o, PyObject *x) { (void)x; return g(o); }\n"
        'static PyMethodDef m[] = {{"f", METHOD(f), METH_O, NULL}, {0}};'
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_what_is_no_break_is_not_found(name):
    assert findings(FINE[name]) == []

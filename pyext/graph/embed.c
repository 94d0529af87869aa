/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Graphs that become one node of a capture: what launches of them do while a stream is capturing. */

/* Nothing was added: another thread has ended the capture. Whoever launches looks again. */
enum { NOT_CAPTURING = 2 };

/* 0, -1 with an exception, or NOT_CAPTURING */
static QUIET int captured_stream(StreamObject *stream, int32_t device, cudago_stream **s) {
    if (!(*s = cudago_stream_now(stream))) return -1;
    if ((*s)->device != device)
        return PyErr_Format(PyExc_ValueError, "the graph is on device %d, the stream on device %d", device, (*s)->device), -1;
    int capturing = cudago_capturing(*s);
    return capturing < 0 ? -1 : capturing ? 0
                                          : NOT_CAPTURING;
}

/* What _capture_into returns; r and st are of the last try. */
static PyObject *captured(int r, cudago_status *st, PyObject *done) {
    if (r == NOT_CAPTURING) return NEW_REF(Py_False);
    if (r) return NULL;
    return st->kind ? (cudago_raise(st), NULL) : NEW_REF(done);
}

/* CUDAGO_AGAIN while something of the graph is being instantiated. */
static QUIET int graph_now(GraphObject *self, StreamObject *stream, cudago_status *st) {
    cudago_stream *s;
    int32_t over = 0;
    if (cudago_graph_open(self)) return -1;
    int r = captured_stream(stream, self->device, &s);
    if (r) return r;
    if (cudago_graph_busy(self)) return CUDAGO_AGAIN;
    cudagoCaptureGraph(self->id, s->id, &over, st);
    return over ? NOT_CAPTURING : 0;
}

/* _capture_into(stream) -> True; the graph as it is now. False if the stream is not capturing. */
PyObject *cudago_graph_capture(GraphObject *self, PyObject *stream) {
    CUDAGO_ENTER(NULL);
    if (cudago_expect(stream, CLS_STREAM, "stream")) return NULL;
    if (CUDAGO_WATCH("embedding", "(O)", self)) return NULL;
    cudago_status st = {0};
    int r;
    do r = cudago_graph_ready(self) || cudago_graph_whole(self) ? -1 : graph_now(self, (StreamObject *)stream, &st);
    while (r == CUDAGO_AGAIN);
    return captured(r, &st, Py_True);
}

static QUIET cudago_hierarchy *hierarchy_now(ExecObject *self) {
    return cudago_exec_open(self) ? NULL : self->x->of;
}
static QUIET int exec_now(ExecObject *self, StreamObject *stream, char **changed, cudago_status *st) {
    cudago_stream *s;
    int32_t over = 0;
    if (cudago_exec_open(self)) return -1;
    int r = captured_stream(stream, self->device, &s);
    if (r) return r;
    if (self->x->of->busy) return CUDAGO_AGAIN;
    *changed = cudagoCaptureExec(self->id, s->id, &over, st);
    return over ? NOT_CAPTURING : 0;
}

/* _capture_into(stream) -> True; what launches run now. False if the stream is not capturing; or a text that says why only
 * a graph that is made for it could do that. */
PyObject *cudago_exec_capture(ExecObject *self, PyObject *stream) {
    CUDAGO_ENTER(NULL);
    if (cudago_expect(stream, CLS_STREAM, "stream")) return NULL;
    if (CUDAGO_WATCH("launching", "(O)", self)) return NULL;
    cudago_status st = {0};
    char *changed = NULL;
    int r;
    do {
        cudago_hierarchy *of = hierarchy_now(self);
        r = !of || cudago_hierarchy_wait(of) || cudago_exec_whole(self) ? -1 : exec_now(self, (StreamObject *)stream, &changed, &st);
    } while (r == CUDAGO_AGAIN);
    PyObject *text = changed ? PyUnicode_FromString(changed) : NULL, *done = NULL;
    if (!changed || text) done = captured(r, &st, text ? text : Py_True);
    Py_XDECREF(text);
    free(changed);
    return done;
}

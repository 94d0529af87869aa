/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Graphs that become one node of a capture: what launches of them do while a stream is capturing. */

static QUIET cudago_stream *captured_stream(StreamObject *stream, int32_t device) {
    cudago_stream *s = cudago_stream_now(stream);
    if (!s) return NULL;
    if (s->device != device)
        return PyErr_Format(PyExc_ValueError, "the graph is on device %d, the stream on device %d", device, s->device), NULL;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return NULL;
    if (!capturing) return PyErr_SetString(PyExc_ValueError, "the stream is not capturing"), NULL;
    return s;
}

/* CUDAGO_AGAIN while something of the graph is being instantiated. */
static QUIET int graph_now(GraphObject *self, StreamObject *stream, cudago_status *st) {
    if (cudago_graph_open(self)) return -1;
    cudago_stream *s = captured_stream(stream, self->device);
    if (!s) return -1;
    if (cudago_graph_busy(self)) return CUDAGO_AGAIN;
    cudagoCaptureGraph(self->id, s->id, st);
    return 0;
}

/* _capture_into(stream): the graph as it is now */
PyObject *cudago_graph_capture(GraphObject *self, PyObject *stream) {
    CUDAGO_ENTER(NULL);
    if (cudago_expect(stream, CLS_STREAM, "stream")) return NULL;
    if (CUDAGO_WATCH("embedding", "(O)", self)) return NULL;
    cudago_status st = {0};
    int r;
    do r = cudago_graph_ready(self) || cudago_graph_whole(self) ? -1 : graph_now(self, (StreamObject *)stream, &st);
    while (r == CUDAGO_AGAIN);
    if (r) return NULL;
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

static QUIET cudago_hierarchy *hierarchy_now(ExecObject *self) {
    return cudago_exec_open(self) ? NULL : self->x->of;
}
static QUIET int exec_now(ExecObject *self, StreamObject *stream, char **changed, cudago_status *st) {
    if (cudago_exec_open(self)) return -1;
    cudago_stream *s = captured_stream(stream, self->device);
    if (!s) return -1;
    if (self->x->of->busy) return CUDAGO_AGAIN;
    *changed = cudagoCaptureExec(self->id, s->id, st);
    return 0;
}

/* _capture_into(stream): what launches run now; or a text that says why only a graph that is made for it could do that */
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
    if (r) return NULL;
    if (st.kind) return cudago_raise(&st), NULL;
    if (!changed) Py_RETURN_NONE;
    PyObject *text = PyUnicode_FromString(changed);
    free(changed);
    return text;
}

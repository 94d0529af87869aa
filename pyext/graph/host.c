/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Python callables on streams: what a host node is in a graph. */

static QUIET int host_done(cudago_stream *s, OperandObject *o, cudago_status *st, uint64_t position) {
    if (st->kind) return cudago_raise(st);
    uintptr_t ref = (uintptr_t)NEW_REF(o);
    cudago_keep_until(s, position, &ref, 1);
    return 0;
}

/* With the GIL released: a call before it may be waiting for a callback, which needs the GIL. The caller holds o. */
static int host_away(cudago_stream *s, OperandObject *o) {
    cudago_status st = {0};
    uintptr_t call = (uintptr_t)o->call;
    cudago_leave l = cudago_gil_leave(s);
    cudagoCallbackEnter();
    cudagoLaunchHost(s->id, cudago_host_function(), call, &st);
    uint64_t position = cudago_gil_back(&l, st.kind);
    cudagoCallbackLeave(s->id, st.kind ? 0 : position);
    int r = host_done(s, o, &st, position);
    cudago_leave_end(&l);
    return r;
}

/* With the GIL released too: cuLaunchHostFunc waits for a thread that is stuck in a launch even if it is captured.
 * CUDAGO_AGAIN if another thread has ended the capture meanwhile. */
static int capture_host_away(cudago_stream *s, OperandObject *o) {
    cudago_ref ref;
    int32_t over = 0;
    cudago_status st = {0};
    uintptr_t call = (uintptr_t)o->call;
    uint32_t site = cudago_site();
    cudago_ref_set(&ref, (PyObject *)o, 0, ROLE_CALLBACK, REASON_HOST);
    cudago_leave l = cudago_gil_leave(s);
    cudagoCaptureHost(s->id, cudago_host_function(), call, &ref, site, &over, &st);
    cudago_gil_back(&l, 1);
    cudago_leave_end(&l);
    if (over) return CUDAGO_AGAIN;
    return st.kind ? cudago_raise(&st) : 0;
}

static QUIET int host_now(StreamObject *stream, OperandObject *o) {
    cudago_stream *s = cudago_stream_now(stream);
    if (!s) return -1;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return -1;
    return capturing ? capture_host_away(s, o) : host_away(s, o);
}

/* _callback(callable) */
static PyObject *stream_callback(PyObject *self, PyObject *callable) {
    CUDAGO_ENTER(NULL);
    StreamObject *stream = (StreamObject *)self;
    if (!cudago_stream_now(stream)) return NULL;
    OperandObject *o = cudago_callable_operand(callable, stream->device);
    if (!o) return NULL;
    cudago_note_site();
    int r;
    do r = host_now(stream, o);
    while (r == CUDAGO_AGAIN);
    Py_DECREF(o);
    if (r) return NULL;
    Py_RETURN_NONE;
}

PyMethodDef cudago_stream_callbacks[] = {{"_callback", stream_callback, METH_O, NULL}, {0}};

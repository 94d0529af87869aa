/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

/* Events in streams: recorded there, and waited for. */

/* With the GIL released, as record_away. Meanwhile another thread may record the event in a capture: CUDAGO_AGAIN if the wait
 * might then make the stream join it. */
static int wait_away(cudago_stream *s, uint64_t event, uintptr_t handle) {
    cudago_status st = {0};
    uint64_t stream = s->id;
    s->waits++;
    cudago_leave l = cudago_gil_leave(s);
    int joins = event ? cudagoStreamWaitEvent(stream, event, &st) : cudagoStreamWaitHandle(stream, handle, &st);
    cudago_gil_back(&l, 1);
    cudago_leave_end(&l);
    if (st.kind) return cudago_raise(&st);
    return joins ? CUDAGO_AGAIN : 0;
}
/* CUDAGO_AGAIN if the wait may make the stream join a capture. */
static QUIET int wait_event_now(StreamObject *self, PyObject *event) {
    cudago_stream *s = cudago_stream_now(self);
    if (!s || cudago_expect(event, CLS_EVENT, "event")) return -1;
    EventObject *e = (EventObject *)event;
    if (cudago_event_now(e)) return -1;
    if (e->captured || e->recording) return CUDAGO_AGAIN;
    if (cudago_callbacks_alive) return wait_away(s, e->id, 0);
    uintptr_t pushed;
    s->waits++;
    int32_t r = cudago_ctx_enter(s->ctx, &pushed);
    if (!r) r = cu.cuStreamWaitEvent(s->h, e->h, 0);
    cudago_ctx_leave(pushed);
    return r ? cudago_raise_result("cuStreamWaitEvent", r) : 0;
}
/* Of another library: whether the handle is valid is for the caller to know. */
static QUIET int wait_handle_now(StreamObject *self, uintptr_t event) {
    cudago_stream *s = cudago_stream_now(self);
    if (!s) return -1;
    return atomic_load(&cudago_captures_open) ? CUDAGO_AGAIN : wait_away(s, 0, event);
}

/* A wait that makes its stream join a capture, if the event stands for a place in one. */
typedef struct {
    StreamObject *stream;
    EventObject *event; /* or another library's, by its handle */
    uintptr_t handle;
    cudago_status st; /* why the driver refused, if it was asked */
} joining;

enum { JOINS_AWAY = 2 }; /* a thread of another library may be stuck in the stream, behind a callback that needs the GIL */

/* What another thread has in the driver without the GIL was no part of the capture when it was looked at. So nothing of the
 * stream's may be there. With Go's lock: releases on other threads look at the stream and then use it, too. A thread that is
 * stuck elsewhere, perhaps with that lock, is not waited for with the GIL. */
static QUIET int join_now(joining *j) {
    cudago_stream *s = j->stream->s;
    if (!s || cudago_stream_lost(s) || (j->event && cudago_event_closed(j->event))) return -1;
    if (!cudago_is_untouched(s)) return CUDAGO_AGAIN;
    if (cudago_callbacks_alive && (s->foreign || s->clock->exposed)) return JOINS_AWAY;
    s->waits++;
    int busy = cudagoStreamTryJoin(s->id, j->event ? j->event->id : 0, j->handle, &j->st);
    if (j->st.kind) return -1;
    return busy ? CUDAGO_AGAIN : 0;
}
/* Other threads' calls wait meanwhile, as for an instantiation. */
static int join_away(cudago_stream *s, uint64_t event, uintptr_t handle) {
    cudago_status st = {0};
    uint64_t stream = s->id;
    s->waits++;
    cudago_exclusive++;
    cudago_leave l = cudago_gil_leave(s);
    cudagoStreamJoin(stream, event, handle, &st);
    cudago_gil_back(&l, 1);
    cudago_exclusive--;
    cudago_leave_end(&l);
    return st.kind ? cudago_raise(&st) : 0;
}
/* Right after join_now. */
static QUIET int rest_now(const joining *j) {
    return join_away(j->stream->s, j->event ? j->event->id : 0, j->handle);
}
/* No turn: the driver makes this call wait only for threads that are stuck in its own stream. */
static int join(joining *j) {
    int r;
    while ((r = join_now(j)) == CUDAGO_AGAIN)
        if (cudago_wait_a_moment()) return -1;
    if (r == JOINS_AWAY) return rest_now(j);
    if (r == -1 && j->st.kind) return cudago_raise(&j->st);
    if (r == -1 && cudago_stream_now(j->stream)) return cudago_event_now(j->event); /* raises: it was closed meanwhile */
    return r;
}

/* _wait_handle(CUevent): as _wait_event, for an event of another library. */
PyObject *cudago_stream_wait_handle(StreamObject *self, PyObject *handle) {
    CUDAGO_ENTER(NULL);
    unsigned long long event = PyLong_AsUnsignedLongLong(handle);
    if (event == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    if (!event) return PyErr_SetString(PyExc_ValueError, "an event's handle is never 0"), NULL;
    int r = wait_handle_now(self, (uintptr_t)event);
    if (r == CUDAGO_AGAIN) r = join(&(joining){.stream = self, .handle = (uintptr_t)event});
    if (r) return NULL;
    Py_RETURN_NONE;
}

/* _wait_event(event): work queued on self from now on waits for the event. */
PyObject *cudago_stream_wait_event(StreamObject *self, PyObject *event) {
    CUDAGO_ENTER(NULL);
    int r = wait_event_now(self, event);
    if (r == CUDAGO_AGAIN) r = join(&(joining){.stream = self, .event = (EventObject *)event});
    if (r) return NULL;
    Py_RETURN_NONE;
}

QUIET int cudago_record_begins(void) {
    if (!atomic_load_explicit(&cudago_captures_open, memory_order_relaxed)) return 0;
    cudagoRecordLock();
    return 1;
}
QUIET void cudago_record_ends(int locked) {
    if (locked) cudagoRecordUnlock();
}
QUIET int32_t cudago_event_record(uintptr_t event, uintptr_t stream) {
    int locked = cudago_record_begins();
    int32_t r = cu.cuEventRecord(event, stream);
    cudago_record_ends(locked);
    return r;
}

/* Records of one event that overlap may reach the driver in any order. So if one of them goes into a capture, the event
 * counts as captured: asking for the state of one that is would invalidate the capture. */
QUIET void cudago_recording_begins(EventObject *e, int capturing) {
    e->recording++;
    if (capturing) e->into_captures = 1;
}
QUIET void cudago_recording_ends(EventObject *e, int recorded, int captured) {
    if (recorded) e->captured = captured || e->into_captures;
    if (!--e->recording) e->into_captures = 0;
}
QUIET void cudago_event_recorded(EventObject *e, int captured) {
    e->captured = captured || e->into_captures;
    if (captured && e->recording) e->into_captures = 1;
}

/* With the GIL released: the driver may make the record wait for a thread that is stuck in a graph launch behind a Python
 * callback. Go keeps both handles valid for the call. */
static PyObject *record_away(EventObject *e, uint64_t event, cudago_stream *s, int capturing) {
    cudago_status st = {0};
    uint64_t stream = s->id;
    cudago_recording_begins(e, capturing);
    cudago_leave l = cudago_gil_leave(s);
    int captured = cudagoEventRecord(event, stream, &st);
    cudago_gil_back(&l, 1);
    cudago_leave_end(&l);
    cudago_recording_ends(e, !st.kind, captured);
    return st.kind ? (cudago_raise(&st), NULL) : NEW_REF((PyObject *)e);
}

/* The driver would refuse an event of another device too, but its message helps nobody. An event that stands for a
 * place in a capture must not be queried: that would invalidate the capture. */
static QUIET PyObject *record_now(StreamObject *self, PyObject *event) {
    cudago_stream *s = cudago_stream_now(self);
    if (!s || cudago_expect(event, CLS_EVENT, "event")) return NULL;
    EventObject *e = (EventObject *)event;
    if (cudago_event_now(e)) return NULL;
    if (e->device != s->device)
        return PyErr_Format(PyExc_ValueError, "event belongs to device %d, stream to device %d", e->device, s->device);
    uintptr_t pushed;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return NULL;
    if (cudago_callbacks_alive) return record_away(e, e->id, s, capturing);
    if (capturing) { /* Go notes it: the event must not be destroyed while the capture is being ended */
        cudago_status st = {0};
        int captured = cudagoEventRecord(e->id, s->id, &st);
        if (st.kind) return cudago_raise(&st), NULL;
        cudago_event_recorded(e, captured);
        return NEW_REF(event);
    }
    int32_t r = cudago_ctx_enter(s->ctx, &pushed);
    if (!r) r = cudago_event_record(e->h, s->h);
    cudago_ctx_leave(pushed);
    if (r) return cudago_raise_result("cuEventRecord", r), NULL;
    cudago_event_recorded(e, 0);
    return NEW_REF(event);
}
/* record(event), the hot call; a new event is Python's affair. */
PyObject *cudago_stream_record(StreamObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    if (n == 1 && !names && args[0] != Py_None) return record_now(self, args[0]);
    return cudago_call_python((PyObject *)self, "_record", args, n, names);
}

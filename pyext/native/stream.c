/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"

/* Streams. The hot calls, record and wait, go to the driver from here, under the GIL and on the block that Go made
 * (cudago_stream in native.h). Everything else is a call into Go: stream.go. What users are told is in
 * python/cudago/_core.pyi, from which `make gen` makes the DOC_ macros. */

/* --- the block ---------------------------------------------------------------------------------------------- */

void cudago_stream_retain(cudago_stream *s) { atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed); }

/* The last reference hands the block back to Go, whose reaper destroys the stream: cuStreamDestroy can wait for
 * another thread's full launch queue and so must not run with the GIL held. */
void cudago_stream_release(cudago_stream *s) {
    if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) == 1 && !cudago_forked) cudagoStreamRelease(s->id);
}

/* --- the type ------------------------------------------------------------------------------------------------ */

static cudago_stream *open_stream(StreamObject *self) {
    if (!self->s) cudago_raise_closed("stream");
    return self->s;
}

/* _stream_new(device, priority): a non-blocking stream. */
PyObject *cudago_stream_new(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 2 || cudago_expect(args[0], CLS_DEVICE, "device")) return NULL;
    long priority = PyLong_AsLong(args[1]);
    if (priority == -1 && PyErr_Occurred()) return NULL;
    if (priority < INT32_MIN || priority > INT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "priority out of range");
        return NULL;
    }
    StreamObject *self = cudago_alloc(CLS_STREAM);
    if (!self) return NULL;
    cudago_status st = {0};
    int32_t ordinal = ((DeviceObject *)args[0])->ordinal;
    cudago_stream *s;
    Py_BEGIN_ALLOW_THREADS /* the mark: cuEventCreate waits while another thread is stuck in a full launch queue */
    s = cudagoStreamNew(ordinal, (int32_t)priority, &st);
    Py_END_ALLOW_THREADS
    self->s = s;
    if (st.kind) {
        cudago_raise(&st);
        Py_DECREF(self);
        return NULL;
    }
    cudago_budget_add(s);
    return (PyObject *)self;
}

/* _stream_wrap(device, handle, owner): somebody else's stream; owner keeps it alive. Handle 0 or 1: the legacy default
 * stream; 2: the per-thread one. Asks nothing of the driver. */
PyObject *cudago_stream_wrap(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 3 || cudago_expect(args[0], CLS_DEVICE, "device")) return NULL;
    uint64_t h = PyLong_AsUnsignedLongLong(args[1]);
    if (h == (uint64_t)-1 && PyErr_Occurred()) return NULL;
    StreamObject *self = cudago_alloc(CLS_STREAM);
    if (!self) return NULL;
    cudago_status st = {0};
    self->s = cudagoStreamWrap(((DeviceObject *)args[0])->ordinal, h, &st);
    if (st.kind) {
        cudago_raise(&st);
        Py_DECREF(self);
        return NULL;
    }
    if (args[2] != Py_None) self->owner = NEW_REF(args[2]);
    return (PyObject *)self;
}

/* The block goes on: memory is freed on it, and executables were launched on it. Off the budget's list it must be now,
 * because the budget records marks in every stream that it finds there. */
static void give_up(StreamObject *self) {
    cudago_stream *s = self->s;
    if (!s) return;
    self->s = NULL;
    atomic_store(&s->closed, 1);
    cudago_budget_close(s);
    cudago_stream_release(s);
}

static PyObject *stream_close(StreamObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    give_up(self);
    Py_RETURN_NONE;
}

static PyObject *stream_exit(StreamObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return stream_close(self, NULL);
}

static PyObject *stream_sync(StreamObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_stream *s = open_stream(self);
    if (!s) return NULL;
    if (cudago_capturing(s)) { /* the driver would refuse, and spoil the capture */
        PyErr_SetString(PyExc_ValueError, "a stream that is capturing cannot be waited for: nothing runs before its graph is "
                                          "launched");
        return NULL;
    }
    uint64_t launched = s->launched; /* what is launched during the wait need not have ended after it */
    cudago_stream_retain(s); /* another thread may close the stream meanwhile */
    int r = cudago_wait(WAIT_STREAM, s->id);
    if (!r) cudago_budget_proven(s, launched);
    cudago_stream_release(s);
    if (r || cudago_print_flush()) return NULL;
    CUDAGO_ENTER(NULL); /* what the work kept may go now */
    Py_RETURN_NONE;
}

static PyObject *stream_done(StreamObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_stream *s = open_stream(self);
    if (!s) return NULL;
    if (cudago_capturing(s)) return PyErr_SetString(PyExc_ValueError, "a stream that is capturing has nothing to be done"), NULL;
    cudago_status st = {0};
    int done = cudagoStreamDone(s->id, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyBool_FromLong(done);
}

/* _wait_event(event): work queued on self from now on waits for the event. */
static PyObject *stream_wait_event(StreamObject *self, PyObject *event) {
    CUDAGO_ENTER(NULL);
    cudago_stream *s = open_stream(self);
    if (!s || cudago_expect(event, CLS_EVENT, "event")) return NULL;
    EventObject *e = (EventObject *)event;
    if (!e->h) return cudago_raise_closed("event"), NULL;
    int pushed;
    int32_t r = cudago_ctx_enter(s->ctx, &pushed);
    if (!r) r = cu.cuStreamWaitEvent(s->h, e->h, 0);
    cudago_ctx_leave(pushed);
    if (r) return cudago_raise_result("cuStreamWaitEvent", r), NULL;
    Py_RETURN_NONE;
}

/* _record(event): the hot call. The driver would refuse an event of another device too, but in words that help nobody. */
static PyObject *stream_record(StreamObject *self, PyObject *event) {
    CUDAGO_ENTER(NULL);
    cudago_stream *s = open_stream(self);
    if (!s || cudago_expect(event, CLS_EVENT, "event")) return NULL;
    EventObject *e = (EventObject *)event;
    if (!e->h) return cudago_raise_closed("event"), NULL;
    if (e->device != s->device) {
        PyErr_Format(PyExc_ValueError, "event belongs to device %d, stream to device %d", e->device, s->device);
        return NULL;
    }
    int pushed;
    int32_t r = cudago_ctx_enter(s->ctx, &pushed);
    if (!r) r = cu.cuEventRecord(e->h, s->h);
    cudago_ctx_leave(pushed);
    if (r) return cudago_raise_result("cuEventRecord", r), NULL;
    return NEW_REF(event);
}

static PyObject *stream_is_capturing(StreamObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_stream *s = open_stream(self);
    if (!s) return NULL;
    return PyBool_FromLong(cudago_capturing(s));
}

static PyObject *stream_handle(StreamObject *self, void *unused) {
    (void)unused;
    cudago_stream *s = open_stream(self);
    return s ? PyLong_FromUnsignedLongLong(s->h) : NULL;
}

static PyObject *stream_id(StreamObject *self, void *unused) {
    (void)unused;
    cudago_stream *s = open_stream(self);
    return s ? PyLong_FromUnsignedLongLong(s->id) : NULL;
}

static PyObject *stream_priority(StreamObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_stream *s = open_stream(self);
    if (!s) return NULL;
    cudago_status st = {0};
    int32_t p = cudagoStreamPriority(s->id, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyLong_FromLong(p);
}

static PyObject *stream_ordinal(StreamObject *self, void *unused) {
    (void)unused;
    cudago_stream *s = open_stream(self);
    return s ? PyLong_FromLong(s->device) : NULL;
}

static PyObject *stream_is_closed(StreamObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->s == NULL);
}

static PyObject *stream_cuda_stream(StreamObject *self, PyObject *unused) {
    (void)unused;
    cudago_stream *s = open_stream(self);
    return s ? Py_BuildValue("(iK)", 0, (unsigned long long)s->h) : NULL;
}

static void stream_dealloc(StreamObject *self) {
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (!cudago_unusable) give_up(self); /* at exit Go has closed it */
    Py_XDECREF(self->owner);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"close", METHOD(stream_close), METH_NOARGS, DOC_STREAM_CLOSE},
    {"sync", METHOD(stream_sync), METH_NOARGS, DOC_STREAM_SYNC},
    {"_wait_event", METHOD(stream_wait_event), METH_O, NULL},
    {"_record", METHOD(stream_record), METH_O, NULL},
    {"__cuda_stream__", METHOD(stream_cuda_stream), METH_NOARGS, DOC_STREAM_CUDA_STREAM},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(stream_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_done", (getter)stream_done, NULL, DOC_STREAM_IS_DONE, NULL},
    {"is_capturing", (getter)stream_is_capturing, NULL, DOC_STREAM_IS_CAPTURING, NULL},
    {"is_closed", (getter)stream_is_closed, NULL, DOC_STREAM_IS_CLOSED, NULL},
    {"handle", (getter)stream_handle, NULL, DOC_STREAM_HANDLE, NULL},
    {"priority", (getter)stream_priority, NULL, DOC_STREAM_PRIORITY, NULL},
    {"_ordinal", (getter)stream_ordinal, NULL, NULL, NULL},
    {"_id", (getter)stream_id, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(StreamObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, stream_dealloc}, {Py_tp_methods, methods}, {Py_tp_getset, getset}, {Py_tp_members, members}, {0, NULL},
};
PyType_Spec cudago_stream_spec = {
    "cudago._core.Stream", sizeof(StreamObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};

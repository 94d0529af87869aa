/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

/* Streams. The hot calls, record and wait, go straight to the driver from here, under the GIL and on the block that Go
 * made (cudago_stream in stream.h). Everything else is a call into Go: stream.go. The documentation for users is in
 * python/cudago/_core.pyi, from which `make gen` makes the DOC_ macros. */

/* --- the block ---------------------------------------------------------------------------------------------- */

cudago_stream *cudago_streams;

void cudago_streams_add(cudago_stream *s, uint32_t generation) {
    if (s->listed) return; /* a default stream: it has one block */
    s->listed = 1;
    s->generation = generation;
    s->next = cudago_streams;
    s->prev = NULL;
    if (cudago_streams) cudago_streams->prev = s;
    cudago_streams = s;
}

static void free_block(cudago_stream *s) {
    cudago_clock_release(s->clock);
    free(s);
}

void cudago_stream_ended(cudago_stream *s) {
    if (!s->listed) { /* made while a reset ran, and nobody has it */
        free_block(s);
        return;
    }
    atomic_store_explicit(&s->ended, 1, memory_order_release);
    atomic_store_explicit(&cudago_drop_hint, 1, memory_order_relaxed);
}

/* The GIL guards the list, but Go ends a block on a thread that does not have the GIL. So a drain takes the block out,
 * here. */
void cudago_streams_sweep(void) {
    for (cudago_stream *s = cudago_streams, *next; s; s = next) {
        next = s->next;
        if (!atomic_load_explicit(&s->ended, memory_order_acquire)) continue;
        if (s->prev) s->prev->next = next;
        else cudago_streams = next;
        if (next) next->prev = s->prev;
        free_block(s);
    }
}

/* Go counts the blocks of default streams too, which are foreign, and does not have the GIL. Those of our own streams change
 * only under it, and need no locked instruction, which costs as much as a call. Returns what it was before. */
static inline QUIET int64_t count(cudago_stream *s, int64_t by) {
    if (s->foreign) return atomic_fetch_add_explicit(&s->refs, by, memory_order_acq_rel);
    int64_t was = atomic_load_explicit(&s->refs, memory_order_relaxed);
    atomic_store_explicit(&s->refs, was + by, memory_order_relaxed);
    return was;
}

QUIET void cudago_stream_retain(cudago_stream *s) { count(s, 1); }

/* The last reference hands the block back to Go, whose reaper destroys the stream once all its work is known to have
 * ended: cuStreamDestroy can wait for another thread's full launch queue and so must not run with the GIL held. */
QUIET void cudago_stream_release(cudago_stream *s) {
    if (count(s, -1) != 1 || cudago_forked) return;
    cudago_stream *end = s->owner ? s : cudago_idle_keep(s);
    if (end) cudagoStreamRelease(end->id);
}

/* --- the type ------------------------------------------------------------------------------------------------ */

int cudago_raise_no_stream(const cudago_stream *s) {
    return s ? cudago_raise_lost("stream", s->device) : cudago_raise_closed("stream");
}

PyObject *cudago_stream_object(cudago_stream *s, uint32_t generation, cudago_status *st, PyObject *owner) {
    if (st->kind) return cudago_raise(st), NULL;
    if (cudago_made("stream", s->device, generation)) return cudago_stream_release(s), NULL;
    cudago_streams_add(s, generation);
    StreamObject *self = cudago_alloc(CLS_STREAM);
    if (!self) return cudago_stream_release(s), NULL;
    self->s = s;
    self->device = s->device;
    if (owner != Py_None) self->owner = NEW_REF(owner);
    return (PyObject *)self;
}

/* Default streams are nobody's. */
QUIET cudago_stream *cudago_stream_to_hold(StreamObject *o) {
    cudago_stream *s = cudago_stream_now(o);
    if (s && o->owner && !s->owner && s->h > CU_STREAM_PER_THREAD) s->owner = NEW_REF(o->owner);
    return s;
}

int cudago_priority(PyObject *o, int32_t *priority) {
    int overflow;
    long v = PyLong_AsLongAndOverflow(o, &overflow);
    if (v == -1 && PyErr_Occurred()) return -1;
    if (overflow || v < INT32_MIN || v > INT32_MAX)
        return cudago_raise_number(PyExc_OverflowError, o, "priority must be -2**31 to 2**31-1");
    *priority = (int32_t)v;
    return 0;
}

/* _stream_new(device, priority, blocking): blocking ones and the legacy default stream wait for each other. */
PyObject *cudago_stream_new(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 3 || cudago_expect(args[0], CLS_DEVICE, "device")) return NULL;
    int32_t priority;
    int blocking = PyObject_IsTrue(args[2]);
    if (blocking < 0 || cudago_priority(args[1], &priority)) return NULL;
    cudago_status st = {0};
    int32_t ordinal = ((DeviceObject *)args[0])->ordinal;
    uint32_t generation;
    cudago_stream *s;
    if (cudago_device_ready(ordinal, &generation)) return NULL;
    Py_BEGIN_ALLOW_THREADS /* the marks: cuEventCreate waits while another thread is stuck in a full launch queue */
    s = cudagoStreamNew(ordinal, priority, blocking, &st);
    Py_END_ALLOW_THREADS
    return cudago_stream_object(s, generation, &st, Py_None);
}

/* The block stays: memory is freed on it, and executables were launched on it. */
static void stream_release(StreamObject *self) {
    cudago_stream *s = self->s;
    if (!s) return;
    self->s = NULL;
    cudago_stream_release(s);
}

static PyObject *stream_close(StreamObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER_CLOSE();
    stream_release(self);
    Py_RETURN_NONE;
}

static PyObject *stream_exit(StreamObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return stream_close(self, NULL);
}

int cudago_raise_abandoned(const cudago_stream *s) {
    if (s->abandoned != CUDAGO_CAPTURE_LEFT) return cudago_raise_result("cuStreamEndCapture", s->abandoned);
    PyErr_SetString(PyExc_ValueError, "the stream is in a capture whose graph is gone, and which could not be ended yet: what is queued "
                                      "now would be lost with it");
    return -1;
}

/* A stream that can be waited for, with a reference for the caller. */
static QUIET cudago_stream *to_wait_for(StreamObject *self, uint64_t *queued) {
    cudago_stream *s = cudago_stream_now(self);
    if (!s) return NULL;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return NULL;
    if (capturing) /* the driver would refuse, and invalidate the capture */
        return PyErr_SetString(PyExc_ValueError, "a stream that is capturing cannot be waited for: nothing runs before its "
                                                 "graph is launched"),
               NULL;
    *queued = atomic_load(&s->clock->queued); /* work queued during the wait need not have ended when it returns */
    cudago_stream_retain(s);           /* another thread may close the stream meanwhile */
    return s;
}

static PyObject *stream_sync(StreamObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t queued;
    cudago_stream *s = to_wait_for(self, &queued);
    if (!s) return NULL;
    int r = cudago_wait_stream(s);
    if (!r && atomic_load(&s->clock->proven) < queued) cudagoLineProved(s->id, queued);
    if (!r) cudago_let_go(s);
    cudago_stream_release(s);
    if (r || cudago_print_flush()) return NULL;
    CUDAGO_ENTER(NULL); /* what the work kept may be released now */
    Py_RETURN_NONE;
}

/* A call with the stream that another thread is stuck in waits for that thread. No capture of the stream begins
 * meanwhile. */
static PyObject *ask_aside(cudago_stream *s, int only_looking) {
    cudago_status st = {0};
    uint64_t id = s->id;
    s->inside++;
    cudago_stream_retain(s);
    PyThreadState *t = cudago_step_aside();
    int done = only_looking ? cudagoStreamIdle(id, &st) : cudagoStreamDone(id, &st);
    cudago_step_back(t);
    s->inside--;
    cudago_stream_release(s);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyBool_FromLong(done);
}
static QUIET PyObject *done_now(StreamObject *self, int only_looking) {
    cudago_stream *s = cudago_stream_now(self);
    if (!s) return NULL;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return NULL;
    if (capturing) return PyErr_SetString(PyExc_ValueError, "a stream that is capturing has nothing to be done"), NULL;
    int done = cudago_callbacks_alive ? CUDAGO_ASK_GO : cudago_ask(s->ctx, s->h, 0);
    return done == CUDAGO_ASK_GO ? ask_aside(s, only_looking) : PyBool_FromLong(done);
}
static PyObject *stream_done(StreamObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    return done_now(self, 0);
}
/* For what shows values: is_done without taking a check's finding from the program. */
static PyObject *stream_is_idle(StreamObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    return done_now(self, 1);
}

static QUIET PyObject *is_capturing_now(StreamObject *self) {
    cudago_stream *s = cudago_stream_now(self);
    if (!s) return NULL;
    int32_t r;
    int capturing = cudago_capture_open(s, &r); /* whoever has to end it */
    return r ? (cudago_raise_result("cuStreamIsCapturing", r), NULL) : PyBool_FromLong(capturing);
}
static PyObject *stream_is_capturing(StreamObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    return is_capturing_now(self);
}

/* Whoever is given the handle may begin a capture on it unknown to us: from now on the reaper leaves the stream alone.
 * The call waits until it has. */
void cudago_stream_expose(cudago_stream *s) {
    if (s->clock->exposed || s->foreign) return;
    cudago_stream_retain(s); /* another thread may close the stream meanwhile */
    uint64_t id = s->id;
    PyThreadState *t = cudago_step_aside();
    cudagoLineExpose(id);
    cudago_step_back(t);
    s->clock->exposed = 1;
    cudago_stream_release(s);
}

/* 0 if there is an exception; the legacy default stream's may be 0 too. */
static uintptr_t exposed_handle(StreamObject *self) {
    cudago_stream *s = cudago_stream_now(self);
    if (!s) return 0;
    cudago_stream_retain(s);
    cudago_stream_expose(s);
    uintptr_t h = s->h;
    cudago_stream_release(s);
    return h;
}

static PyObject *stream_handle(StreamObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uintptr_t h = exposed_handle(self);
    return !h && PyErr_Occurred() ? NULL : PyLong_FromUnsignedLongLong(h);
}

/* The handle as a name: for reprs, and to compare. */
static PyObject *stream_number(StreamObject *self, void *unused) {
    (void)unused;
    cudago_stream *s = cudago_stream_now(self);
    return s ? PyLong_FromUnsignedLongLong(s->h) : NULL;
}

static PyObject *stream_id(StreamObject *self, void *unused) {
    (void)unused;
    cudago_stream *s = cudago_stream_now(self);
    return s ? PyLong_FromUnsignedLongLong(s->id) : NULL;
}

static PyObject *stream_priority(StreamObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_stream *s = cudago_stream_now(self);
    if (!s) return NULL;
    cudago_status st = {0};
    int32_t p = cudagoStreamPriority(s->id, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyLong_FromLong(p);
}

static PyObject *stream_ordinal(StreamObject *self, void *unused) {
    (void)unused;
    cudago_stream *s = cudago_stream_now(self);
    return s ? PyLong_FromLong(s->device) : NULL;
}

static QUIET PyObject *stream_is_closed(StreamObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(!self->s || cudago_stream_lost(self->s));
}

static PyObject *stream_cuda_stream(StreamObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uintptr_t h = exposed_handle(self);
    return !h && PyErr_Occurred() ? NULL : Py_BuildValue("(iK)", 0, (unsigned long long)h);
}

/* The owner of a stream may have the stream; it breaks the cycle. */
static int stream_traverse(StreamObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->owner);
    return 0;
}

static void stream_dealloc(StreamObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (!cudago_unusable) stream_release(self); /* at exit Go has closed it */
    Py_XDECREF(self->owner);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"close", METHOD(stream_close), METH_NOARGS, DOC_STREAM_CLOSE},
    {"sync", METHOD(stream_sync), METH_NOARGS, DOC_STREAM_SYNC},
    {"_wait_handle", METHOD(cudago_stream_wait_handle), METH_O, NULL},
    {"_wait_event", METHOD(cudago_stream_wait_event), METH_O, NULL},
    {"record", METHOD(cudago_stream_record), METH_FASTCALL | METH_KEYWORDS, DOC_STREAM_RECORD},
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
    {"_is_idle", (getter)stream_is_idle, NULL, NULL, NULL},
    {"_number", (getter)stream_number, NULL, NULL, NULL},
    {"_ordinal", (getter)stream_ordinal, NULL, NULL, NULL},
    {"_id", (getter)stream_id, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(StreamObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_traverse, stream_traverse},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_stream_spec = {
    "cudago._core.Stream",
    sizeof(StreamObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

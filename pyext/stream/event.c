/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

/* _event_new(device, timing_enabled, blocking_sync) */
PyObject *cudago_event_new(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 3 || cudago_expect(args[0], CLS_DEVICE, "device")) return NULL;
    int timing = PyObject_IsTrue(args[1]), blocking = PyObject_IsTrue(args[2]);
    if (timing < 0 || blocking < 0) return NULL;
    EventObject *self = cudago_alloc(CLS_EVENT);
    if (!self) return NULL;
    int32_t ordinal = ((DeviceObject *)args[0])->ordinal;
    cudago_status st = {0};
    uint64_t id = 0;
    uintptr_t h = 0;
    if (cudago_device_ready(ordinal, &self->generation)) return Py_DECREF(self), NULL;
    Py_BEGIN_ALLOW_THREADS /* cuEventCreate waits while another thread is stuck in a full launch queue */
    id = cudagoEventNew(ordinal, timing, blocking, &h, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) {
        cudago_raise(&st);
        Py_DECREF(self);
        return NULL;
    }
    self->id = id;
    self->h = h;
    self->device = ordinal;
    if (cudago_made("event", ordinal, self->generation)) return Py_DECREF(self), NULL;
    return (PyObject *)self;
}

QUIET int cudago_event_now(const EventObject *self) {
    if (!self->h) return cudago_raise_closed("event");
    return cudago_event_closed(self) ? cudago_raise_lost("event", self->device) : 0;
}

/* Go's handle of an event that can be queried; 0 with an exception. While a capture is open a query of an event that
 * was recorded in it invalidates the capture; afterwards the query is refused. */
static QUIET uint64_t askable(EventObject *self) {
    if (cudago_event_now(self)) return 0;
    if (!self->captured && !self->into_captures) return self->id;
    return PyErr_SetString(PyExc_ValueError, "the event was recorded in a capture: it stands for a place in the graph, and has no "
                                             "state to ask for"),
           0;
}

static PyObject *event_close(EventObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t id = self->id;
    self->id = self->h = 0;
    if (id) cudagoEventRelease(id);
    Py_RETURN_NONE;
}

static PyObject *event_exit(EventObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return event_close(self, NULL);
}

static PyObject *event_sync(EventObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t id = askable(self);
    if (!id || cudago_wait(WAIT_EVENT, id) || cudago_print_flush()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *event_done(EventObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t id = askable(self);
    if (!id) return NULL;
    cudago_status st = {0};
    int done = cudagoEventDone(id, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyBool_FromLong(done);
}

/* _elapsed_ms(start) */
static PyObject *event_elapsed(EventObject *self, PyObject *start) {
    CUDAGO_ENTER(NULL);
    uint64_t from, to;
    if (cudago_expect(start, CLS_EVENT, "start") || !(to = askable(self)) || !(from = askable((EventObject *)start))) return NULL;
    cudago_status st = {0};
    double ms = cudagoEventElapsed(from, to, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyFloat_FromDouble(ms);
}

static QUIET PyObject *event_is_closed(EventObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(cudago_event_closed(self));
}
static QUIET PyObject *event_handle(EventObject *self, void *unused) {
    (void)unused;
    return cudago_event_now(self) ? NULL : PyLong_FromUnsignedLongLong(self->h);
}
static PyObject *event_ordinal(EventObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->device);
}

static void event_dealloc(EventObject *self) {
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (self->id && !cudago_unusable) cudagoEventRelease(self->id);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"close", METHOD(event_close), METH_NOARGS, DOC_EVENT_CLOSE},
    {"sync", METHOD(event_sync), METH_NOARGS, DOC_EVENT_SYNC},
    {"_elapsed_ms", METHOD(event_elapsed), METH_O, NULL},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(event_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_done", (getter)event_done, NULL, DOC_EVENT_IS_DONE, NULL},
    {"is_closed", (getter)event_is_closed, NULL, DOC_EVENT_IS_CLOSED, NULL},
    {"handle", (getter)event_handle, NULL, DOC_EVENT_HANDLE, NULL},
    {"_ordinal", (getter)event_ordinal, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(EventObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, event_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_event_spec = {
    "cudago._core.Event",
    sizeof(EventObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

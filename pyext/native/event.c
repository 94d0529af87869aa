/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

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
    DeviceObject *d = (DeviceObject *)args[0];
    int32_t ordinal = d->ordinal;
    cudago_status st = {0};
    uint64_t id = 0;
    uintptr_t h = 0;
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
    self->ctx = d->ctx;
    self->device = ordinal;
    return (PyObject *)self;
}

static int open_event(EventObject *self) { return self->h ? 0 : cudago_raise_closed("event"); }

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
    if (open_event(self)) return NULL;
    if (cudago_wait(WAIT_EVENT, self->id)) return NULL;
    if (cudago_print_flush()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *event_done(EventObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (open_event(self)) return NULL;
    cudago_status st = {0};
    int done = cudagoEventDone(self->id, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyBool_FromLong(done);
}

/* _elapsed_ms(start) */
static PyObject *event_elapsed(EventObject *self, PyObject *start) {
    CUDAGO_ENTER(NULL);
    if (open_event(self) || cudago_expect(start, CLS_EVENT, "start") || open_event((EventObject *)start)) return NULL;
    cudago_status st = {0};
    double ms = cudagoEventElapsed(((EventObject *)start)->id, self->id, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyFloat_FromDouble(ms);
}

static PyObject *event_is_closed(EventObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->h == 0);
}
static PyObject *event_handle(EventObject *self, void *unused) {
    (void)unused;
    return open_event(self) ? NULL : PyLong_FromUnsignedLongLong(self->h);
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
    {Py_tp_dealloc, event_dealloc}, {Py_tp_methods, methods}, {Py_tp_getset, getset}, {Py_tp_members, members}, {0, NULL},
};
PyType_Spec cudago_event_spec = {
    "cudago._core.Event", sizeof(EventObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};

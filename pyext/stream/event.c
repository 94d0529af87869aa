/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

/* Fills in a new event with what Go has made, or raises; takes over self. */
static PyObject *made(EventObject *self, int32_t ordinal, uint64_t id, uintptr_t h, cudago_status *st) {
    if (st->kind) {
        cudago_raise(st);
        Py_DECREF(self);
        return NULL;
    }
    self->id = id;
    self->h = h;
    self->device = ordinal;
    if (cudago_made("event", ordinal, self->generation)) return Py_DECREF(self), NULL;
    return (PyObject *)self;
}

/* _event_new(device, timing_enabled, blocking_sync, ipc_enabled) */
PyObject *cudago_event_new(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 4 || cudago_expect(args[0], CLS_DEVICE, "device")) return NULL;
    int timing = PyObject_IsTrue(args[1]), blocking = PyObject_IsTrue(args[2]), shared = PyObject_IsTrue(args[3]);
    if (timing < 0 || blocking < 0 || shared < 0) return NULL;
    EventObject *self = cudago_alloc(CLS_EVENT);
    if (!self) return NULL;
    int32_t ordinal = ((DeviceObject *)args[0])->ordinal;
    self->timing = timing;
    self->shared = shared;
    cudago_status st = {0};
    uint64_t id = 0;
    uintptr_t h = 0;
    if (cudago_device_ready(ordinal, &self->generation)) return Py_DECREF(self), NULL;
    Py_BEGIN_ALLOW_THREADS /* cuEventCreate waits while another thread is stuck in a full launch queue */
    id = cudagoEventNew(ordinal, timing, blocking, shared, &h, &st);
    Py_END_ALLOW_THREADS
    return made(self, ordinal, id, h, &st);
}

/* _event_open(device, handle): an event of another process */
PyObject *cudago_event_open(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    char *data;
    Py_ssize_t size;
    if (n != 2 || cudago_expect(args[0], CLS_DEVICE, "device") || PyBytes_AsStringAndSize(args[1], &data, &size)) return NULL;
    if (size != CUDAGO_EVENT_HANDLE) return PyErr_SetString(PyExc_ValueError, "descriptor is not that of an event"), NULL;
    EventObject *self = cudago_alloc(CLS_EVENT);
    if (!self) return NULL;
    int32_t ordinal = ((DeviceObject *)args[0])->ordinal;
    self->shared = 1;
    cudago_status st = {0};
    uint64_t id = 0;
    uintptr_t h = 0;
    if (cudago_device_ready(ordinal, &self->generation)) return Py_DECREF(self), NULL;
    Py_BEGIN_ALLOW_THREADS
    id = cudagoEventOpen(ordinal, (uint8_t *)data, &h, &st);
    Py_END_ALLOW_THREADS
    return made(self, ordinal, id, h, &st);
}

QUIET int cudago_event_now(const EventObject *self) {
    if (!self->h) return cudago_raise_closed("event");
    return cudago_event_closed(self) ? cudago_raise_lost("event", self->device) : 0;
}

static const char hold_name[] = "cudago._core.event";
static void let_go(PyObject *capsule) {
    const uint64_t *hold = PyCapsule_GetPointer(capsule, hold_name);
    if (!cudago_unusable) cudagoEventLetGo(*hold);
    free((void *)hold);
}
static QUIET int hold_now(const EventObject *self, uint64_t *hold) {
    if (cudago_event_now(self)) return -1;
    return (*hold = cudagoEventHold(self->id)) ? 0 : cudago_raise_closed("event");
}
PyObject *cudago_event_hold(EventObject *self) {
    uint64_t *hold = malloc(sizeof *hold);
    if (!hold) return PyErr_NoMemory();
    if (hold_now(self, hold)) return free(hold), NULL;
    PyObject *capsule = PyCapsule_New(hold, hold_name, let_go);
    if (capsule) return capsule;
    cudagoEventLetGo(*hold);
    return free(hold), NULL;
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
    CUDAGO_ENTER_CLOSE();
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

/* A call beside a thread that is stuck in a launch may wait for it, and keeps the GIL here. */
static QUIET int asked(const EventObject *self) {
    return cudago_callbacks_alive ? CUDAGO_ASK_GO : cudago_ask(cudago_context_of(self->device), 0, self->h);
}

static PyObject *event_sync(EventObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t id = askable(self);
    if (!id) return NULL;
    if (!cudago_on_callback_thread() && asked(self) == 1) Py_RETURN_NONE;
    if (cudago_wait(WAIT_EVENT, id) || cudago_print_flush()) return NULL;
    Py_RETURN_NONE;
}

static PyObject *event_done(EventObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t id = askable(self);
    if (!id) return NULL;
    cudago_status st = {0};
    int done = asked(self);
    if (done == CUDAGO_ASK_GO) done = cudagoEventDone(id, &st);
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

/* Go's handle of an open event, which may be of a capture; 0 with ClosedError. */
static QUIET uint64_t open_event(EventObject *self) { return cudago_event_now(self) ? 0 : self->id; }

/* _export() -> the handle by which another process opens the event */
static PyObject *event_export(EventObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t id = open_event(self);
    if (!id) return NULL;
    uint8_t data[CUDAGO_EVENT_HANDLE] = {0};
    cudago_status st = {0};
    Py_BEGIN_ALLOW_THREADS
    cudagoEventExport(id, data, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    return PyBytes_FromStringAndSize((char *)data, sizeof data);
}

static PyObject *event_is_ipc_enabled(EventObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t id = open_event(self);
    if (!id) return NULL;
    cudago_status st = {0};
    int is = cudagoEventShareable(id, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyBool_FromLong(is);
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
    {"_export", METHOD(event_export), METH_NOARGS, NULL},
    {"_elapsed_ms", METHOD(event_elapsed), METH_O, NULL},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(event_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_done", (getter)event_done, NULL, DOC_EVENT_IS_DONE, NULL},
    {"is_closed", (getter)event_is_closed, NULL, DOC_EVENT_IS_CLOSED, NULL},
    {"handle", (getter)event_handle, NULL, DOC_EVENT_HANDLE, NULL},
    {"is_ipc_enabled", (getter)event_is_ipc_enabled, NULL, DOC_EVENT_IS_IPC_ENABLED, NULL},
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

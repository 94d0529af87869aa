/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

/* Semaphores of other APIs, such as Vulkan. */

/* _semaphore_import(device, fd, timeline) */
PyObject *cudago_semaphore_import(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    int32_t fd;
    if (n != 3 || cudago_expect(args[0], CLS_DEVICE, "device") || cudago_int32(args[1], "fd", 0, &fd)) return NULL;
    int timeline = PyObject_IsTrue(args[2]);
    if (timeline < 0) return NULL;
    SemaphoreObject *self = cudago_alloc(CLS_SEMAPHORE);
    if (!self) return NULL;
    self->device = ((DeviceObject *)args[0])->ordinal;
    self->timeline = timeline;
    cudago_status st = {0};
    uint64_t id;
    uintptr_t h = 0;
    if (cudago_device_ready(self->device, &self->generation)) return Py_DECREF(self), NULL;
    Py_BEGIN_ALLOW_THREADS
    id = cudagoSemaphoreImport(self->device, fd, timeline, &h, &st);
    Py_END_ALLOW_THREADS
    self->id = id;
    self->h = h;
    if (st.kind) return cudago_raise(&st), Py_DECREF(self), NULL;
    if (cudago_made("semaphore", self->device, self->generation)) return Py_DECREF(self), NULL;
    return (PyObject *)self;
}

QUIET int cudago_semaphore_closed(const SemaphoreObject *self) { return !self->id || cudago_lost(self->device, self->generation); }
QUIET int cudago_semaphore_now(const SemaphoreObject *self) {
    if (!self->id) return cudago_raise_closed("semaphore");
    return cudago_lost(self->device, self->generation) ? cudago_raise_lost("semaphore", self->device) : 0;
}

int cudago_semaphore_value(const SemaphoreObject *self, PyObject *value, uint64_t *out) {
    *out = 0;
    if (!self->timeline) {
        if (value == Py_None) return 0;
        return PyErr_SetString(PyExc_TypeError, "value is for timeline semaphores: this one is signaled or not"), -1;
    }
    if (value == Py_None) return PyErr_SetString(PyExc_TypeError, "value is required for a timeline semaphore"), -1;
    return cudago_uint64(value, "value", "0 to 2**64 - 1", out);
}

/* Go destroys it once its uses have ended. */
static void let_go(SemaphoreObject *self, uint64_t id) {
    cudago_use *use = cudago_uses_at(&self->uses);
    uint32_t n = self->uses.n;
    uint64_t ids[n + 1], positions[n + 1];
    for (uint32_t i = 0; i < n; i++) ids[i] = use[i].clock->id, positions[i] = use[i].position;
    if (!cudago_forked) cudagoSemaphoreRelease(id, ids, positions, (int)n);
    cudago_uses_free(&self->uses);
}

QUIET int cudago_semaphore_reserve(SemaphoreObject *self, cudago_stream *s) {
    if (cudago_uses_reserve(&self->uses, s)) return -1;
    self->inside++;
    return 0;
}

void cudago_semaphore_note(SemaphoreObject *self, cudago_stream *s, uint64_t position) {
    cudago_uses_note(&self->uses, s, position);
    uint64_t id = self->closing;
    if (--self->inside || !id) return;
    self->closing = 0;
    let_go(self, id);
}

static void semaphore_release(SemaphoreObject *self) {
    uint64_t id = self->id;
    self->id = 0;
    if (id && self->inside) self->closing = id; /* the last call lets go of it */
    else if (id) let_go(self, id);
}

static PyObject *semaphore_close(SemaphoreObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER_CLOSE();
    semaphore_release(self);
    Py_RETURN_NONE;
}

static PyObject *semaphore_exit(SemaphoreObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return semaphore_close(self, NULL);
}

static void semaphore_dealloc(SemaphoreObject *self) {
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (!cudago_unusable) semaphore_release(self);
    cudago_free((PyObject *)self);
}

static QUIET PyObject *semaphore_is_closed(SemaphoreObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(!self->id || cudago_lost(self->device, self->generation));
}
static QUIET PyObject *semaphore_handle(SemaphoreObject *self, void *unused) {
    (void)unused;
    return cudago_semaphore_now(self) ? NULL : PyLong_FromUnsignedLongLong(self->h);
}
static QUIET PyObject *semaphore_is_timeline(SemaphoreObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->timeline);
}
static PyObject *semaphore_ordinal(SemaphoreObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->device);
}

static PyMethodDef methods[] = {
    {"close", METHOD(semaphore_close), METH_NOARGS, DOC_EXTERNALSEMAPHORE_CLOSE},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(semaphore_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_closed", (getter)semaphore_is_closed, NULL, DOC_EXTERNALSEMAPHORE_IS_CLOSED, NULL},
    {"is_timeline", (getter)semaphore_is_timeline, NULL, DOC_EXTERNALSEMAPHORE_IS_TIMELINE, NULL},
    {"handle", (getter)semaphore_handle, NULL, DOC_EXTERNALSEMAPHORE_HANDLE, NULL},
    {"_ordinal", (getter)semaphore_ordinal, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(SemaphoreObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, semaphore_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_semaphore_spec = {
    "cudago._core.ExternalSemaphore",
    sizeof(SemaphoreObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

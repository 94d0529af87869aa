/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

/* Green contexts: parts of a device's multiprocessors, and the streams whose kernels run there. */

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id; /* Go's handle; 0 once closed */
    uintptr_t h; /* CUgreenCtx */
    int32_t device, sm_count;
} GreenObject;

/* _green_new(device, parts): parts is one resource of the driver after the other, as bytes. */
PyObject *cudago_green_new(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    char *resources;
    Py_ssize_t size;
    if (n != 2 || cudago_expect(args[0], CLS_DEVICE, "device") || PyBytes_AsStringAndSize(args[1], &resources, &size)) return NULL;
    if (size % CUDAGO_RESOURCE_BYTES || size > INT32_MAX)
        return PyErr_Format(PyExc_ValueError, "parts must be what a split returned, got %zd bytes", size);
    int32_t ordinal = ((DeviceObject *)args[0])->ordinal;
    uint32_t generation;
    if (cudago_device_ready(ordinal, &generation)) return NULL;
    GreenObject *self = cudago_alloc(CLS_GREEN);
    if (!self) return NULL;
    cudago_status st = {0};
    cudago_green g = {0};
    Py_BEGIN_ALLOW_THREADS /* as streams are made; bytes do not change */
    cudagoGreenNew(ordinal, resources, (int32_t)(size / CUDAGO_RESOURCE_BYTES), &g, &st);
    Py_END_ALLOW_THREADS
    self->id = g.id;
    self->h = g.h;
    self->sm_count = g.sm_count;
    self->device = ordinal;
    if (st.kind) return cudago_raise(&st), Py_DECREF(self), NULL;
    if (cudago_made("green context", ordinal, generation)) return Py_DECREF(self), NULL;
    return (PyObject *)self;
}

/* Go's handle; 0 with an exception. */
static QUIET uint64_t green_now(const GreenObject *self) {
    if (!self->id) cudago_raise_closed("green context");
    return self->id;
}

/* _stream(priority) */
static PyObject *green_stream(GreenObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    int32_t priority;
    if (cudago_priority(number, &priority)) return NULL;
    int32_t ordinal = self->device;
    uint32_t generation;
    cudago_status st = {0};
    cudago_stream *s;
    if (cudago_device_ready(ordinal, &generation)) return NULL;
    uint64_t id = green_now(self); /* after the conversion, which may have closed it */
    if (!id) return NULL;
    Py_BEGIN_ALLOW_THREADS /* another thread may close it meanwhile: then Go finds nothing, or keeps it for the stream */
    s = cudagoGreenStream(id, ordinal, priority, &st);
    Py_END_ALLOW_THREADS
    return cudago_stream_object(s, generation, &st, Py_None);
}

static PyObject *green_close(GreenObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER_CLOSE();
    uint64_t id = self->id;
    self->id = self->h = 0;
    if (id) cudagoGreenRelease(id);
    Py_RETURN_NONE;
}

static PyObject *green_exit(GreenObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return green_close(self, NULL);
}

static QUIET PyObject *green_is_closed(GreenObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(!self->id);
}

static QUIET PyObject *green_handle(GreenObject *self, void *unused) {
    (void)unused;
    return green_now(self) ? PyLong_FromUnsignedLongLong(self->h) : NULL;
}

static QUIET PyObject *green_sm_count(GreenObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->sm_count);
}

static QUIET PyObject *green_ordinal(GreenObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->device);
}

static void green_dealloc(GreenObject *self) {
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (self->id && !cudago_unusable) cudagoGreenRelease(self->id);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"close", METHOD(green_close), METH_NOARGS, DOC_GREENCONTEXT_CLOSE},
    {"_stream", METHOD(green_stream), METH_O, NULL},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(green_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_closed", (getter)green_is_closed, NULL, DOC_GREENCONTEXT_IS_CLOSED, NULL},
    {"handle", (getter)green_handle, NULL, DOC_GREENCONTEXT_HANDLE, NULL},
    {"sm_count", (getter)green_sm_count, NULL, DOC_GREENCONTEXT_SM_COUNT, NULL},
    {"_ordinal", (getter)green_ordinal, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(GreenObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, green_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_green_spec = {
    "cudago._core.GreenContext",
    sizeof(GreenObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

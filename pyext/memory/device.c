/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* _device(ordinal): a new Device; the Python face keeps one for each ordinal. */
PyObject *cudago_device_new(PyObject *module, PyObject *arg) {
    (void)module;
    CUDAGO_ENTER(NULL);
    int overflow;
    long ordinal = PyLong_AsLongAndOverflow(arg, &overflow);
    if (ordinal == -1 && PyErr_Occurred()) return NULL;
    if (overflow) return cudago_raise_number(PyExc_ValueError, arg, "ordinal must be the number of a device"), NULL;
    if (cudago_open()) return NULL;
    cudago_status st = {0};
    int32_t pageable = 0;
    uint32_t generation;
    Py_BEGIN_ALLOW_THREADS /* makes the primary context, which takes long the first time */
    cudagoDeviceContext((int64_t)ordinal, &pageable, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    if (ordinal >= CUDAGO_MAX_DEVICES) return PyErr_SetString(PyExc_ValueError, "cudago supports 16 devices"), NULL;
    if (cudago_device_ready((int32_t)ordinal, &generation)) return NULL;
    DeviceObject *self = cudago_alloc(CLS_DEVICE);
    if (!self) return NULL;
    self->ordinal = (int32_t)ordinal;
    self->pageable = pageable;
    return (PyObject *)self;
}

/* A resource that a reset has destroyed does not count. */
static QUIET int has_resource(DeviceObject *self) {
    ResourceObject *r = (ResourceObject *)self->resource;
    return r && !cudago_resource_lost(r);
}

/* Returns a new reference: a conversion or another thread may set another resource meanwhile. */
static PyObject *resource_of(DeviceObject *self) {
    if (!has_resource(self)) {
        PyObject *made = PyObject_CallMethod((PyObject *)self, "_make_resource", NULL);
        if (!made || cudago_expect(made, CLS_RESOURCE, "resource")) return Py_XDECREF(made), NULL;
        PyObject *other = made; /* another thread may have been faster */
        if (!has_resource(self)) {
            other = self->resource;
            self->resource = made;
        }
        PyObject *r = NEW_REF(self->resource); /* first: the end of the other one may run Python code, which resets the device */
        Py_XDECREF(other);
        return r;
    }
    return NEW_REF(self->resource);
}

enum { NO_BUFFER = -2,
       CLOSED_BUFFER = -1 };
static QUIET int64_t size_now(PyObject *given) {
    const BufferObject *b = (BufferObject *)given;
    if (!cudago_is(given, CLS_BUFFER)) return NO_BUFFER;
    return cudago_cell_closed(b->cell) ? CLOSED_BUFFER : (int64_t)b->size;
}

/* A reset may have taken it meanwhile, of which the resource does not know. 0 if it was closed. */
static QUIET int raise_lost(PyObject *given) {
    const cudago_cell *cell = ((BufferObject *)given)->cell;
    return cell ? cudago_cell_now(cell, "memory") : 0;
}

/* What a resource written in Python has answered may be anything. */
static int check_given(PyObject *resource, PyObject *given, uint64_t wanted) {
    int64_t size = size_now(given);
    if (size >= (int64_t)wanted) return 0;
    if (size == CLOSED_BUFFER && raise_lost(given)) return -1;
    PyObject *who = PyObject_GetAttrString((PyObject *)Py_TYPE(resource), "__name__");
    PyObject *what = PyObject_GetAttrString((PyObject *)Py_TYPE(given), "__name__");
    if (!who || !what) {
    } else if (size == NO_BUFFER) {
        PyErr_Format(PyExc_TypeError, "allocate() of %S must return a Buffer, not %S", who, what);
    } else if (size == CLOSED_BUFFER) {
        PyErr_Format(PyExc_ValueError, "allocate() of %S returned a closed buffer", who);
    } else {
        PyErr_Format(PyExc_ValueError, "allocate() of %S returned %lld bytes, %llu were asked for", who, (long long)size,
                     (unsigned long long)wanted);
    }
    Py_XDECREF(who);
    Py_XDECREF(what);
    return -1;
}

/* _given(resource, buffer, nbytes): checks and returns what allocate() of a resource has returned. */
PyObject *cudago_given(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    uint64_t wanted;
    if (n != 3) return PyErr_SetString(PyExc_TypeError, "_given(resource, buffer, nbytes)"), NULL;
    if (cudago_size(args[2], "size in bytes", &wanted) || check_given(args[0], args[1], wanted)) return NULL;
    return NEW_REF(args[1]);
}

static QUIET int check_open(ResourceObject *r) {
    if (r->closed) return cudago_raise_closed("memory resource"), -1;
    return r->kind == RESOURCE_PYTHON || cudago_resource_now(r) ? 0 : -1;
}

/* The size comes by position: a resource may call it otherwise. */
static PyObject *allocate_python(PyObject *resource, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    PyObject *nbytes, *on;
    if (check_open((ResourceObject *)resource) || cudago_read_allocate(args, n, names, &nbytes, &on)) return NULL;
    if (!on) return PyErr_SetString(PyExc_TypeError, "allocate(size, *, stream) takes a size in bytes and a stream"), NULL;
    PyObject *method = PyObject_GetAttrString(resource, "allocate");
    PyObject *size = Py_BuildValue("(O)", nbytes), *stream = Py_BuildValue("{sO}", "stream", on);
    PyObject *buffer = method && size && stream ? PyObject_Call(method, size, stream) : NULL;
    Py_XDECREF(stream);
    Py_XDECREF(size);
    Py_XDECREF(method);
    uint64_t wanted = 0;
    if (!buffer) return NULL;
    /* What is no number the resource has understood. */
    if ((!PyIndex_Check(nbytes) || !cudago_size(nbytes, "size in bytes", &wanted)) && !check_given(resource, buffer, wanted))
        return buffer;
    Py_DECREF(buffer);
    return NULL;
}

/* Whoever allocates on the device may never have heard of its resource, and cannot tell which one is closed. */
static QUIET int resource_is_closed(DeviceObject *self, PyObject *resource) {
    if (!((ResourceObject *)resource)->closed) return 0;
    cudago_raise_closed_as("memory resource of device %d is closed: the device allocates with it until it is given another, "
                           "as in device.memory_resource = DeviceMemoryResource(device)",
                           self->ordinal);
    return 1;
}

/* allocate(size, *, stream): allocates from the default resource, without a detour through Python. */
static PyObject *device_allocate(DeviceObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    PyObject *resource = resource_of(self);
    PyObject *buffer = !resource || resource_is_closed(self, resource)         ? NULL
                       : ((ResourceObject *)resource)->kind == RESOURCE_PYTHON ? allocate_python(resource, args, n, names)
                                                                               : cudago_allocate(resource, args, n, names);
    Py_XDECREF(resource);
    return buffer;
}

static PyObject *device_ordinal(DeviceObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->ordinal);
}

static PyObject *device_resource(DeviceObject *self, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    return resource_of(self);
}

/* The device whose streams order a resource's memory; -1 where it is any, -2 with an exception. */
static int32_t of_resource(ResourceObject *r) {
    if (r->kind != RESOURCE_PYTHON) return r->kind == RESOURCE_POOL || r->device >= 0 ? r->home : -1;
    PyObject *device = PyObject_GetAttrString((PyObject *)r, "device");
    int32_t ordinal = device && cudago_is(device, CLS_DEVICE) ? ((DeviceObject *)device)->ordinal : -1;
    Py_XDECREF(device);
    return device ? ordinal : -2;
}

/* Every later allocation would raise it. */
static int check_resource(DeviceObject *self, ResourceObject *r) {
    if (r->kind == RESOURCE_IMPORTED)
        return PyErr_SetString(PyExc_TypeError, "memory_resource must allocate, which only the process that created an imported pool can"), -1;
    int32_t device = of_resource(r);
    if (device == -2) return -1;
    if (device >= 0 && device != self->ordinal)
        return PyErr_Format(PyExc_ValueError, "memory_resource must be of device %d, not of device %d", self->ordinal, device), -1;
    return check_open(r);
}

static int device_set_resource(DeviceObject *self, PyObject *value, void *unused) {
    (void)unused;
    if (!value) return PyErr_SetString(PyExc_AttributeError, "cannot delete memory_resource"), -1;
    if (cudago_expect(value, CLS_RESOURCE, "memory_resource") || check_resource(self, (ResourceObject *)value)) return -1;
    PyObject *was = self->resource;
    self->resource = NEW_REF(value);
    Py_XDECREF(was);
    return 0;
}

static PyObject *device_sync(DeviceObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_awaited *streams = cudago_awaited_begin(self->ordinal);
    int failed = cudago_wait(WAIT_DEVICE, (uint64_t)self->ordinal);
    cudago_awaited_end(streams, !failed);
    cudago_give_way();
    if (failed || cudago_print_flush()) return NULL;
    CUDAGO_ENTER(NULL); /* what the work kept may be released now */
    Py_RETURN_NONE;
}

static PyObject *device_pageable(DeviceObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->pageable);
}

static int device_traverse(DeviceObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->resource);
    return 0;
}
static int device_clear(DeviceObject *self) {
    Py_CLEAR(self->resource);
    return 0;
}

static void device_dealloc(DeviceObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    Py_XDECREF(self->resource);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"allocate", METHOD(device_allocate), METH_FASTCALL | METH_KEYWORDS, DOC_DEVICE_ALLOCATE},
    {"_reset", METHOD(cudago_device_reset), METH_NOARGS, NULL},
    {"sync", METHOD(device_sync), METH_NOARGS, DOC_DEVICE_SYNC},
    {0},
};
static PyGetSetDef getset[] = {
    {"ordinal", (getter)device_ordinal, NULL, DOC_DEVICE_ORDINAL, NULL},
    {"memory_resource", (getter)device_resource, (setter)device_set_resource, DOC_DEVICE_MEMORY_RESOURCE, NULL},
    {"reads_pageable_memory", (getter)device_pageable, NULL, DOC_DEVICE_READS_PAGEABLE_MEMORY, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(DeviceObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, device_dealloc},
    {Py_tp_traverse, device_traverse},
    {Py_tp_clear, device_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_device_spec = {
    "cudago._core.Device",
    sizeof(DeviceObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Memory of other APIs, and buffers mapped over it. These are released as virtual memory is: Go owns them, and frees them
 * after the streams that used them. */

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id; /* Go's handle; 0 once closed */
    uint64_t size;
    int32_t device;
    uint32_t generation;
} ExternalObject;

/* _external_import(device, fd, size, dedicated) */
PyObject *cudago_external_import(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    int32_t fd;
    uint64_t size, id;
    if (n != 4 || cudago_expect(args[0], CLS_DEVICE, "device") || cudago_int32(args[1], "fd", 0, &fd) || cudago_size(args[2], "size in bytes", &size))
        return NULL;
    int dedicated = PyObject_IsTrue(args[3]);
    if (dedicated < 0) return NULL;
    ExternalObject *self = cudago_alloc(CLS_EXTERNAL);
    if (!self) return NULL;
    int32_t ordinal = self->device = ((DeviceObject *)args[0])->ordinal;
    self->size = size;
    cudago_status st = {0};
    if (cudago_device_ready(ordinal, &self->generation)) return Py_DECREF(self), NULL;
    Py_BEGIN_ALLOW_THREADS
    id = cudagoExternalImport(ordinal, fd, size, dedicated, &st);
    Py_END_ALLOW_THREADS
    self->id = id;
    if (st.kind) return cudago_raise(&st), Py_DECREF(self), NULL;
    if (cudago_made("external memory", ordinal, self->generation)) return Py_DECREF(self), NULL;
    return (PyObject *)self;
}

static QUIET int external_closed(const ExternalObject *self) { return !self->id || cudago_lost(self->device, self->generation); }

/* What mapping needs, looked at after everything that runs Python. */
static QUIET cudago_stream *may_map(ExternalObject *self, StreamObject *stream, uint64_t *id) {
    cudago_stream *s = cudago_stream_to_hold(stream);
    if (!s) return NULL;
    if (!self->id) return cudago_raise_closed("external memory"), NULL;
    if (external_closed(self)) return cudago_raise_lost("external memory", self->device), NULL;
    *id = self->id;
    if (self->device != stream->device)
        return PyErr_Format(PyExc_ValueError, "the memory is of device %d, the stream of device %d", self->device, stream->device), NULL;
    int capturing = cudago_capturing(s);
    if (!capturing) return s;
    if (capturing > 0)
        PyErr_SetString(PyExc_ValueError, "memory cannot be mapped on a stream that is capturing, since no node of a graph does that: "
                                          "map it before the capture, or on another stream");
    return NULL;
}

static uint64_t map_away(ExternalObject *self, uint64_t memory, uint64_t offset, uint64_t size, cudago_stream *s, uint64_t *ptr, int *visible) {
    cudago_status st = {0};
    uint64_t stream = s->id, id;
    int32_t device = self->device;
    Py_BEGIN_ALLOW_THREADS
    id = cudagoExternalMap(memory, offset, size, stream, ptr, &st);
    *visible = cudagoHostVisible(device);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), 0;
    if (!cudago_made("buffer", device, self->generation)) return id;
    cudagoBufferRelease(id);
    return 0;
}

static cudago_cell *map_cell(ExternalObject *self, uint64_t offset, uint64_t size, StreamObject *stream) {
    uint64_t ptr = 0, memory = 0;
    int visible = 0;
    cudago_stream *s = may_map(self, stream, &memory);
    cudago_virtual_cell *c = s ? calloc(1, sizeof *c) : NULL;
    if (!c) return s ? (cudago_cell *)PyErr_NoMemory() : NULL;
    cudago_stream_retain(s); /* it may be closed while the GIL is released */
    c->id = map_away(self, memory, offset, size, s, &ptr, &visible);
    if (c->id) {
        cudago_cell_init(&c->pool.cell, CUDAGO_CELL_DEVICE, cudago_virtual_cell_release);
        cudago_pool_cell_fill(&c->pool, self->device, visible, ptr, size, s);
        c->pool.cell.flags |= CUDAGO_CELL_EXTERNAL;
    } else {
        free(c);
        c = NULL;
    }
    cudago_stream_release(s);
    return (cudago_cell *)c;
}

/* _map(offset, size, stream) */
static PyObject *external_map(ExternalObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t offset, size;
    PyObject *keep = NULL;
    if (n != 3) return PyErr_SetString(PyExc_TypeError, "_map(offset, size, stream)"), NULL;
    if (cudago_size(args[0], "offset in bytes", &offset) || cudago_size(args[1], "size in bytes", &size)) return NULL;
    StreamObject *stream = cudago_stream_arg(args[2], &keep);
    cudago_note_site();
    cudago_cell *cell = stream ? map_cell(self, offset, size, stream) : NULL;
    Py_XDECREF(keep);
    return cell ? cudago_buffer_new(cell, cell->ptr, cell->size, cell->ordinal) : NULL;
}

static PyObject *external_close(ExternalObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER_CLOSE();
    uint64_t id = self->id;
    self->id = 0;
    if (id) cudagoExternalRelease(id);
    Py_RETURN_NONE;
}

static PyObject *external_exit(ExternalObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return external_close(self, NULL);
}

static void external_dealloc(ExternalObject *self) {
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (self->id && !cudago_unusable) cudagoExternalRelease(self->id);
    cudago_free((PyObject *)self);
}

static QUIET PyObject *external_is_closed(ExternalObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(external_closed(self));
}
static PyObject *external_size(ExternalObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->size);
}
static PyObject *external_ordinal(ExternalObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->device);
}

static PyMethodDef methods[] = {
    {"close", METHOD(external_close), METH_NOARGS, DOC_EXTERNALMEMORY_CLOSE},
    {"_map", METHOD(external_map), METH_FASTCALL, NULL},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(external_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_closed", (getter)external_is_closed, NULL, DOC_EXTERNALMEMORY_IS_CLOSED, NULL},
    {"size", (getter)external_size, NULL, DOC_EXTERNALMEMORY_SIZE, NULL},
    {"_ordinal", (getter)external_ordinal, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(ExternalObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, external_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_external_spec = {
    "cudago._core.ExternalMemory",
    sizeof(ExternalObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

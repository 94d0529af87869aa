/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"
#include "memory.h"

/* --- allocations -------------------------------------------------------------------------------------------- */

/* CU_STREAM_LEGACY, CU_STREAM_PER_THREAD, from cuda.h, CUDA 12.4. The second is another stream in another thread, and a
 * release may run in any; the first waits for it. */
enum { LEGACY = 1, PER_THREAD = 2 };

static cudago_cell *put_off; /* waits for its stream's capture to end; guarded by the GIL */

/* Stream-ordered memory is freed on the stream it was allocated on, after the stream it was last used on. A free can
 * happen while somebody captures, even in this thread: the exchange to the relaxed mode keeps it from spoiling that. */
static void release_pool(cudago_cell *cell) {
    cudago_pool_cell *c = (cudago_pool_cell *)cell;
    if (c->cell.ptr && !cudago_forked && !cudago_closed) {
        if (cudago_capturing(c->stream)) { /* the free would become a node of the graph */
            cell->next = put_off;
            put_off = cell;
            return;
        }
        int32_t mode = 2, r, pushed = 0;
        cu.cuThreadExchangeStreamCaptureMode(&mode);
        r = cudago_ctx_enter(c->stream->ctx, &pushed);
        if (c->last_stream && c->last_stream != c->stream->id) cudagoStreamJoin(c->stream->id, c->last_stream);
        if (!r) r = cu.cuMemFreeAsync(c->cell.ptr, c->stream->h == PER_THREAD ? LEGACY : c->stream->h);
        cudago_ctx_leave(pushed);
        cu.cuThreadExchangeStreamCaptureMode(&mode);
        if (r) cudago_warn_result("cuMemFreeAsync", r);
    }
    if (!cudago_forked) cudago_stream_release(c->stream);
    free(c);
}

/* With the GIL, under which our captures begin: so none can begin between the look and the free. */
void cudago_free_put_off(void) {
    cudago_cell *cell = put_off, *next;
    put_off = NULL;
    for (; cell; cell = next) {
        next = cell->next;
        release_pool(cell);
    }
}

/* Memory whose release Go knows: pinned, managed. */
static void release_go(cudago_cell *cell) {
    cudago_go_cell *c = (cudago_go_cell *)cell;
    if (!cudago_forked) cudagoBufferRelease(c->id);
    free(c);
}

/* Virtual memory is unmapped after the stream it was allocated on, and the stream it was last used on. */
static void release_virtual(cudago_cell *cell) {
    cudago_virtual_cell *c = (cudago_virtual_cell *)cell;
    if (!cudago_forked) {
        cudago_pool_cell *p = &c->pool;
        uint64_t last = p->last_stream == p->stream->id ? 0 : p->last_stream;
        if (c->id) cudagoVirtualRelease(c->id, p->stream->id, last);
        cudago_stream_release(p->stream);
    }
    free(c);
}

/* Fills in a cell of device memory. */
static cudago_cell *device_cell(ResourceObject *self, cudago_pool_cell *c, uint64_t ptr, uint64_t size, cudago_stream *s) {
    c->cell.device_type = 2; /* kDLCUDA */
    c->cell.device_id = self->device;
    c->cell.ptr = ptr;
    c->cell.size = size;
    c->stream = s;
    c->resource = self->id;
    cudago_stream_retain(s);
    if (self->host_visible) { /* the simulated device's memory is host memory to everybody else */
        c->cell.host = size ? cudagoHostAddress(self->device, ptr) : 0;
        c->cell.device_type = 1; /* kDLCPU */
        c->cell.device_id = 0;
    }
    return &c->cell;
}

static cudago_cell *allocate_pool(ResourceObject *self, uint64_t size, cudago_stream *s) {
    cudago_pool_cell *c = calloc(1, sizeof *c);
    if (!c) return PyErr_NoMemory(), NULL;
    uint64_t ptr = 0;
    if (size) {
        int pushed = 0;
        int32_t r, mode = 2;
        int capturing = cudago_capturing(s);
        if (!capturing) cu.cuThreadExchangeStreamCaptureMode(&mode);
        r = cudago_ctx_enter(s->ctx, &pushed);
        if (!r) r = capturing ? 900 : cu.cuMemAllocFromPoolAsync(&ptr, size, self->pool, s->h);
        cudago_ctx_leave(pushed);
        if (!capturing) cu.cuThreadExchangeStreamCaptureMode(&mode);
        if (r) {
            free(c);
            if (capturing) {
                PyErr_SetString(PyExc_ValueError, "memory cannot be allocated on a stream that is capturing: allocate "
                                                  "it before the capture, or on another stream");
                return NULL;
            }
            cudago_status st = {0};
            cudagoAllocError(self->device, size, r, &st);
            return cudago_raise(&st), NULL;
        }
    }
    cudago_cell_init(&c->cell, CUDAGO_CELL_POOL, release_pool);
    return device_cell(self, c, ptr, size, s);
}

/* A cuda.Buffer of size bytes; 0 for none, with an exception if size is not. */
static uint64_t buffer_new(ResourceObject *self, uint64_t size, cudago_stream *s, uint64_t *ptr, uint64_t *host) {
    cudago_status st = {0};
    uint64_t id = 0, resource = self->id, stream = s ? s->id : 0;
    if (size) {
        Py_BEGIN_ALLOW_THREADS
        id = cudagoBufferNew(resource, size, stream, ptr, host, &st);
        Py_END_ALLOW_THREADS
    }
    if (st.kind) cudago_raise(&st);
    return id;
}

static cudago_cell *allocate_virtual(ResourceObject *self, uint64_t size, cudago_stream *s) {
    cudago_virtual_cell *c = calloc(1, sizeof *c);
    if (!c) return PyErr_NoMemory(), NULL;
    uint64_t ptr = 0, host = 0;
    cudago_stream_retain(s); /* it may be closed while the GIL is away */
    c->id = buffer_new(self, size, s, &ptr, &host);
    if (size && !c->id) {
        free(c);
        c = NULL;
    } else {
        cudago_cell_init(&c->pool.cell, CUDAGO_CELL_DEVICE, release_virtual);
        device_cell(self, &c->pool, ptr, size, s);
    }
    cudago_stream_release(s);
    return (cudago_cell *)c;
}

static cudago_cell *allocate_go(ResourceObject *self, uint64_t size, cudago_stream *s) {
    cudago_go_cell *c = calloc(1, sizeof *c);
    if (!c) return PyErr_NoMemory(), NULL;
    uint64_t ptr = 0, host = 0, id = buffer_new(self, size, s, &ptr, &host);
    if (size && !id) {
        free(c);
        return NULL;
    }
    int managed = self->kind == RESOURCE_MANAGED;
    cudago_cell_init(&c->cell, managed ? CUDAGO_CELL_MANAGED : CUDAGO_CELL_PINNED, release_go);
    c->id = id;
    c->cell.device_type = self->host_visible ? 1 : managed ? 13 : 3; /* kDLCPU, kDLCUDAManaged, kDLCUDAHost */
    c->cell.device_id = 0;
    c->cell.ptr = ptr;
    c->cell.host = host;
    c->cell.size = size;
    return &c->cell;
}

int cudago_size(PyObject *o, uint64_t *size) {
    PyObject *number = PyNumber_Index(o);
    if (!number) return -1;
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow > 0) {
        PyErr_Format(PyExc_OverflowError, "size in bytes must be below 2**63, got %S", o);
    } else if (v < 0) {
        if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "size in bytes must not be negative, got %S", o);
    } else {
        *size = (uint64_t)v;
        return 0;
    }
    return -1;
}

/* allocate(size, *, stream) of a memory resource. */
PyObject *cudago_allocate(PyObject *resource, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    ResourceObject *self = (ResourceObject *)resource;
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    if (n != 1 || named > 1 || (named && PyUnicode_CompareWithASCIIString(PyTuple_GetItem(names, 0), "stream"))) {
        PyErr_SetString(PyExc_TypeError, "allocate(size, *, stream) takes a size in bytes and a stream");
        return NULL;
    }
    if (self->closed) return cudago_raise_closed("memory resource"), NULL;
    uint64_t size;
    if (cudago_size(args[0], &size)) return NULL;
    PyObject *given = named ? args[1] : Py_None, *keep = NULL;
    cudago_stream *s = NULL;
    if (given != Py_None && !(s = cudago_stream_arg(given, &keep))) return NULL;
    PyObject *buffer = NULL;
    int virtual = self->kind == RESOURCE_VIRTUAL, pool = self->kind == RESOURCE_POOL;
    if ((pool || virtual) && !s) {
        PyErr_SetString(PyExc_TypeError, "allocate() needs stream=: device memory is allocated in a stream's order");
    } else if (s && self->device >= 0 && s->device != self->device) {
        PyErr_Format(PyExc_ValueError, "the memory is on device %d, the stream on device %d", self->device, s->device);
    } else {
        cudago_note_site();
        cudago_cell *cell = pool      ? allocate_pool(self, size, s)
                            : virtual ? allocate_virtual(self, size, s)
                                      : allocate_go(self, size, s);
        if (cell) buffer = cudago_buffer_new(cell, cell->ptr, size, self->device);
        if (buffer) ((BufferObject *)buffer)->grows = virtual && size;
    }
    Py_XDECREF(keep);
    return buffer;
}

/* --- the type ------------------------------------------------------------------------------------------------ */

/* _resource_new(cls, kind, device or None, threshold, max_size); max_size is what a virtual one reserves, or -1, and
 * threshold a bit for each of its peers */
PyObject *cudago_resource_new(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *cls, *device;
    int kind;
    long long threshold, max_size;
    if (!PyArg_ParseTuple(args, "OiOLL", &cls, &kind, &device, &threshold, &max_size)) return NULL;
    if (device != Py_None && cudago_expect(device, CLS_DEVICE, "device")) return NULL;
    if (!PyType_Check(cls) || !PyType_IsSubtype((PyTypeObject *)cls, cudago_base[CLS_RESOURCE]))
        return PyErr_SetString(PyExc_TypeError, "not a memory resource class"), NULL;
    if (cudago_open()) return NULL;
    cudago_status st = {0};
    uint64_t id;
    uintptr_t pool = 0;
    int32_t ordinal = device == Py_None ? -1 : ((DeviceObject *)device)->ordinal, visible;
    Py_BEGIN_ALLOW_THREADS
    visible = cudagoHostVisible(ordinal < 0 ? 0 : ordinal);
    id = cudagoResourceNew(kind, ordinal, threshold, max_size, &pool, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    PyTypeObject *type = (PyTypeObject *)cls;
    ResourceObject *self = (ResourceObject *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!self) {
        cudagoResourceRelease(id);
        return NULL;
    }
    self->id = id;
    self->kind = kind;
    self->pool = pool;
    self->device = ordinal;
    self->host_visible = visible;
    return (PyObject *)self;
}

static PyObject *resource_close(ResourceObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (!self->closed) cudagoResourceRelease(self->id);
    self->closed = 1;
    Py_RETURN_NONE;
}

static PyObject *resource_exit(ResourceObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return resource_close(self, NULL);
}

static PyObject *resource_stat(ResourceObject *self, PyObject *name) {
    CUDAGO_ENTER(NULL);
    if (self->closed) return cudago_raise_closed("memory resource"), NULL;
    long attribute = PyLong_AsLong(name);
    if (attribute == -1 && PyErr_Occurred()) return NULL;
    cudago_status st = {0};
    uint64_t v = cudagoResourceStat(self->id, (int)attribute, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyLong_FromUnsignedLongLong(v);
}

static PyObject *resource_trim(ResourceObject *self, PyObject *keep) {
    CUDAGO_ENTER(NULL);
    if (self->closed) return cudago_raise_closed("memory resource"), NULL;
    unsigned long long bytes = PyLong_AsUnsignedLongLong(keep);
    if (bytes == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    cudago_status st = {0};
    Py_BEGIN_ALLOW_THREADS
    cudagoResourceTrim(self->id, bytes, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

static PyObject *resource_is_closed(ResourceObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->closed);
}
static PyObject *resource_ordinal(ResourceObject *self, void *unused) {
    (void)unused;
    if (self->device < 0) Py_RETURN_NONE;
    return PyLong_FromLong(self->device);
}

static void resource_dealloc(ResourceObject *self) {
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    if (!self->closed && self->id && !cudago_unusable) cudagoResourceRelease(self->id);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"allocate", METHOD(cudago_allocate), METH_FASTCALL | METH_KEYWORDS, DOC_MEMORYRESOURCE_ALLOCATE},
    {"close", METHOD(resource_close), METH_NOARGS, DOC_MEMORYRESOURCE_CLOSE},
    {"_stat", METHOD(resource_stat), METH_O, NULL},
    {"_trim", METHOD(resource_trim), METH_O, NULL},
    {"_peers", cudago_resource_peers, METH_NOARGS, NULL},
    {"_set_peer", METHOD(cudago_resource_set_peer), METH_FASTCALL, NULL},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(resource_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_closed", (getter)resource_is_closed, NULL, DOC_MEMORYRESOURCE_IS_CLOSED, NULL},
    {"_ordinal", (getter)resource_ordinal, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(ResourceObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, resource_dealloc}, {Py_tp_methods, methods}, {Py_tp_getset, getset}, {Py_tp_members, members}, {0, NULL},
};
PyType_Spec cudago_resource_spec = {
    "cudago._core.MemoryResource", sizeof(ResourceObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};

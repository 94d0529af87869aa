/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* --- allocations -------------------------------------------------------------------------------------------- */

QUIET cudago_cell *cudago_pool_cell_fill(cudago_pool_cell *c, int32_t device, int visible, uint64_t ptr, uint64_t size, cudago_stream *s) {
    c->cell.device_type = kDLCUDA;
    c->cell.device_id = c->cell.ordinal = device;
    c->cell.ptr = ptr;
    c->cell.size = size;
    c->cell.class = cudago_exports_class(device);
    c->stream = s;
    c->awaited = s->awaited;
    cudago_stream_retain(s);
    if (size >= CUDAGO_LARGE_BYTES) cudago_large_add(c);
    if (visible) cudago_cell_show(&c->cell, device);
    return &c->cell;
}

/* From now on another thread may close the resource. */
static QUIET void hold_pool(ResourceObject *self, cudago_pool_cell *c) {
    c->held = self->held;
    if (c->held) c->held->holders++;
}

static QUIET cudago_cell *device_cell(ResourceObject *self, cudago_pool_cell *c, uint64_t ptr, uint64_t size, cudago_stream *s) {
    c->resource = self->id;
    return cudago_pool_cell_fill(c, self->home, self->host_visible && !self->space, ptr, size, s);
}

QUIET uint64_t cudago_resource_now(ResourceObject *self) {
    if (self->closed) return cudago_raise_closed("memory resource"), 0;
    if (self->kind == RESOURCE_PYTHON)
        return PyErr_SetString(PyExc_TypeError, "this memory resource is written in Python: its class must define allocate(self, "
                                                "nbytes, *, stream)"),
               0;
    return cudago_lost(self->home, self->generation) ? (cudago_raise_lost("memory resource", self->home), 0) : self->id;
}

/* The check before an allocation, made after all arguments have been evaluated. */
static QUIET cudago_stream *may_allocate(ResourceObject *self, StreamObject *stream) {
    cudago_stream *s = cudago_stream_to_hold(stream);
    return s && cudago_resource_now(self) ? s : NULL;
}

cudago_allocate_captured *cudago_captured_allocate;
cudago_hold_for_capture *cudago_captured_hold;

/* Memory that the host can read: at its own address, on both drivers. */
QUIET cudago_cell *cudago_pooled_cell_fill(ResourceObject *self, cudago_pool_cell *c) {
    int managed = self->space == SPACE_MANAGED;
    c->cell.flags |= CUDAGO_CELL_POOLED;
    c->home = self->home;
    cudago_host_allocations[self->home]++;
    c->cell.device_type = self->host_visible ? kDLCPU : managed ? kDLCUDAManaged
                                                                : kDLCUDAHost;
    c->cell.device_id = 0;
    c->cell.ordinal = self->device;
    c->cell.class = cudago_exports_class(self->home);
    c->cell.host = c->cell.ptr;
    return &c->cell;
}

static int refuse_capture_of_pooled(void) {
    PyErr_SetString(PyExc_ValueError, "memory of a pool that the host can read cannot be allocated on a stream that is capturing: "
                                      "allocate it before the capture, or on another stream");
    return -1;
}

static QUIET int32_t call_driver(uintptr_t pool, uint64_t size, const cudago_stream *s, uint64_t *ptr) {
    uintptr_t pushed;
    CUstreamCaptureMode mode;
    int32_t strict = cudago_relax(&mode);
    int32_t r = cudago_ctx_enter(s->ctx, &pushed);
    if (!r) r = cu.cuMemAllocFromPoolAsync(ptr, size, pool, s->h);
    cudago_ctx_leave(pushed);
    cudago_relax_end(strict, &mode);
    return r;
}

static QUIET cudago_cell *pool_cell_made(ResourceObject *self, cudago_pool_cell *c, uint64_t ptr, uint64_t size, cudago_stream *s) {
    uint32_t kind = self->space == SPACE_MANAGED ? CUDAGO_CELL_MANAGED : self->space ? CUDAGO_CELL_PINNED
                                                                                     : CUDAGO_CELL_POOL;
    cudago_cell_init(&c->cell, kind, cudago_release_pool);
    device_cell(self, c, ptr, size, s);
    return self->space ? cudago_pooled_cell_fill(self, c) : &c->cell;
}

static QUIET cudago_cell *pool_cell_refused(ResourceObject *self, cudago_pool_cell *c, uint64_t size, int32_t r) {
    cudago_status st = {0};
    cudagoAllocError(self->id, size, r, &st);
    if (c->held) cudago_pool_let_go(c->held); /* after Go was asked, which another thread's close() may end the pool for */
    cudago_pool_cell_free(c);
    return cudago_raise(&st), NULL;
}

/* Without the GIL. No driver that we know waits here for what is queued, even if memory is short (sim/poolreuse.go), but
 * none promises that it does not, and a callback may be what is waited for. */
static cudago_cell *allocate_away(ResourceObject *self, cudago_pool_cell *c, uint64_t size, cudago_stream *s) {
    uint32_t generation = self->generation;
    uintptr_t pool = self->pool;
    uint64_t ptr = 0;
    cudago_leave l = cudago_gil_leave(s);
    int32_t r = call_driver(pool, size, s, &ptr);
    cudago_gil_back(&l, CUDAGO_NOT_CALLED); /* an allocation has no position */
    cudago_cell *cell = r ? pool_cell_refused(self, c, size, r) : pool_cell_made(self, c, ptr, size, s);
    cudago_leave_end(&l);
    if (!cell || !cudago_made("buffer", self->home, generation)) return cell;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    cudago_cell_release_gil(cell);
    PyErr_Restore(type, value, trace);
    return NULL;
}

static QUIET cudago_cell *allocate_pool(ResourceObject *self, uint64_t size, StreamObject *stream, int32_t *others) {
    cudago_stream *s = may_allocate(self, stream);
    int capturing = s ? cudago_capturing(s) : -1;
    if (capturing > 0 && self->space) return refuse_capture_of_pooled(), NULL;
    if (capturing < 0) return NULL;
    if (capturing && size) return cudago_captured_allocate(self, size, s, others);
    cudago_pool_cell *c = cudago_pool_cell_new();
    if (!c) return (cudago_cell *)PyErr_NoMemory();
    hold_pool(self, c);
    if (size && cudago_callbacks_alive) return allocate_away(self, c, size, s);
    uint64_t ptr = 0;
    int32_t r = size ? call_driver(self->pool, size, s, &ptr) : 0;
    return r ? pool_cell_refused(self, c, size, r) : pool_cell_made(self, c, ptr, size, s);
}

/* In a capture that another library began no node of ours may allocate: memory that a node allocates ends with the graph,
 * and the library's own objects would go on having it. So the pool gives memory now, in no stream's order, and the graph
 * keeps it. Its own stream is the one that is capturing, in whose order it is freed. */
static cudago_cell *allocate_beside(ResourceObject *self, uint64_t size, StreamObject *stream) {
    cudago_stream *s = may_allocate(self, stream);
    cudago_pool_cell *c = s ? cudago_pool_cell_new() : NULL;
    uint32_t generation;
    if (!c) return s ? (cudago_cell *)PyErr_NoMemory() : NULL;
    if (cudago_making(self->home, &generation)) return cudago_pool_cell_free(c), NULL;
    cudago_status st = {0};
    uint64_t resource = self->id, ptr;
    cudago_pool *held = self->held;
    if (held) held->holders++; /* another thread may close the resource meanwhile */
    cudago_stream_retain(s);
    Py_BEGIN_ALLOW_THREADS
    ptr = cudagoAllocateBeside(resource, size, &st);
    Py_END_ALLOW_THREADS
    int failed = st.kind ? cudago_raise(&st) : 0;
    if (!failed) {
        cudago_cell_init(&c->cell, CUDAGO_CELL_POOL, cudago_release_pool);
        c->resource = resource;
        c->held = held;
        cudago_pool_cell_fill(c, self->home, self->host_visible, ptr, size, s);
    } else {
        if (held) cudago_pool_let_go(held);
        cudago_pool_cell_free(c);
    }
    cudago_stream_release(s);
    if (failed) return NULL;
    if (!cudago_made("buffer", self->home, generation) && !cudago_captured_hold(&c->cell, s)) return &c->cell;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    cudago_cell_release_gil(&c->cell);
    PyErr_Restore(type, value, trace);
    return NULL;
}

/* Makes a cuda.Buffer of size bytes; returns 0 if there is none, with an exception unless size is 0. */
static uint64_t buffer_new(ResourceObject *self, uint64_t size, cudago_stream *s, uint64_t *ptr, uint64_t *host) {
    cudago_status st = {0};
    uint64_t id = 0, resource = self->id, stream = s ? s->id : 0;
    if (size) {
        Py_BEGIN_ALLOW_THREADS
        id = cudagoBufferNew(resource, size, stream, ptr, host, &st);
        Py_END_ALLOW_THREADS
    }
    if (st.kind) cudago_raise(&st);
    if (!id || !cudago_made("buffer", self->home, self->generation)) return id;
    cudagoBufferRelease(id);
    return 0;
}

/* No node of a graph maps memory. */
static QUIET cudago_stream *may_map(ResourceObject *self, StreamObject *stream) {
    cudago_stream *s = may_allocate(self, stream);
    int capturing = s ? cudago_capturing(s) : -1;
    if (capturing < 0) return NULL;
    if (!capturing) return s;
    return PyErr_SetString(PyExc_ValueError, "virtual memory cannot be allocated on a stream that is capturing, since no node of a "
                                             "graph maps memory: allocate it before the capture, or on another stream"),
           NULL;
}

static cudago_cell *allocate_virtual(ResourceObject *self, uint64_t size, StreamObject *stream) {
    cudago_stream *s = may_map(self, stream);
    cudago_virtual_cell *c = s ? calloc(1, sizeof *c) : NULL;
    if (!c) return s ? (cudago_cell *)PyErr_NoMemory() : NULL;
    uint64_t ptr = 0, host = 0;
    cudago_stream_retain(s); /* it may be closed while the GIL is released */
    c->id = buffer_new(self, size, s, &ptr, &host);
    if (size && !c->id) {
        free(c);
        c = NULL;
    } else {
        hold_pool(self, &c->pool);
        c->peers = self->peers;
        cudago_cell_init(&c->pool.cell, CUDAGO_CELL_DEVICE, cudago_release_virtual);
        device_cell(self, &c->pool, ptr, size, s);
        cudago_tally_add(TALLY_VIRTUAL, 1, (int64_t)size);
    }
    cudago_stream_release(s);
    return (cudago_cell *)c;
}

/* Managed memory is not allocated in stream order, but passing a closed stream is still an error. The stream is
 * held. */
static QUIET int may_allocate_go(ResourceObject *self, StreamObject *stream, cudago_stream **s) {
    if (!cudago_resource_now(self)) return -1;
    if (stream && !(*s = cudago_stream_to_hold(stream))) return -1;
    if (*s) cudago_stream_retain(*s);
    return 0;
}

static cudago_cell *allocate_go(ResourceObject *self, uint64_t size, StreamObject *stream) {
    cudago_stream *s = NULL;
    cudago_go_cell *c = calloc(1, sizeof *c);
    if (!c) return PyErr_NoMemory(), NULL;
    if (may_allocate_go(self, stream, &s)) return free(c), NULL;
    uint64_t ptr = 0, host = 0, id = buffer_new(self, size, s, &ptr, &host);
    if (s) cudago_stream_release(s);
    if (size && !id) {
        free(c);
        return NULL;
    }
    int managed = self->kind == RESOURCE_MANAGED;
    cudago_cell_init(&c->cell, managed ? CUDAGO_CELL_MANAGED : CUDAGO_CELL_PINNED, cudago_release_go);
    c->id = id;
    c->device = self->home;
    cudago_host_allocations[self->home]++;
    c->cell.class = cudago_exports_class(self->home);
    c->cell.device_type = self->host_visible ? kDLCPU : managed ? kDLCUDAManaged
                                                                : kDLCUDAHost;
    c->cell.device_id = 0;
    c->cell.ordinal = self->device;
    c->cell.ptr = ptr;
    c->cell.host = host;
    c->cell.size = size;
    cudago_tally_add(managed ? TALLY_MANAGED : TALLY_PINNED, 1, (int64_t)size);
    return &c->cell;
}

int cudago_size(PyObject *o, const char *name, uint64_t *size) {
    if (PyBool_Check(o)) return PyErr_Format(PyExc_TypeError, "%s must be an int, not %R", name, (PyObject *)Py_TYPE(o)), -1;
    PyObject *number = PyLong_CheckExact(o) ? o : cudago_index(o, name);
    if (!number) return -1;
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (number != o) Py_DECREF(number);
    if (v == -1 && PyErr_Occurred()) return -1;
    if (overflow > 0) return cudago_raise_number(PyExc_OverflowError, o, "%s must be below 2**63", name);
    if (v < 0) return cudago_raise_number(PyExc_ValueError, o, "%s must not be negative", name);
    *size = (uint64_t)v;
    return 0;
}

static QUIET cudago_cell *allocate_now(ResourceObject *self, uint64_t size, StreamObject *stream, int32_t *others) {
    if (self->kind == RESOURCE_POOL) return allocate_pool(self, size, stream, others);
    return self->kind == RESOURCE_VIRTUAL ? allocate_virtual(self, size, stream) : allocate_go(self, size, stream);
}

/* What is not of a pool is there at once, also while the stream is capturing. */
static QUIET int hold_for_capture(cudago_cell *cell, ResourceObject *self, StreamObject *stream) {
    if (self->kind == RESOURCE_POOL || !stream || !cell->size) return 0;
    cudago_stream *s = cudago_stream_now(stream);
    int capturing = s ? cudago_capturing(s) : -1;
    return capturing > 0 ? cudago_captured_hold(cell, s) : capturing;
}

static cudago_cell *allocate(ResourceObject *self, uint64_t size, StreamObject *stream) {
    int32_t others = 0;
    cudago_cell *cell = allocate_now(self, size, stream, &others);
    return others ? allocate_beside(self, size, stream) : cell;
}

int cudago_read_allocate(PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **size, PyObject **stream) {
    static cudago_keyword known[] = {{"size", NULL}, {"stream", NULL}};
    *size = n == 1 ? args[0] : NULL;
    *stream = NULL;
    if (n == 1 && cudago_names_stream(names)) return *stream = args[1], 0;
    int wrong = n > 1;
    for (Py_ssize_t i = 0; names && i < PyTuple_Size(names) && !wrong; i++) {
        int which = cudago_which(known, 2, PyTuple_GetItem(names, i));
        PyObject **at = which ? stream : size;
        wrong = which > 1 || *at;
        if (!wrong) *at = args[n + i];
    }
    if (!wrong && *size) return 0;
    return PyErr_SetString(PyExc_TypeError, "allocate(size, *, stream) takes a size in bytes and a stream"), -1;
}

/* After an allocation has failed: once more, with what is late given back in the order of streams; and if that is not enough
 * when what is under way has ended. */
static cudago_cell *allocate_again(ResourceObject *self, uint64_t size, StreamObject *stream) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    int more = stream && cudago_late_give(stream->device);
    PyErr_Restore(type, value, trace);
    if (more) PyErr_Clear();
    cudago_cell *cell = more ? allocate(self, size, stream) : NULL;
    if (!cell && PyErr_ExceptionMatches(PyExc_MemoryError) && cudago_reclaim(stream) > 0) cell = allocate(self, size, stream);
    if (!cell) cudago_explain_memory(size);
    return cell;
}

/* allocate(size, *, stream) of a memory resource. */
PyObject *cudago_allocate(PyObject *resource, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    ResourceObject *self = (ResourceObject *)resource;
    PyObject *nbytes, *given, *keep = NULL;
    uint64_t size;
    if (cudago_read_allocate(args, n, names, &nbytes, &given) || cudago_size(nbytes, "size in bytes", &size)) return NULL;
    StreamObject *stream = NULL;
    if (given && given != Py_None && !(stream = cudago_stream_arg(given, &keep))) return NULL;
    PyObject *buffer = NULL;
    int virtual = self->kind == RESOURCE_VIRTUAL, pool = self->kind == RESOURCE_POOL;
    if (self->kind == RESOURCE_IMPORTED) {
        PyErr_SetString(PyExc_TypeError, "an imported pool allocates nothing: only the process that created it can");
    } else if ((pool || virtual) && !stream) {
        const char *what = self->space ? "memory of a pool" : "device memory"; /* the host's is of a pool, or needs no stream */
        PyErr_Format(PyExc_TypeError, "allocate() needs stream=: %s is allocated in a stream's order", what);
    } else if (stream && (pool || self->device >= 0) && self->kind != RESOURCE_PYTHON && stream->device != self->home) {
        PyErr_Format(PyExc_ValueError, pool && self->device < 0 ? "the memory is ordered by streams of device %d, the stream is on device %d" : "the memory is on device %d, the stream on device %d",
                     self->home, stream->device);
    } else {
        cudago_note_site();
        if (cudago_stall_wait()) return Py_XDECREF(keep), NULL;
        cudago_cell *cell = allocate(self, size, stream);
        if (!cell && PyErr_ExceptionMatches(PyExc_MemoryError)) cell = allocate_again(self, size, stream);
        if (cell) buffer = cudago_buffer_new(cell, cell->ptr, size, self->device);
        if (buffer) ((BufferObject *)buffer)->grows = virtual && size;
        if (buffer && hold_for_capture(cell, self, stream)) Py_CLEAR(buffer);
    }
    Py_XDECREF(keep);
    return buffer && cudago_allocated ? cudago_tell_allocated(buffer, resource) : buffer;
}

/* --- the type ------------------------------------------------------------------------------------------------ */

static QUIET void let_go(ResourceObject *self) {
    cudago_pool *held = self->held;
    int was_open = !self->closed;
    self->closed = 1;
    self->held = NULL;
    if (held) cudago_pool_let_go(held);
    else if (was_open && self->id && !cudago_unusable) cudagoResourceRelease(self->id);
}

static PyObject *resource_close(ResourceObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER_CLOSE();
    let_go(self);
    Py_RETURN_NONE;
}

static PyObject *resource_exit(ResourceObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return resource_close(self, NULL);
}

static PyObject *resource_stat(ResourceObject *self, PyObject *name) {
    CUDAGO_ENTER(NULL);
    long attribute = PyLong_AsLong(name);
    if (attribute == -1 && PyErr_Occurred()) return NULL;
    uint64_t id = cudago_resource_now(self);
    if (!id) return NULL;
    cudago_status st = {0};
    uint64_t v = cudagoResourceStat(id, (int)attribute, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyLong_FromUnsignedLongLong(v);
}

/* _set_stat(what, value) */
static PyObject *resource_set_stat(ResourceObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 2) return PyErr_SetString(PyExc_TypeError, "_set_stat(what, value)"), NULL;
    long what = PyLong_AsLong(args[0]);
    unsigned long long value = PyLong_AsUnsignedLongLong(args[1]);
    if (PyErr_Occurred()) return NULL;
    uint64_t id = cudago_resource_now(self);
    if (!id) return NULL;
    cudago_status st = {0};
    Py_BEGIN_ALLOW_THREADS
    cudagoResourceSet(id, (int)what, value, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    if (what == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD && self->held) self->held->gives_back = cudago_gives_back(value);
    Py_RETURN_NONE;
}

static PyObject *resource_trim(ResourceObject *self, PyObject *keep) {
    CUDAGO_ENTER(NULL);
    uint64_t bytes;
    if (cudago_size(keep, "keep in bytes", &bytes)) return NULL;
    uint64_t id = cudago_resource_now(self);
    if (!id) return NULL;
    cudago_status st = {0};
    Py_BEGIN_ALLOW_THREADS
    cudagoResourceTrim(id, bytes, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

static QUIET PyObject *resource_is_closed(ResourceObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->closed || (self->id && cudago_lost(self->home, self->generation)));
}
static PyObject *resource_ordinal(ResourceObject *self, void *unused) {
    (void)unused;
    if (self->device < 0) Py_RETURN_NONE;
    return PyLong_FromLong(self->device);
}

/* Only one written in Python can be told: memory of the others is where they allocate it. */
static int resource_set_ordinal(ResourceObject *self, PyObject *value, void *unused) {
    (void)unused;
    if (!value || self->kind != RESOURCE_PYTHON)
        return PyErr_SetString(PyExc_AttributeError, "device can only be set of a resource whose class defines allocate() itself"), -1;
    long ordinal = value == Py_None ? -1 : PyLong_AsLong(value);
    if (PyErr_Occurred()) return -1;
    self->device = (int32_t)ordinal;
    return 0;
}

static void resource_dealloc(ResourceObject *self) {
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    let_go(self);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"allocate", METHOD(cudago_allocate), METH_FASTCALL | METH_KEYWORDS, DOC_MEMORYRESOURCE_ALLOCATE},
    {"close", METHOD(resource_close), METH_NOARGS, DOC_MEMORYRESOURCE_CLOSE},
    {"_stat", METHOD(resource_stat), METH_O, NULL},
    {"_set_stat", METHOD(resource_set_stat), METH_FASTCALL, NULL},
    {"_trim", METHOD(resource_trim), METH_O, NULL},
    {"_peers", cudago_resource_peers, METH_NOARGS, NULL},
    {"_set_peer", METHOD(cudago_resource_set_peer), METH_FASTCALL, NULL},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(resource_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_closed", (getter)resource_is_closed, NULL, DOC_MEMORYRESOURCE_IS_CLOSED, NULL},
    {"_ordinal", (getter)resource_ordinal, (setter)resource_set_ordinal, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(ResourceObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, resource_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_resource_spec = {
    "cudago._core.MemoryResource",
    sizeof(ResourceObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* --- allocations -------------------------------------------------------------------------------------------- */

static cudago_cell *put_off; /* waits for a capture or a reset to end; guarded by the GIL */

QUIET void cudago_put_off(cudago_cell *cell) {
    cell->next = put_off;
    put_off = cell;
}

/* Makes the memory's own stream wait for its uses on others. 0 if the memory cannot be given back now: a free in a
 * stream that is capturing would become a node of its graph, and a use in a stream that is capturing cannot be waited
 * for. If a failed call is the reason, *r is its code. */
QUIET int cudago_pool_cell_joined(cudago_pool_cell *c, int32_t *r) {
    if (cudago_capture_open(c->stream, r) || *r) return 0;
    cudago_use *use = cudago_uses_at(&c->uses);
    for (uint32_t i = 0; i < c->uses.n; i++)
        if (cudago_join_or_later(c->stream, use[i].clock, use[i].position, r)) return 0;
    return 1;
}

/* Stream-ordered memory is freed on the stream it was allocated on. A free can happen while somebody captures, even in
 * this thread: switching to the relaxed mode keeps it from invalidating that capture. 0 if it must be tried later. A
 * free that failed must not be: the driver may have made it and reported an earlier error. */
static QUIET int free_now(cudago_pool_cell *c, int32_t *r) {
    int32_t mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    int pushed;
    if (!cudago_pool_cell_joined(c, r)) return 0;
    /* The per-thread stream is a different one in each thread, and a release may run in any thread; the legacy stream
     * waits for them all. */
    uintptr_t stream = c->stream->h == CU_STREAM_PER_THREAD ? CU_STREAM_LEGACY : c->stream->h;
    cu.cuThreadExchangeStreamCaptureMode(&mode);
    *r = cudago_ctx_enter(c->stream->ctx, &pushed);
    int done = !*r || cudago_result_persists(*r);
    if (!*r) *r = cu.cuMemFreeAsync(c->cell.ptr, stream);
    cudago_ctx_leave(pushed);
    cu.cuThreadExchangeStreamCaptureMode(&mode);
    return done;
}

QUIET void cudago_pool_cell_forget(cudago_pool_cell *c) {
    if (!cudago_forked) cudago_uses_free(&c->uses);
    if (!cudago_forked) cudago_stream_release(c->stream);
    if (c->held && !cudago_forked) cudago_pool_let_go(c->held);
    if (c->cell.flags & CUDAGO_CELL_POOLED) cudago_host_allocations[c->home]--;
    free(c);
}

/* Nobody else knows the cell any more, so the GIL can be released; no capture of its stream begins meanwhile. */
static int free_away(cudago_pool_cell *c, int32_t *r) {
    cudago_leave l = cudago_gil_leave(c->stream);
    int done = free_now(c, r);
    cudago_gil_back(&l, 1);
    cudago_leave_end(&l);
    return done;
}

/* What a reset or the end of the process has taken is not given back. */
static QUIET int is_gone(const cudago_pool_cell *c) {
    return !c->cell.ptr || cudago_forked || cudago_closed ||
           (cudago_stream_lost(c->stream) && !cudago_resetting(c->stream->device));
}
/* Is there a use on another stream to be joined? */
static QUIET int has_to_join(cudago_pool_cell *c) {
    cudago_use *use = cudago_uses_at(&c->uses);
    for (uint32_t i = 0; i < c->uses.n; i++)
        if (use[i].clock != c->stream->clock && cudago_pending(use[i].clock, use[i].position)) return 1;
    return 0;
}
/* May a call of the release wait for a thread that waits for a callback? See cudago_step_aside. Without a thread of ours
 * in the driver only one of another library can be stuck: a free waits for it in a stream that both have, a join in any. */
QUIET int cudago_pool_cell_may_stick(cudago_pool_cell *c) {
    if (!cudago_callbacks_alive) return 0;
    return cudago_exclusive || cudago_queues_busy() || c->stream->foreign || c->stream->clock->exposed || has_to_join(c);
}
static int free_or_later(cudago_pool_cell *c, int32_t *r) {
    if (cudago_resetting(c->stream->device)) return 0; /* the reset may fail */
    if (c->held && !cudago_pool_may_free_on(c->held, c->stream->id)) c->held->holders++; /* the pool is never destroyed */
    return cudago_pool_cell_may_stick(c) ? free_away(c, r) : free_now(c, r);
}

/* Another process has imported the memory: it must free it first. Nothing tells when it has, so each drain asks. */
static QUIET int is_lent(const cudago_pool_cell *c) {
    if (!(c->cell.flags & CUDAGO_CELL_EXPORTED) || cudagoMayFree(c->resource, c->cell.ptr)) return 0;
    atomic_store_explicit(&cudago_drop_hint, 1, memory_order_relaxed);
    return 1;
}
static void release_pool(cudago_cell *cell) {
    cudago_pool_cell *c = (cudago_pool_cell *)cell;
    int32_t r = 0;
    if (!is_gone(c) && is_lent(c)) {
        cudago_put_off(cell);
        return;
    }
    if (!is_gone(c) && !free_or_later(c, &r)) {
        cudago_put_off(cell);
        /* Drain soon: nothing else triggers a retry. */
        if (r) atomic_store_explicit(&cudago_drop_hint, 1, memory_order_relaxed);
        return;
    }
    if (r) cudago_warn_result("cuMemFreeAsync", r);
    cudago_pool_cell_forget(c);
}

/* Unmapping is not stream-ordered, so Go waits for the uses and for everything that is in its own stream now. */
void cudago_virtual_cell_release(cudago_cell *cell) {
    cudago_virtual_cell *c = (cudago_virtual_cell *)cell;
    if (!cudago_forked && c->id) {
        cudago_use *use = cudago_uses_at(&c->pool.uses);
        uint32_t n = c->pool.uses.n;
        uint64_t ids[n + 1], positions[n + 1];
        for (uint32_t i = 0; i < n; i++) ids[i] = use[i].clock->id, positions[i] = use[i].position;
        cudagoVirtualRelease(c->id, c->pool.stream->id, ids, positions, (int)n);
    }
    cudago_pool_cell_forget(&c->pool);
}
static void release_virtual(cudago_cell *cell) {
    cudago_tally_add(TALLY_VIRTUAL, -1, -(int64_t)cell->size);
    cudago_virtual_cell_release(cell);
}

/* With the GIL. Our captures begin under it, so none can begin between the check and the free. */
void cudago_free_put_off(void) {
    cudago_cell *cell = put_off, *next;
    put_off = NULL;
    for (; cell; cell = next) {
        next = cell->next;
        cell->release(cell);
    }
}

/* Memory that Go releases: pinned, managed. */
static void release_go(cudago_cell *cell) {
    cudago_go_cell *c = (cudago_go_cell *)cell;
    cudago_tally_add(cell->kind == CUDAGO_CELL_MANAGED ? TALLY_MANAGED : TALLY_PINNED, -1, -(int64_t)cell->size);
    if (!cudago_forked) cudagoBufferRelease(c->id);
    cudago_host_allocations[c->device]--;
    free(c);
}

QUIET cudago_cell *cudago_pool_cell_fill(cudago_pool_cell *c, int32_t device, int visible, uint64_t ptr, uint64_t size, cudago_stream *s) {
    c->cell.device_type = kDLCUDA;
    c->cell.device_id = c->cell.ordinal = device;
    c->cell.ptr = ptr;
    c->cell.size = size;
    c->cell.class = cudago_exports_class(device);
    c->stream = s;
    cudago_stream_retain(s);
    if (visible) { /* to everybody else the simulated device's memory is host memory */
        c->cell.host = size ? cudagoHostAddress(device, ptr) : 0;
        c->cell.device_type = kDLCPU;
        c->cell.device_id = 0;
    }
    return &c->cell;
}

static QUIET cudago_cell *device_cell(ResourceObject *self, cudago_pool_cell *c, uint64_t ptr, uint64_t size, cudago_stream *s) {
    c->resource = self->id;
    c->held = self->held;
    if (c->held) c->held->holders++;
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
    cudago_stream *s = cudago_stream_now(stream);
    return s && cudago_resource_now(self) ? s : NULL;
}

cudago_allocate_captured *cudago_captured_allocate;

/* Not calloc: before 2.41 glibc's bypasses the thread's cache, which costs as much as the rest of an allocation. */
static QUIET cudago_pool_cell *pool_cell(void) {
    cudago_pool_cell *c = malloc(sizeof *c);
    if (c) *c = (cudago_pool_cell){0}; /* gcc would turn malloc and memset into calloc */
    return c;
}

/* Memory that the host can read: at its own address, on both drivers. */
static QUIET cudago_cell *make_pooled(ResourceObject *self, cudago_pool_cell *c) {
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

static QUIET cudago_cell *allocate_pool(ResourceObject *self, uint64_t size, StreamObject *stream) {
    cudago_stream *s = may_allocate(self, stream);
    int capturing = s ? cudago_capturing(s) : -1;
    if (capturing > 0 && self->space) return refuse_capture_of_pooled(), NULL;
    if (capturing < 0) return NULL;
    if (capturing && size) return cudago_captured_allocate(self, size, s);
    cudago_pool_cell *c = pool_cell();
    if (!c) return (cudago_cell *)PyErr_NoMemory();
    uint64_t ptr = 0;
    if (size) {
        int pushed = 0;
        int32_t r, mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        cu.cuThreadExchangeStreamCaptureMode(&mode);
        r = cudago_ctx_enter(s->ctx, &pushed);
        if (!r) r = cu.cuMemAllocFromPoolAsync(&ptr, size, self->pool, s->h);
        cudago_ctx_leave(pushed);
        cu.cuThreadExchangeStreamCaptureMode(&mode);
        if (r) {
            free(c);
            cudago_status st = {0};
            cudagoAllocError(self->home, size, r, &st);
            return cudago_raise(&st), NULL;
        }
    }
    uint32_t kind = self->space == SPACE_MANAGED ? CUDAGO_CELL_MANAGED : self->space ? CUDAGO_CELL_PINNED
                                                                                     : CUDAGO_CELL_POOL;
    cudago_cell_init(&c->cell, kind, release_pool);
    device_cell(self, c, ptr, size, s);
    return self->space ? make_pooled(self, c) : &c->cell;
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
        cudago_cell_init(&c->pool.cell, CUDAGO_CELL_DEVICE, release_virtual);
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
    if (stream && !(*s = cudago_stream_now(stream))) return -1;
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
    cudago_cell_init(&c->cell, managed ? CUDAGO_CELL_MANAGED : CUDAGO_CELL_PINNED, release_go);
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

static QUIET cudago_cell *allocate_now(ResourceObject *self, uint64_t size, StreamObject *stream) {
    if (self->kind == RESOURCE_POOL) return allocate_pool(self, size, stream);
    return self->kind == RESOURCE_VIRTUAL ? allocate_virtual(self, size, stream) : allocate_go(self, size, stream);
}

/* allocate(size, *, stream) of a memory resource. */
PyObject *cudago_allocate(PyObject *resource, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    ResourceObject *self = (ResourceObject *)resource;
    int named = names && PyTuple_Size(names);
    if (n != 1 || (named && !cudago_names_stream(names))) {
        PyErr_SetString(PyExc_TypeError, "allocate(size, *, stream) takes a size in bytes and a stream");
        return NULL;
    }
    uint64_t size;
    if (cudago_size(args[0], &size)) return NULL;
    PyObject *given = named ? args[1] : Py_None, *keep = NULL;
    StreamObject *stream = NULL;
    if (given != Py_None && !(stream = cudago_stream_arg(given, &keep))) return NULL;
    PyObject *buffer = NULL;
    int virtual = self->kind == RESOURCE_VIRTUAL, pool = self->kind == RESOURCE_POOL;
    if (self->kind == RESOURCE_IMPORTED) {
        PyErr_SetString(PyExc_TypeError, "an imported pool allocates nothing: only the process that created it can");
    } else if ((pool || virtual) && !stream) {
        PyErr_SetString(PyExc_TypeError, "allocate() needs stream=: device memory is allocated in a stream's order");
    } else if (stream && (pool || self->device >= 0) && stream->device != self->home) {
        PyErr_Format(PyExc_ValueError, pool && self->device < 0 ? "the memory is ordered by streams of device %d, the stream is on device %d" : "the memory is on device %d, the stream on device %d",
                     self->home, stream->device);
    } else {
        cudago_note_site();
        if (cudago_stall_wait()) return Py_XDECREF(keep), NULL;
        cudago_cell *cell = allocate_now(self, size, stream);
        if (!cell && PyErr_ExceptionMatches(PyExc_MemoryError)) {
            if (cudago_reclaim() > 0) cell = allocate_now(self, size, stream);
            if (!cell) cudago_explain_memory();
        }
        if (cell) buffer = cudago_buffer_new(cell, cell->ptr, size, self->device);
        if (buffer) ((BufferObject *)buffer)->grows = virtual && size;
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
    CUDAGO_ENTER(NULL);
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
    Py_RETURN_NONE;
}

static PyObject *resource_trim(ResourceObject *self, PyObject *keep) {
    CUDAGO_ENTER(NULL);
    unsigned long long bytes = PyLong_AsUnsignedLongLong(keep);
    if (bytes == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
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
    {"_ordinal", (getter)resource_ordinal, NULL, NULL, NULL},
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

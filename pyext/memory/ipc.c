/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Memory of a pool that processes share. What is exported stays in the pool's own cell, with a flag; what is imported is
 * owned by Go, which frees it when all that uses it here has ended, and only then lets the other process free it. */

/* _pool_export(resource) -> (files, id): two new file descriptors, and the number of the pool. Descriptors are -1 if
 * the pool is of another process. */
PyObject *cudago_pool_export(PyObject *module, PyObject *resource) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (cudago_expect(resource, CLS_RESOURCE, "resource")) return NULL;
    ResourceObject *self = (ResourceObject *)resource;
    uint64_t id = cudago_resource_now(self);
    if (!id) return NULL;
    int pool = -1, leases = -1, imported = self->kind == RESOURCE_IMPORTED;
    uint8_t number[CUDAGO_POOL_ID] = {0};
    cudago_status st = {0};
    Py_BEGIN_ALLOW_THREADS
    cudagoPoolShareID(id, number, &st);
    if (!st.kind && !imported) cudagoPoolExport(id, &pool, &leases, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *files = cudago_files_own(pool, leases);
    return files ? Py_BuildValue("Ny#", files, (char *)number, (Py_ssize_t)sizeof number) : NULL;
}

/* The cell of a buffer that can be exported; NULL with an exception. */
static QUIET cudago_pool_cell *exportable(BufferObject *buffer, cudago_span *b) {
    if (cudago_buffer_now(buffer, b)) return NULL;
    cudago_pool_cell *c = (cudago_pool_cell *)b->cell;
    if (b->cell->flags & CUDAGO_CELL_IMPORTED)
        return PyErr_SetString(PyExc_ValueError, "the memory is imported: only the process that allocated it can share it"), NULL;
    if (cudago_cell_grows(b->cell))
        return PyErr_SetString(PyExc_ValueError, "memory of a VirtualMemoryResource has no descriptor: multiprocessing sends it, as a "
                                                 "Buffer or a Tensor, if the resource was created with ipc_enabled=True"),
               NULL;
    int pooled = b->cell->kind == CUDAGO_CELL_POOL || b->cell->flags & CUDAGO_CELL_POOLED;
    if (!pooled || !c->held || !b->cell->ptr)
        return PyErr_SetString(PyExc_ValueError, "only memory of a pool with ipc_enabled can be shared with other processes"), NULL;
    return c;
}

/* _buffer_export(buffer) -> (data, pool, size, slot, offset): what another process needs, and where the buffer begins in its
 * allocation. */
PyObject *cudago_buffer_export(PyObject *module, PyObject *buffer) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (cudago_expect(buffer, CLS_BUFFER, "buffer")) return NULL;
    cudago_span b;
    cudago_pool_cell *c = exportable((BufferObject *)buffer, &b);
    if (!c) return NULL;
    cudago_cell *cell = &c->cell;
    uint64_t resource = c->resource, ptr = cell->ptr, size = cell->size;
    cudago_shared e = {0};
    cudago_status st = {0};
    cudago_cell_retain(cell); /* another thread may close the buffer */
    cell->flags |= CUDAGO_CELL_EXPORTED;
    Py_BEGIN_ALLOW_THREADS
    cudagoPointerExport(resource, ptr, size, &e, &st);
    Py_END_ALLOW_THREADS
    cudago_cell_release(cell);
    if (st.kind) return cudago_raise(&st), NULL;
    return Py_BuildValue("y#y#KLK", (char *)e.data, (Py_ssize_t)sizeof e.data, (char *)e.pool, (Py_ssize_t)sizeof e.pool,
                         (unsigned long long)e.size, (long long)e.slot, (unsigned long long)(b.ptr - ptr));
}

/* What importing needs, looked at after everything that runs Python. */
static QUIET cudago_stream *may_import(ResourceObject *self, StreamObject *stream) {
    cudago_stream *s = cudago_stream_to_hold(stream);
    if (!s || !cudago_resource_now(self)) return NULL;
    if (self->home != stream->device)
        return PyErr_Format(PyExc_ValueError,
                            self->device < 0 ? "the memory is ordered by streams of device %d, the stream is on device %d"
                                             : "the memory is on device %d, the stream on device %d",
                            self->home, stream->device),
               NULL;
    int capturing = cudago_capturing(s);
    if (!capturing) return s;
    if (capturing > 0)
        PyErr_SetString(PyExc_ValueError, "memory cannot be imported on a stream that is capturing, since no node of a graph does "
                                          "that: import it before the capture, or on another stream");
    return NULL;
}

static uint64_t import_away(ResourceObject *self, cudago_shared *e, cudago_stream *s, uint64_t *ptr) {
    cudago_status st = {0};
    uint64_t resource = self->id, stream = s->id, task, made[2] = {0};
    Py_BEGIN_ALLOW_THREADS
    task = cudagoBufferImportBegin(resource, e, stream, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), 0;
    if (cudago_task(task, made)) return 0;
    *ptr = made[1];
    if (!cudago_made("buffer", self->home, self->generation)) return made[0];
    cudagoBufferRelease(made[0]);
    return 0;
}

static cudago_cell *import_cell(ResourceObject *self, cudago_shared *e, StreamObject *stream) {
    cudago_stream *s = may_import(self, stream);
    if (!s) return NULL;
    cudago_virtual_cell *c = calloc(1, sizeof *c);
    if (!c) return (cudago_cell *)PyErr_NoMemory();
    uint64_t ptr = 0;
    cudago_stream_retain(s); /* it may be closed while the GIL is released */
    c->id = import_away(self, e, s, &ptr);
    if (c->id) {
        cudago_cell_init(&c->pool.cell, self->space ? CUDAGO_CELL_PINNED : CUDAGO_CELL_DEVICE, cudago_virtual_cell_release);
        c->pool.resource = self->id;
        cudago_pool_cell_fill(&c->pool, self->home, self->host_visible && !self->space, ptr, e->size, s);
        if (self->space) cudago_pooled_cell_fill(self, &c->pool);
        c->pool.cell.flags |= CUDAGO_CELL_IMPORTED;
    } else {
        free(c);
        c = NULL;
    }
    cudago_stream_release(s);
    return (cudago_cell *)c;
}

/* _buffer_import(resource, stream, data, pool, size, slot) -> Buffer over the whole allocation */
PyObject *cudago_buffer_import(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *resource, *on, *keep = NULL;
    const char *data, *pool;
    Py_ssize_t nd, np;
    unsigned long long size;
    long long slot;
    if (!PyArg_ParseTuple(args, "OOy#y#KL", &resource, &on, &data, &nd, &pool, &np, &size, &slot) ||
        cudago_expect(resource, CLS_RESOURCE, "resource")) return NULL;
    cudago_shared e = {.size = size, .slot = slot};
    if (nd != sizeof e.data || np != sizeof e.pool || !size || slot < 0)
        return PyErr_SetString(PyExc_ValueError, "descriptor is not that of a buffer"), NULL;
    memcpy(e.data, data, sizeof e.data);
    memcpy(e.pool, pool, sizeof e.pool);
    StreamObject *stream = cudago_stream_arg(on, &keep);
    cudago_note_site();
    cudago_cell *cell = stream ? import_cell((ResourceObject *)resource, &e, stream) : NULL;
    Py_XDECREF(keep);
    return cell ? cudago_buffer_new(cell, cell->ptr, cell->size, cell->ordinal) : NULL;
}

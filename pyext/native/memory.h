/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* memory.h: allocations and the objects over them. */
#pragma once
#include "native.h"

/* How long an allocation waits for what was let go of before. */
enum { CUDAGO_PATIENCE_MS = 1000 };

enum { RESOURCE_POOL = 0, RESOURCE_PINNED = 1, RESOURCE_MANAGED = 2, RESOURCE_VIRTUAL = 3 };

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;
    uintptr_t pool; /* CUmemoryPool of a pool resource */
    int32_t kind, device, closed;
    int32_t host_visible; /* the driver's device memory has an address for the host */
} ResourceObject;

/* Stream-ordered memory: made and freed in C, without Go on the way. */
typedef struct {
    cudago_cell cell;
    cudago_stream *stream; /* the stream it was allocated on, and will be freed on */
    uint64_t last_stream;  /* id of another stream that used it last, or 0 */
    uint64_t resource;     /* Go's handle of the memory resource, which may have gone */
} cudago_pool_cell;

typedef struct {
    cudago_cell cell;
    uint64_t id; /* Go's handle of the cuda.Buffer */
} cudago_go_cell;

/* Virtual memory, CUDAGO_CELL_DEVICE: Go's, but released after the streams that used it, as a pool's. */
typedef struct {
    cudago_pool_cell pool;
    uint64_t id; /* Go's handle of the cuda.Buffer */
} cudago_virtual_cell;

/* Is the cell a cudago_pool_cell, or begins like one? Then it is device memory, and has a stream. */
static inline int cudago_cell_has_stream(const cudago_cell *cell) {
    return cell->kind == CUDAGO_CELL_POOL || cell->kind == CUDAGO_CELL_DEVICE;
}

/* Is it device memory? Simulated memory has a host address, but a program that used it would fail on a GPU. */
static inline int cudago_cell_on_device(const cudago_cell *cell) {
    return cudago_cell_has_stream(cell) || cell->kind == CUDAGO_CELL_GRAPH;
}

PyObject *cudago_buffer_free(PyObject *buffer, PyObject *const *args, Py_ssize_t n, PyObject *names); /* graph_inner.c */

/* Takes over the caller's count of cell. */
PyObject *cudago_buffer_new(cudago_cell *cell, uint64_t ptr, uint64_t size, int32_t device);
int cudago_size(PyObject *number, uint64_t *size); /* size in bytes; -1 with an exception */
PyObject *cudago_allocate(PyObject *resource, PyObject *const *args, Py_ssize_t n, PyObject *names);
void cudago_warn_result(const char *operation, int32_t code); /* CUDAWarning, where nothing can be raised */
/* The cell is used on s: its free waits for s. */
static inline void cudago_cell_used(cudago_cell *cell, const cudago_stream *s) {
    if (cudago_cell_has_stream(cell) && ((cudago_pool_cell *)cell)->stream != s)
        ((cudago_pool_cell *)cell)->last_stream = s->id;
}

/* managed.c: METH_FASTCALL, and METH_NOARGS. A location is a device's ordinal, or one of these; _memory.py has the same
 * numbers. */
enum { LOCATION_HOST = -1, LOCATION_NONE = -2 };
typedef struct {
    int32_t read_mostly, preferred, prefetched;
    int32_t accessed; /* how many of accessed_by */
    int32_t accessed_by[CUDAGO_MAX_DEVICES + 1];
} cudago_range;
PyObject *cudago_buffer_advise(BufferObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_buffer_prefetch(BufferObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_buffer_range(BufferObject *self, PyObject *unused);

/* peer.c: may kernels on a device touch the cell's memory, which is on owner or, if that is -1, on no device? 1 if so, 0 if
 * not, -1 with an exception. */
int cudago_reachable(const cudago_cell *cell, int32_t owner, int32_t device);
PyObject *cudago_peer_access(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_resource_peers(PyObject *self, PyObject *unused);
PyObject *cudago_resource_set_peer(PyObject *self, PyObject *const *args, Py_ssize_t n);

/* copy.c */
int cudago_memcpy(uint64_t dst, uint64_t src, uint64_t size, cudago_stream *s, int pageable);
int cudago_copy_operand(PyObject *buffer, PyObject *other, int from, cudago_stream *s);
void cudago_raise_sizes(int from, uint64_t buffer, uint64_t other);
int cudago_fill_value(PyObject *value, uint64_t size, uint32_t *out, uint32_t *width);
int cudago_fill(PyObject *buffer, uint32_t value, uint32_t width, cudago_stream *s);
int cudago_order_after(PyObject *obj, cudago_stream *s);
int cudago_order_foreign(int32_t device, uintptr_t first, uintptr_t then);
int cudago_order_streams(int32_t device, uintptr_t ctx, uintptr_t first, uintptr_t then);

PyObject *cudago_pointer_new(PyObject *buffer, int64_t offset);

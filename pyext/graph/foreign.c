/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Graphs that other code has too: theirs, and ours whose handles were handed out. And what graphs keep that another
 * library captures: such a graph has a user object, which the driver destroys when the graph, its executables and their
 * launches are gone. That happens on any thread, which must not call the driver. */

/* What Go keeps for a graph; see keepFor in foreign.go. */
typedef struct kept {
    uint64_t id;
    struct kept *next;
} kept;
static kept *_Atomic ended;

uintptr_t cudago_kept_new(uint64_t id) {
    kept *k = malloc(sizeof *k);
    if (k) *k = (kept){id, NULL};
    return (uintptr_t)k;
}

/* On a thread of the driver's. Whatever comes after the end of the interpreter, or in a forked child, is left. */
static void end_kept(void *of) {
    kept *k = of, *head;
    if (cudago_forked || cudago_closed) return;
    head = atomic_load_explicit(&ended, memory_order_relaxed);
    do k->next = head;
    while (!atomic_compare_exchange_weak_explicit(&ended, &head, k, memory_order_release, memory_order_relaxed));
    if (!head) cudago_request_drain();
}

uintptr_t cudago_kept_end(void) { return (uintptr_t)end_kept; }

void cudago_kept_sweep(void) {
    kept *k = atomic_exchange_explicit(&ended, NULL, memory_order_acquire);
    for (kept *next; k; k = next) {
        next = k->next;
        cudagoKeptRelease(k->id);
        free(k);
    }
    for (char *text; (text = cudagoKeptWarning());) {
        cudago_warn(text);
        free(text);
    }
}

static void end_cell(void *of) {
    if (!cudago_forked) cudago_cell_release(of);
}

QUIET int cudago_capture_hold(cudago_cell *cell, cudago_stream *s) {
    cudago_status st = {0};
    cudago_cell_retain(cell);
    int held = cudagoCaptureHold(s->id, (uint64_t)(uintptr_t)end_cell, (uint64_t)(uintptr_t)cell, &st);
    if (!held) cudago_cell_release(cell);
    return st.kind ? cudago_raise(&st) : 0;
}

/* _graph_from_handle(device, handle, owner) */
PyObject *cudago_graph_from_handle(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 3 || cudago_expect(args[0], CLS_DEVICE, "device")) return NULL;
    uint32_t generation;
    int32_t ordinal = ((DeviceObject *)args[0])->ordinal;
    uint64_t handle;
    if (cudago_uint64(args[1], "handle", "a CUgraph", &handle)) return NULL;
    if (!handle) return PyErr_SetString(PyExc_ValueError, "handle must be a CUgraph, got 0"), NULL;
    if (cudago_device_ready(ordinal, &generation)) return NULL;
    GraphObject *self = cudago_graph_alloc_object(ordinal, generation, NULL);
    if (!self) return NULL;
    cudago_status st = {0};
    cudago_ref ref;
    int refs = args[2] != Py_None;
    if (refs) cudago_ref_set(&ref, args[2], 0, ROLE_OWNER, REASON_HANDLE);
    self->id = cudagoGraphWrap(ordinal, handle, &ref, refs, &self->held, &st);
    if (!st.kind) return (PyObject *)self;
    cudago_raise(&st);
    Py_DECREF(self);
    return NULL;
}

/* _export(): the handle. From now on the graph is held hard: see GraphObject. */
static QUIET int export_now(GraphObject *self, uint64_t *handle, cudago_status *st) {
    if (cudago_graph_open(self)) return -1;
    *handle = cudagoGraphExport(self->id, st);
    if (st->kind) return 0;
    self->exported = 1;
    if (self->owner) ((GraphObject *)self->owner)->exported = 1;
    return 0;
}
PyObject *cudago_graph_export(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t handle = 0;
    cudago_status st = {0};
    if (cudago_graph_ready(self) || export_now(self, &handle, &st)) return NULL;
    if (st.kind) return cudago_raise(&st), NULL;
    return PyLong_FromUnsignedLongLong(handle);
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Graphs that other code has too: theirs, and ours whose handles were handed out. */

/* _graph_from_handle(device, handle, owner) */
PyObject *cudago_graph_from_handle(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 3 || cudago_expect(args[0], CLS_DEVICE, "device")) return NULL;
    uint32_t generation;
    int32_t ordinal = ((DeviceObject *)args[0])->ordinal;
    PyObject *number = PyNumber_Index(args[1]);
    unsigned long long handle = number ? PyLong_AsUnsignedLongLong(number) : 0;
    Py_XDECREF(number);
    if (PyErr_Occurred()) return NULL;
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

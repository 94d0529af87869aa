/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Nodes that signal semaphores of other APIs, and wait for them. */

int cudago_read_semaphore(PyObject *const *args, cudago_semaphore_given *g) {
    if (cudago_expect(args[0], CLS_SEMAPHORE, "semaphore")) return -1;
    g->semaphore = (SemaphoreObject *)args[0];
    g->waits = PyObject_IsTrue(args[2]);
    g->is_own = 0;
    return g->waits < 0 ? -1 : cudago_semaphore_value(g->semaphore, args[1], &g->value);
}

int cudago_read_semaphore_change(PyObject *const *args, cudago_semaphore_given *g) {
    if (cudago_read_semaphore(args, g)) return -1;
    g->is_own = PyObject_IsTrue(args[3]);
    return g->is_own < 0 ? -1 : 0;
}

QUIET int cudago_semaphore_usable(int32_t device, const cudago_semaphore_given *g) {
    if (!g->is_own && cudago_semaphore_now(g->semaphore)) return -1;
    if (g->semaphore->device == device) return 0;
    return PyErr_Format(PyExc_ValueError, "semaphore is of device %d, the graph of device %d", g->semaphore->device, device), -1;
}

/* CUDAGO_AGAIN while something of either graph is being instantiated. */
static QUIET int semaphore_now(GraphObject *self, cudago_place *p, const cudago_semaphore_given *g, const cudago_from *f, uint64_t *node,
                               cudago_status *st) {
    uint64_t from;
    if (cudago_graph_open(self)) return -1;
    if (cudago_graph_busy(self)) return CUDAGO_AGAIN;
    int r = cudago_from_id(f, &from);
    if (r) return r;
    if (cudago_semaphore_usable(self->device, g)) return -1;
    cudago_ref ref;
    cudago_ref_set(&ref, (PyObject *)g->semaphore, 0, ROLE_SEMAPHORE, REASON_SEMAPHORE);
    *node = cudagoGraphSemaphore(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, g->semaphore->id, g->value, g->waits, from,
                                 f->node, &ref, st);
    return 0;
}

/* _add_semaphore(deps, semaphore, value or None, waits, name[, of, number]): of and number as for _add_event */
PyObject *cudago_graph_semaphore(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    cudago_semaphore_given g;
    cudago_from f;
    if (n < 5 || cudago_graph_open(self) || cudago_read_place(args[0], args[4], &p) || cudago_read_semaphore(args + 1, &g) ||
        cudago_read_from(args + 5, n - 5, &f))
        return NULL;
    g.is_own = f.of != NULL;
    uint64_t node = 0;
    cudago_status st = {0};
    int r;
    do r = cudago_from_ready(&f) || cudago_graph_ready(self) ? -1 : semaphore_now(self, &p, &g, &f, &node, &st);
    while (r == CUDAGO_AGAIN);
    return r ? NULL : cudago_node_added(node, &st);
}

QUIET void cudago_set_semaphore(uint64_t id, uint64_t node, const cudago_semaphore_given *g, cudago_status *st) {
    cudago_ref ref;
    cudago_ref_set(&ref, (PyObject *)g->semaphore, 0, ROLE_SEMAPHORE, REASON_SEMAPHORE);
    cudagoUpdateSemaphore(id, node, g->is_own ? 0 : g->semaphore->id, g->value, g->waits, &ref, st);
}

static QUIET int set_now(GraphObject *self, uint64_t node, const cudago_semaphore_given *g, cudago_status *st) {
    if (cudago_graph_open(self) || cudago_semaphore_usable(self->device, g)) return -1;
    cudago_set_semaphore(self->id, node, g, st);
    return 0;
}

/* _update_semaphore(node, semaphore, value, waits, is_own) */
PyObject *cudago_graph_set_semaphore(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    cudago_semaphore_given g;
    if (n != 5 || cudago_graph_open(self) || cudago_read_node(args[0], &node) || cudago_read_semaphore_change(args + 1, &g)) return NULL;
    cudago_status st = {0};
    if (cudago_graph_ready(self) || set_now(self, node, &g, &st)) return NULL;
    if (st.kind) return cudago_raise(&st), NULL;
    cudago_drain(); /* what the node held before is dropped, which may run Python */
    Py_RETURN_NONE;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Other events for the nodes that record one, or wait for one. */

int cudago_read_from(PyObject *const *args, Py_ssize_t n, cudago_from *f) {
    f->of = NULL;
    f->node = 0;
    if (!n) return 0;
    if (n != 2 || cudago_read_node(args[1], &f->node)) return -1;
    if (!cudago_is(args[0], CLS_GRAPH) && cudago_expect(args[0], CLS_EXEC, "executable")) return -1;
    f->of = args[0];
    return 0;
}

static QUIET cudago_hierarchy *hierarchy_now(const cudago_from *f) {
    if (cudago_is(f->of, CLS_GRAPH)) return cudago_graph_open((GraphObject *)f->of) ? NULL : ((GraphObject *)f->of)->of;
    return cudago_exec_open((ExecObject *)f->of) ? NULL : ((ExecObject *)f->of)->x->of;
}

int cudago_from_ready(const cudago_from *f) {
    cudago_hierarchy *h = f->of ? hierarchy_now(f) : NULL;
    if (!f->of) return 0;
    return !h || cudago_hierarchy_wait(h) ? -1 : 0;
}

QUIET int cudago_from_id(const cudago_from *f, uint64_t *id) {
    *id = 0;
    if (!f->of) return 0;
    cudago_hierarchy *h = hierarchy_now(f);
    if (!h) return -1;
    if (h->busy) return CUDAGO_AGAIN;
    *id = cudago_is(f->of, CLS_GRAPH) ? ((GraphObject *)f->of)->id : ((ExecObject *)f->of)->x->id;
    return 0;
}

QUIET int cudago_event_usable(int32_t device, const EventObject *e) {
    if (cudago_event_now((EventObject *)e)) return -1;
    if (e->device == device) return 0;
    return PyErr_Format(PyExc_ValueError, "event is on device %d, the graph on device %d", e->device, device), -1;
}

static QUIET void set_event(uint64_t id, uint64_t node, EventObject *e, cudago_status *st) {
    cudago_ref ref;
    cudago_ref_set(&ref, (PyObject *)e, 0, ROLE_EVENT, REASON_EVENT);
    cudagoUpdateEvent(id, node, e->id, &ref, st); /* Go finds out if it was closed */
}

static QUIET int graph_now(GraphObject *self, uint64_t node, EventObject *e, cudago_status *st) {
    if (cudago_graph_open(self) || cudago_event_usable(self->device, e)) return -1;
    set_event(self->id, node, e, st);
    return 0;
}

/* _update_event(node, event) */
PyObject *cudago_graph_set_event(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    cudago_status st = {0};
    if (n != 2 || cudago_graph_open(self) || cudago_read_node(args[0], &node) || cudago_expect(args[1], CLS_EVENT, "event") ||
        cudago_graph_ready(self) || graph_now(self, node, (EventObject *)args[1], &st))
        return NULL;
    if (st.kind) return cudago_raise(&st), NULL;
    cudago_drain();
    Py_RETURN_NONE;
}

typedef struct {
    uint64_t node;
    EventObject *event;
} event_update;
static QUIET void exec_now(ExecObject *self, void *at, cudago_refusal *why) {
    event_update *u = at;
    set_event(self->x->id, u->node, u->event, &why->st);
}

/* _update_event(node, event) */
PyObject *cudago_update_event(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    event_update u;
    if (n != 2 || cudago_exec_open(self) || cudago_read_node(args[0], &u.node) || cudago_expect(args[1], CLS_EVENT, "event")) return NULL;
    u.event = (EventObject *)args[1];
    if (cudago_event_usable(self->device, u.event) || cudago_update_gate(self, exec_now, &u)) return NULL;
    cudago_drain_waiting();
    Py_RETURN_NONE;
}

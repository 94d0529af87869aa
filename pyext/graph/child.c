/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Other graphs for the nodes that embed one, and other nodes that embed what one of an executable does. */

static QUIET int graph_now(GraphObject *self, uint64_t node, GraphObject *child, cudago_status *st) {
    if (cudago_graph_open(self) || cudago_graph_open(child)) return -1;
    if (cudago_graph_busy(self) || cudago_graph_busy(child)) return CUDAGO_AGAIN;
    self->of->removals = 1; /* of what was inside the node */
    cudagoSetChild(self->id, node, child->id, st);
    return 0;
}

/* _update_child(node, graph) */
PyObject *cudago_graph_set_child(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    if (n != 2 || cudago_graph_open(self) || cudago_read_node(args[0], &node) || cudago_expect(args[1], CLS_GRAPH, "graph")) return NULL;
    GraphObject *child = (GraphObject *)args[1];
    cudago_status st = {0};
    int r;
    do /* each graph may become busy during the wait for the other */
        r = cudago_graph_ready(self) || cudago_graph_ready(child) || cudago_graph_whole(child) ? -1 : graph_now(self, node, child, &st);
    while (r == CUDAGO_AGAIN);
    if (r) return NULL;
    if (st.kind) return cudago_raise(&st), NULL;
    cudago_drain(); /* what the node held before is dropped, which may run Python */
    if (CUDAGO_WATCH("embedded", "(OKO)", self, node, child)) return NULL;
    Py_RETURN_NONE;
}

typedef struct {
    uint64_t node;
    GraphObject *graph;
    int again;
} child_update;
static QUIET void exec_now(ExecObject *self, void *at, cudago_refusal *why) {
    child_update *u = at;
    if ((u->again = cudago_graph_busy(u->graph))) return;
    self->held->resets = 0; /* there may be one while this waits */
    cudagoUpdateChild(self->x->id, u->node, u->graph->id, &why->st); /* Go finds out if the graph was closed during the wait */
}

/* _update_child(node, graph) */
PyObject *cudago_update_child(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    child_update u = {0, NULL, 0};
    if (n != 2 || cudago_exec_open(self) || cudago_read_node(args[0], &u.node) || cudago_expect(args[1], CLS_GRAPH, "graph")) return NULL;
    u.graph = (GraphObject *)args[1];
    do
        if (cudago_graph_ready(u.graph) || cudago_graph_whole(u.graph) || cudago_update_gate(self, exec_now, &u)) return NULL;
    while (u.again);
    cudago_drain_waiting();
    if (CUDAGO_WATCH("updated_child", "(OKO)", self, u.node, u.graph)) return NULL;
    Py_RETURN_NONE;
}

/* CUDAGO_AGAIN while something of either graph is being instantiated. */
static QUIET int copy_now(GraphObject *self, cudago_place *p, ExecObject *of, uint64_t number, uint64_t *node, cudago_status *st) {
    if (cudago_graph_open(self) || cudago_exec_open(of)) return -1;
    if (cudago_graph_busy(self) || of->x->of->busy) return CUDAGO_AGAIN;
    *node = cudagoGraphChildOf(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, of->id, number, st);
    return 0;
}

static QUIET cudago_hierarchy *hierarchy_now(ExecObject *of) { return cudago_exec_open(of) ? NULL : of->x->of; }

/* _add_child_of(deps, executable, number, name) */
PyObject *cudago_graph_child_of(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    uint64_t number, node = 0;
    if (n != 4 || cudago_graph_open(self) || cudago_read_place(args[0], args[3], &p) || cudago_expect(args[1], CLS_EXEC, "executable") ||
        cudago_read_node(args[2], &number))
        return NULL;
    ExecObject *of = (ExecObject *)args[1];
    cudago_status st = {0};
    int r;
    do {
        cudago_hierarchy *h = hierarchy_now(of);
        r = !h || cudago_hierarchy_wait(h) || cudago_graph_ready(self) || cudago_exec_whole(of) ? -1 : copy_now(self, &p, of, number, &node, &st);
    } while (r == CUDAGO_AGAIN);
    if (r) return NULL;
    PyObject *added = cudago_node_added(node, &st);
    if (added && CUDAGO_WATCH("embedded_again", "(OO)", self, added)) Py_CLEAR(added);
    return added;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Which line of the program made a node: border/site.c. */

static QUIET int64_t site_now(GraphObject *self, uint64_t node) {
    if (cudago_graph_open(self)) return -1;
    cudago_status st = {0};
    uint32_t site = cudagoGraphSite(self->id, node, &st);
    return st.kind ? cudago_raise(&st) : (int64_t)site;
}

/* _made_at(number): the line that made the node, or None */
PyObject *cudago_graph_made_at(GraphObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    int64_t site = cudago_read_node(number, &node) ? -1 : site_now(self, node);
    return site < 0 ? NULL : cudago_site_text((uint32_t)site);
}

static QUIET int set_made_at_now(GraphObject *self, uint64_t node, GraphObject *other, uint64_t of) {
    if (cudago_graph_open(self) || cudago_graph_open(other)) return -1;
    cudago_status st = {0};
    cudagoGraphSetSite(self->id, node, other->id, of, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

/* _set_made_at(number, graph, of): that of another graph's node, of which this one is a copy */
PyObject *cudago_graph_set_made_at(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node, of;
    if (n != 3 || cudago_expect(args[1], CLS_GRAPH, "graph") || cudago_read_node(args[0], &node) || cudago_read_node(args[2], &of) ||
        set_made_at_now(self, node, (GraphObject *)args[1], of))
        return NULL;
    Py_RETURN_NONE;
}

static QUIET int64_t exec_site_now(ExecObject *self, uint64_t node) {
    if (cudago_exec_open(self)) return -1;
    cudago_status st = {0};
    uint32_t site = cudagoExecSite(self->id, node, &st);
    return st.kind ? cudago_raise(&st) : (int64_t)site;
}

/* _made_at(number): as of a graph */
PyObject *cudago_exec_made_at(ExecObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    int64_t site = cudago_read_node(number, &node) ? -1 : exec_site_now(self, node);
    return site < 0 ? NULL : cudago_site_text((uint32_t)site);
}

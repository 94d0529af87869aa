/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Conditional nodes, their conditions and their bodies. */

/* _condition(first, or None): (number, handle) */
PyObject *cudago_graph_condition(GraphObject *self, PyObject *first) {
    CUDAGO_ENTER(NULL);
    unsigned long long value = first == Py_None ? 0 : PyLong_AsUnsignedLongLong(first);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    uint64_t graph = cudago_graph_number(self);
    if (!graph) return NULL;
    cudago_status st = {0};
    uint64_t handle = 0, number = cudagoGraphCondition(graph, (uint32_t)value, first != Py_None, &handle, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return Py_BuildValue("KK", (unsigned long long)number, (unsigned long long)handle);
}

QUIET const cudago_hierarchy *cudago_graph_hierarchy(GraphObject *graph) { return graph->of; }

static int foreign(PyObject *condition, const char *whose) {
    PyErr_Format(PyExc_ValueError, "%R is of %s: a kernel can set the conditions of its own graph alone", condition, whose);
    return -1;
}

int cudago_condition_fits(const cudago_packing *p, const cudago_hierarchy *of, int in_graph) {
    if (!p->condition || !of) return 0; /* a graph without one is closed, and says so later */
    PyObject *graph = PyObject_GetAttrString(p->condition, "graph");
    if (!graph) return -1;
    const cudago_hierarchy *its = cudago_is(graph, CLS_GRAPH) ? cudago_graph_hierarchy((GraphObject *)graph) : NULL;
    Py_DECREF(graph);
    if (its) return its == of ? 0 : foreign(p->condition, "another graph");
    return in_graph ? foreign(p->condition, "a closed graph") : 0;
}

/* _add_conditional(deps, condition, type, count, name) */
PyObject *cudago_graph_conditional(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    if (n != 5 || cudago_graph_open(self) || cudago_read_place(args[0], args[4], &p)) return NULL;
    unsigned long long condition = PyLong_AsUnsignedLongLong(args[1]);
    long type = PyLong_AsLong(args[2]), count = PyLong_AsLong(args[3]);
    uint64_t graph = PyErr_Occurred() ? 0 : cudago_graph_number(self);
    if (!graph) return NULL;
    cudago_status st = {0};
    uint64_t node = cudagoGraphConditional(graph, p.v, (int)p.n, (char *)p.name, (int)p.name_len, condition, (int)type,
                                           (int64_t)count, &st);
    return cudago_node_added(node, &st);
}

static QUIET GraphObject *body_object(GraphObject *self) {
    if (cudago_graph_open(self)) return NULL;
    return cudago_graph_alloc_object(self->device, self->generation, self->of);
}
static QUIET int body_now(GraphObject *self, GraphObject *body, uint64_t node, long index) {
    if (cudago_graph_open(self)) return -1;
    cudago_status st = {0};
    uint64_t id = cudagoGraphBody(self->id, node, (int64_t)index, &st);
    if (st.kind) return cudago_raise(&st);
    body->id = id;
    body->owner = NEW_REF(self->owner ? self->owner : (PyObject *)self);
    return 0;
}

/* _body(node, index): a Graph over a body of a conditional node. It keeps alive the graph that the node is in. */
PyObject *cudago_graph_body(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 2 || cudago_graph_open(self)) return NULL;
    unsigned long long node = PyLong_AsUnsignedLongLong(args[0]);
    long index = PyLong_AsLong(args[1]);
    if (PyErr_Occurred()) return NULL;
    GraphObject *body = body_object(self);
    if (!body) return NULL;
    if (cudago_graph_ready(self) || body_now(self, body, node, index)) return Py_DECREF(body), NULL;
    return (PyObject *)body;
}

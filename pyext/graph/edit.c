/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Changes to the nodes and edges of a graph. */

static QUIET int remove_now(GraphObject *self, uint64_t node, PyObject *note, cudago_status *st) {
    if (cudago_graph_open(self)) return -1;
    self->of->removals = 1;
    cudagoGraphRemove(self->id, node, st);
    if (!st->kind) cudago_slots_note(&self->slots, note, node);
    return 0;
}

/* _remove(node, note): drops what the node held, which may run Python */
PyObject *cudago_graph_remove(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    cudago_status st = {0};
    PyObject *note;
    if (n != 2 || cudago_read_node(args[0], &node) || cudago_read_note(args[1], &note) || cudago_graph_ready(self) ||
        remove_now(self, node, note, &st))
        return NULL;
    if (st.kind) return cudago_raise(&st), NULL;
    cudago_drain();
    Py_RETURN_NONE;
}

static int take_back(GraphObject *self, PyObject *number) {
    uint64_t node;
    cudago_status st = {0};
    if (cudago_read_node(number, &node) || cudago_graph_ready(self)) return -1;
    if (!remove_now(self, node, NULL, &st) && (!st.kind || !cudago_raise(&st))) return 0;
    if (!cudago_is_closed_error()) return -1;
    return PyErr_Clear(), 0; /* it is gone already, or the graph is */
}

/* All that can be, in spite of an error, of which the first is raised. What cannot stays in the list. */
static int take_all_back(GraphObject *self, PyObject *made) {
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    for (Py_ssize_t i = PyList_Size(made); i > 0; i--) {
        PyObject *number = PyList_GetItem(made, i - 1);
        if (number && !take_back(self, number) && !PyList_SetSlice(made, i - 1, i, NULL)) continue;
        if (!PyErr_ExceptionMatches(PyExc_Exception)) break; /* Ctrl-C */
        if (type) PyErr_Clear();
        else PyErr_Fetch(&type, &value, &trace);
    }
    if (!PyErr_Occurred()) return PyErr_Restore(type, value, trace), type ? -1 : 0;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

/* _take_back(made, nodes): removes the nodes that have the numbers in a list, if it has any, and empties both lists. A signal
 * is heard before or after that, and never in between. */
PyObject *cudago_graph_take_back(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 2 || !PyList_Check(args[0]) || !PyList_Check(args[1])) return PyErr_SetString(PyExc_TypeError, "_take_back(made, nodes)"), NULL;
    if (!PyList_Size(args[0])) Py_RETURN_NONE;
    if (take_all_back(self, args[0]) || PyList_SetSlice(args[1], 0, PyList_Size(args[1]), NULL)) return NULL;
    cudago_drain();
    Py_RETURN_NONE;
}

static QUIET int edge_now(GraphObject *self, uint64_t from, uint64_t to, int port, cudago_status *st) {
    if (cudago_graph_open(self)) return -1;
    cudagoGraphEdge(self->id, from, to, port, st);
    return 0;
}

/* _edge(from, to, what): adds the edge that waits for one of 4 things */
PyObject *cudago_graph_edge(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t from, to;
    cudago_status st = {0};
    if (n != 3 || cudago_read_node(args[0], &from) || cudago_read_node(args[1], &to)) return NULL;
    long port = PyLong_AsLong(args[2]);
    if (port == -1 && PyErr_Occurred()) return NULL;
    if (port < 0 || port > 3) return PyErr_SetString(PyExc_ValueError, "_edge takes a number of 0 to 3"), NULL;
    if (cudago_graph_ready(self) || edge_now(self, from, to, (int)port, &st)) return NULL;
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

/* The nodes at the other ends of edges: first of those to add, then of those to remove. */
typedef struct {
    uint64_t node, *others;
    Py_ssize_t added, removed;
    int backward; /* the others wait for the node */
} neighbors;

static int neighbors_read(neighbors *x, PyObject *const *args, Py_ssize_t n) {
    if (n != 4 || !PyTuple_Check(args[1]) || !PyTuple_Check(args[2]))
        return PyErr_SetString(PyExc_TypeError, "_neighbors(node, added, removed, backward)"), -1;
    x->added = PyTuple_Size(args[1]), x->removed = PyTuple_Size(args[2]);
    x->others = calloc((size_t)(x->added + x->removed) + 1, sizeof *x->others);
    if (!x->others) return PyErr_NoMemory(), -1;
    if (cudago_read_node(args[0], &x->node) || (x->backward = PyObject_IsTrue(args[3])) < 0) return -1;
    for (Py_ssize_t i = 0; i < x->added; i++)
        if (cudago_read_node(PyTuple_GetItem(args[1], i), &x->others[i])) return -1;
    for (Py_ssize_t i = 0; i < x->removed; i++)
        if (cudago_read_node(PyTuple_GetItem(args[2], i), &x->others[x->added + i])) return -1;
    return 0;
}

static QUIET int neighbors_now(GraphObject *self, const neighbors *x, cudago_status *st) {
    if (cudago_graph_open(self)) return -1;
    cudagoGraphNeighbors(self->id, x->node, x->others, (int)x->added, (int)x->removed, x->backward, st);
    return 0;
}

/* _neighbors(node, added, removed, backward): adds and removes edges between a node and others; one call, so that a signal is
 * heard before all of it or after it */
PyObject *cudago_graph_neighbors(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    neighbors x = {0};
    cudago_status st = {0};
    int r = neighbors_read(&x, args, n);
    if (!r && !(r = cudago_graph_ready(self))) r = neighbors_now(self, &x, &st);
    free(x.others);
    if (r) return NULL;
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

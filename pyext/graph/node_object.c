/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* A Node of Python: its graph, and its number there. It keeps the graph's object, not the graph open. As long as somebody has
 * a node's object, whoever looks the node up gets that object. */

static struct {
    NodeObject **first; /* borrowed: a node takes itself out when it goes */
    size_t mask, n;
} living;

static QUIET NodeObject **place_of(uint64_t number) {
    uint64_t hash = number * 0x9e3779b97f4a7c15u; /* Fibonacci hashing: numbers of one graph follow each other */
    return &living.first[(hash >> 32) & living.mask];
}

static QUIET void grow(void) {
    size_t size = living.first ? 2 * (living.mask + 1) : 64, old = living.first ? living.mask + 1 : 0;
    NodeObject **was = living.first, **more = calloc(size, sizeof *more);
    if (!more) return; /* longer chains are the worst of it, or nodes that are found by nobody */
    living.first = more;
    living.mask = size - 1;
    for (size_t i = 0; i < old; i++)
        for (NodeObject *node = was[i], *next; node; node = next) {
            next = node->next;
            node->next = *place_of(node->number);
            *place_of(node->number) = node;
        }
    free(was);
}

/* Of what is nested deeply the interpreter puts the end off, though nobody refers to it any more, and runs other code first. */
static QUIET int is_ending(NodeObject *node) { return !Py_REFCNT((PyObject *)node); }

static QUIET NodeObject *find(const GraphObject *graph, uint64_t number) {
    NodeObject *node = living.first ? *place_of(number) : NULL;
    while (node && (node->number != number || node->graph != (PyObject *)graph || is_ending(node))) node = node->next;
    return node;
}

QUIET void cudago_node_number(NodeObject *node, uint64_t number) {
    node->number = number;
    if (living.n > living.mask || !living.first) grow();
    if (!living.first) return;
    node->next = *place_of(number);
    *place_of(number) = node;
    living.n++;
}

static QUIET void forget(NodeObject *node) {
    if (!living.first || !node->number) return;
    NodeObject **at = place_of(node->number);
    while (*at && *at != node) at = &(*at)->next;
    if (!*at) return;
    *at = node->next;
    living.n--;
}

NodeObject *cudago_node_new(GraphObject *graph) {
    NodeObject *self = cudago_alloc(CLS_NODE);
    if (self) self->graph = NEW_REF(graph);
    return self;
}

static NodeObject *node_at(GraphObject *graph, uint64_t number) {
    NodeObject *node = find(graph, number);
    if (node) return (NodeObject *)NEW_REF(node);
    node = cudago_node_new(graph);
    if (!node) return NULL;
    NodeObject *other = find(graph, number); /* allocating runs the collector now and then, and that Python */
    if (other) return Py_DECREF(node), (NodeObject *)NEW_REF(other);
    cudago_node_number(node, number);
    return node;
}

/* _node(number): the Node with a number that this graph has returned. */
PyObject *cudago_graph_node_at(GraphObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    uint64_t n;
    if (cudago_read_node(number, &n)) return NULL;
    return (PyObject *)node_at(self, n);
}

/* _node_of(row): the same of a row of _nodes(), so that its name is not looked up again. */
PyObject *cudago_graph_node_of(GraphObject *self, PyObject *row) {
    CUDAGO_ENTER(NULL);
    PyObject *number = PyTuple_GetItem(row, 0);
    uint64_t n;
    if (!number || cudago_read_node(number, &n)) return NULL;
    NodeObject *node = node_at(self, n);
    if (node && !node->known) node->known = NEW_REF(row);
    return (PyObject *)node;
}

/* launch(config, kernel, *args, name=None) */
static PyObject *node_launch(NodeObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    return cudago_launch_node((PyObject *)self, (GraphObject *)self->graph, &self->number, args, n, names);
}

/* _memcpy(dst, src, name): as Graph's */
static PyObject *node_copy(NodeObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    return cudago_copy_node((GraphObject *)self->graph, &self->number, args, n);
}

static PyObject *node_graph(NodeObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->graph);
}
static PyObject *node_number(NodeObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->number);
}
/* Its row in _nodes(), which never changes, or None. */
static PyObject *node_known(NodeObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->known ? self->known : Py_None);
}
static int node_set_known(NodeObject *self, PyObject *row, void *unused) {
    (void)unused;
    PyObject *before = self->known;
    self->known = row ? NEW_REF(row) : NULL;
    Py_XDECREF(before);
    return 0;
}

/* No tp_clear: the tp_clear of the graph breaks the cycles that a node can be in. */
static int node_traverse(NodeObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->graph);
    Py_VISIT(self->known);
    return 0;
}

static void node_dealloc(NodeObject *self) {
    PyObject_GC_UnTrack(self);
    forget(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    Py_XDECREF(self->graph);
    Py_XDECREF(self->known);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"launch", METHOD(node_launch), METH_FASTCALL | METH_KEYWORDS, DOC_GRAPH_LAUNCH},
    {"_memcpy", METHOD(node_copy), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"graph", (getter)node_graph, NULL, DOC_NODE_GRAPH, NULL},
    {"_id", (getter)node_number, NULL, NULL, NULL},
    {"_known", (getter)node_known, (setter)node_set_known, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(NodeObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, node_dealloc},
    {Py_tp_traverse, node_traverse},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_node_spec = {
    "cudago._core.Node",
    sizeof(NodeObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

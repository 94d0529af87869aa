/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* What Python asks about graphs and executables. Nodes are identified by their numbers; the Python face makes objects
 * for the rows. */

/* A name to look up, in UTF-8. NULL if no node can have it, or with an exception. */
static const char *name_key(PyObject *name, Py_ssize_t *n) {
    const char *key = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, n) : NULL;
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_UnicodeError)) PyErr_Clear(); /* half of a surrogate pair */
    return key;
}

/* --- graphs ------------------------------------------------------------------------------------------------------- */

/* Nodes change only under the GIL, and their names never, so calls that read them do not wait, whatever is being instantiated. */
static QUIET uint64_t number_now(GraphObject *self) { return cudago_graph_open(self) ? 0 : self->id; }

static QUIET int check_now(GraphObject *self, uint64_t node) {
    if (cudago_graph_open(self)) return -1;
    if (!self->of->removals) return 0;
    cudago_status st = {0};
    cudagoGraphCheck(self->id, node, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

/* _check(number): is the graph open, and the node still in it? */
PyObject *cudago_graph_check(GraphObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    if (cudago_read_node(number, &node) || check_now(self, node)) return NULL;
    Py_RETURN_NONE;
}

static PyObject *rows(cudago_answer *a, cudago_status *st) {
    if (st->kind) return cudago_raise(st), NULL;
    return cudago_answer_rows(a);
}
static PyObject *row(cudago_answer *a, cudago_status *st) {
    if (st->kind) return cudago_raise(st), NULL;
    return cudago_answer_row(a);
}

/* _nodes(): (number, how many bodies, name, kind), in order of creation */
PyObject *cudago_graph_nodes(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t graph = number_now(self);
    if (!graph) return NULL;
    cudago_answer a = {0};
    cudago_status st = {0};
    cudagoGraphNodes(graph, &a, &st);
    return rows(&a, &st);
}

/* _node_row(number): a row of _nodes() */
PyObject *cudago_graph_node(GraphObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    uint64_t node, graph = cudago_read_node(number, &node) ? 0 : number_now(self);
    if (!graph) return NULL;
    cudago_answer a = {0};
    cudago_status st = {0};
    cudagoGraphNode(graph, node, &a, &st);
    return row(&a, &st);
}

/* _count(): how many nodes */
PyObject *cudago_graph_count(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t graph = number_now(self);
    if (!graph) return NULL;
    cudago_status st = {0};
    uint64_t n = cudagoGraphCount(graph, &st);
    return st.kind ? cudago_raise(&st), NULL : PyLong_FromUnsignedLongLong(n);
}

/* _has_memory(): whether it allocates or frees memory, so that nothing can be removed from it */
PyObject *cudago_graph_has_memory(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t graph = cudago_graph_number(self);
    if (!graph) return NULL;
    cudago_status st = {0};
    int has = cudagoGraphHasMemory(graph, &st);
    return st.kind ? cudago_raise(&st), NULL : PyBool_FromLong(has);
}

/* _find(name): the row of _nodes() that has the name, or None */
PyObject *cudago_graph_find(GraphObject *self, PyObject *name) {
    CUDAGO_ENTER(NULL);
    Py_ssize_t n = 0;
    const char *key = name_key(name, &n);
    uint64_t graph = PyErr_Occurred() ? 0 : cudago_graph_number(self);
    if (!graph) return NULL;
    cudago_answer a = {0};
    cudago_status st = {0};
    if (key) cudagoGraphFind(graph, (char *)key, (int)n, &a, &st);
    return row(&a, &st);
}

/* _edges(): pairs of numbers, of which the second waits for the first */
PyObject *cudago_graph_edges(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t graph = cudago_graph_number(self);
    if (!graph) return NULL;
    cudago_answer a = {0};
    cudago_status st = {0};
    cudagoGraphEdges(graph, &a, &st);
    return rows(&a, &st);
}

/* _edge_data(): (number, number, what the second waits for) of each edge that does not wait for the completion of a node */
PyObject *cudago_graph_edge_data(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t graph = cudago_graph_number(self);
    if (!graph) return NULL;
    cudago_answer a = {0};
    cudago_status st = {0};
    cudagoGraphEdgeData(graph, &a, &st);
    return rows(&a, &st);
}

static PyObject *next(GraphObject *self, PyObject *number, int dependents) {
    uint64_t node, graph = cudago_read_node(number, &node) ? 0 : cudago_graph_number(self);
    if (!graph) return NULL;
    cudago_answer a = {0};
    cudago_status st = {0};
    cudagoGraphNext(graph, node, dependents, &a, &st);
    return rows(&a, &st);
}

/* _dependencies(number), _dependents(number): (number,) of each */
PyObject *cudago_graph_dependencies(GraphObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    return next(self, number, 0);
}
PyObject *cudago_graph_dependents(GraphObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    return next(self, number, 1);
}

/* _has_edge(start, end): whether one node waits for another */
PyObject *cudago_graph_has_edge(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 2) return PyErr_SetString(PyExc_TypeError, "_has_edge(start, end)"), NULL;
    uint64_t from, to;
    uint64_t graph = cudago_read_node(args[0], &from) || cudago_read_node(args[1], &to) ? 0 : cudago_graph_number(self);
    if (!graph) return NULL;
    cudago_status st = {0};
    int has = cudagoGraphHasEdge(graph, from, to, &st);
    return st.kind ? cudago_raise(&st), NULL : PyBool_FromLong(has);
}

static QUIET int retained_now(GraphObject *self, uint64_t node, cudago_answer *a) {
    if (cudago_graph_open(self)) return -1;
    cudago_status st = {0};
    cudagoGraphRetained(self->id, node, a, &st);
    if (st.kind) return cudago_raise(&st);
    cudago_answer_hold(a);
    return 0;
}

/* _retained(number, or 0 for all): (object, bytes, node, operand, reason) */
PyObject *cudago_graph_retained(GraphObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    cudago_answer a = {0};
    if (cudago_read_node(number, &node) || cudago_graph_ready(self) || retained_now(self, node, &a)) return NULL;
    return cudago_answer_rows(&a);
}

/* The two halves of an answer about parameters, which must be of one moment. */
typedef struct {
    cudago_answer numbers, held;
} params;
static PyObject *params_row(params *a) {
    PyObject *row = cudago_answer_row(&a->numbers), *held = cudago_answer_rows(&a->held);
    PyObject *r = row && held ? PyTuple_Pack(2, row, held) : NULL;
    Py_XDECREF(row);
    Py_XDECREF(held);
    return r;
}

static QUIET int params_now(GraphObject *self, uint64_t node, params *a) {
    if (cudago_graph_open(self)) return -1;
    cudago_status st = {0};
    cudagoGraphParams(self->id, node, &a->numbers, &a->held, &st);
    if (st.kind) return cudago_raise(&st);
    cudago_answer_hold(&a->held);
    return 0;
}

/* _params(number): (numbers ..., kind ...) or None, and the rows of _retained() */
PyObject *cudago_graph_params(GraphObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    params a = {0};
    if (cudago_read_node(number, &node) || cudago_graph_ready(self) || params_now(self, node, &a)) return NULL;
    return params_row(&a);
}

static QUIET PyObject *record_of(uint64_t id, uint64_t node) {
    cudago_status st = {0};
    PyObject *record = (PyObject *)cudagoRecord(id, node, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return NEW_REF(record ? record : Py_None);
}
static QUIET PyObject *record_now(GraphObject *self, uint64_t node) {
    return cudago_graph_open(self) ? NULL : record_of(self->id, node);
}

/* _record(number): the kernel, the configuration and each argument of a kernel node; None if they are unknown */
PyObject *cudago_graph_record(GraphObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    if (cudago_read_node(number, &node) || cudago_graph_ready(self)) return NULL;
    return record_now(self, node);
}

/* _dot() */
PyObject *cudago_graph_dot(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t graph = cudago_graph_number(self);
    if (!graph) return NULL;
    cudago_answer a = {0};
    cudago_status st = {0};
    cudagoGraphDOT(graph, &a, &st);
    return st.kind ? cudago_raise(&st), NULL : cudago_answer_text(&a);
}

/* --- executables -------------------------------------------------------------------------------------------------- */

static QUIET uint64_t exec_number_now(ExecObject *self) { return cudago_exec_open(self) ? 0 : self->id; }

/* _nodes(): (number, name, kind), in the order of the numbers */
PyObject *cudago_exec_nodes(ExecObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t id = exec_number_now(self);
    if (!id) return NULL;
    cudago_answer a = {0};
    cudago_status st = {0};
    cudagoExecNodes(id, &a, &st);
    return rows(&a, &st);
}

/* _edges(): pairs of numbers, of which the second waits for the first */
PyObject *cudago_exec_edges(ExecObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t id = exec_number_now(self);
    if (!id) return NULL;
    cudago_answer a = {0};
    cudago_status st = {0};
    cudagoExecEdges(id, &a, &st);
    return rows(&a, &st);
}

/* _edge_data(): as that of graphs */
PyObject *cudago_exec_edge_data(ExecObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t id = exec_number_now(self);
    if (!id) return NULL;
    cudago_answer a = {0};
    cudago_status st = {0};
    cudagoExecEdgeData(id, &a, &st);
    return rows(&a, &st);
}

/* _count(): how many nodes */
PyObject *cudago_exec_count(ExecObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    uint64_t id = exec_number_now(self);
    if (!id) return NULL;
    cudago_status st = {0};
    uint64_t n = cudagoExecCount(id, &st);
    return st.kind ? cudago_raise(&st), NULL : PyLong_FromUnsignedLongLong(n);
}

static int remember(ExecObject *self, PyObject *name, PyObject *row) {
    if (!self->found && !(self->found = PyDict_New())) return -1;
    return PyDict_SetItem(self->found, name, row);
}

/* _find(name): the rows of _nodes() that have the name. If there is one, the name need not be looked up again. */
PyObject *cudago_exec_find(ExecObject *self, PyObject *name) {
    CUDAGO_ENTER(NULL);
    Py_ssize_t n = 0;
    const char *key = name_key(name, &n);
    uint64_t id = PyErr_Occurred() ? 0 : exec_number_now(self);
    if (!id) return NULL;
    cudago_answer a = {0};
    cudago_status st = {0};
    if (key) cudagoExecFind(id, (char *)key, (int)n, &a, &st);
    PyObject *found = rows(&a, &st);
    if (found && PyTuple_Size(found) == 1 && PyUnicode_CheckExact(name) && remember(self, name, PyTuple_GetItem(found, 0))) Py_CLEAR(found);
    return found;
}

static QUIET int exec_retained_now(ExecObject *self, cudago_answer *a) {
    if (cudago_exec_open(self)) return -1;
    cudago_status st = {0};
    cudagoExecRetained(self->id, a, &st);
    if (st.kind) return cudago_raise(&st);
    cudago_answer_hold(a);
    return 0;
}

/* _retained(): (object, bytes, node, operand, reason) */
PyObject *cudago_exec_retained(ExecObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_answer a = {0};
    return exec_retained_now(self, &a) ? NULL : cudago_answer_rows(&a);
}

static QUIET PyObject *exec_record_now(ExecObject *self, uint64_t node) {
    if (cudago_exec_open(self)) return NULL;
    PyObject *record = cudago_owned_record(cudago_owned_find(self->x, node));
    return record ? record : record_of(self->id, node);
}

/* _record(number): as of a graph */
PyObject *cudago_exec_record(ExecObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    return cudago_read_node(number, &node) ? NULL : exec_record_now(self, node);
}

/* _is_enabled(node) */
PyObject *cudago_exec_enabled(ExecObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    uint64_t node, id = cudago_read_node(number, &node) ? 0 : exec_number_now(self);
    if (!id) return NULL;
    cudago_status st = {0};
    int enabled = cudagoExecIsEnabled(id, node, &st);
    return st.kind ? cudago_raise(&st), NULL : PyBool_FromLong(enabled);
}

static QUIET int exec_params_now(ExecObject *self, uint64_t node, params *a) {
    if (cudago_exec_open(self)) return -1;
    cudago_status st = {0};
    cudagoExecParams(self->id, node, &a->numbers, &a->held, &st);
    if (st.kind) return cudago_raise(&st);
    cudago_answer_hold(&a->held);
    return 0;
}

/* _params(number): as of a graph */
PyObject *cudago_exec_params(ExecObject *self, PyObject *number) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    params a = {0};
    if (cudago_read_node(number, &node) || exec_params_now(self, node, &a)) return NULL;
    return params_row(&a);
}

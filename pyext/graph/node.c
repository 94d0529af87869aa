/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* The nodes of a graph. */

int cudago_read_place(PyObject *deps, PyObject *name, cudago_place *p) {
    p->n = PyTuple_Size(deps);
    if (p->n < 0) return -1;
    if ((size_t)p->n > sizeof p->few / sizeof *p->few) {
        p->v = p->many = malloc((size_t)p->n * sizeof *p->v);
        if (!p->v) return PyErr_NoMemory(), -1;
    }
    for (Py_ssize_t i = 0; i < p->n; i++) {
        p->v[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(deps, i));
        if (p->v[i] == (uint64_t)-1 && PyErr_Occurred()) return -1;
    }
    return cudago_read_name(name, p);
}

int cudago_read_name(PyObject *name, cudago_place *p) {
    p->name = "";
    p->name_len = 0;
    if (name == Py_None) return 0;
    if (!PyUnicode_Check(name)) return PyErr_Format(PyExc_TypeError, "name must be a str, not %R", (PyObject *)Py_TYPE(name)), -1;
    p->name = PyUnicode_AsUTF8AndSize(name, &p->name_len);
    return p->name ? 0 : -1;
}

PyObject *cudago_node_added(uint64_t node, cudago_status *st) {
    if (st->kind) return cudago_raise(st), NULL;
    return PyLong_FromUnsignedLongLong(node);
}

int cudago_fills(OperandObject *o, uint32_t width) {
    if (!o->nbytes) return PyErr_SetString(PyExc_ValueError, "dst has 0 bytes: a node needs at least one"), -1;
    return cudago_fill_fits(width, o->address, o->nbytes);
}

/* A node may use another device's memory if the graph's device has access to it. */
int cudago_node_reaches(int32_t device, OperandObject *o, const char *what) {
    if (!o->nbytes) return PyErr_Format(PyExc_ValueError, "%s has 0 bytes: a node needs at least one", what), -1;
    return cudago_reaches(o->cell, 0, o->device, device, what, "graph");
}

static QUIET int raise_sizes(const OperandObject *dst, const OperandObject *src) {
    PyErr_Format(PyExc_ValueError, "dst has %llu bytes, src %llu: a copy needs the same size on both sides", (unsigned long long)dst->nbytes,
                 (unsigned long long)src->nbytes);
    return -1;
}

/* The node's number, or 0 with an exception. */
static QUIET uint64_t memcpy_now(GraphObject *self, cudago_place *p, OperandObject *dst, OperandObject *src) {
    if (cudago_graph_open(self) || cudago_operand_now(dst) || cudago_operand_now(src)) return 0;
    if (dst->nbytes != src->nbytes) return raise_sizes(dst, src), 0;
    cudago_ref refs[2];
    cudago_status st = {0};
    cudago_ref_set(&refs[0], (PyObject *)src, src->nbytes, ROLE_SRC, REASON_MEMCPY);
    cudago_ref_set(&refs[1], (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMCPY);
    int apart = !cudago_overlap(dst->address, src->address, dst->nbytes); /* otherwise Go refuses it */
    if (apart && cudago_can_add(self, p, refs, 2, NULL)) return cudago_add_memcpy(self, p, dst, src, refs);
    uint64_t node = cudagoGraphMemcpy(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, dst->address, src->address,
                                      dst->host, src->host, dst->nbytes, refs, &st);
    if (!st.kind) cudago_slots_note(&self->slots, p->note, node);
    return st.kind ? (cudago_raise(&st), 0) : node;
}

static uint64_t add_empty(GraphObject *self, cudago_place *p) {
    uint64_t graph = cudago_graph_number(self);
    cudago_status st = {0};
    uint64_t node = graph ? cudagoGraphEmpty(graph, p->v, (int)p->n, (char *)p->name, (int)p->name_len, &st) : 0;
    return st.kind ? (cudago_raise(&st), 0) : node;
}

/* may_be_empty: a copy of no bytes is a node that does nothing. */
static uint64_t add_memcpy(GraphObject *self, cudago_place *p, PyObject *to, PyObject *from, int may_be_empty) {
    OperandObject *dst = cudago_operand(to, OPERAND_WRITABLE, "dst"), *src = NULL;
    uint64_t node = 0;
    if (dst && (src = cudago_operand(from, 0, "src")) && may_be_empty && !dst->nbytes && !src->nbytes) node = add_empty(self, p);
    else if (src && may_be_empty && (!dst->nbytes || !src->nbytes)) raise_sizes(dst, src);
    else if (src && !cudago_node_reaches(self->device, dst, "dst") &&
             !cudago_node_reaches(self->device, src, "src") && !cudago_graph_ready(self))
        node = memcpy_now(self, p, dst, src);
    Py_XDECREF(dst);
    Py_XDECREF(src);
    return node;
}

/* _add_memcpy(deps, dst, src, name, note) */
PyObject *cudago_graph_memcpy(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    if (n != 5 || cudago_graph_open(self) || cudago_read_place(args[0], args[3], &p) || cudago_read_note(args[4], &p.note)) return NULL;
    uint64_t node = add_memcpy(self, &p, args[1], args[2], 0);
    return node ? PyLong_FromUnsignedLongLong(node) : NULL;
}

/* May it be a side of a copy of all its bytes in their order? */
static QUIET int is_simple(PyObject *o) {
    if (cudago_is_slot(o) || cudago_is(o, CLS_ARRAY)) return 0;
    return !cudago_is_tensor(o) || ((TensorObject *)o)->flags & TENSOR_COMPACT;
}

PyObject *cudago_copy_node(GraphObject *graph, const uint64_t *after, PyObject *const *args, Py_ssize_t n) {
    PLACE(p);
    p.n = after != NULL;
    if (after) p.v[0] = *after;
    if (n != 3) return PyErr_SetString(PyExc_TypeError, "_memcpy(dst, src, name)"), NULL;
    if (!is_simple(args[0]) || !is_simple(args[1])) return NEW_REF(Py_None);
    if (cudago_graph_open(graph) || cudago_read_name(args[2], &p)) return NULL;
    NodeObject *node = cudago_node_new(graph);
    uint64_t number = node ? add_memcpy(graph, &p, args[0], args[1], 1) : 0;
    if (number) cudago_node_number(node, number);
    else Py_CLEAR(node);
    return (PyObject *)node;
}

/* _memcpy(dst, src, name): the new Node; None if that takes more than a copy of bytes, which is Python's affair. */
PyObject *cudago_graph_copy(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    return cudago_copy_node(self, NULL, args, n);
}

static QUIET PyObject *box_now(GraphObject *self, cudago_place *p, OperandObject *dst, OperandObject *src, const cudago_box *box) {
    if (cudago_graph_open(self) || cudago_operand_now(dst) || cudago_operand_now(src) || cudago_box_fits(box, dst, src)) return NULL;
    cudago_ref refs[2];
    cudago_status st = {0};
    cudago_ref_set(&refs[0], (PyObject *)src, src->nbytes, ROLE_SRC, REASON_MEMCPY);
    cudago_ref_set(&refs[1], (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMCPY);
    uint64_t node = cudagoGraphBox(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, dst->address, src->address,
                                   cudago_side(dst), cudago_side(src), (cudago_box *)box, refs, &st);
    return cudago_node_added(node, &st);
}

/* _add_box(deps, dst, src, box, name): as _copy_box */
PyObject *cudago_graph_box(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    cudago_box box;
    if (n != 5 || cudago_graph_open(self) || cudago_read_place(args[0], args[4], &p) || cudago_read_box(args[3], &box)) return NULL;
    OperandObject *dst = cudago_operand(args[1], OPERAND_WRITABLE | OPERAND_BOX, "dst"), *src = NULL;
    PyObject *r = NULL;
    if (dst && (src = cudago_operand(args[2], OPERAND_BOX, "src")) && !cudago_node_reaches(self->device, dst, "dst") &&
        !cudago_node_reaches(self->device, src, "src") && !cudago_graph_ready(self))
        r = box_now(self, &p, dst, src, &box);
    Py_XDECREF(dst);
    Py_XDECREF(src);
    return r;
}

static QUIET PyObject *memset_now(GraphObject *self, cudago_place *p, OperandObject *dst, uint32_t value, uint32_t width) {
    if (cudago_graph_open(self) || cudago_operand_now(dst)) return NULL;
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMSET);
    uint64_t node = cudagoGraphMemset(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, dst->address, value, width,
                                      dst->nbytes / width, &ref, &st);
    if (!st.kind) cudago_slots_note(&self->slots, p->note, node);
    return cudago_node_added(node, &st);
}

/* _add_memset(deps, dst, value, name, note) */
PyObject *cudago_graph_memset(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    uint32_t value, width;
    if (n != 5 || cudago_graph_open(self) || cudago_read_place(args[0], args[3], &p) || cudago_read_note(args[4], &p.note)) return NULL;
    OperandObject *dst = cudago_operand(args[1], OPERAND_WRITABLE, "dst");
    PyObject *r = NULL;
    if (dst && !cudago_node_reaches(self->device, dst, "dst") && !cudago_fill_value(args[2], &value, &width) &&
        !cudago_fills(dst, width) && !cudago_graph_ready(self)) {
        r = memset_now(self, &p, dst, value, width);
        if (!r) cudago_fill_failed(cudago_may_be_lent(dst->cell), dst->address, "dst");
    }
    Py_XDECREF(dst);
    return r;
}

static QUIET PyObject *memop_now(GraphObject *self, cudago_place *p, OperandObject *at, const cudago_memop_value *value, cudago_memop *m) {
    if (cudago_graph_open(self) || cudago_memop_fits(at, value, m)) return NULL;
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)at, at->nbytes, m->waits ? ROLE_SRC : ROLE_DST, REASON_MEMOP);
    uint64_t node = cudagoGraphMemOp(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, at->address, m, &ref, &st);
    return cudago_node_added(node, &st);
}

/* _add_memop(deps, memory, value, condition, name): as _memop */
PyObject *cudago_graph_memop(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    cudago_memop_value value;
    int32_t condition;
    if (n != 5 || cudago_graph_open(self) || cudago_read_place(args[0], args[4], &p) || cudago_int32(args[3], "condition", -1, &condition) ||
        cudago_memop_value_of(args[2], &value))
        return NULL;
    cudago_memop m = {.waits = condition >= 0, .condition = condition < 0 ? 0 : condition};
    OperandObject *at = cudago_memop_operand(args[1], m.waits);
    PyObject *r = NULL;
    if (at && !cudago_node_reaches(self->device, at, m.waits ? "src" : "dst") && !cudago_graph_ready(self)) r = memop_now(self, &p, at, &value, &m);
    Py_XDECREF(at);
    return r;
}

/* A callable as an operand, which owns the record that CUDA's thread is given. */
OperandObject *cudago_callable_operand(PyObject *callable, int32_t device) {
    if (!PyCallable_Check(callable)) {
        PyErr_Format(PyExc_TypeError, "callback must be callable without arguments, not %R", (PyObject *)Py_TYPE(callable));
        return NULL;
    }
    OperandObject *o = cudago_alloc(CLS_OPERAND);
    if (!o) return NULL;
    o->object = NEW_REF(callable);
    o->device = -1;
    if (!(o->call = cudago_call_new(callable, device))) return Py_DECREF(o), NULL;
    return o;
}

/* _add_host(deps, callable, name) */
PyObject *cudago_graph_host(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    if (n != 3 || cudago_graph_open(self) || cudago_read_place(args[0], args[2], &p)) return NULL;
    OperandObject *o = cudago_callable_operand(args[1], self->device);
    uint64_t graph = o ? cudago_graph_number(self) : 0;
    if (!graph) return Py_XDECREF(o), NULL;
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)o, 0, ROLE_CALLBACK, REASON_HOST);
    uint64_t node = cudagoGraphHost(graph, p.v, (int)p.n, (char *)p.name, (int)p.name_len, cudago_host_function(),
                                    (uintptr_t)o->call, &ref, &st);
    Py_DECREF(o);
    return cudago_node_added(node, &st);
}

/* _add_empty(deps, name) */
PyObject *cudago_graph_empty(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    if (n != 2 || cudago_read_place(args[0], args[1], &p)) return NULL;
    uint64_t node = add_empty(self, &p);
    return node ? PyLong_FromUnsignedLongLong(node) : NULL;
}

static QUIET int child_now(GraphObject *self, cudago_place *p, GraphObject *child, int move, uint64_t *node, cudago_status *st) {
    if (cudago_graph_open(self) || cudago_graph_open(child)) return -1;
    *node = cudagoGraphChild(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, child->id, move, st);
    return 0;
}

/* A graph that is moved is closed: it is the other's. */
static PyObject *add_child(GraphObject *self, cudago_place *p, GraphObject *child, int move) {
    uint64_t number;
    cudago_status st = {0};
    if (move && CUDAGO_WATCH("moving", "(O)", child)) return NULL;
    do /* each graph may become busy during the wait for the other */
        if (cudago_graph_ready(self) || cudago_graph_ready(child) || cudago_graph_whole(child)) return NULL;
    while (cudago_graph_busy(self));
    if (child_now(self, p, child, move, &number, &st)) return NULL;
    if (move && !st.kind) cudago_graph_moved(child);
    PyObject *node = cudago_node_added(number, &st);
    if (node && CUDAGO_WATCH(move ? "moved" : "embedded", "(OOO)", self, node, child)) Py_CLEAR(node);
    return node;
}

/* _add_child(deps, graph, name, move) */
PyObject *cudago_graph_child(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    if (n != 4 || cudago_graph_open(self) || cudago_read_place(args[0], args[2], &p) || cudago_expect(args[1], CLS_GRAPH, "graph")) return NULL;
    int move = PyObject_IsTrue(args[3]);
    return move < 0 ? NULL : add_child(self, &p, (GraphObject *)args[1], move);
}

/* CUDAGO_AGAIN while something of either graph is being instantiated. */
static QUIET int event_now(GraphObject *self, cudago_place *p, EventObject *e, int record, const cudago_from *f, uint64_t *node,
                           cudago_status *st) {
    uint64_t from;
    if (cudago_graph_open(self)) return -1;
    if (cudago_graph_busy(self)) return CUDAGO_AGAIN;
    int r = cudago_from_id(f, &from);
    if (r) return r;
    if (!from && cudago_event_usable(self->device, e)) return -1;
    cudago_ref ref;
    cudago_ref_set(&ref, (PyObject *)e, 0, ROLE_EVENT, REASON_EVENT);
    *node = cudagoGraphEvent(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, e->id, record, from, f->node, &ref, st);
    return 0;
}

/* _add_event(deps, event, record, name[, of, number]): adds a node that records the event, or waits for it; or one that
 * does so with the event that a node of a graph or an executable has, of which event is the object */
PyObject *cudago_graph_event(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    cudago_from f;
    if (n < 4 || cudago_graph_open(self) || cudago_read_place(args[0], args[3], &p) || cudago_expect(args[1], CLS_EVENT, "event"))
        return NULL;
    int record = PyObject_IsTrue(args[2]), r;
    if (record < 0 || cudago_read_from(args + 4, n - 4, &f)) return NULL;
    uint64_t node = 0;
    cudago_status st = {0};
    do r = cudago_from_ready(&f) || cudago_graph_ready(self) ? -1 : event_now(self, &p, (EventObject *)args[1], record, &f, &node, &st);
    while (r == CUDAGO_AGAIN);
    return r ? NULL : cudago_node_added(node, &st);
}

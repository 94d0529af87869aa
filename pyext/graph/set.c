/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Changes to one node of a graph, for later executables and clones: see update.c for those of executables. */

/* What the node held before is dropped, which may run Python. */
static PyObject *done(int r, cudago_status *st) {
    if (r) return NULL;
    if (st->kind) return cudago_raise(st), NULL;
    cudago_drain();
    Py_RETURN_NONE;
}

static QUIET int memcpy_now(GraphObject *self, uint64_t node, OperandObject *const *o, PyObject *note, cudago_status *st) {
    if (cudago_graph_open(self)) return -1;
    for (int i = 0; i < 2; i++)
        if (o[i] && cudago_operand_now(o[i])) return -1;
    cudago_set_memcpy(self->id, node, o, st);
    if (!st->kind) cudago_slots_note(&self->slots, note, node);
    return 0;
}

/* _update_memcpy(node, dst or None, src or None, note) */
PyObject *cudago_graph_set_memcpy(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    PyObject *note;
    if (n != 4 || cudago_graph_open(self) || cudago_read_node(args[0], &node) || cudago_read_note(args[3], &note)) return NULL;
    OperandObject *o[2];
    cudago_status st = {0};
    int r = cudago_read_sides(self->device, args + 1, o) || cudago_graph_ready(self) ? -1 : memcpy_now(self, node, o, note, &st);
    Py_XDECREF(o[0]);
    Py_XDECREF(o[1]);
    return done(r, &st);
}

static QUIET int box_now(GraphObject *self, uint64_t node, OperandObject *const *o, const cudago_box *box, cudago_status *st) {
    if (cudago_graph_open(self) || cudago_operand_now(o[0]) || cudago_operand_now(o[1]) || cudago_box_fits(box, o[0], o[1])) return -1;
    cudago_ref refs[2];
    cudago_ref_set(&refs[0], (PyObject *)o[1], o[1]->nbytes, ROLE_SRC, REASON_MEMCPY);
    cudago_ref_set(&refs[1], (PyObject *)o[0], o[0]->nbytes, ROLE_DST, REASON_MEMCPY);
    cudagoUpdateBox(self->id, node, o[0]->address, o[1]->address, cudago_side(o[0]), cudago_side(o[1]), (cudago_box *)box, refs, st);
    return 0;
}

/* _update_box(node, dst, src, box): as _add_box */
PyObject *cudago_graph_set_box(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    cudago_box box;
    if (n != 4 || cudago_graph_open(self) || cudago_read_node(args[0], &node) || cudago_read_box(args[3], &box)) return NULL;
    OperandObject *o[2];
    cudago_status st = {0};
    int r = cudago_read_sides(self->device, args + 1, o) || cudago_graph_ready(self) ? -1 : box_now(self, node, o, &box, &st);
    Py_XDECREF(o[0]);
    Py_XDECREF(o[1]);
    return done(r, &st);
}

typedef struct {
    uint64_t node;
    uint32_t value, width;
    PyObject *note;
} memset_given;
static QUIET int memset_now(GraphObject *self, const memset_given *g, OperandObject *o, cudago_status *st) {
    if (cudago_graph_open(self) || cudago_operand_now(o)) return -1;
    cudago_ref ref;
    cudago_ref_set(&ref, (PyObject *)o, o->nbytes, ROLE_DST, REASON_MEMSET);
    cudagoUpdateMemset(self->id, g->node, o->address, g->value, g->width, o->nbytes / g->width, &ref, st);
    if (!st->kind) cudago_slots_note(&self->slots, g->note, g->node);
    return 0;
}

/* _update_memset(node, dst, value, note) */
PyObject *cudago_graph_set_memset(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    memset_given g;
    if (n != 4 || cudago_graph_open(self) || cudago_read_node(args[0], &g.node) || cudago_fill_value(args[2], &g.value, &g.width) ||
        cudago_read_note(args[3], &g.note))
        return NULL;
    OperandObject *o = cudago_operand(args[1], OPERAND_WRITABLE, "dst");
    cudago_status st = {0};
    int ok = o && !cudago_node_reaches(self->device, o, "dst") && !cudago_fills(o, g.width) && !cudago_graph_ready(self);
    int r = ok ? memset_now(self, &g, o, &st) : -1;
    PyObject *none = done(r, &st);
    if (ok && !none) cudago_fill_failed(cudago_may_be_lent(o->cell), o->address, "dst");
    Py_XDECREF(o);
    return none;
}

int cudago_read_memop(int32_t device, PyObject *const *args, cudago_memop_given *g) {
    int32_t condition;
    g->o = NULL;
    if (cudago_int32(args[2], "condition", -1, &condition) || cudago_memop_value_of(args[1], &g->value)) return -1;
    g->m = (cudago_memop){.waits = condition >= 0, .condition = condition < 0 ? 0 : condition};
    g->o = cudago_memop_operand(args[0], g->m.waits);
    return g->o ? cudago_node_reaches(device, g->o, g->m.waits ? "src" : "dst") : -1;
}
QUIET void cudago_set_memop(uint64_t id, uint64_t node, const cudago_memop_given *g, cudago_status *st) {
    cudago_ref ref;
    cudago_ref_set(&ref, (PyObject *)g->o, g->o->nbytes, g->m.waits ? ROLE_SRC : ROLE_DST, REASON_MEMOP);
    cudagoUpdateMemOp(id, node, g->o->address, (cudago_memop *)&g->m, &ref, st);
}
static QUIET int memop_now(GraphObject *self, uint64_t node, cudago_memop_given *g, cudago_status *st) {
    if (cudago_graph_open(self) || cudago_memop_fits(g->o, &g->value, &g->m)) return -1;
    cudago_set_memop(self->id, node, g, st);
    return 0;
}

/* _update_memop(node, memory, value, condition): as _memop */
PyObject *cudago_graph_set_memop(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    if (n != 4 || cudago_graph_open(self) || cudago_read_node(args[0], &node)) return NULL;
    cudago_memop_given g;
    cudago_status st = {0};
    int r = cudago_read_memop(self->device, args + 1, &g) || cudago_graph_ready(self) ? -1 : memop_now(self, node, &g, &st);
    Py_XDECREF(g.o);
    return done(r, &st);
}

typedef struct {
    GraphObject *graph;
    uint64_t node;
    PyObject *note;
} graph_node;
static int enter_graph(void *at, const cudago_packing *p) {
    GraphObject *graph = ((graph_node *)at)->graph;
    return cudago_condition_fits(p, cudago_graph_hierarchy(graph), 1) || cudago_graph_ready(graph) ? -1 : 0;
}
static QUIET PyObject *kernel_now(void *at, const cudago_packing *p, ConfigObject *c) {
    graph_node *g = at;
    if (cudago_graph_open(g->graph)) return NULL;
    cudago_ref refs[CUDAGO_MAX_PARAMS + 1];
    int n = cudago_refs_of(p, refs);
    cudago_status st = {0};
    cudago_shape shape = cudago_shape_of(c);
    cudagoUpdateKernel(g->graph->id, g->node, p->k->id, &shape, (void **)p->params, refs, n, &st);
    if (!st.kind) cudago_slots_note(&g->graph->slots, g->note, g->node);
    return st.kind ? (cudago_raise(&st), NULL) : NEW_REF(Py_None);
}

/* _update_kernel(node, config, kernel, args, note) */
PyObject *cudago_graph_set_kernel(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    static const cudago_kernel_use set = {enter_graph, kernel_now};
    graph_node at = {.graph = self};
    if (n != 5 || cudago_graph_open(self) || cudago_read_node(args[0], &at.node) || cudago_read_note(args[4], &at.note)) return NULL;
    PyObject *r = cudago_with_kernel_of(&set, &at, self->device, args + 1);
    if (r) cudago_drain();
    if (r && CUDAGO_WATCH("added", "(OK)", self, at.node)) Py_CLEAR(r);
    return r;
}

static QUIET int host_now(GraphObject *self, uint64_t node, OperandObject *o, cudago_status *st) {
    if (cudago_graph_open(self)) return -1;
    cudago_ref ref;
    cudago_ref_set(&ref, (PyObject *)o, 0, ROLE_CALLBACK, REASON_HOST);
    cudagoUpdateHost(self->id, node, cudago_host_function(), (uintptr_t)o->call, &ref, st);
    return 0;
}

/* _update_host(node, callable) */
PyObject *cudago_graph_set_host(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    if (n != 2 || cudago_graph_open(self) || cudago_read_node(args[0], &node)) return NULL;
    OperandObject *o = cudago_callable_operand(args[1], self->device);
    cudago_status st = {0};
    int r = o && !cudago_graph_ready(self) ? host_now(self, node, o, &st) : -1;
    Py_XDECREF(o);
    return done(r, &st);
}

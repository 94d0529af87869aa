/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Called by held.go with the GIL. -1: out of memory. */
QUIET int cudago_held_grow(cudago_held *h) {
    size_t cap = h->cap ? 2 * h->cap : 8;
    PyObject **v = realloc(h->v, cap * sizeof *v);
    if (!v) return -1;
    h->v = v;
    h->cap = cap;
    return 0;
}

enum { NEWEST = 64 };

static QUIET int take_out(cudago_held *h, size_t i, uintptr_t object) {
    if (i >= h->n || (uintptr_t)h->v[i] != object) return 0;
    h->v[i] = h->v[--h->n];
    return 1;
}

/* Most often it is one of the newest. Who updates all nodes, one after the other, finds each near the one before. */
QUIET void cudago_held_hide(cudago_held *h, uintptr_t object) {
    h->changed = 1;
    size_t n = h->n, near = h->near < n ? h->near : n;
    for (size_t i = n; i > 0 && i + NEWEST > n; i--)
        if (take_out(h, i - 1, object)) return;
    for (size_t away = 0; away <= n; away++) {
        h->near = near + away;
        if (take_out(h, h->near, object)) return;
        h->near = away <= near ? near - away : n;
        if (take_out(h, h->near, object)) return;
    }
}

/* If memory runs out, nothing is found until the list changes again. */
static QUIET void find_stored(cudago_held *h) {
    h->changed = 0;
    h->n_stored = 0;
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = n = 0; i < h->n; i++) {
            OperandObject *o = (OperandObject *)h->v[i];
            if (Py_TYPE((PyObject *)o) != cudago_cls[CLS_OPERAND] || !o->storage.data) continue;
            if (pass) h->stored[n] = o;
            n++;
        }
        if (pass || !n) continue;
        OperandObject **stored = realloc(h->stored, n * sizeof(OperandObject *));
        if (!stored) return;
        h->stored = stored;
    }
    h->n_stored = n;
}

static QUIET OperandObject *find_moved(cudago_held *h) {
    if (!cudago_operands_stored) return NULL;
    if (h->changed) find_stored(h);
    for (size_t i = 0; i < h->n_stored; i++)
        if (cudago_operand_moved(h->stored[i])) return h->stored[i];
    return NULL;
}

static QUIET OperandObject *find_lost(const cudago_held *h) {
    for (size_t i = 0; cudago_resets && i < h->n; i++) {
        OperandObject *o = (OperandObject *)h->v[i];
        if (Py_TYPE((PyObject *)o) == cudago_cls[CLS_OPERAND] && o->cell && cudago_cell_lost(o->cell)) return o;
    }
    return NULL;
}

/* What is found once after a reset holds until the next: updates look at what they are given, and those with a graph have
 * the next launch look again. */
QUIET int cudago_held_find_gone(cudago_held *h, uint64_t exec) {
    int32_t device;
    if (h->resets != cudago_resets) {
        if (find_lost(h) || cudagoExecLost(exec, NULL, &device)) return 1;
        h->resets = cudago_resets;
    }
    return find_moved(h) != NULL;
}

/* --- refusals --------------------------------------------------------------------------------------------------------- */

/* What messages call an operand of a graph or an executable; NULL with an exception. */
static PyObject *name_of(PyObject *self, OperandObject *o) {
    PyObject *names = PyImport_ImportModule("cudago._graph.retained");
    PyObject *name = names ? PyObject_CallMethod(names, "_name_of", "OO", self, (PyObject *)o) : NULL;
    Py_XDECREF(names);
    return name;
}

/* What is gone: an Operand, or something else, which Go names. */
typedef struct {
    OperandObject *operand;
    char *what;
    int32_t device;
} gone;

static QUIET int find_operand(cudago_held *h, gone *g) {
    if (!(g->operand = find_lost(h))) g->operand = find_moved(h);
    return g->operand != NULL;
}

static int refuse_operand(PyObject *self, OperandObject *o) {
    Py_INCREF(o); /* naming it may end the hold */
    PyObject *name = name_of(self, o);
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (text && o->cell && cudago_cell_lost(o->cell)) cudago_raise_no_cell(o->cell, text);
    else if (text) cudago_raise_moved(text);
    Py_XDECREF(name);
    Py_DECREF(o);
    return -1;
}

static int refuse(PyObject *self, gone *g) {
    if (g->operand) return refuse_operand(self, g->operand);
    cudago_raise_lost(g->what, g->device);
    free(g->what);
    return -1;
}

/* 1 if something is gone. */
static QUIET int exec_now(ExecObject *self, gone *g) {
    if (cudago_exec_open(self)) return -1;
    if (!cudago_held_gone(self->held, self->x->id)) return 0;
    return find_operand(self->held, g) || cudagoExecLost(self->x->id, &g->what, &g->device);
}
int cudago_exec_whole(ExecObject *self) {
    gone g = {0};
    int r = exec_now(self, &g);
    return r > 0 ? refuse((PyObject *)self, &g) : r;
}

static QUIET int graph_now(GraphObject *self, gone *g) {
    if (!(cudago_operands_stored || cudago_resets)) return 0;
    if (cudago_graph_open(self)) return -1;
    if (!self->held) return 0; /* a body: the graph that it is in holds for it */
    cudago_nodes_show(self->nodes, self->held);
    return find_operand(self->held, g) || (cudago_resets && cudagoGraphLost(self->id, &g->what, &g->device));
}
int cudago_graph_whole(GraphObject *self) {
    gone g = {0};
    int r = graph_now(self, &g);
    return r > 0 ? refuse((PyObject *)self, &g) : r;
}

void cudago_held_count(const uintptr_t *objects, size_t n) {
    for (size_t i = 0; i < n; i++) Py_IncRef((PyObject *)objects[i]);
}

cudago_held *cudago_held_new(void) { return calloc(1, sizeof(cudago_held)); }
void cudago_held_free(cudago_held *h) {
    if (h) free(h->v), free(h->stored);
    free(h);
}

int cudago_held_traverse(cudago_held *h, visitproc visit, void *arg) {
    for (size_t i = 0; h && !cudago_unusable && i < h->n; i++) Py_VISIT(h->v[i]); /* at exit Go has freed the lists */
    return 0;
}

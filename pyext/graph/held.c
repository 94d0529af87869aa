/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* If memory runs out the object stays invisible to the collector, which at worst leaks a cycle; its count is kept. */
static void add(cudago_held *h, const cudago_change *c) {
    if (!c->own) Py_IncRef((PyObject *)c->object);
    if (h->n == h->cap) {
        size_t cap = h->cap ? 2 * h->cap : 8;
        PyObject **v = realloc(h->v, cap * sizeof *v);
        if (!v) return;
        h->v = v;
        h->cap = cap;
    }
    h->v[h->n++] = (PyObject *)c->object;
}

static void take_out(cudago_held *h, const cudago_change *c) {
    for (size_t i = h->n; i-- > 0;) { /* most often the newest goes first */
        if (h->v[i] != (PyObject *)c->object) continue;
        h->v[i] = h->v[--h->n];
        break;
    }
    if (!c->own) Py_DecRef((PyObject *)c->object);
}

/* Called by held.go with the GIL, once for all changes of a call. */
void cudago_held_apply(cudago_held *h, cudago_change *changes, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (changes[i].add) add(h, &changes[i]);
        else take_out(h, &changes[i]);
}

cudago_held *cudago_held_new(void) { return calloc(1, sizeof(cudago_held)); }
void cudago_held_free(cudago_held *h) {
    if (h) free(h->v);
    free(h);
}

int cudago_held_traverse(cudago_held *h, visitproc visit, void *arg) {
    for (size_t i = 0; h && !cudago_unusable && i < h->n; i++) Py_VISIT(h->v[i]); /* at exit Go has freed the lists */
    return 0;
}

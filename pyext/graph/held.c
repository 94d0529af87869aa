/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* Called by held.go with the GIL. -1: out of memory. */
QUIET int cudago_held_grow(cudago_held *h) {
    size_t cap = h->cap ? 2 * h->cap : 8;
    PyObject **v = realloc(h->v, cap * sizeof *v);
    if (!v) return -1;
    h->v = v;
    h->cap = cap;
    return 0;
}
void cudago_held_count(const uintptr_t *objects, size_t n) {
    for (size_t i = 0; i < n; i++) Py_IncRef((PyObject *)objects[i]);
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

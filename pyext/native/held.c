/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* Called by held.go with the GIL. take: the reference is Go's own, so far invisible to the collector; otherwise one more
 * is counted. Returns 0, or -1 when memory is out: then the object stays invisible, which leaks a cycle at worst. */
int cudago_held_add(cudago_held *h, uintptr_t object, int take) {
    if (h->n == h->cap) {
        size_t cap = h->cap ? 2 * h->cap : 8;
        PyObject **v = realloc(h->v, cap * sizeof *v);
        if (!v) return -1;
        h->v = v;
        h->cap = cap;
    }
    if (!take) Py_IncRef((PyObject *)object);
    h->v[h->n++] = (PyObject *)object;
    return 0;
}

/* Takes one entry out; drop: gives its count back too. 0 if there was none. */
int cudago_held_remove(cudago_held *h, uintptr_t object, int drop) {
    for (size_t i = h->n; i-- > 0;) {
        if (h->v[i] != (PyObject *)object) continue;
        h->v[i] = h->v[--h->n];
        if (drop) Py_DecRef((PyObject *)object);
        return 1;
    }
    return 0;
}

cudago_held *cudago_held_new(void) { return calloc(1, sizeof(cudago_held)); }
void cudago_held_free(cudago_held *h) {
    if (h) free(h->v);
    free(h);
}

int cudago_held_traverse(cudago_held *h, visitproc visit, void *arg) {
    for (size_t i = 0; h && i < h->n; i++) Py_VISIT(h->v[i]);
    return 0;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

/* Large allocations, for the error that there is no memory: who holds the most, and which line made it. Small ones are
 * many and fast, and seldom the answer. */

enum { MOST_ASKED = 16 };

static cudago_pool_cell *latest; /* guarded by the GIL */

QUIET void cudago_large_add(cudago_pool_cell *c) {
    c->site = cudago_site();
    c->newer = NULL;
    c->older = latest;
    if (latest) latest->newer = c;
    latest = c;
    c->listed = 1;
}

QUIET void cudago_large_remove(cudago_pool_cell *c) {
    if (c->newer) c->newer->older = c->older;
    else latest = c->older;
    if (c->older) c->older->newer = c->newer;
    c->listed = 0;
}

typedef struct {
    uint64_t size, ptr;
    int32_t kind, device;
    uint32_t site;
} large;

/* The n largest that a reset has not taken; returns how many there are. */
static QUIET int find(large *found, int n) {
    int most = n;
    n = 0;
    for (const cudago_pool_cell *c = latest; c; c = c->older) {
        if (cudago_cell_lost(&c->cell)) continue;
        int at = n < most ? n++ : most;
        while (at && found[at - 1].size < c->cell.size) {
            if (at < most) found[at] = found[at - 1];
            at--;
        }
        if (at < most) found[at] = (large){c->cell.size, c->cell.ptr, (int32_t)c->cell.kind, c->cell.ordinal, c->site};
    }
    return n;
}

static PyObject *row_of(const large *l) {
    const char *kind = l->kind == CUDAGO_CELL_PINNED ? "pinned" : l->kind == CUDAGO_CELL_MANAGED ? "managed"
                                                                                                 : "device";
    return Py_BuildValue("(KKsiN)", (unsigned long long)l->size, (unsigned long long)l->ptr, kind, (int)l->device, cudago_site_text(l->site));
}

/* _largest(n): the n largest allocations that are held, of at least CUDAGO_LARGE_BYTES, each as size, address, kind,
 * device and the line that made it, or None. */
PyObject *cudago_largest(PyObject *module, PyObject *count) {
    (void)module;
    CUDAGO_ENTER(NULL);
    int32_t n;
    large found[MOST_ASKED];
    if (cudago_int32(count, "count", 0, &n)) return NULL;
    n = find(found, n < MOST_ASKED ? n : MOST_ASKED);
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < n; i++) {
        PyObject *row = row_of(&found[i]);
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

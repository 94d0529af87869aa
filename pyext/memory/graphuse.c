/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

/* Memory of graphs, between its uses and its frees. A use looks whether the memory is allocated, and NVIDIA's driver crashes
 * in a copy of memory that is not. Either may be in the driver without the GIL. So a free waits for the uses under way, and
 * there is no use while a free is. Guarded by the GIL. */

static cudago_go_cell *in_use;
static cudago_frees *under_way;

static QUIET int has(const uint64_t *at, int n, uint64_t ptr) {
    for (int i = 0; i < n; i++)
        if (at[i] == ptr) return 1;
    return 0;
}

QUIET int cudago_graph_memory_reserve(cudago_cell *cell) {
    cudago_go_cell *c = (cudago_go_cell *)cell;
    for (const cudago_frees *f = under_way; f; f = f->next)
        if (has(f->at, f->n, cell->ptr)) return PyErr_SetString(PyExc_ValueError, "another thread is freeing this memory of a graph"), -1;
    if (cudago_cell_allocated(cell)) return -1;
    if (!c->in_use++) c->next = in_use, in_use = c;
    return 0;
}

QUIET void cudago_graph_memory_note(cudago_cell *cell) {
    cudago_go_cell *c = (cudago_go_cell *)cell, **at = &in_use;
    if (--c->in_use) return;
    while (*at != c) at = &(*at)->next;
    *at = c->next;
}

QUIET int cudago_graph_memory_in_use(const uint64_t *at, int n) {
    for (const cudago_go_cell *c = in_use; c; c = c->next)
        if (has(at, n, c->cell.ptr)) return 1;
    return 0;
}

QUIET void cudago_frees_begin(cudago_frees *f) {
    f->next = under_way;
    under_way = f;
}
QUIET void cudago_frees_end(cudago_frees *f) {
    cudago_frees **at = &under_way;
    while (*at != f) at = &(*at)->next;
    *at = f->next;
}

static int refuse(void) {
    PyErr_SetString(PyExc_ValueError, "the memory cannot be freed in a callback now: another thread is about to use it, and may be "
                                      "waiting for the callback");
    return -1;
}

int cudago_graph_memory_wait(const uint64_t *at, int n) {
    if (cudago_on_callback_thread()) return refuse();
    cudago_frees frees = {at, n};
    cudago_frees_begin(&frees); /* otherwise threads that use it again and again would leave no moment without one */
    cudago_nap(CUDAGO_NAP_US);
    cudago_frees_end(&frees);
    return PyErr_CheckSignals();
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* What one lock of package graph guards: see cudago_hierarchy in graph.h. */

cudago_hierarchy *cudago_hierarchy_new(void) {
    cudago_hierarchy *h = calloc(1, sizeof *h);
    if (!h) return (cudago_hierarchy *)PyErr_NoMemory();
    h->refs = 1;
    return h;
}
QUIET cudago_hierarchy *cudago_hierarchy_retain(cudago_hierarchy *h) { return h->refs++, h; }
QUIET void cudago_hierarchy_release(cudago_hierarchy *h) {
    if (h && !--h->refs) free(h);
}
int cudago_hierarchy_wait(cudago_hierarchy *h) {
    int stopped = 0;
    if (!h->busy) return 0;
    h->refs++; /* the caller's object may be closed meanwhile */
    while (h->busy && !stopped) {
        cudago_nap(CUDAGO_NAP_US);
        stopped = PyErr_CheckSignals();
    }
    cudago_hierarchy_release(h);
    return stopped ? -1 : 0;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* The streams that memory of a pool was freed on. Streams come and go while a pool stays, so those that are closed are
 * taken out before the list grows. */

enum { FEWEST = 16 };

QUIET cudago_pool *cudago_pool_new(uint64_t id) {
    cudago_pool *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->holders = 1;
    p->id = id;
    return p;
}

static QUIET int make_room(cudago_pool *p) {
    p->n = (uint32_t)cudagoStreamsOpen(p->streams, (int)p->n);
    if (2 * p->n < p->cap) return 1;
    uint32_t cap = p->cap ? 2 * p->cap : FEWEST;
    uint64_t *more = realloc(p->streams, cap * sizeof *more);
    if (!more) return 0;
    p->streams = more;
    p->cap = cap;
    return 1;
}

QUIET void cudago_pool_freed_on(cudago_pool *p, uint64_t stream) {
    for (uint32_t i = p->n; i-- > 0;)
        if (p->streams[i] == stream) return;
    if (p->n < p->cap || make_room(p)) p->streams[p->n++] = stream;
}

QUIET void cudago_pool_let_go(cudago_pool *p) {
    if (--p->holders) return;
    if (!cudago_unusable) cudagoPoolRelease(p->id, p->streams, (int)p->n);
    free(p->streams);
    free(p);
}

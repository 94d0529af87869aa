/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

/* Sets of uses. An allocation is freed after its uses and exported behind them; an executable keeps its operands until
 * its uses have ended. A use holds the stream's clock, so the stream may be closed first. */

QUIET void cudago_clock_release(cudago_clock *c) {
    if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) == 1) free(c);
}

static QUIET cudago_use *find(cudago_uses *u, const cudago_stream *s) {
    cudago_use *v = cudago_uses_at(u);
    for (uint32_t i = 0; i < u->n; i++)
        if (v[i].clock == s->clock) return &v[i];
    return NULL;
}

static QUIET int is_over(const cudago_use *use) { return !use->reserved && !cudago_pending(use->clock, use->position); }

/* A place for one more use: that of a use that is over, or one at the end. */
static QUIET cudago_use *place(cudago_uses *u) {
    cudago_use *v = cudago_uses_at(u);
    for (uint32_t i = 0; i < u->n; i++) {
        if (!is_over(&v[i])) continue;
        cudago_clock_release(v[i].clock);
        return &v[i];
    }
    uint32_t room = u->cap ? u->cap : CUDAGO_USES_INLINE;
    if (u->n == room) {
        cudago_use *more = malloc(2 * room * sizeof *more);
        if (!more) return PyErr_NoMemory(), NULL;
        memcpy(more, v, room * sizeof *more);
        if (u->cap) free(u->many);
        u->many = v = more;
        u->cap = 2 * room;
    }
    return &v[u->n++];
}

/* For a stream that is not the first of the set. */
QUIET int cudago_uses_reserve_next(cudago_uses *u, cudago_stream *s) {
    cudago_use *use = find(u, s);
    if (!use) {
        if (!(use = place(u))) return -1;
        *use = (cudago_use){.clock = s->clock};
        atomic_fetch_add_explicit(&s->clock->refs, 1, memory_order_relaxed);
    }
    use->reserved++;
    return 0;
}

QUIET int cudago_uses_pending(cudago_uses *u) {
    cudago_use *v = cudago_uses_at(u);
    for (uint32_t i = 0; i < u->n; i++)
        if (!is_over(&v[i])) return 1;
    return 0;
}

QUIET void cudago_uses_free_some(cudago_uses *u) {
    cudago_use *v = cudago_uses_at(u);
    for (uint32_t i = 0; i < u->n; i++) cudago_clock_release(v[i].clock);
    if (u->cap) free(u->many);
    *u = (cudago_uses){0};
}

int cudago_join_handle(int32_t device, uintptr_t into, cudago_clock *from, uint64_t position) {
    cudago_status st = {0};
    if (!cudago_pending(from, position)) return 0;
    PyThreadState *t = cudago_step_aside();
    int again = cudagoLineJoinHandle(from->id, position, device, into, &st);
    cudago_step_back(t);
    return st.kind ? cudago_raise(&st) : again ? CUDAGO_AGAIN
                                               : 0;
}

QUIET int cudago_join_or_later(cudago_stream *into, cudago_clock *from, uint64_t position, int32_t *failed) {
    cudago_status st = {0};
    int later = into->clock != from && cudago_pending(from, position) && cudagoLineJoin(from->id, position, into->id, &st);
    free(st.message);
    free(st.detail);
    *failed = st.kind;
    return later || st.kind;
}

QUIET int cudago_unmarkable(cudago_clock *c, uint64_t position) {
    if (position <= atomic_load(&c->marked)) return 0;
    cudago_stream *s = cudago_streams;
    while (s && s->clock != c) s = s->next;
    return s ? cudago_capturing(s) : 0;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

/* What work in flight uses and the driver does not know: objects of other libraries, the host's memory. A stream has one
 * open batch of such references. Work adds to it, which enters Go only for the first of a batch, and the reaper closes it
 * a moment later (keep.go): one event and one look at it serve all that was queued meanwhile.
 *
 * Those who add have the GIL, and the reaper has not. So an adder takes the batch out, and the reaper, which takes it for
 * good, finds none there meanwhile and comes again. */

enum { FEWEST = 16 };

/* A batch with room for n more: b, or its contents in a new one. NULL: no memory, and b is as it was. */
static QUIET cudago_batch *with_room(cudago_batch *b, size_t n) {
    if (b && b->cap - b->n >= n) return b;
    size_t had = b ? b->n : 0, cap = had + n < FEWEST ? FEWEST : 2 * (had + n);
    cudago_batch *more = malloc(sizeof *more + cap * sizeof *more->refs);
    if (!more) return NULL;
    more->n = had;
    more->cap = cap;
    more->position = b ? b->position : 0;
    if (had) memcpy(more->refs, b->refs, had * sizeof *b->refs);
    free(b);
    return more;
}

/* Puts the batch back, and has the reaper look after it unless it does so already. */
static QUIET void put_back(cudago_stream *s, cudago_batch *b) {
    atomic_store(&s->kept, b);
    if (!atomic_load(&s->watched) && !atomic_exchange(&s->watched, 1)) cudagoKeepWatch(s->id);
}

/* The reaper makes no marks in a stream whose handle others have, so this thread does. While callbacks are alive that needs
 * the GIL released: cudago_leave_end. */
static QUIET void mark_exposed(cudago_stream *s) {
    if (cudago_callbacks_alive) s->unmarked = 1;
    else cudagoLineProve(s->id);
}

QUIET void cudago_keep_until(cudago_stream *s, uint64_t position, uintptr_t *refs, size_t n) {
    cudago_batch *old = atomic_exchange(&s->kept, NULL), *b = with_room(old, n);
    if (b) {
        memcpy(b->refs + b->n, refs, n * sizeof *refs);
        b->n += n;
        if (position > b->position) b->position = position;
        put_back(s, b);
    } else {
        if (old) put_back(s, old);
        cudagoKeepUntil(s->id, position, refs, (int)n);
    }
    if (s->clock->exposed) mark_exposed(s);
}

void cudago_mark_kept(cudago_stream *s) {
    uint64_t id = s->id;
    s->unmarked = 0;
    PyThreadState *t = cudago_step_aside();
    cudagoLineProve(id);
    cudago_step_back(t);
}

cudago_batch *cudago_batch_take(cudago_stream *s) { return atomic_exchange(&s->kept, NULL); }

/* After a wait: what has ended is dropped by the thread that waited. */
void cudago_keep_drop(cudago_stream *s) {
    cudago_batch *b = cudago_batch_take(s);
    if (!b) return;
    if (cudago_pending(s->clock, b->position)) {
        put_back(s, b);
        return;
    }
    cudago_drop_references(b->refs, b->n);
    free(b);
}

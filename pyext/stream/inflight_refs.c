/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

/* What work in flight uses and the driver does not know: objects of other libraries, the host's memory. A stream has one
 * open batch of such references. Work adds to it, which enters Go only if there was none for a while, and the reaper closes
 * it a moment later (inflight_refs.go): one event and one look at it serve all that was queued meanwhile.
 *
 * Those who add have the GIL, and the reaper has not. So an adder takes the batch out, and the reaper, which takes it for
 * good, finds none there meanwhile and comes again. */

enum { FEWEST = 16,
       RECENT = 16 };

/* A batch with room for n more: b, or its contents in a new one. NULL: no memory, and b is as it was. */
static QUIET cudago_batch *with_room(cudago_batch *b, size_t n) {
    if (b && b->cap - b->n >= n) return b;
    size_t had = b ? b->n : 0, cap = had + n < FEWEST ? FEWEST : 2 * (had + n);
    cudago_batch *more = malloc(sizeof *more + cap * sizeof *more->refs);
    if (!more) return NULL;
    *more = b ? *b : (cudago_batch){0};
    more->cap = cap;
    if (had) memcpy(more->refs, b->refs, had * sizeof *b->refs);
    free(b);
    return more;
}

/* Loops queue work with the same objects again and again: are they among the latest? */
static QUIET int has(const cudago_batch *b, const uintptr_t *refs, size_t n) {
    size_t first = b->n > RECENT ? b->n - RECENT : 0;
    for (size_t i = b->n; i >= first + n; i--)
        if (!memcmp(b->refs + i - n, refs, n * sizeof *refs)) return 1;
    return 0;
}

/* Nothing runs when a reference is dropped that the batch has too. */
static QUIET void add(cudago_batch *b, uint64_t position, uintptr_t *refs, size_t n) {
    if (position > b->position) b->position = position;
    if (has(b, refs, n)) {
        cudago_drop_references(refs, n);
        return;
    }
    memcpy(b->refs + b->n, refs, n * sizeof *refs);
    b->n += n;
}

/* Puts the batch back, and has the reaper look after it unless it does so already. */
static QUIET void put_back(cudago_stream *s, cudago_batch *b) {
    atomic_store(&s->kept, b);
    if (!atomic_load(&s->watched) && !atomic_exchange(&s->watched, 1)) cudagoKeepWatch(s->id);
}

/* Records the batch's event behind all that is queued. 0 if it could not. */
static QUIET int cover(cudago_stream *s, cudago_batch *b) {
    if (cudago_callbacks_alive || !b || (!b->event && !(b->event = cudagoKeepEvent(s->id)))) return 0;
    if (cudago_maybe_capturing(s)) return 0;
    uint64_t queued = atomic_load(&s->clock->queued);
    uintptr_t pushed;
    int32_t r = cudago_ctx_enter(s->ctx, &pushed);
    if (!r) r = cudago_event_record(b->event, s->h);
    cudago_ctx_leave(pushed);
    b->covered = r ? 0 : queued; /* after a failure it may stand nowhere */
    return !r;
}

/* The reaper makes no marks in a stream whose handle others have, so this thread does. While callbacks are alive that needs
 * the GIL released: cudago_leave_end. */
static QUIET void mark_exposed(cudago_stream *s, cudago_batch *b) {
    if (cover(s, b)) return;
    if (cudago_callbacks_alive) s->unmarked = 1;
    else cudagoLineProve(s->id);
}

QUIET void cudago_keep_until(cudago_stream *s, uint64_t position, uintptr_t *refs, size_t n) {
    cudago_batch *old = atomic_exchange(&s->kept, NULL), *b = with_room(old, n);
    if (b) add(b, position, refs, n);
    else cudagoKeepUntil(s->id, position, refs, (int)n);
    if (s->clock->exposed) mark_exposed(s, b ? b : old);
    if (b || old) put_back(s, b ? b : old);
}

void cudago_mark_kept(cudago_stream *s) {
    uint64_t id = s->id;
    s->unmarked = 0;
    PyThreadState *t = cudago_step_aside();
    cudagoLineProve(id);
    cudago_step_back(t);
}

cudago_batch *cudago_batch_take(cudago_stream *s) { return atomic_exchange(&s->kept, NULL); }

int cudago_batch_is_open(cudago_stream *s) { return atomic_load(&s->kept) != NULL; }

/* The open batch, if it is known to have ended. */
static void drop_batch(cudago_stream *s) {
    cudago_batch *b = cudago_batch_take(s);
    if (!b) return;
    if (cudago_pending(s->clock, b->position)) {
        put_back(s, b);
        return;
    }
    if (b->event) cudagoKeepEventOver(b->event);
    cudago_drop_references(b->refs, b->n);
    free(b);
}

/* What waits in Go. What is released may be a graph or an event, whose end can wait in the driver for a thread that waits for
 * a callback, or is stuck in a launch: while there is one it is left to the reaper, so that a wait that is over never hangs. */
static void settle(uint64_t id) {
    if (cudago_callbacks_alive || cudago_queues_busy()) return;
    if (!cudagoLineOwes(id)) return; /* beside a busy thread it takes milliseconds to get the GIL back */
    Py_BEGIN_ALLOW_THREADS
    cudagoLineSettle(id);
    Py_END_ALLOW_THREADS
}

/* The batch comes first: where it is gone, the reaper has it, and Go waits until that has moved it on. */
void cudago_let_go(cudago_stream *s) {
    uint64_t id = s->id;
    drop_batch(s);
    settle(id);
}

/* By number, since a block may go during the wait, and one that nobody has any more cannot be held. */
struct cudago_awaited {
    struct cudago_awaited *next;
    uint64_t id, position; /* 0: nothing is pending */
    int kept;
};
static QUIET cudago_awaited *add_awaited(cudago_awaited *all, cudago_stream *s) {
    cudago_awaited *a = malloc(sizeof *a);
    if (!a) return all; /* then the reaper learns of it */
    uint64_t queued = atomic_load(&s->clock->queued);
    if (atomic_load(&s->clock->proven) >= queued) queued = 0;
    *a = (cudago_awaited){all, s->id, queued, atomic_load(&s->kept) != NULL};
    return a;
}
/* Streams of other contexts go on. */
cudago_awaited *cudago_awaited_begin(int32_t device) {
    cudago_awaited *all = NULL;
    uintptr_t ctx = cudago_context_of(device);
    for (cudago_stream *s = cudago_streams; s; s = s->next)
        if (s->device == device && !cudago_stream_lost(s) && s->ctx == ctx) all = add_awaited(all, s);
    return all;
}
static void over(const cudago_awaited *a) {
    if (a->position) cudagoLineProved(a->id, a->position);
    for (cudago_stream *s = a->kept ? cudago_streams : NULL; s; s = s->next)
        if (s->id == a->id) {
            drop_batch(s);
            break;
        }
    settle(a->id);
}
void cudago_awaited_end(cudago_awaited *all, int waited) {
    while (all) {
        cudago_awaited *a = all;
        all = a->next;
        if (waited) over(a);
        free(a);
    }
}

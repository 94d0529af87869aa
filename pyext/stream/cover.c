/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

/* Work in another library's stream, or in the legacy default stream, is marked by the thread that has queued it, because
 * nobody else may do so later. Go's marks have an event each, which costs a launch several crossings. So a stream has one
 * event here, the cover, that is recorded again behind each work, without the GIL and without Go, and that Go takes away
 * when it wants to know what has ended (graph.Line, LineOptions.Latest). It leaves another one there.
 *
 * A cover may be recorded again only in the stream that it stands in: then the new place is behind all that it covered. The
 * handle may be another stream's by now, so each record asks for the stream's number, of which no two are equal
 * (cuStreamGetId, CUDA 12.0). The per-thread default stream is one of each thread, and has no cover. */

/* Threads that record a cover: they and the begin of a capture exclude each other, as Driver.capture in Go does. While a
 * capture is open, Go records. */
static _Atomic int recording;

QUIET int cudago_covers_over(void) { return !atomic_load(&recording); }

/* The position of the work that was just queued; 0: Go is to give it one. The cover then covers what it did before. */
static uint64_t record(cudago_stream *s, cudago_cover *c) {
    unsigned long long number = 0;
    int32_t capturing = 0;
    if (cu.cuStreamGetId(s->h, &number) || (c->covered && c->number != number)) return 0;
    if (cu.cuStreamIsCapturing(s->h, &capturing) || capturing) return 0;
    uint64_t position = atomic_fetch_add_explicit(&s->clock->queued, 1, memory_order_release) + 1; /* before the record: see graph.Line */
    if (cu.cuEventRecord(c->event, s->h)) return c->covered = 0; /* it may stand nowhere now */
    c->number = number;
    return c->covered = position;
}

static uint64_t record_alone(cudago_stream *s, cudago_cover *c) {
    uintptr_t pushed;
    uint64_t position = 0;
    atomic_fetch_add(&recording, 1);
    if (!atomic_load(&cudago_captures_open) && !cudago_ctx_enter(s->ctx, &pushed)) {
        position = record(s, c);
        cudago_ctx_leave(pushed);
    }
    atomic_fetch_sub(&recording, 1);
    return position;
}

/* Puts c where the next work finds it, or gives its event back if another thread has put one there. */
static void offer(cudago_stream *s, cudago_cover *c) {
    cudago_cover *none = NULL;
    if (atomic_compare_exchange_strong(&s->cover, &none, c)) return;
    cudagoCoverOver(s->id, c->event, c->covered);
    free(c);
}

static void make(cudago_stream *s) {
    cudago_cover *c = atomic_load(&s->cover) ? NULL : malloc(sizeof *c);
    if (!c) return;
    *c = (cudago_cover){.event = cudagoCoverEvent(s->id)};
    if (c->event) offer(s, c);
    else free(c);
}

uint64_t cudago_covered_work(cudago_stream *s) {
    if (s->h == CU_STREAM_PER_THREAD) return cudagoLineMarked(s->id);
    cudago_cover *c = atomic_exchange(&s->cover, NULL);
    uint64_t position = c ? record_alone(s, c) : 0;
    if (c) offer(s, c);
    if (position) return position;
    position = cudagoLineMarked(s->id); /* takes the cover first */
    make(s);
    return position;
}

static cudago_cover contents(cudago_cover *c) {
    cudago_cover taken = {0};
    if (c) taken = *c;
    free(c);
    return taken;
}

cudago_cover cudago_cover_take(cudago_stream *s) { return contents(atomic_exchange(&s->cover, NULL)); }

cudago_cover cudago_cover_take_recorded(cudago_stream *s) {
    cudago_cover *c = atomic_exchange(&s->cover, NULL), *none = NULL;
    if (c && !c->covered && atomic_compare_exchange_strong(&s->cover, &none, c)) c = NULL;
    return contents(c);
}

int cudago_cover_put(cudago_stream *s, uintptr_t event) {
    cudago_cover *none = NULL, *c = malloc(sizeof *c);
    if (!c) return 0;
    *c = (cudago_cover){.event = event};
    if (atomic_compare_exchange_strong(&s->cover, &none, c)) return 1;
    free(c);
    return 0;
}

/* Does an event stand behind all that is in a stream nobody holds? */
QUIET int cudago_is_covered(cudago_stream *s) {
    uint64_t queued = atomic_load(&s->clock->queued);
    if (atomic_load(&s->clock->marked) >= queued) return 1;
    cudago_cover *c = atomic_exchange(&s->cover, NULL); /* Go may take it, and free it */
    int covered = c && c->covered >= queued;
    if (c) atomic_store(&s->cover, c);
    return covered;
}

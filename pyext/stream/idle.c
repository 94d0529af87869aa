/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

/* Blocks of other libraries' streams that nobody holds. A launch may be given such a stream as it is, again and again: then
 * it takes up the block, and the line with its events, of the launch before.
 *
 * Nothing here touches the handle, which may be another stream's by now, or nobody's: an event stands behind all the work of
 * an idle block. Guarded by the GIL. */

enum { MOST = 8 }; /* more than the streams that one loop uses */
static cudago_stream *idle[MOST]; /* the oldest first */
static _Atomic int n_idle;

int cudago_idle_count(void) { return atomic_load_explicit(&n_idle, memory_order_relaxed); }

static QUIET cudago_stream *take_out(int i) {
    cudago_stream *s = idle[i];
    int n = --n_idle;
    memmove(&idle[i], &idle[i + 1], (size_t)(n - i) * sizeof *idle);
    return s;
}

static QUIET int may_stay(cudago_stream *s) {
    return s->foreign && s->h > CU_STREAM_PER_THREAD && s->listed && !cudago_stream_lost(s) && cudago_is_covered(s);
}

QUIET cudago_stream *cudago_idle_keep(cudago_stream *s) {
    if (!may_stay(s)) return s;
    cudago_stream *end = n_idle == MOST ? take_out(0) : NULL;
    idle[n_idle++] = s;
    return end;
}

QUIET cudago_stream *cudago_idle_take(int32_t device, uintptr_t handle) {
    for (int i = n_idle - 1; i >= 0; i--) {
        if (idle[i]->h != handle || idle[i]->device != device || cudago_stream_lost(idle[i])) continue;
        cudago_stream_retain(idle[i]);
        return take_out(i);
    }
    return NULL;
}

QUIET cudago_stream *cudago_idle_of(int32_t device) {
    for (int i = 0; i < n_idle; i++)
        if (idle[i]->device == device) return take_out(i);
    return NULL;
}

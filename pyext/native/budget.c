/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"

/* The launch budget: when may a launch keep the GIL?
 *
 * A launch that gives the GIL away waits milliseconds for it beside a busy Python thread. One that keeps it on a full
 * queue freezes Python, and hangs it for good if a host callback ahead needs the GIL. Measured on driver 580: a queue
 * takes 1021 launches, and streams beyond the eighth share queues, so what counts is all our launches that are not
 * yet known to have ended. Guarded by the GIL. */

enum { HELD_MAX = 768, MARK_EVERY = 64 };

static long unproven;
static cudago_stream *streams; /* all open streams of ours */
long cudago_callbacks_alive;
int cudago_foreign_launches;

void cudago_budget_add(cudago_stream *s) {
    s->next = streams;
    s->prev = NULL;
    if (streams) streams->prev = s;
    streams = s;
}

static void take_out(cudago_stream *s) {
    if (s->prev) s->prev->next = s->next;
    else if (streams == s) streams = s->next;
    if (s->next) s->next->prev = s->prev;
    s->next = s->prev = NULL;
    if (!s->foreign) unproven -= (long)(s->launched - s->proven);
    s->proven = s->launched;
}

cudago_stream *cudago_budget_find(uint64_t id) {
    cudago_stream *s = streams;
    while (s && s->id != id) s = s->next;
    return s;
}

/* All launches on s up to number `launched` have ended. */
void cudago_budget_proven(cudago_stream *s, uint64_t launched) {
    if (launched <= s->proven) return;
    if (!s->foreign) unproven -= (long)(launched - s->proven);
    s->proven = launched;
}

static void prove(cudago_stream *s) {
    if (!s->mark) return;
    if (s->marked > s->proven && cu.cuEventQuery(s->mark) == 0) cudago_budget_proven(s, s->marked);
    if (s->marked <= s->proven && s->launched > s->proven && cu.cuEventRecord(s->mark, s->h) == 0)
        s->marked = s->launched;
}

/* The owner closes s. While launches may be in flight it stays in the list, so that executables can tell (exec.c), and
 * leaves it when they have ended. */
void cudago_budget_close(cudago_stream *s) {
    int32_t mode = 2, capture = 0;
    if (!s->mark || s->launched <= s->proven) {
        take_out(s);
        return;
    }
    int pushed;
    cu.cuThreadExchangeStreamCaptureMode(&mode);
    int32_t r = cudago_ctx_enter(s->ctx, &pushed);
    if (!r) r = cu.cuStreamIsCapturing(s->h, &capture);
    if (!r && !capture) r = cu.cuEventRecord(s->mark, s->h);
    cudago_ctx_leave(pushed);
    cu.cuThreadExchangeStreamCaptureMode(&mode);
    if (r || capture) { /* the device has failed, or the capture will: nothing of it can be waited for */
        take_out(s);
        return;
    }
    s->marked = s->launched;
    s->closing = 1;
    cudago_stream_retain(s);
}

static int slow(cudago_stream *s) {
    int32_t mode = 2; /* relaxed: a query must not spoil somebody's capture */
    int capture = 0;
    if (cu.cuStreamIsCapturing(s->h, &capture) || capture) return 1; /* a captured launch never blocks */
    cu.cuThreadExchangeStreamCaptureMode(&mode);
    prove(s);
    static unsigned tick;
    if (unproven >= HELD_MAX && (++tick & 15) == 1)
        for (cudago_stream *o = streams; o; o = o->next)
            if (o != s && !(cu.cuStreamIsCapturing(o->h, &capture) || capture)) prove(o);
    cu.cuThreadExchangeStreamCaptureMode(&mode);
    return s->launched - s->marked <= MARK_EVERY && unproven <= HELD_MAX;
}

int cudago_budget(cudago_stream *s) {
    s->launched++;
    if (s->foreign) return 0;
    unproven++;
    if (cudago_callbacks_alive) return 0;
    if (s->launched - s->marked < MARK_EVERY && unproven < HELD_MAX) return 1;
    return slow(s);
}

void cudago_budget_settle(void) {
    int32_t mode = 2, capture = 0;
    if (cudago_unusable) return;
    if (cudago_foreign_launches) cudagoExecSettle();
    if (!streams) return;
    cu.cuThreadExchangeStreamCaptureMode(&mode);
    for (cudago_stream *s = streams, *next; s; s = next) {
        next = s->next;
        int pushed;
        if (s->launched > s->proven && !cudago_ctx_enter(s->ctx, &pushed)) {
            if (!cu.cuStreamIsCapturing(s->h, &capture) && !capture) prove(s);
            cudago_ctx_leave(pushed);
        }
        if (s->closing && s->launched <= s->proven) {
            take_out(s);
            cudago_stream_release(s);
        }
    }
    cu.cuThreadExchangeStreamCaptureMode(&mode);
}

/* gc.callbacks: before a full collection, learn which launches have ended, so that the executables of a dead cycle are
 * seen to be idle. What is still running is marked now and known at the next collection. */
PyObject *cudago_collect_prove(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    if (cudago_forked || n < 1 || PyUnicode_CompareWithASCIIString(args[0], "start")) Py_RETURN_NONE;
    cudago_budget_settle();
    Py_RETURN_NONE;
}

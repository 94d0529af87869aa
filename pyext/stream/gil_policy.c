/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

/* Turns: which thread may call the driver with the GIL? See stream.h. */

QUIET int cudago_queues_busy(void) {
    for (cudago_stream *s = cudago_streams; s; s = s->next)
        if (s->inside) return 1;
    return 0;
}

QUIET int cudago_streams_polled(void) {
    for (cudago_stream *s = cudago_streams; s; s = s->next)
        if (s->polled) return 1;
    return 0;
}

static int turn_taken;

QUIET int cudago_turn_is_not(int mine) {
    if (!cudago_callbacks_alive || cudago_on_callback_thread()) return 0;
    return cudago_exclusive > mine || cudago_queues_busy();
}

static int wait_a_moment(int *mine) {
    if (cudago_unusable) return cudago_raise_unusable();
    if (!*mine && !turn_taken && cudago_callbacks_alive) {
        turn_taken = *mine = 1;
        cudago_exclusive++;
    }
    cudago_nap(CUDAGO_NAP_US);
    cudago_exclusive -= *mine; /* not while a signal handler runs: it runs on this thread */
    int r = PyErr_CheckSignals();
    cudago_exclusive += *mine;
    return r;
}

QUIET int cudago_is_untouched(const cudago_stream *s) { return !s->inside && !cudago_waited_for(s); }

int cudago_wait_a_moment(void) {
    if (cudago_unusable) return cudago_raise_unusable();
    cudago_beginners++;
    cudago_nap(CUDAGO_NAP_US);
    cudago_beginners--;
    return PyErr_CheckSignals();
}

int cudago_turn_take(int (*now)(void *at, int mine), void *at) {
    int r, mine = 0;
    while ((r = now(at, mine)) == CUDAGO_AGAIN) {
        cudago_beginners++;
        int stop = wait_a_moment(&mine);
        cudago_beginners--;
        if (stop) break;
    }
    cudago_exclusive -= mine;
    if (mine) turn_taken = 0;
    return r;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "stream.h"

#include "_cgo_export.h"

/* Order between streams: our work comes before that of a library that we give memory to, and after that of a library
 * that gives memory to us. */

/* For each device, its context and an event that is recorded in one stream and waited for in another. A wait is for the
 * latest record, and the GIL keeps each pair of calls together, so one event is enough. It is made before it is needed:
 * cuEventCreate waits while another thread is stuck in a full launch queue. */
static uintptr_t contexts[CUDAGO_MAX_DEVICES], events[CUDAGO_MAX_DEVICES];

int cudago_device_ready(int32_t device, uint32_t *generation) {
    if (cudago_making(device, generation)) return -1;
    if (events[device]) return 0;
    cudago_status st = {0};
    int32_t pageable;
    uintptr_t ctx, event = 0;
    Py_BEGIN_ALLOW_THREADS
    ctx = cudagoDeviceContext(device, &pageable, &st);
    if (!st.kind) event = cudagoEventForGood(device, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st);
    if (cudago_made("device", device, *generation)) return -1;
    contexts[device] = ctx;
    events[device] = event;
    return 0;
}

/* A reset has destroyed both. */
QUIET void cudago_device_forget(int32_t device) { contexts[device] = events[device] = 0; }

QUIET uintptr_t cudago_context_of(int32_t device) { return contexts[device]; }

QUIET int cudago_is_capturing(uintptr_t stream, int32_t *r) {
    int32_t status = 0;
    if (!*r) *r = cu.cuStreamIsCapturing(stream, &status);
    return status != 0;
}

QUIET int cudago_refuse_capture(void) {
    PyErr_SetString(PyExc_BufferError, "the other library's stream and ours cannot be ordered while one is capturing: use one "
                                       "stream for both, or pass stream=-1 and order them yourself");
    return -1;
}

/* asked: whether `then` is capturing is known already. */
static QUIET int order_now(int32_t device, uintptr_t first, uintptr_t then, int asked) {
    if (cudago_same_stream(first, then)) return 0;
    uintptr_t pushed;
    int busy = 0;
    if (!events[device] || cudago_resetting(device)) return cudago_raise_lost("device", device);
    int32_t r = cudago_ctx_enter(contexts[device], &pushed);
    busy = cudago_is_capturing(first, &r) || (!asked && cudago_is_capturing(then, &r));
    if (!r && !busy) r = cudago_event_record(events[device], first);
    if (!r && !busy) r = cu.cuStreamWaitEvent(then, events[device], 0);
    cudago_ctx_leave(pushed);
    if (r) return cudago_raise_result("cuStreamWaitEvent", r);
    return busy ? cudago_refuse_capture() : 0;
}

QUIET int cudago_order_streams(int32_t device, uintptr_t first, uintptr_t then) { return order_now(device, first, then, 0); }
QUIET int cudago_order_after(const cudago_stream *s, uintptr_t first) { return order_now(s->device, first, s->h, 1); }

/* Through Go: the events here are for callers with the GIL. */
int cudago_order_across(int32_t at, uintptr_t first, int32_t device, uintptr_t then) {
    cudago_status st = {0};
    int busy;
    if (at == device && cudago_same_stream(first, then)) return 0;
    Py_BEGIN_ALLOW_THREADS
    busy = cudagoStreamsOrder(at, first, device, then, &st);
    Py_END_ALLOW_THREADS
    return busy || st.kind ? cudago_not_ordered(&st) : 0;
}

int cudago_not_ordered(cudago_status *st) { return st->kind ? cudago_raise(st) : cudago_refuse_capture(); }

int cudago_order(int32_t device, uintptr_t first, uintptr_t then) {
    return cudago_callbacks_alive ? cudago_order_across(device, first, device, then) : cudago_order_streams(device, first, then);
}

/* Another library's memory may arrive before the first use of the device here. */
int cudago_order_foreign(int32_t device, uintptr_t first, uintptr_t then) {
    if (device < 0 || device >= CUDAGO_MAX_DEVICES) return PyErr_SetString(PyExc_BufferError, "no such device"), -1;
    uint32_t generation;
    if (cudago_open() || cudago_device_ready(device, &generation)) return -1;
    return cudago_order(device, first, then);
}

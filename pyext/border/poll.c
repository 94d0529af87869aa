/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include "_cgo_export.h"
#include <time.h>

/* Questions that need no Go, and the beginning of a wait for a stream, which most are over in: see poll.go, which this is in C. What Go knows that ends a
 * wait otherwise are findings of checks, which the simulated driver makes, and waits that were interrupted. */

static int64_t limit_ns; /* 0: Go polls */
static _Atomic int32_t held; /* waits that were interrupted */

int32_t *cudago_waits_held_address(void) { return (int32_t *)&held; }

/* Through Go every question is as long a way as the wait's own. */
void cudago_poll_opened(void) { limit_ns = cu.cuStreamQuery == cudagoRawStreamQuery ? 0 : cudagoPollLimit(); }

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Relaxed: it must not invalidate the capture of another thread. */
static QUIET int32_t query(uintptr_t stream, uintptr_t event) {
    CUstreamCaptureMode mode;
    int32_t r = cudago_relax(&mode);
    if (r) return r;
    r = event ? cu.cuEventQuery(event) : cu.cuStreamQuery(stream);
    cudago_relax_end(0, &mode);
    return r;
}

QUIET int cudago_ask(uintptr_t ctx, uintptr_t stream, uintptr_t event) {
    if (!limit_ns) return CUDAGO_ASK_GO;
    uintptr_t pushed;
    int32_t r = cudago_ctx_enter(ctx, &pushed);
    if (!r) r = query(stream, event);
    cudago_ctx_leave(pushed);
    if (r == CUDA_ERROR_NOT_READY) return 0;
    return r ? CUDAGO_ASK_GO : 1;
}

int cudago_poll_stream(uintptr_t ctx, uintptr_t stream) {
    if (!limit_ns || atomic_load(&held)) return 0;
    uintptr_t pushed;
    int32_t r = cudago_ctx_enter(ctx, &pushed);
    if (!r && (r = query(stream, 0)) == CUDA_ERROR_NOT_READY) {
        int64_t began = now_ns(), waited = 0;
        while (waited <= limit_ns && (r = query(stream, 0)) == CUDA_ERROR_NOT_READY)
            for (int64_t end = waited + waited / 32; (waited = now_ns() - began) < end;) continue;
    }
    cudago_ctx_leave(pushed);
    return !r;
}

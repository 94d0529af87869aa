/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* What is done when there is not enough memory. What was let go may not be free yet: the reaper waits for the work that
 * uses it, frees are queued in streams, and pools keep what is free. */

/* Work that never ends, because it waits for this thread say, must not make an error a hang. */
enum { PATIENCE_MS = 10000 };

/* In a capture waiting could last forever and trimming could invalidate it; a callback holds up what it would wait for. */
static QUIET int may_reclaim(void) {
    return !atomic_load_explicit(&cudago_captures_open, memory_order_relaxed) && !cudago_on_callback_thread();
}

static int flush_slice(void) {
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = cudagoReaperFlush(CUDAGO_SLICE_MS);
    Py_END_ALLOW_THREADS
    cudago_drain(); /* what the reaper has released may hold more */
    return done;
}

/* Each of these waits until *left is used up, and returns -1 with an exception if the wait has to end before. */
static int flush(int *left) {
    for (; *left > 0 && !flush_slice(); *left -= CUDAGO_SLICE_MS)
        if (cudago_interrupted()) return -1;
    return 0;
}

/* May an event be recorded in a stream for an allocation in another one? Where other libraries have the handle it might meet
 * the beginning of a capture of theirs, which NVIDIA's driver does not survive, or a stream that is gone: see graph/line.go.
 * Nobody captures in the legacy default stream, which is what is asked for both. */
static QUIET int may_record(const cudago_stream *s, const cudago_stream *on) {
    return s == on || s->h <= CU_STREAM_PER_THREAD || (!s->foreign && !s->clock->exposed);
}

static QUIET int freed_in(const StreamObject *on, uint64_t *ids, int room) {
    int n = 0;
    for (cudago_stream *s = cudago_streams; s; s = s->next)
        if (s->freed && !cudago_stream_lost(s) && may_record(s, on ? on->s : NULL) && n++ < room) ids[n - 1] = s->id;
    return n;
}

static int await_frees(const StreamObject *on, int *left) {
    int n = freed_in(on, NULL, 0);
    uint64_t *ids = n ? malloc((size_t)n * sizeof *ids) : NULL, wait;
    if (!ids) return 0;
    n = freed_in(on, ids, n);
    Py_BEGIN_ALLOW_THREADS
    wait = cudagoFreesBegin(ids, n);
    Py_END_ALLOW_THREADS
    int r = 0, over = 0;
    for (; !r && !over && *left > 0; *left -= CUDAGO_SLICE_MS) {
        Py_BEGIN_ALLOW_THREADS
        over = cudagoFreesSlice(wait, CUDAGO_SLICE_MS);
        Py_END_ALLOW_THREADS
        if (!over) r = cudago_interrupted();
    }
    cudagoFreesEnd(wait);
    free(ids);
    return r;
}

int cudago_reclaim(const StreamObject *on) {
    if (!may_reclaim()) return 0;
    PyErr_Clear();
    cudago_drain();
    for (int32_t device = 0; device < CUDAGO_MAX_DEVICES; device++) cudago_late_give(device);
    int left = PATIENCE_MS;
    Py_BEGIN_ALLOW_THREADS
    cudagoProveExposed(); /* the reaper does not, and waits for the callbacks in them */
    Py_END_ALLOW_THREADS
    if (flush(&left) || await_frees(on, &left)) return -1;
    Py_BEGIN_ALLOW_THREADS
    cudagoTrimPools();
    Py_END_ALLOW_THREADS
    return cudago_stall_wait() ? -1 : 1;
}

void cudago_explain_memory(uint64_t size) {
    if (!PyErr_ExceptionMatches(PyExc_MemoryError) || !may_reclaim()) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    PyObject *summary = PyImport_ImportModule("cudago._memory.summary");
    PyObject *done = summary && value ? PyObject_CallMethod(summary, "_explain", "OK", value, (unsigned long long)size) : NULL;
    if (!done) PyErr_Clear(); /* the error without its explanation is better than another error */
    Py_XDECREF(done);
    Py_XDECREF(summary);
    PyErr_Restore(type, value, trace);
}

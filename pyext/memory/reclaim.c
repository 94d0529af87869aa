/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* What is done when there is not enough memory. What was let go may not be free yet: the reaper waits for the work that
 * uses it, and pools keep what is free. */

/* Work that never ends, because it waits for this thread say, must not make an error a hang. */
enum { PATIENCE_MS = 2000 };

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

int cudago_reclaim(void) {
    if (!may_reclaim()) return 0;
    PyErr_Clear();
    cudago_drain();
    for (int waited = 0; waited < PATIENCE_MS && !flush_slice(); waited += CUDAGO_SLICE_MS)
        if (cudago_interrupted()) return -1;
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

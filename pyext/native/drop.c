/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"

/* Python references are dropped here and nowhere else: with the GIL, from the queue that Go and the DLPack deleters
 * fill, by a pending call, at the next entry of the API, and at exit. */

_Atomic int cudago_drop_hint;
int cudago_forked;
int cudago_unusable;
unsigned long cudago_main_thread;
int cudago_closed; /* after exit: leak, never touch */

static int pending_call(void *unused) {
    (void)unused;
    if (!cudago_forked && !cudago_closed) cudago_drain();
    return 0;
}

/* Asks for a drain soon. Any thread, no GIL. */
int cudago_request_drain(void) {
    atomic_store_explicit(&cudago_drop_hint, 1, memory_order_relaxed);
    return Py_AddPendingCall(pending_call, NULL);
}

/* Dropping runs __del__ and deleters, which must not eat an exception that is on its way. */
void cudago_drain(void) {
    PyObject *type, *value, *trace;
    if (cudago_closed) return;
    PyErr_Fetch(&type, &value, &trace);
    atomic_store_explicit(&cudago_drop_hint, 0, memory_order_relaxed);
    cudagoDrain();
    cudago_cells_drain();
    cudago_free_put_off();
    PyErr_Restore(type, value, trace);
}

void cudago_drop_references(uintptr_t *refs, size_t n) {
    for (size_t i = 0; i < n; i++) Py_DecRef((PyObject *)refs[i]);
}

/* atexit. In order: finalizers, newest first; executables and graphs; buffers; what their launches kept, when these have
 * ended; events, code, resources and streams. What does not end in time is left to the end of the process, and after that
 * nothing is touched. */
PyObject *cudago_shutdown(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    enum { TIME_LIMIT_MS = 2000 };
    if (cudago_unusable) Py_RETURN_NONE;
    cudagoFinalizeAll(); /* may use everything, and wait for work with callbacks */
    cudago_unusable = 1;
    cudagoCloseGraphs();
    cudago_callbacks_close();
    cudago_buffers_give_up();
    cudago_drain();
    int idle;
    PyThreadState *ts = PyEval_SaveThread();
    idle = cudagoReaperFlush(TIME_LIMIT_MS);
    PyEval_RestoreThread(ts);
    cudago_drain();
    ts = PyEval_SaveThread();
    if (idle) cudagoCloseRest(TIME_LIMIT_MS);
    PyEval_RestoreThread(ts);
    cudagoDropClose();
    cudago_cells_set_poke(NULL); /* deleters of other libraries still run, and find nobody to wake */
    cudago_closed = 1;
    Py_RETURN_NONE;
}

PyObject *cudago_after_fork(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    cudago_forked = cudago_unusable = 1;
    Py_RETURN_NONE;
}

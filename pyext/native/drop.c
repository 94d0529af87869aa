/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"

/* Python references are dropped here and nowhere else: with the GIL, from the queue that Go and the DLPack deleters
 * fill, by a pending call, at the next entry of the API, and at exit. */

_Atomic int cudago_drop_hint;
int cudago_forked;
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
    PyErr_Restore(type, value, trace);
}

void cudago_drop_references(uintptr_t *refs, size_t n) {
    for (size_t i = 0; i < n; i++) Py_DecRef((PyObject *)refs[i]);
}

/* atexit: finalizers newest first, the reaper within its time, a last drain; after that nothing is touched. */
PyObject *cudago_shutdown(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    if (cudago_forked || cudago_closed) Py_RETURN_NONE;
    cudagoFinalizeAll(); /* these may wait for work with callbacks */
    cudago_callbacks_close();
    PyThreadState *ts = PyEval_SaveThread();
    cudagoReaperFlush(2000);
    PyEval_RestoreThread(ts);
    cudago_drain();
    cudagoDropClose();
    cudago_cells_set_poke(NULL); /* deleters of other libraries still run, and find nobody to wake */
    cudago_closed = 1;
    Py_RETURN_NONE;
}

PyObject *cudago_after_fork(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    cudago_forked = 1;
    Py_RETURN_NONE;
}

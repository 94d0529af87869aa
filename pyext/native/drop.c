/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"
#include <unistd.h>

/* Python references are dropped here and nowhere else: with the GIL, from the queue that Go and the DLPack deleters
 * fill, by a pending call, at the next entry of the API, and at exit. */

_Atomic int cudago_drop_hint;
int cudago_unusable;
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
    cudago_streams_sweep();
    cudago_captures_end_orphans();
    PyErr_Restore(type, value, trace);
}

/* Around code of others that is called while something is let go of: it neither meets nor eats an exception that is on its
 * way, and what it raises is nobody's. */
void cudago_keep_exception(void (*run)(void *), void *with) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    run(with);
    if (PyErr_Occurred()) PyErr_WriteUnraisable(NULL);
    PyErr_Restore(type, value, trace);
}

static void decref(void *capsule) { Py_XDECREF((PyObject *)capsule); }
void cudago_drop_capsule(PyObject *capsule) { cudago_keep_exception(decref, capsule); }

void cudago_drop_references(uintptr_t *refs, size_t n) {
    for (size_t i = 0; i < n; i++) Py_DecRef((PyObject *)refs[i]);
}

/* Waits until no other thread is in the driver in a call that may wait for the device: who makes a call with the GIL beside it
 * can wait for it, and the device for a callback that has begun and needs the GIL. 0 if the time is over. */
static int others_have_left(long limit_ms) {
    enum { SLICE_US = 200 };
    for (long us = 0; cudago_exclusive || cudago_queues_busy(); us += SLICE_US) {
        if (us >= 1000 * limit_ms) return 0;
        Py_BEGIN_ALLOW_THREADS
        usleep(SLICE_US);
        Py_END_ALLOW_THREADS
    }
    return 1;
}

/* atexit. In order: finalizers, newest first; executables and graphs; buffers; what their launches kept, when these have
 * ended; events, code, resources and streams. What does not end in time is left to the end of the process, and after that
 * nothing is touched. */
PyObject *cudago_shutdown(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    enum { TIME_LIMIT_MS = 2000 };
    if (cudago_unusable) Py_RETURN_NONE;
    cudago_finalize_all(TIME_LIMIT_MS); /* may use everything, and wait for work with callbacks */
    cudago_unusable = 1;
    PyObject *type, *value, *trace; /* of a finalizer that ended the others' run: atexit reports it */
    PyErr_Fetch(&type, &value, &trace);
    cudago_callbacks_close(); /* first: nobody in the driver waits for one from now on, unless it has begun */
    int idle = others_have_left(TIME_LIMIT_MS);
    if (idle) {
        cudagoCloseGraphs();
        cudago_buffers_give_up();
        cudago_drain();
    }
    PyThreadState *ts = PyEval_SaveThread();
    idle = idle && cudagoReaperFlush(TIME_LIMIT_MS);
    PyEval_RestoreThread(ts);
    cudago_drain();
    cudago_closed = 1; /* other threads run meanwhile, and must not give back to what is being closed */
    ts = PyEval_SaveThread();
    if (idle) cudagoCloseRest(TIME_LIMIT_MS);
    PyEval_RestoreThread(ts);
    cudagoDropClose();
    cudago_cells_set_poke(NULL); /* deleters of other libraries still run, and find nobody to wake */
    if (type) return PyErr_Restore(type, value, trace), NULL;
    Py_RETURN_NONE;
}

/* After the interpreter: for an import so late, in a hook of atexit, that _shutdown is not called. No Python here. */
static void after_exit(void) {
    if (cudago_forked || cudago_closed) return;
    cudago_unusable = cudago_closed = 1;
    cudago_cells_set_poke(NULL);
    cudago_callbacks_close();
    cudagoDropClose();
}

int cudago_watch_exit(void) {
    if (!Py_AtExit(after_exit)) return 0;
    PyErr_SetString(PyExc_ImportError, "cudago found no room among the functions to be called at exit");
    return -1;
}

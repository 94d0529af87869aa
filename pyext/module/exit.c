/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "module.h"

#include "_cgo_export.h"
#include "finalizer/finalizer.h"
#include "graph/graph.h"
#include "xla/xla.h"

/* The exit, which knows all rooms. */

/* Waits until no other thread is in the driver in a call that may wait for the device. A call that is made with the GIL
 * beside such a call can wait for it, and the device for a callback that has begun and needs the GIL. 0 on timeout. */
static int others_have_left(long limit_ms) {
    enum { SLICE_US = 200 };
    for (long us = 0; cudago_exclusive || cudago_queues_busy() || cudago_streams_polled(); us += SLICE_US) {
        if (us >= 1000 * limit_ms) return 0;
        cudago_nap(SLICE_US);
    }
    return 1;
}

/* For atexit. In order: finalizers, newest first; executables and graphs; buffers; what the executables' launches kept,
 * once those have ended; events, code, resources and streams. What does not end in time is left to the end of the
 * process, and nothing is touched after that. */
PyObject *cudago_shutdown(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    enum { TIME_LIMIT_MS = 2000 };
    if (cudago_unusable) Py_RETURN_NONE;
    cudago_finalize_all(TIME_LIMIT_MS); /* finalizers may use everything, and wait for work with callbacks */
    cudago_unusable = 1;
    PyObject *type, *value, *trace; /* the exception that ended the finalizers' run: atexit reports it */
    PyErr_Fetch(&type, &value, &trace);
    cudago_callbacks_close(); /* first: from now on no call in the driver waits for a callback that has not begun */
    int idle = cudago_xla_close(TIME_LIMIT_MS); /* XLA's threads outlive the interpreter */
    idle = others_have_left(TIME_LIMIT_MS) && idle;
    if (idle) {
        cudagoCloseGraphs();
        cudago_buffers_release();
        cudago_drain();
    }
    PyThreadState *ts = PyEval_SaveThread();
    idle = idle && cudagoReaperFlush(TIME_LIMIT_MS);
    PyEval_RestoreThread(ts);
    cudago_drain();
    cudago_closed = 1; /* other threads run meanwhile and must not release into what is being closed */
    ts = PyEval_SaveThread();
    if (idle) cudagoCloseRest(TIME_LIMIT_MS);
    PyEval_RestoreThread(ts);
    cudagoDropClose();
    cudago_cells_set_poke(NULL); /* deleters of other libraries still run, and must find no one to wake */
    if (type) return PyErr_Restore(type, value, trace), NULL;
    Py_RETURN_NONE;
}

/* Runs after the interpreter: for an import so late, inside an atexit hook, that _shutdown is not called. No Python
 * here. */
static void after_exit(void) {
    if (cudago_forked || cudago_closed) return;
    cudago_unusable = cudago_closed = 1;
    cudago_xla_close(0);
    cudago_cells_set_poke(NULL);
    cudago_callbacks_close();
    cudagoDropClose();
}

int cudago_watch_exit(void) {
    if (!Py_AtExit(after_exit)) return 0;
    PyErr_SetString(PyExc_ImportError, "cudago found no room among the functions to be called at exit");
    return -1;
}

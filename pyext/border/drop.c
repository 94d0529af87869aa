/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include "_cgo_export.h"

/* Python references are dropped here and nowhere else: with the GIL held, from the queue that Go and the DLPack
 * deleters fill, by a pending call, at the next entry of the API, and at exit. */

_Atomic int cudago_drop_hint;
int cudago_unusable;
void (*cudago_drain_rest)(void);
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

/* Dropping runs __del__ and deleters, which must not swallow an exception that is propagating. */
void cudago_drain(void) {
    PyObject *type, *value, *trace;
    if (cudago_closed) return;
    PyErr_Fetch(&type, &value, &trace);
    atomic_store_explicit(&cudago_drop_hint, 0, memory_order_relaxed);
    cudagoDrain();
    cudago_cells_drain();
    if (cudago_drain_rest) cudago_drain_rest();
    PyErr_Restore(type, value, trace);
}

/* For foreign code that runs while something is released: it neither sees nor clears an exception that is propagating,
 * and what it raises itself is discarded. */
void cudago_keep_exception(void (*run)(void *), void *with) {
    PyObject *type = NULL, *value = NULL, *trace = NULL;
    int pending = PyErr_Occurred() != NULL;
    if (pending) PyErr_Fetch(&type, &value, &trace);
    run(with);
    if (PyErr_Occurred()) PyErr_WriteUnraisable(NULL);
    if (pending) PyErr_Restore(type, value, trace);
}

/* _call_aside(function, argument): calls it, and tells what it raises as Python tells of exceptions in __del__. */
PyObject *cudago_call_aside(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *function, *argument;
    if (!PyArg_ParseTuple(args, "OO", &function, &argument)) return NULL;
    PyObject *result = PyObject_CallFunctionObjArgs(function, argument, NULL);
    if (!result) PyErr_WriteUnraisable(function);
    Py_XDECREF(result);
    Py_RETURN_NONE;
}

static void decref(void *capsule) { Py_XDECREF((PyObject *)capsule); }
void cudago_drop_capsule(PyObject *capsule) { cudago_keep_exception(decref, capsule); }

void cudago_drop_references(uintptr_t *refs, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (refs[i] & CUDAGO_REF_CELL) cudago_cell_release_gil((cudago_cell *)(refs[i] & ~CUDAGO_REF_CELL));
        else Py_DecRef((PyObject *)refs[i]);
    }
}

/* _reaper_flush(ms): waits until nothing is left to release; False on timeout. */
PyObject *cudago_reaper_flush(PyObject *module, PyObject *ms) {
    (void)module;
    CUDAGO_ENTER(NULL);
    long n = PyLong_AsLong(ms);
    if (n == -1 && PyErr_Occurred()) return NULL;
    int done;
    Py_BEGIN_ALLOW_THREADS
    done = cudagoReaperFlush(n);
    Py_END_ALLOW_THREADS
    cudago_drain();
    return PyBool_FromLong(done);
}

uint32_t *cudago_drop_hint_address(void) { return (uint32_t *)&cudago_drop_hint; }

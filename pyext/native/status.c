/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"
#include <unistd.h>

/* One way for an error to reach Python: errors.py:_make builds the exception from kind, code, message and detail. */
static PyObject *make(int32_t kind, int32_t code, const char *message, const char *detail) {
    PyObject *errors = PyImport_ImportModule("cudago.errors");
    if (!errors) return NULL;
    PyObject *e = PyObject_CallMethod(errors, "_make", "iizz", (int)kind, (int)code, message, detail);
    Py_DECREF(errors);
    return e;
}

/* A thread that outlives the interpreter: Python stops such a thread where it next asks for the GIL, and so do we. It
 * must not print errors about an end that is none of its business. */
static void stop_at_exit(void) {
    if (!cudago_unusable || cudago_forked || PyThread_get_thread_ident() == cudago_main_thread) return;
    Py_BEGIN_ALLOW_THREADS
    for (;;) pause();
    Py_END_ALLOW_THREADS
}

static int raise(int32_t kind, int32_t code, const char *message, const char *detail) {
    stop_at_exit();
    PyObject *e = make(kind, code, message, detail);
    if (!e) return -1;
    PyErr_SetObject((PyObject *)Py_TYPE(e), e);
    Py_DECREF(e);
    return -1;
}

int cudago_raise(cudago_status *st) {
    int r = raise(st->kind, st->code, st->message, st->detail);
    free(st->message);
    free(st->detail);
    st->message = st->detail = NULL;
    return r;
}

int cudago_raise_closed(const char *what) {
    char text[128];
    snprintf(text, sizeof text, "%s is closed", what);
    return raise(CUDAGO_CLOSED, 0, text, NULL);
}

/* The words for the code are Go's, so that an error reads the same whoever made the call. */
int cudago_raise_result(const char *operation, int32_t code) {
    cudago_status st = {0};
    cudagoResultError((char *)operation, code, &st);
    return cudago_raise(&st);
}

int cudago_raise_unusable(void) {
    if (!cudago_forked) return raise(CUDAGO_CLOSED, 0, "cudago is closed: the interpreter is ending", NULL);
    PyErr_SetString(PyExc_RuntimeError,
                    "cudago cannot be used in a forked child: neither Go's runtime nor a CUDA context survives fork; "
                    "use multiprocessing's 'spawn' start method");
    return -1;
}

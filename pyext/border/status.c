/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include "_cgo_export.h"
#include <stdarg.h>

/* ClosedError is kept here because it is raised while the interpreter ends, when nothing can be imported and the
 * globals of errors.py are gone. */
static PyObject *closed_error;

PyObject *cudago_set_closed_error(PyObject *module, PyObject *cls) {
    (void)module;
    PyObject *was = closed_error;
    closed_error = NEW_REF(cls);
    Py_XDECREF(was);
    Py_RETURN_NONE;
}

int cudago_is_closed_error(void) { return closed_error && PyErr_ExceptionMatches(closed_error); }

/* The only way for an error to reach Python: errors.py:_make builds the exception from kind, code, message and
 * detail. */
static PyObject *make(int32_t kind, int32_t code, PyObject *text, const char *detail) {
    if (kind == CUDAGO_CLOSED && closed_error) return PyObject_CallFunctionObjArgs(closed_error, text, NULL);
    PyObject *errors = PyImport_ImportModule("cudago.errors");
    if (!errors) return NULL;
    PyObject *e = PyObject_CallMethod(errors, "_make", "iiOz", (int)kind, (int)code, text, detail);
    Py_DECREF(errors);
    return e;
}

PyObject *cudago_text_of(const char *message) {
    return message ? PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace") : NEW_REF(Py_None);
}

/* Every thread gets its error, even while the interpreter is ending: a thread that blocked forever instead could be
 * one that Python waits for, or hold what a __del__ needs. The mark is for _exit.py, which keeps daemon threads from
 * printing it. The text is taken over; NULL: there is an exception already. */
static int raise(int32_t kind, int32_t code, PyObject *text, const char *detail) {
    PyObject *e = text ? make(kind, code, text, detail) : NULL;
    Py_XDECREF(text);
    if (!e) return -1;
    if (cudago_unusable && PyObject_SetAttrString(e, "_at_exit", Py_True)) {
        Py_DECREF(e);
        return -1;
    }
    PyErr_SetObject((PyObject *)Py_TYPE(e), e);
    Py_DECREF(e);
    return -1;
}

int cudago_raise(cudago_status *st) {
    int r = raise(st->kind, st->code, cudago_text_of(st->message), st->detail);
    free(st->message);
    free(st->detail);
    st->message = st->detail = NULL;
    return r;
}

int cudago_raise_closed_as(const char *format, ...) {
    va_list values;
    va_start(values, format);
    PyObject *text = PyUnicode_FromFormatV(format, values);
    va_end(values);
    return raise(CUDAGO_CLOSED, 0, text, NULL);
}
int cudago_raise_closed(const char *what) { return cudago_raise_closed_as("%s is closed", what); }

int cudago_raise_closed_named(const char *what) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = closed_error && type == closed_error && value ? PyObject_Str(value) : NULL;
    if (!text) {
        PyErr_Restore(type, value, trace); /* the first error is the one to report */
    } else {
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        cudago_raise_closed_as("%s: %U", what, text);
    }
    Py_XDECREF(text);
    return -1;
}

/* Go words the message, so that an error reads the same whether C or Go made the call. */
int cudago_raise_result(const char *operation, int32_t code) {
    cudago_status st = {0};
    cudagoResultError((char *)operation, code, &st);
    return cudago_raise(&st);
}

int cudago_raise_unusable(void) {
    if (!cudago_forked) return cudago_raise_closed_as("cudago is closed: the interpreter is ending");
    PyErr_SetString(PyExc_RuntimeError,
                    "cudago cannot be used in a forked child: neither Go's runtime nor a CUDA context survives fork; "
                    "use multiprocessing's 'spawn' start method");
    return -1;
}

static void warn(const char *text, int32_t code) {
    PyObject *type, *value, *trace, *errors;
    PyErr_Fetch(&type, &value, &trace);
    errors = PyImport_ImportModule("cudago.errors");
    PyObject *r = errors ? PyObject_CallMethod(errors, "_warn", "si", text, (int)code) : NULL;
    if (!r && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_Clear(), PyErr_SetInterrupt(); /* again, later */
    if (!r && PyErr_Occurred()) PyErr_WriteUnraisable(NULL);
    Py_XDECREF(r);
    Py_XDECREF(errors);
    PyErr_Restore(type, value, trace);
}

void cudago_warn(const char *text) { warn(text, 0); }
void cudago_warn_result(const char *operation, int32_t code) {
    if (cudagoResultIsSticky(code)) return; /* the device has failed for good, which was reported when it happened */
    warn(operation, code);
}

QUIET int cudago_result_persists(int32_t code) { return cudagoResultPersists(code); }

/* _panic(text): panics in Go, for the test that a panic becomes an exception. */
PyObject *cudago_panic(PyObject *module, PyObject *text) {
    (void)module;
    CUDAGO_ENTER(NULL);
    const char *t = PyUnicode_AsUTF8AndSize(text, NULL);
    if (!t) return NULL;
    cudago_status st = {0};
    cudagoPanic((char *)t, &st);
    return cudago_raise(&st), NULL;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include "_cgo_export.h"

/* The checks of a driver that has them; python/cudago/sim.py is their Python face. */

int cudago_checking; /* a check is on. Written with the GIL held */

void cudago_checks_opened(void) { cudago_checking = cudagoChecking(); }

/* _set_checks(names): returns the names of the checks that were on. */
PyObject *cudago_set_checks(PyObject *module, PyObject *names) {
    (void)module;
    CUDAGO_ENTER(NULL);
    const char *n = PyUnicode_AsUTF8AndSize(names, NULL);
    if (!n || cudago_open()) return NULL;
    cudago_status st = {0};
    char *was = cudagoSetChecks((char *)n, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    cudago_checking = cudagoChecking();
    PyObject *r = PyUnicode_FromString(was);
    free(was);
    return r;
}

/* _take_reports(): returns JSON. */
PyObject *cudago_take_reports(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_status st = {0};
    char *text = cudagoTakeReports(&st);
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *r = PyUnicode_FromString(text);
    free(text);
    return r;
}

PyObject *cudago_cancel_kernels(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (cudago_open()) return NULL;
    cudago_status st = {0};
    cudagoCancelKernels(&st);
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

/* The directory of the package's own files. */
static PyObject *package;

PyObject *cudago_set_package(PyObject *module, PyObject *directory) {
    (void)module;
    PyObject *was = package;
    package = NEW_REF(directory);
    Py_XDECREF(was);
    Py_RETURN_NONE;
}

/* FILE:LINE of the program: the nearest frame that is not the package's own; "" if there is none. */
static PyObject *site(void) {
    PyObject *frame = (PyObject *)PyEval_GetFrame(); /* borrowed */
    for (Py_XINCREF(frame); frame && frame != Py_None;) {
        PyObject *code = (PyObject *)PyFrame_GetCode((PyFrameObject *)frame);
        PyObject *file = PyObject_GetAttrString(code, "co_filename"), *r = NULL;
        Py_DECREF(code);
        if (file && package && PyUnicode_Tailmatch(file, package, 0, PY_SSIZE_T_MAX, -1) == 0)
            r = PyUnicode_FromFormat("%U:%d", file, PyFrame_GetLineNumber((PyFrameObject *)frame));
        Py_XDECREF(file);
        PyObject *below = r ? NULL : PyObject_GetAttrString(frame, "f_back");
        Py_DECREF(frame);
        if (r) return r;
        frame = below;
    }
    Py_XDECREF(frame);
    return PyUnicode_FromString("");
}

/* Tells the driver which line of the program is calling. It must run no Python code, in which a signal handler could
 * raise an exception that no caller would receive. A pending exception is preserved, and any raised here is
 * discarded. */
void cudago_note_site_now(void) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *at = site();
    const char *text = at ? PyUnicode_AsUTF8AndSize(at, NULL) : NULL;
    if (text) cudagoNoteSite((char *)text);
    Py_XDECREF(at);
    PyErr_Restore(type, value, trace);
}

void cudago_forget_site_now(void) { cudagoNoteSite(""); }

void cudago_host_access_now(uint64_t address, uint64_t size) {
    cudago_note_site_now();
    cudagoHostAccess((uintptr_t)address, size);
    cudago_forget_site_now();
}

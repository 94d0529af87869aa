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

/* Tells the driver which line of the program is calling. It must run no Python code, in which a signal handler could
 * raise an exception that no caller would receive. A pending exception is preserved, and any raised here is
 * discarded. */
void cudago_note_site_now(void) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *at = cudago_site_text(cudago_site_of_call());
    const char *text = at == Py_None ? "" : PyUnicode_AsUTF8AndSize(at, NULL);
    if (text) cudagoNoteSite((char *)text);
    Py_DECREF(at);
    PyErr_Restore(type, value, trace);
}

void cudago_forget_site_now(void) { cudagoNoteSite(""); }

void cudago_host_access_now(uint64_t address, uint64_t size) {
    cudago_note_site_now();
    cudagoHostAccess((uintptr_t)address, size);
    cudago_forget_site_now();
}

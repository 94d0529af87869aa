/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include "_cgo_export.h"

/* The driver is opened at first use. */

/* The driver may report the failure of earlier work instead of making the pop; the caller's context comes back all the same. */
QUIET void cudago_ctx_pop_again(uintptr_t ctx) {
    uintptr_t now = 0;
    if (!cu.cuCtxGetCurrent(&now) && now == ctx) cu.cuCtxPopCurrent(&now);
}

static int opened;

static void entry(void *to, const char *name) {
    uintptr_t p = cudagoEntryPoint((char *)name);
    if (p) memcpy(to, &p, sizeof p);
}

int cudago_open(void) {
    if (opened) return 0;
    PyObject *face = PyImport_ImportModule("cudago._driver");
    PyObject *options = face ? PyObject_CallMethod(face, "_options", NULL) : NULL;
    Py_XDECREF(face);
    const char *json = options ? PyUnicode_AsUTF8AndSize(options, NULL) : NULL;
    if (!json) return Py_XDECREF(options), -1;
    cudago_status st = {0};
    Py_BEGIN_ALLOW_THREADS
    cudagoOpen((char *)json, &st);
    Py_END_ALLOW_THREADS
    Py_DECREF(options);
    if (st.kind) return cudago_raise(&st);
    if (opened) return 0;
    cudago_trampolines(&cu);
#define ENTRY(call, raw) entry(&cu.call, #call);
    CUDAGO_CALLS(ENTRY)
#undef ENTRY
    opened = 1;
    cudago_poll_opened();
    cudago_checks_opened();
    face = PyImport_ImportModule("cudago._driver");
    PyObject *r = face ? PyObject_CallMethod(face, "_opened", NULL) : NULL;
    Py_XDECREF(face);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

/* _open() */
PyObject *cudago_open_driver(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (cudago_open()) return NULL;
    Py_RETURN_NONE;
}
/* _is_open(): whether a driver can be asked; not at exit */
PyObject *cudago_is_open(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return PyBool_FromLong(opened && !cudago_is_over());
}

/* For Go: a file with exported functions cannot define C functions. */
void cudago_call_host(uintptr_t fn, uintptr_t user_data) { ((void (*)(void *))fn)((void *)user_data); }

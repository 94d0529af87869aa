/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include "_cgo_export.h"

/* For tests. Makes driver calls fail, on a simulated driver that was opened with the setting `faults`; and makes calls that
 * another library could make. */

/* _fail_at_random(rate): from now on this share of all calls fails. */
PyObject *cudago_fail_at_random(PyObject *module, PyObject *rate) {
    (void)module;
    CUDAGO_ENTER(NULL);
    double share = PyFloat_AsDouble(rate);
    if ((share == -1 && PyErr_Occurred()) || cudago_open()) return NULL;
    cudago_status st = {0};
    cudagoFailAtRandom(share, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

/* _fail_next(call, n, code): the n-th call of that name, counted from now, fails once. */
PyObject *cudago_fail_next(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    const char *call;
    int n, code;
    if (!PyArg_ParseTuple(args, "sii", &call, &n, &code) || cudago_open()) return NULL;
    cudago_status st = {0};
    cudagoFailNext((char *)call, n, code, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

/* _as_another(call, device, handle): makes a driver call of which cudago knows nothing; returns what it made, or 0. */
PyObject *cudago_as_another(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    const char *call;
    int device;
    unsigned long long handle;
    if (!PyArg_ParseTuple(args, "siK", &call, &device, &handle) || cudago_open()) return NULL;
    cudago_status st = {0};
    uint64_t made = cudagoAsAnother((char *)call, device, handle, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    return PyLong_FromUnsignedLongLong(made);
}

/* _faults(): returns JSON: how many calls of each name were made to fail. */
PyObject *cudago_faults(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (cudago_open()) return NULL;
    cudago_status st = {0};
    char *text = cudagoFaults(&st);
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *r = PyUnicode_FromString(text);
    free(text);
    return r;
}

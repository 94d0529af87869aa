/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"

/* Nobody who presses Ctrl-C wants the kernel to go on, and the simulated driver can end it. Where it was becomes a note on
 * the KeyboardInterrupt that is pending. */
static void interrupt_kernels(void) {
    if (!PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    char *text;
    Py_BEGIN_ALLOW_THREADS
    text = cudagoInterruptKernels();
    Py_END_ALLOW_THREADS
    if (text) {
        PyErr_NormalizeException(&type, &value, &trace);
        PyObject *none = value ? PyObject_CallMethod(value, "add_note", "s", text) : NULL;
        if (!none) PyErr_Clear();
        Py_XDECREF(none);
        free(text);
    }
    PyErr_Restore(type, value, trace);
}

int cudago_wait(enum cudago_wait_kind kind, uint64_t id) {
    enum { SLICE_MS = 20 };
    cudago_status st = {0};
    uint64_t waiter;
    Py_BEGIN_ALLOW_THREADS
    waiter = cudagoWaitBegin((int)kind, id, &st);
    Py_END_ALLOW_THREADS
    for (int again = waiter != 0; again && !st.kind;) {
        Py_BEGIN_ALLOW_THREADS
        again = cudagoWaitSlice(waiter, SLICE_MS, &st);
        Py_END_ALLOW_THREADS
        if (again && !st.kind && PyErr_CheckSignals()) {
            cudagoWaitAbandon(waiter);
            interrupt_kernels();
            return -1;
        }
    }
    return st.kind ? cudago_raise(&st) : 0;
}

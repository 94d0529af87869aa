/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include "_cgo_export.h"
#include <unistd.h>

/* A user who presses Ctrl-C does not want the kernel to continue, and the simulated driver can end it. The place where
 * the kernel was becomes a note on the pending KeyboardInterrupt. */
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

/* Is the interpreter past its atexit hooks? This matters only if an atexit hook imported us: then nobody called
 * _shutdown. */
static int finalizing(void) {
    PyObject *ask = PySys_GetObject("is_finalizing"); /* borrowed; gone at the very end */
    PyObject *answer = ask ? PyObject_CallNoArgs(ask) : NULL;
    int yes = answer != Py_False;
    Py_XDECREF(answer);
    PyErr_Clear();
    return yes;
}

long cudago_exclusive;

QUIET int cudago_stall(void) { return cudago_exclusive && cudago_callbacks_alive && !cudago_on_callback_thread(); }

void cudago_nap(long us) {
    Py_BEGIN_ALLOW_THREADS
    usleep((useconds_t)us);
    Py_END_ALLOW_THREADS
}

int cudago_stall_wait(void) {
    while (cudago_stall()) {
        cudago_nap(CUDAGO_NAP_US);
        if (PyErr_CheckSignals()) return -1;
    }
    return 0;
}

/* Between two slices of a wait: -1 with an exception if the wait must end. Once the interpreter is ending, a callback
 * that the wait depends on can no longer get the GIL. */
int cudago_interrupted(void) {
    if (cudago_unusable || finalizing()) return cudago_raise_unusable();
    if (!PyErr_CheckSignals()) return 0;
    interrupt_kernels();
    return -1;
}

int cudago_refuse_wait(enum cudago_wait_kind kind) {
    cudago_status st = {0};
    cudagoWaitRefused((int)kind, &st);
    return cudago_raise(&st);
}

int cudago_wait(enum cudago_wait_kind kind, uint64_t id) { return cudago_wait_for(kind, id, 0); }

int cudago_wait_for(enum cudago_wait_kind kind, uint64_t id, int blocks) {
    cudago_status st = {0};
    uint64_t waiter;
    if (cudago_on_callback_thread()) return cudago_refuse_wait(kind);
    Py_BEGIN_ALLOW_THREADS
    waiter = cudagoWaitBegin((int)kind, id, blocks, &st);
    Py_END_ALLOW_THREADS
    for (int again = waiter != 0; again && !st.kind;) {
        Py_BEGIN_ALLOW_THREADS
        again = cudagoWaitSlice(waiter, CUDAGO_SLICE_MS, &st);
        Py_END_ALLOW_THREADS
        if (!again || st.kind || !cudago_interrupted()) continue;
        cudagoWaitAbandon(waiter);
        return -1;
    }
    return st.kind ? cudago_raise(&st) : 0;
}

int cudago_task(uint64_t task, uint64_t made[2]) {
    cudago_status st = {0};
    for (int again = 1; again && !st.kind;) {
        Py_BEGIN_ALLOW_THREADS
        again = cudagoTaskSlice(task, CUDAGO_SLICE_MS, made, &st);
        Py_END_ALLOW_THREADS
        if (!again || st.kind || !cudago_interrupted()) continue;
        cudagoTaskAbandon(task);
        return -1;
    }
    return st.kind ? cudago_raise(&st) : 0;
}

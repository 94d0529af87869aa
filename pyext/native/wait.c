/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"
#include <unistd.h>

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

/* Is the interpreter beyond its atexit hooks? Only who was imported in one of those can ask: then nobody called _shutdown. */
static int finalizing(void) {
    PyObject *ask = PySys_GetObject("is_finalizing"); /* borrowed; gone at the very end */
    PyObject *answer = ask ? PyObject_CallNoArgs(ask) : NULL;
    int yes = answer != Py_False;
    Py_XDECREF(answer);
    PyErr_Clear();
    return yes;
}

enum { SLICE_MS = 20 };

long cudago_exclusive;

QUIET int cudago_stall(void) { return cudago_exclusive && cudago_callbacks_alive && !cudago_on_callback_thread(); }

int cudago_stall_wait(void) {
    while (cudago_stall()) {
        Py_BEGIN_ALLOW_THREADS
        usleep(50);
        Py_END_ALLOW_THREADS
        if (PyErr_CheckSignals()) return -1;
    }
    return 0;
}

static int turn_taken;

QUIET int cudago_turn_is_not(int mine) {
    if (!cudago_callbacks_alive || cudago_on_callback_thread()) return 0;
    return cudago_exclusive > mine || cudago_queues_busy();
}

int cudago_turn_wait(int *mine) {
    if (cudago_unusable) return cudago_raise_unusable();
    if (!*mine && !turn_taken && cudago_callbacks_alive) {
        turn_taken = *mine = 1;
        cudago_exclusive++;
    }
    Py_BEGIN_ALLOW_THREADS
    usleep(50);
    Py_END_ALLOW_THREADS
    cudago_exclusive -= *mine; /* not while a signal's handler runs, which is this thread */
    int r = PyErr_CheckSignals();
    cudago_exclusive += *mine;
    return r;
}

void cudago_turn_end(int *mine) {
    cudago_exclusive -= *mine;
    if (*mine) turn_taken = 0;
    *mine = 0;
}

/* Between two slices of a wait: -1 with an exception if it must end. A callback that is waited for gets the GIL no more once
 * the interpreter ends. */
static int interrupted(void) {
    if (cudago_unusable || finalizing()) return cudago_raise_unusable();
    if (!PyErr_CheckSignals()) return 0;
    interrupt_kernels();
    return -1;
}

int cudago_wait_position(uint64_t stream, uint64_t position) {
    cudago_status st = {0};
    if (cudago_on_callback_thread()) {
        cudagoWaitRefused(WAIT_STREAM, &st);
        return cudago_raise(&st);
    }
    for (int again = 1; again;) {
        Py_BEGIN_ALLOW_THREADS
        again = cudagoLineAwait(stream, position, SLICE_MS);
        Py_END_ALLOW_THREADS
        if (again && interrupted()) return -1;
    }
    return 0;
}

int cudago_wait(enum cudago_wait_kind kind, uint64_t id) {
    cudago_status st = {0};
    uint64_t waiter;
    if (cudago_on_callback_thread()) {
        cudagoWaitRefused((int)kind, &st);
        return cudago_raise(&st);
    }
    Py_BEGIN_ALLOW_THREADS
    waiter = cudagoWaitBegin((int)kind, id, &st);
    Py_END_ALLOW_THREADS
    for (int again = waiter != 0; again && !st.kind;) {
        Py_BEGIN_ALLOW_THREADS
        again = cudagoWaitSlice(waiter, SLICE_MS, &st);
        Py_END_ALLOW_THREADS
        if (!again || st.kind || !interrupted()) continue;
        cudagoWaitAbandon(waiter);
        return -1;
    }
    return st.kind ? cudago_raise(&st) : 0;
}

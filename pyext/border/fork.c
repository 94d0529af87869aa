/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include "_cgo_export.h"
#include <unistd.h>

/* A forked child has one thread, but Go's runtime needs its other threads: a call into Go would hang there sooner or
 * later. So in a child nothing enters Go: every call of the API raises, and what the child releases is left to the end
 * of its process. */

int cudago_forked;

PyObject *cudago_after_fork(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    cudago_forked = cudago_unusable = 1;
    cudago_checking = 0; /* the functions that report to the checks test nothing else before they enter Go */
    Py_RETURN_NONE;
}

/* A call into Go that hangs only now and then is hard to test for, so in tests any such call ends the child at once. */
static void go_entered(void *context) {
    static const char text[] = "cudago: a forked child entered Go\n";
    (void)context;
    if (!cudago_forked) return;
    (void)!write(2, text, sizeof text - 1);
    abort(); /* faulthandler says where */
}

void *cudago_go_entered_address(void) { return (void *)go_entered; }

/* _watch_forks(): for tests. */
PyObject *cudago_watch_forks(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudagoWatchForks();
    Py_RETURN_NONE;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include "_cgo_export.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A forked child has one thread, but Go's runtime needs its other threads: a call into Go would hang there sooner or
 * later. So in a child nothing enters Go: every call of the API raises, and what the child releases is left to the end
 * of its process. */

int cudago_forked;

/* --- descriptors -------------------------------------------------------------------------------------------------------- */

/* Those that keep device memory: a child's copies would keep it until the child ends. Without a lock, which another thread of
 * the parent might have. */
typedef struct descriptors {
    _Atomic int32_t taken[63]; /* descriptors plus 1; 0: free */
    _Atomic(struct descriptors *) more;
} descriptors;
static descriptors open_now;

static int exchange(descriptors *d, int32_t before, int32_t now) {
    for (size_t i = 0; i < sizeof d->taken / sizeof *d->taken; i++) {
        int32_t expected = before;
        if (atomic_compare_exchange_strong(&d->taken[i], &expected, now)) return 1;
    }
    return 0;
}

/* Without memory for the note the child keeps its copy. */
static descriptors *behind(descriptors *d) {
    descriptors *known = atomic_load(&d->more), *made = known ? NULL : calloc(1, sizeof *made);
    if (made && !atomic_compare_exchange_strong(&d->more, &known, made)) free(made);
    return atomic_load(&d->more);
}

void cudago_note_descriptor(int32_t fd, int32_t is_open) {
    descriptors *d = &open_now;
    while (d && !exchange(d, is_open ? 0 : fd + 1, is_open ? fd + 1 : 0)) d = is_open ? behind(d) : atomic_load(&d->more);
}

static void close_descriptors(void) {
    for (descriptors *d = &open_now; d; d = atomic_load(&d->more))
        for (size_t i = 0; i < sizeof d->taken / sizeof *d->taken; i++)
            if (atomic_load(&d->taken[i])) close(atomic_exchange(&d->taken[i], 0) - 1);
}

/* --- the hook ----------------------------------------------------------------------------------------------------------- */

static void in_child(void) {
    cudago_forked = cudago_unusable = 1;
    close_descriptors();
    cudago_checking = 0; /* the functions that report to the checks test nothing else before they enter Go */
}

/* A hook of Python's (os.register_at_fork) would be too late: before those the interpreter releases what the states of
 * the parent's other threads hold, and runs the hooks that were registered earlier. */
int cudago_watch_fork(void) {
    int code = pthread_atfork(NULL, NULL, in_child);
    if (!code) return 0;
    PyErr_Format(PyExc_ImportError, "cudago could not register what it does in a forked child: pthread_atfork: %s", strerror(code));
    return -1;
}

static PyObject *use(PyObject *function, PyObject *args, PyObject *keywords) {
    if (cudago_forked) return cudago_raise_unusable(), NULL;
    return PyObject_Call(function, args, keywords);
}

/* gopy's functions enter Go without a question, so each is put behind one that asks. */
int cudago_guard_gopy(PyObject *gobind) {
    static PyMethodDef uses = {"use", (PyCFunction)(void (*)(void))use, METH_VARARGS | METH_KEYWORDS, NULL};
    PyObject *names = PyDict_Keys(PyModule_GetDict(gobind));
    int failed = !names;
    for (Py_ssize_t k = 0; !failed && k < PyList_Size(names); k++) {
        PyObject *name = PyList_GetItem(names, k), *function = PyObject_GetAttr(gobind, name), *guard = NULL;
        if (!function) failed = 1;
        if (function && PyCFunction_Check(function)) {
            guard = PyCFunction_NewEx(&uses, function, NULL);
            failed = !guard || PyObject_SetAttr(gobind, name, guard);
        }
        Py_XDECREF(guard);
        Py_XDECREF(function);
    }
    Py_XDECREF(names);
    return failed ? -1 : 0;
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

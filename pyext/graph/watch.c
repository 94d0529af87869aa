/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* Who watches what graphs do. Whatever adds a kernel, copies a graph, makes an executable or changes or launches one asks
 * CUDAGO_WATCH, whichever way Python came there. */

PyObject *cudago_watcher; /* an object with a method for each event; NULL: nobody watches. Guarded by the GIL */

int cudago_watch_call(const char *event, const char *format, ...) {
    va_list values;
    va_start(values, format);
    PyObject *args = Py_VaBuildValue(format, values);
    va_end(values);
    if (!args) return -1;
    PyObject *watcher = NEW_REF(cudago_watcher), *r = NULL; /* the call may end the watch */
    PyObject *method = PyObject_GetAttrString(watcher, event);
    if (method) r = PyObject_CallObject(method, args);
    Py_XDECREF(method);
    Py_DECREF(watcher);
    Py_DECREF(args);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

/* _watcher(): or None */
PyObject *cudago_get_watcher(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return NEW_REF(cudago_watcher ? cudago_watcher : Py_None);
}

/* _set_watcher(watcher or None): returns the one from before. */
PyObject *cudago_set_watcher(PyObject *module, PyObject *watcher) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *before = cudago_watcher;
    cudago_watcher = watcher == Py_None ? NULL : NEW_REF(watcher);
    return before ? before : NEW_REF(Py_None);
}

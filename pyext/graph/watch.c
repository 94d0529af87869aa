/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* Who watches what graphs do. Whatever adds a kernel, copies a graph, makes an executable or changes or launches one asks
 * CUDAGO_WATCH, whichever way Python came there. */

PyObject *cudago_watcher; /* an object with a method for each event; NULL: nobody watches. Guarded by the GIL */
static PyObject *maker;    /* who made it */

int cudago_watch_call(const char *event, const char *format, ...) {
    PyObject *watcher = NEW_REF(cudago_watcher), *r = NULL; /* what follows may run Python, which may end the watch */
    va_list values;
    va_start(values, format);
    PyObject *args = Py_VaBuildValue(format, values);
    va_end(values);
    PyObject *method = args ? PyObject_GetAttrString(watcher, event) : NULL;
    if (method) r = PyObject_CallObject(method, args);
    Py_XDECREF(method);
    Py_DECREF(watcher);
    Py_XDECREF(args);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

/* _watcher(): or None */
PyObject *cudago_get_watcher(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    return NEW_REF(cudago_watcher ? cudago_watcher : Py_None);
}

/* _set_watcher(maker or None): returns the one from before. What a watcher knows is true only while it is told of everything: so
 * each watch has a new one, and calls that are under way at the end keep theirs. */
PyObject *cudago_set_watcher(PyObject *module, PyObject *make) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *made = make == Py_None ? NULL : PyObject_CallObject(make, NULL);
    if (!made && make != Py_None) return NULL;
    PyObject *before = maker, *watcher = cudago_watcher;
    if (made && watcher && make == maker) watcher = made; /* the watch goes on */
    else cudago_watcher = made;
    maker = made ? NEW_REF(make) : NULL;
    Py_XDECREF(watcher);
    return before ? before : NEW_REF(Py_None);
}

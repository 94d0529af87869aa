/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Objects that are attached to memory: they go when its last holder has let go, before it is given back in the order of
 * its stream. What is to happen then is their __del__. The collector does not see these references. */

static PyObject *attached; /* dict: a cell's id to (object, what was there before) */

static void detach(void *id) {
    PyObject *key = PyLong_FromUnsignedLongLong(*(uint64_t *)id);
    PyObject *had = key ? PyDict_GetItemWithError(attached, key) : NULL;
    if (had) {
        Py_IncRef(had);
        PyDict_DelItem(attached, key);
        Py_DecRef(had);
    }
    Py_XDECREF(key);
}

static void ended(cudago_cell *cell) {
    if (!cudago_forked && !cudago_closed) cudago_keep_exception(detach, &cell->id);
}

/* Another thread, or code that the collector runs, may attach something meanwhile: that is why it looks twice. */
static int attach(PyObject *key, PyObject *object) {
    for (;;) {
        PyObject *before = PyDict_GetItemWithError(attached, key);
        if (!before && PyErr_Occurred()) return -1;
        before = NEW_REF(before ? before : Py_None);
        PyObject *entry = Py_BuildValue("(OO)", object, before), *now = entry ? PyDict_GetItemWithError(attached, key) : NULL;
        int same = (now ? now : Py_None) == before, r = entry ? 0 : -1;
        if (!r && same) r = PyDict_SetItem(attached, key, entry);
        Py_XDECREF(entry);
        Py_DECREF(before);
        if (r || same) return r;
    }
}

/* _buffer_attach(buffer, object) */
PyObject *cudago_buffer_attach(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 2) return PyErr_SetString(PyExc_TypeError, "_buffer_attach(buffer, object)"), NULL;
    if (cudago_expect(args[0], CLS_BUFFER, "buffer")) return NULL;
    if (!attached) {
        PyObject *made = PyDict_New();
        if (!made) return NULL;
        if (attached) Py_DECREF(made); /* the collector has run code that was faster */
        else attached = made;
        cudago_cells_tell(ended);
    }
    cudago_span span;
    if (cudago_buffer_now((BufferObject *)args[0], &span)) return NULL;
    cudago_cell_retain(span.cell); /* what attaching runs may close the buffer */
    PyObject *key = PyLong_FromUnsignedLongLong(span.cell->id);
    int r = key ? attach(key, args[1]) : -1;
    if (!r) span.cell->flags |= CUDAGO_CELL_WATCHED;
    Py_XDECREF(key);
    cudago_cell_release_gil(span.cell);
    if (r) return NULL;
    Py_RETURN_NONE;
}

/* --- who is told of allocations ---------------------------------------------------------------------------------- */

PyObject *cudago_allocated;

/* _set_allocated(callable or None): called with each new Buffer and the resource that allocated it. */
PyObject *cudago_set_allocated(PyObject *module, PyObject *callable) {
    (void)module;
    PyObject *before = cudago_allocated;
    cudago_allocated = callable == Py_None ? NULL : NEW_REF(callable);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

PyObject *cudago_tell_allocated(PyObject *buffer, PyObject *resource) {
    PyObject *tell = NEW_REF(cudago_allocated); /* it may be replaced while it runs */
    PyObject *answer = PyObject_CallFunctionObjArgs(tell, buffer, resource, NULL);
    Py_DECREF(tell);
    if (!answer) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        Py_DECREF(buffer);
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_DECREF(answer);
    return buffer;
}

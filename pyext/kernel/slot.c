/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

/* Slots, which stand for operands of nodes and can be exchanged later. */

static PyTypeObject *slot_class;

/* _set_slot(cls): objects of this class are slots. */
PyObject *cudago_set_slot(PyObject *module, PyObject *cls) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (!PyType_Check(cls)) return PyErr_SetString(PyExc_TypeError, "_set_slot takes a class"), NULL;
    PyTypeObject *before = slot_class;
    slot_class = (PyTypeObject *)NEW_REF(cls);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

QUIET int cudago_is_slot(PyObject *o) { return Py_TYPE(o) == slot_class; }

int cudago_refuse_slot(PyObject *o, const char *what) {
    if (!cudago_is_slot(o)) return 0;
    return PyErr_Format(PyExc_TypeError, "%s is a slot, which has no place outside of graphs: give it to memcpy, memset or launch of a graph or a node, "
                                         "and here what it holds, its attribute object",
                        what),
           -1;
}

/* _no_slot(object, what): raises TypeError if it is one */
PyObject *cudago_no_slot(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    const char *what = n == 2 ? PyUnicode_AsUTF8AndSize(args[1], NULL) : NULL;
    if (!what) return PyErr_Occurred() ? NULL : (PyErr_SetString(PyExc_TypeError, "_no_slot(object, what)"), NULL);
    if (cudago_refuse_slot(args[0], what)) return NULL;
    Py_RETURN_NONE;
}

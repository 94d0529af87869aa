/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

/* The bytes of a struct are copied as they are, so they must mean on the device what they mean here. */

static int check_format(const char *format, int index, PyObject *kernel) {
    const char *name = NULL;
    int length = 0;
    const char *found = cudago_format_find(format, ">!O", &name, &length);
    if (!found) return 0;
    const char *what = *found == 'O' ? "a Python object, which devices lack" : "big-endian, and devices are little-endian";
    PyObject *field = name ? PyUnicode_DecodeUTF8(name, length, "replace") : NULL;
    if (name && !field) return -1;
    if (field) PyErr_Format(PyExc_TypeError, "parameter %d of kernel %U is a struct, and field %R of it is %s", index, kernel, field, what);
    else PyErr_Format(PyExc_TypeError, "parameter %d of kernel %U is a struct, and what was given is %s", index, kernel, what);
    Py_XDECREF(field);
    return -1;
}

int cudago_get_struct(PyObject *arg, Py_buffer *view, int index, PyObject *kernel) {
    if (PyObject_GetBuffer(arg, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) {
        if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError)) return -1;
        PyErr_Clear(); /* elements of a type without a format */
        return PyObject_GetBuffer(arg, view, PyBUF_C_CONTIGUOUS);
    }
    if (!check_format(view->format, index, kernel)) return 0;
    PyBuffer_Release(view);
    return -1;
}

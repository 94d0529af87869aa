/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* abi3.h: one binary for CPython 3.11 and newer. Include this, never <Python.h>.
 *
 * The limited API alone does not give that. Headers from 3.12 on drop the reference in Py_RETURN_NONE and its kin,
 * whatever Py_LIMITED_API says, because None is immortal there: a binary built with them ends Python 3.11 with
 * "deallocating None". Headers up to 3.11 inline a Py_INCREF that does not know immortal objects (python/cpython#127191,
 * #135746). So every reference count goes through the interpreter's own functions, which are right wherever they run. */
#pragma once
#define PY_SSIZE_T_CLEAN
#ifndef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000 /* 3.11: the first with the buffer protocol */
#endif
/* Python.h is meant to be included first and to define these itself, but in what cgo compiles system headers come
 * before it. By then these have had their effect, and compilers warn of a second definition. */
#undef _POSIX_C_SOURCE
#undef _XOPEN_SOURCE
#include <Python.h>

/* The limited Python.h does not include these. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#undef Py_INCREF
#undef Py_DECREF
#undef Py_XINCREF
#undef Py_XDECREF
#undef Py_NewRef
#undef Py_XNewRef
#undef Py_RETURN_NONE
#undef Py_RETURN_TRUE
#undef Py_RETURN_FALSE
#undef Py_RETURN_NOTIMPLEMENTED

/* Py_IncRef and Py_DecRef accept NULL, but a test costs less than a call. */
#define Py_INCREF(o) Py_IncRef((PyObject *)(o))
#define Py_DECREF(o) Py_DecRef((PyObject *)(o))
#define Py_XINCREF(o) Py_IncRef((PyObject *)(o))
#define Py_XDECREF(o) cudago_xdecref((PyObject *)(o))

static inline void cudago_xdecref(PyObject *o) {
    if (o) Py_DecRef(o);
}
static inline PyObject *cudago_new_ref(PyObject *o) {
    Py_IncRef(o);
    return o;
}
#define Py_NewRef(o) cudago_new_ref((PyObject *)(o))
#define Py_XNewRef(o) cudago_new_ref((PyObject *)(o))
#define Py_RETURN_NONE return cudago_new_ref(Py_None)
#define Py_RETURN_TRUE return cudago_new_ref(Py_True)
#define Py_RETURN_FALSE return cudago_new_ref(Py_False)
#define Py_RETURN_NOTIMPLEMENTED return cudago_new_ref(Py_NotImplemented)

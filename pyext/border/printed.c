/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include "_cgo_export.h"

static _Atomic int32_t any; /* has device code printed anything? Go says so */

int32_t *cudago_printed_address(void) { return (int32_t *)&any; }

/* Writes what device code printed to Python's sys.stdout. */
int cudago_print_flush(void) {
    char *text = atomic_load(&any) ? cudagoPrinted() : NULL;
    if (!text) return 0;
    PyObject *out = PySys_GetObject("stdout"); /* borrowed, and what it runs may set another one */
    Py_XINCREF(out);
    PyObject *s = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    free(text);
    PyObject *r = out && s && out != Py_None ? PyObject_CallMethod(out, "write", "O", s) : NULL;
    int bad = out && out != Py_None && !r;
    Py_XDECREF(r);
    Py_XDECREF(s);
    Py_XDECREF(out);
    return bad ? -1 : 0;
}

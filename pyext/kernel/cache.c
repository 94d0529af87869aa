/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* _code_cache(what, config JSON): "configure", "clear" or "stats": the statistics as JSON, or what keeps it from being
 * cleared. Needs no driver. */
PyObject *cudago_code_cache(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    const char *what, *config;
    if (!PyArg_ParseTuple(args, "ss", &what, &config)) return NULL;
    cudago_status st = {0};
    char *text;
    Py_BEGIN_ALLOW_THREADS
    text = cudagoCodeCache((char *)what, (char *)config, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *r = PyUnicode_FromString(text);
    free(text);
    return r;
}

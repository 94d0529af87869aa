/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* _link(device, target, options JSON) -> (Handle, kind, log). The caller keeps the codes that the options name. */
PyObject *cudago_link(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *device;
    const char *target, *options;
    if (!PyArg_ParseTuple(args, "Oss", &device, &target, &options)) return NULL;
    if (cudago_expect(device, CLS_DEVICE, "device")) return NULL;
    cudago_status st = {0};
    char *kind = NULL, *log = NULL;
    uint64_t id;
    int32_t ordinal = ((DeviceObject *)device)->ordinal;
    Py_BEGIN_ALLOW_THREADS
    id = cudagoLink(ordinal, (char *)target, (char *)options, &kind, &log, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *handle = cudago_handle_new(id);
    PyObject *r = handle ? Py_BuildValue("(Nss)", handle, kind, log) : NULL;
    free(kind);
    free(log);
    return r;
}

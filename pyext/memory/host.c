/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Host memory that others own. */

static int unusable(const char *what, int writable) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_Format(PyExc_BufferError, "%s cannot be used: %S (it must be C-contiguous%s)", what, value ? value : Py_None,
                 writable ? " and writable" : "");
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

/* We hold the export through a memoryview of our own, not by a Py_buffer: the collector may clear a dead memoryview of
 * the user's while an export of it is open, and CPython crashes when that export is released later. Nobody can take an
 * export of our memoryview. */
PyObject *cudago_export_of(PyObject *object, int writable, const char *what, uint64_t *address, uint64_t *nbytes, int32_t *readonly) {
    Py_buffer view;
    PyObject *export = PyMemoryView_FromObject(object);
    if (!export || PyObject_GetBuffer(export, &view, PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0))) {
        unusable(what, writable);
        Py_XDECREF(export);
        return NULL;
    }
    *address = (uint64_t)(uintptr_t)view.buf;
    *nbytes = (uint64_t)view.len;
    *readonly = view.readonly;
    PyBuffer_Release(&view);
    return export;
}

int cudago_host_known(uint64_t address) { return cudagoHostKnown(address); }

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "../../dlpack/dtype.h"

#include "_cgo_export.h"

/* Host memory that others own. */

/* What says of the object that it is no such memory gets a name; anything else that went wrong is as it is. */
static int unusable(const char *what, int writable) {
    if (!PyErr_ExceptionMatches(PyExc_BufferError) && !PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_TypeError))
        return -1;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_Format(PyExc_BufferError, "%s cannot be used: %S (it must be C-contiguous%s)", what, value ? value : Py_None,
                 writable ? " and writable" : "");
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

static PyTypeObject *array_type; /* NumPy's; it stays loaded. NULL: not seen yet */

int cudago_is_array(PyObject *object) {
    if (array_type) return PyObject_TypeCheck(object, array_type);
    PyObject *name = PyUnicode_FromString("numpy"), *numpy = name ? PyImport_GetModule(name) : NULL;
    PyObject *type = numpy ? PyObject_GetAttrString(numpy, "ndarray") : NULL;
    if (type && PyType_Check(type)) array_type = (PyTypeObject *)type, type = NULL;
    Py_XDECREF(type);
    Py_XDECREF(numpy);
    Py_XDECREF(name);
    return cudago_forgive() ? -1 : array_type && PyObject_TypeCheck(object, array_type);
}

/* NumPy's arrays with masks, or NULL; a new reference. None exists before their module is loaded. */
static PyObject *masked_type(void) {
    PyObject *name = PyUnicode_FromString("numpy.ma"), *module = name ? PyImport_GetModule(name) : NULL;
    PyObject *type = module ? PyObject_GetAttrString(module, "MaskedArray") : NULL;
    Py_XDECREF(module);
    Py_XDECREF(name);
    return type;
}

int cudago_refuse_masked(PyObject *object, const char *what) {
    int r = cudago_is_array(object);
    if (r <= 0 || Py_TYPE(object) == array_type) return r < 0 ? -1 : 0;
    PyObject *type = masked_type();
    r = type && PyType_Check(type) && PyObject_TypeCheck(object, (PyTypeObject *)type);
    Py_XDECREF(type);
    if (cudago_forgive()) return -1;
    if (r)
        PyErr_Format(PyExc_TypeError, "%s must not be a masked array, of which the memory alone would be used: pass x.filled(value), or x.data, "
                                      "which has no mask",
                     what);
    return -r;
}

/* The array whose memory an object exports, or NULL; a new reference. There may be memoryviews in between. */
static PyObject *array_of(PyObject *object) {
    static PyObject *base; /* interned */
    if (!base && !(base = PyUnicode_InternFromString("base"))) return NULL;
    PyObject *at = NEW_REF(object), *last = NULL;
    for (int most = 16; at && most--;) { /* a class of its own may say that it is its base */
        int is_view = PyMemoryView_Check(at);
        if (!is_view && cudago_is_array(at) <= 0) break;
        PyObject *next = is_view ? PyObject_GetAttrString(at, "obj") : PyObject_GetAttr(at, base);
        if (!is_view) {
            Py_XDECREF(last);
            last = NEW_REF(at);
        }
        Py_DECREF(at);
        at = next;
    }
    Py_XDECREF(at);
    if (cudago_forgive()) Py_CLEAR(last);
    return last;
}

int cudago_forbid_resize(PyObject *object, PyObject **weak) {
    PyObject *array = array_of(object);
    if (array) *weak = PyWeakref_NewRef(array, NULL);
    Py_XDECREF(array);
    return cudago_forgive();
}

/* --- types of elements ------------------------------------------------------------------------------------------------- */

const char *cudago_format_find(const char *format, const char *letters, const char **name, int *length) {
    const char *found = NULL;
    for (const char *at = format; at && *at; at++) {
        if (*at == ':') {
            const char *end = strchr(at + 1, ':');
            if (!end) return found;
            if (found) return *name = at + 1, *length = (int)(end - at - 1), found;
            at = end;
        } else if (!found && strchr(letters, *at)) {
            found = at;
        }
    }
    return found;
}

static int holds_objects(const char *format) {
    const char *name;
    int length;
    return cudago_format_find(format, "O", &name, &length) != NULL;
}

/* The width is that of the element: 'l' of ctypes has 8 bytes although it says that sizes are standard. */
static DLDataType type_of(const Py_buffer *v) {
    static const struct {
        const char *letters;
        uint8_t code;
    } kinds[] = {{"bhilqn", kDLInt}, {"BHILQN", kDLUInt}, {"efdg", kDLFloat}, {"?", kDLBool}};
    const char *f = v->format ? v->format : "B";
    int swapped = (*f == '>' || *f == '!') && v->itemsize > 1;
    if (*f && strchr("@=<>!", *f)) f++;
    const char *text = f;
    while (*text >= '0' && *text <= '9') text++;
    if (*text && !text[1] && strchr("sw", *text)) return (DLDataType){kDLOpaqueHandle, 8, 1}; /* NumPy's */
    int complex = *f == 'Z';
    f += complex;
    for (size_t i = 0; *f && !f[1] && i < sizeof kinds / sizeof *kinds; i++)
        if (strchr(kinds[i].letters, *f))
            return (DLDataType){swapped ? kDLOpaqueHandle : complex ? kDLComplex
                                                                    : kinds[i].code,
                                (uint8_t)(8 * v->itemsize), 1};
    return (DLDataType){0};
}

/* That of an array; bits 0 if it is not known, or the array has another layout than a tensor. */
static DLDataType type_of_array(PyObject *array) {
    DLDataType d = {0};
    PyObject *type = PyObject_GetAttrString(array, "dtype"), *text = type ? PyObject_Str(type) : NULL;
    const char *name = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
    if (!name || cudago_dtype_parse(name, &d) || d.bits < 8) d.bits = 0;
    Py_XDECREF(text);
    Py_XDECREF(type);
    return d;
}

/* The protocol has no format for the types that other packages give NumPy, such as bfloat16. Of those that we know, this is
 * the same memory as bytes; NULL with an exception, or without one if it is not such an array. */
static PyObject *as_bytes(PyObject *array, DLDataType *dtype) {
    if (cudago_is_array(array) <= 0) return NULL;
    *dtype = type_of_array(array);
    PyObject *flags = PyErr_Occurred() || !dtype->bits ? NULL : PyObject_GetAttrString(array, "flags");
    PyObject *in_order = flags ? PyObject_GetAttrString(flags, "c_contiguous") : NULL, *flat = NULL, *bytes = NULL;
    if (in_order == Py_True) flat = PyObject_CallMethod(array, "reshape", "i", -1);
    if (flat) bytes = PyObject_CallMethod(flat, "view", "s", "u1");
    Py_XDECREF(flat);
    Py_XDECREF(in_order);
    Py_XDECREF(flags);
    return bytes;
}

/* --- exports ------------------------------------------------------------------------------------------------------------ */

/* NULL with the exception of the protocol, whatever else was tried. */
static PyObject *view_of(PyObject *object, DLDataType *dtype) {
    PyObject *type, *value, *trace, *view = PyMemoryView_FromObject(object);
    dtype->bits = 0;
    if (view || (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError))) return view;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *bytes = as_bytes(object, dtype);
    if (bytes) view = PyMemoryView_FromObject(bytes);
    Py_XDECREF(bytes);
    if (!view && !cudago_forgive()) {
        PyErr_Restore(type, value, trace);
        return NULL;
    }
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return view;
}

static int refuse_objects(const char *what) {
    PyErr_Format(PyExc_TypeError, "%s must be plain memory: its elements are or have Python objects, of which a copy of their bytes would be "
                                  "no reference",
                 what);
    return -1;
}

static int read_export(PyObject *view, int writable, const char *what, cudago_exported_bytes *out) {
    Py_buffer v;
    if (PyObject_GetBuffer(view, &v, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0))) return unusable(what, writable);
    int objects = holds_objects(v.format);
    if (!out->dtype.bits) out->dtype = type_of(&v);
    out->address = (uint64_t)(uintptr_t)v.buf;
    out->nbytes = (uint64_t)v.len;
    out->readonly = v.readonly;
    PyBuffer_Release(&v);
    return objects ? refuse_objects(what) : 0;
}

/* We hold the export through a memoryview of our own, not by a Py_buffer: the collector may clear a dead memoryview of
 * the user's while an export of it is open, and CPython crashes when that export is released later. Nobody can take an
 * export of our memoryview. */
PyObject *cudago_export_of(PyObject *object, int writable, const char *what, cudago_exported_bytes *out) {
    if (cudago_refuse_masked(object, what)) return NULL;
    PyObject *view = view_of(object, &out->dtype);
    if (!view) return unusable(what, writable), NULL;
    if (!read_export(view, writable, what, out)) return view;
    Py_DECREF(view);
    return NULL;
}

/* If the driver does not say where, the memory remains the device's: its own address is none of the host's. */
QUIET void cudago_cell_show(cudago_cell *cell, int32_t device) {
    if (cell->size && !(cell->host = cudagoHostAddress(device, cell->ptr))) return;
    cell->device_type = kDLCPU;
    cell->device_id = 0;
}

int cudago_host_known(uint64_t address) { return cudagoHostKnown(address); }

// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

#include <stdarg.h>

/* NumPy is an optional dependency: imported when one of its types is needed, and done without where it is missing. */

static int parse_text(PyObject *o, DLDataType *out) {
    PyObject *text = PyObject_Str(o);
    Py_ssize_t n = 0;
    const char *s = text ? PyUnicode_AsUTF8AndSize(text, &n) : NULL;
    int r = s && !memchr(s, 0, (size_t)n) ? cudago_dtype_parse(s, out) : -1;
    Py_XDECREF(text);
    cudago_forgive();
    return r;
}

static PyObject *numpy_dtype(PyObject *o) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    PyObject *d = numpy ? PyObject_CallMethod(numpy, "dtype", "O", o) : NULL;
    Py_XDECREF(numpy);
    cudago_forgive();
    return d;
}

/* str() of NumPy's and PyTorch's types and of names gives a name that we know, or an unknown one: foreign byte order,
 * structures, objects. NumPy may understand anything else: float, numpy.float32, "single". */
int cudago_dtype_from_python(PyObject *o, DLDataType *out) {
    if (o != Py_None) {
        if (!parse_text(o, out)) return 0;
        PyObject *d = PyErr_Occurred() ? NULL : numpy_dtype(o);
        int r = d ? parse_text(d, out) : -1;
        Py_XDECREF(d);
        if (!r) return 0;
        if (PyErr_Occurred()) return -1;
    }
    PyErr_Format(PyExc_TypeError,
                 "dtype must be a boolean, integer, floating-point or complex type in native byte order, such as "
                 "'float32', '<f4' or 'bfloat16', got %R",
                 o);
    return -1;
}

/* Appends to text, as far as there is room. */
static void add(char *out, size_t n, const char *format, ...) {
    size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, n - used, format, args);
    va_end(args);
}

static void add_dtype(DLDataType d, char *out, size_t n) {
    static const char *const codes[] = {"int", "uint", "float", "opaque handle", "bfloat", "complex", "bool"};
    const char *name = cudago_dtype_name(d);
    if (name) return add(out, n, "%s", name);
    if (d.code < sizeof codes / sizeof *codes) add(out, n, "%s of %u bits", codes[d.code], d.bits);
    else add(out, n, "DLPack's code %u of %u bits", d.code, d.bits);
    if (d.lanes != 1) add(out, n, " in %u lanes", d.lanes);
}

void cudago_tensor_text(const DLTensor *d, char *out, size_t n) {
    enum { SHOWN = 8 };
    *out = 0;
    add(out, n, "shape ");
    if (d->ndim < 0 || d->ndim > CUDAGO_MAX_NDIM || (d->ndim && !d->shape)) {
        add(out, n, "of %d dimensions", d->ndim);
    } else {
        add(out, n, "(");
        for (int i = 0; i < d->ndim && i < SHOWN; i++) add(out, n, i ? ", %lld" : "%lld", (long long)d->shape[i]);
        add(out, n, d->ndim > SHOWN ? ", ...)" : d->ndim == 1 ? ",)"
                                                              : ")");
    }
    add(out, n, ", type ");
    add_dtype(d->dtype, out, n);
    add(out, n, ", DLPack device (%d, %d)", d->device.device_type, d->device.device_id);
}

PyObject *cudago_dtype_to_python(DLDataType d) {
    enum { CODES = kDLBool + 1,
           WIDTHS = 5 }; /* 8 to 128 bits */
    static PyObject *cache[CODES][WIDTHS];
    const char *typestr = cudago_dtype_typestr(d);
    if (!typestr) return PyUnicode_FromString(cudago_dtype_name(d));
    /* Types with a typestr have only these codes and widths. */
    PyObject **slot = &cache[d.code][__builtin_ctz(d.bits) - 3];
    if (*slot) return NEW_REF(*slot);
    PyObject *name = PyUnicode_FromString(typestr);
    PyObject *found = name ? numpy_dtype(name) : NULL;
    Py_XDECREF(name);
    if (!found) return PyErr_Occurred() ? NULL : PyUnicode_FromString(cudago_dtype_name(d));
    *slot = NEW_REF(found);
    return found;
}

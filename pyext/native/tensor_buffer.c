// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

/* --- from Buffer to Tensor ------------------------------------------------------------------------------------------- */

static int read_view_arguments(PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **out) {
    static const char *const known[] = {"dtype", "shape", "strides"};
    if (n > 3) return PyErr_Format(PyExc_TypeError, "view(dtype, shape=None, strides=None) takes 3 arguments, got %zd", n), -1;
    for (Py_ssize_t i = 0; i < n; i++) out[i] = args[i];
    for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int k = 0;
        while (k < 3 && PyUnicode_CompareWithASCIIString(name, known[k])) k++;
        if (k == 3) return PyErr_Format(PyExc_TypeError, "view() got an unexpected argument %R", name), -1;
        if (out[k]) return PyErr_Format(PyExc_TypeError, "view() got %R twice", name), -1;
        out[k] = args[n + i];
    }
    if (!out[0]) return PyErr_SetString(PyExc_TypeError, "view(dtype, shape=None, strides=None) needs a dtype"), -1;
    return 0;
}

PyObject *cudago_buffer_view(PyObject *buffer, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    BufferObject *b = (BufferObject *)buffer;
    PyObject *given[3] = {NULL};
    DLDataType dtype;
    int64_t shape[CUDAGO_MAX_NDIM], strides[CUDAGO_MAX_NDIM];
    if (read_view_arguments(args, n, names, given)) return NULL;
    if (!b->cell) return cudago_raise_closed("buffer"), NULL;
    if (cudago_dtype_from_python(given[0], &dtype)) return NULL;
    int64_t elements = (int64_t)b->size * 8 / (dtype.bits * dtype.lanes);
    int ndim = 1, with_strides = given[2] && given[2] != Py_None;
    shape[0] = elements;
    if (given[1] && given[1] != Py_None) ndim = cudago_shape_from_python(given[1], elements, shape);
    else if (elements * dtype.bits * dtype.lanes / 8 != (int64_t)b->size)
        return PyErr_Format(PyExc_ValueError, "%lld bytes are not a whole number of %s", (long long)b->size,
                            cudago_dtype_name(dtype));
    if (ndim < 0) return NULL;
    if (with_strides) {
        int m = cudago_dims_from_python(given[2], strides);
        if (m >= 0 && m != ndim) PyErr_Format(PyExc_ValueError, "%d strides for %d dimensions", m, ndim);
        if (m != ndim) return NULL;
    }
    PyObject *t = cudago_tensor_place(b->cell, b->ptr, b->size, b->ptr, dtype, ndim, shape, with_strides ? strides : NULL);
    if (t) ((TensorObject *)t)->device = b->device;
    return t;
}

/* --- a Buffer's exchange: that of its bytes --------------------------------------------------------------------------- */

static TensorObject *bytes_of(PyObject *buffer) {
    BufferObject *b = (BufferObject *)buffer;
    if (!b->cell) return cudago_raise_closed("buffer"), NULL;
    int64_t size = (int64_t)b->size;
    return (TensorObject *)cudago_tensor_place(b->cell, b->ptr, b->size, b->ptr, (DLDataType){kDLUInt, 8, 1}, 1, &size, NULL);
}

PyObject *cudago_buffer_dlpack(PyObject *buffer, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    TensorObject *t = bytes_of(buffer);
    PyObject *r = t ? cudago_tensor_dlpack(t, args, n, names) : NULL;
    Py_XDECREF(t);
    return r;
}

PyObject *cudago_buffer_dlpack_device(PyObject *buffer, PyObject *unused) {
    (void)unused;
    BufferObject *b = (BufferObject *)buffer;
    if (!b->cell) return cudago_raise_closed("buffer"), NULL;
    return Py_BuildValue("(ii)", b->cell->device_type, b->cell->device_id);
}

PyObject *cudago_buffer_cai(PyObject *buffer, void *unused) {
    TensorObject *t = bytes_of(buffer);
    PyObject *r = t ? cudago_tensor_cai(t, unused) : NULL;
    Py_XDECREF(t);
    return r;
}

/* --- from Tensor to Buffer -------------------------------------------------------------------------------------------- */

PyObject *cudago_tensor_buffer(TensorObject *t, void *unused) {
    (void)unused;
    uint64_t nbytes;
    if (cudago_tensor_open(t) || cudago_tensor_contiguous((PyObject *)t, &nbytes)) return NULL;
    cudago_cell_retain(t->cell);
    return cudago_buffer_new(t->cell, t->ptr, nbytes, t->device);
}

/* (Buffer, offset): the bytes from the lowest to the highest that t reaches, and where among them its first element is. */
PyObject *cudago_tensor_span(TensorObject *t, void *unused) {
    (void)unused;
    if (cudago_tensor_open(t)) return NULL;
    DLTensor d;
    cudago_extent e = {0};
    cudago_tensor_describe(t, &d);
    d.data = &d; /* not looked at: memory without a host address has none to give */
    const char *wrong = cudago_tensor_check(&d, 0, &e);
    if (wrong) return PyErr_Format(PyExc_SystemError, "BUG: %s", wrong), NULL;
    cudago_cell_retain(t->cell);
    PyObject *b = cudago_buffer_new(t->cell, t->ptr + (uint64_t)e.low, (uint64_t)(e.high - e.low), t->device);
    return b ? Py_BuildValue("(NL)", b, (long long)-e.low) : NULL;
}

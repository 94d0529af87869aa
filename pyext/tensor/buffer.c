// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

/* --- from Buffer to Tensor ------------------------------------------------------------------------------------------- */

static int read_view_arguments(PyObject *const *args, Py_ssize_t n, PyObject *names, PyObject **out) {
    static cudago_keyword known[] = {{"dtype", NULL}, {"shape", NULL}, {"strides", NULL}};
    if (n > 3) return PyErr_Format(PyExc_TypeError, "view(dtype, shape=None, strides=None) takes 3 arguments, got %zd", n), -1;
    for (Py_ssize_t i = 0; i < n; i++) out[i] = args[i];
    for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int k = cudago_which(known, 3, name);
        if (k == 3) return PyErr_Format(PyExc_TypeError, "view() got an unexpected argument %R", name), -1;
        if (out[k]) return PyErr_Format(PyExc_TypeError, "view() got %R twice", name), -1;
        out[k] = args[n + i];
    }
    if (!out[0]) return PyErr_SetString(PyExc_TypeError, "view(dtype, shape=None, strides=None) needs a dtype"), -1;
    return 0;
}

/* ndim -1: one dimension of as many elements as fit; n_strides -1: row-major. */
static QUIET PyObject *view_now(BufferObject *b, DLDataType dtype, int ndim, int64_t *shape, int n_strides, const int64_t *strides) {
    cudago_span m;
    if (cudago_buffer_now(b, &m)) return NULL;
    int64_t elements = (int64_t)m.size * 8 / (dtype.bits * dtype.lanes);
    if (ndim < 0) {
        ndim = 1;
        shape[0] = elements;
        if (elements * dtype.bits * dtype.lanes / 8 != (int64_t)m.size)
            return PyErr_Format(PyExc_ValueError, "%lld bytes are not a whole number of %s", (long long)m.size,
                                cudago_dtype_name(dtype));
    } else if (cudago_shape_now(elements, ndim, shape)) {
        return NULL;
    }
    if (n_strides >= 0 && n_strides != ndim)
        return PyErr_Format(PyExc_ValueError, "%d strides for %d dimensions", n_strides, ndim);
    PyObject *t = cudago_tensor_place(m.cell, m.ptr, m.size, m.ptr, dtype, ndim, shape, n_strides >= 0 ? strides : NULL);
    if (!t) return NULL;
    ((TensorObject *)t)->device = b->device;
    if (m.readonly) ((TensorObject *)t)->flags |= TENSOR_READONLY;
    return t;
}

static PyObject *buffer_view(PyObject *buffer, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    BufferObject *b = (BufferObject *)buffer;
    PyObject *given[3] = {NULL};
    DLDataType dtype;
    int64_t shape[CUDAGO_MAX_NDIM], strides[CUDAGO_MAX_NDIM];
    int ndim = -1, n_strides = -1;
    cudago_span open;
    if (read_view_arguments(args, n, names, given) || cudago_buffer_now(b, &open)) return NULL;
    if (cudago_dtype_from_python(given[0], &dtype)) return NULL;
    if (given[1] && given[1] != Py_None && (ndim = cudago_dims_from_python(given[1], "shape", shape)) < 0) return NULL;
    if (given[2] && given[2] != Py_None && (n_strides = cudago_dims_from_python(given[2], "strides", strides)) < 0) return NULL;
    return view_now(b, dtype, ndim, shape, n_strides, strides);
}

/* --- a Buffer's exchange: as its bytes ---------------------------------------------------------------------------- */

static QUIET TensorObject *bytes_of(PyObject *buffer) {
    BufferObject *b = (BufferObject *)buffer;
    if (cudago_cell_now(b->cell, "buffer")) return NULL;
    int64_t size = (int64_t)b->size;
    TensorObject *t = (TensorObject *)cudago_tensor_place(b->cell, b->ptr, b->size, b->ptr, (DLDataType){kDLUInt, 8, 1}, 1, &size, NULL);
    if (t && b->readonly) t->flags |= TENSOR_READONLY;
    return t;
}

/* What bytes_of makes, without an object: an export only reads it. */
static QUIET PyObject *dlpack_now(BufferObject *b, const cudago_dlpack_request *r) {
    TensorObject t = {.ndim = 1, .origin = ORIGIN_CUDAGO};
    int64_t size = (int64_t)b->size;
    if (cudago_cell_now(b->cell, "buffer")) return NULL;
    t.shape = t.small;
    t.strides = t.small + 1;
    cudago_tensor_set(&t, b->cell, b->ptr, (DLDataType){kDLUInt, 8, 1}, &size, NULL);
    if (b->readonly) t.flags |= TENSOR_READONLY;
    return cudago_dlpack_as(&t, r);
}

static PyObject *buffer_dlpack(PyObject *buffer, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    cudago_span open;
    cudago_dlpack_request r;
    if (cudago_buffer_now((BufferObject *)buffer, &open) || cudago_dlpack_read(args, n, names, &r)) return NULL;
    if (!r.on_device && r.copy != 1) return dlpack_now((BufferObject *)buffer, &r);
    TensorObject *t = bytes_of(buffer);
    PyObject *capsule = t ? cudago_dlpack_as(t, &r) : NULL;
    Py_XDECREF(t);
    return capsule;
}

static QUIET PyObject *buffer_dlpack_device(PyObject *buffer, PyObject *unused) {
    (void)unused;
    BufferObject *b = (BufferObject *)buffer;
    if (cudago_cell_now(b->cell, "buffer")) return NULL;
    return Py_BuildValue("(ii)", b->cell->device_type, b->cell->device_id);
}

static PyObject *buffer_cai(PyObject *buffer, void *unused) {
    CUDAGO_ENTER(NULL);
    TensorObject *t = bytes_of(buffer);
    PyObject *r = t ? cudago_tensor_cai(t, unused) : NULL;
    Py_XDECREF(t);
    return r;
}

/* --- from Tensor to Buffer -------------------------------------------------------------------------------------------- */

/* A Buffer over memory of t, which may be read-only where the memory is not. Takes over the caller's count of cell. */
static PyObject *bytes_at(const TensorObject *t, cudago_cell *cell, uint64_t ptr, uint64_t nbytes) {
    PyObject *b = cudago_buffer_new(cell, ptr, nbytes, t->device);
    if (b) ((BufferObject *)b)->readonly = (t->flags & TENSOR_READONLY) != 0;
    return b;
}

static QUIET PyObject *buffer_now(TensorObject *t) {
    uint64_t nbytes;
    if (cudago_tensor_open(t) || cudago_tensor_contiguous((PyObject *)t, &nbytes)) return NULL;
    cudago_cell_retain(t->cell);
    return bytes_at(t, t->cell, t->ptr, nbytes);
}
PyObject *cudago_tensor_buffer(TensorObject *t, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    return buffer_now(t);
}

/* In bytes, around the one that the first element begins in. */
static QUIET void reach_of_packed(const TensorObject *t, cudago_extent *e) {
    int64_t low, high, bits = t->dtype.bits * t->dtype.lanes;
    cudago_tensor_reach(t, &low, &high);
    e->low = (t->bit + low * bits) >> 3; /* rounds towards the lower address */
    e->high = (t->bit + (high + 1) * bits + 7) >> 3;
}

/* The cell with a count for the caller, and the extent of t around its first element. */
static QUIET cudago_cell *span_now(const TensorObject *t, cudago_extent *e) {
    DLTensor d;
    cudago_cell *cell = cudago_tensor_hold(t, &d);
    if (!cell) return NULL;
    d.data = &d; /* never read: memory without a host address has no address to give */
    const char *wrong = cudago_tensor_check(&d, 0, e);
    if (!wrong && !e->itemsize && e->size) reach_of_packed(t, e);
    if (!wrong) return cell;
    cudago_cell_release(cell);
    return PyErr_Format(PyExc_SystemError, "BUG: %s", wrong), NULL;
}

/* (Buffer, offset): the bytes from the lowest to the highest that t reaches, and where among them its first element
 * is. */
PyObject *cudago_tensor_span(TensorObject *t, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_extent e = {0};
    cudago_cell *cell = span_now(t, &e);
    PyObject *b = cell ? bytes_at(t, cell, t->ptr + (uint64_t)e.low, (uint64_t)(e.high - e.low)) : NULL;
    return b ? Py_BuildValue("(NL)", b, (long long)-e.low) : NULL;
}

PyMethodDef cudago_buffer_exchange[] = {
    {"view", METHOD(buffer_view), METH_FASTCALL | METH_KEYWORDS, DOC_BUFFER_VIEW},
    {"__dlpack__", METHOD(buffer_dlpack), METH_FASTCALL | METH_KEYWORDS, DOC_BUFFER_DLPACK},
    {"__dlpack_device__", METHOD(buffer_dlpack_device), METH_NOARGS, DOC_BUFFER_DLPACK_DEVICE},
    {0},
};
PyGetSetDef cudago_buffer_exchange_attributes[] = {
    {"__cuda_array_interface__", (getter)buffer_cai, NULL, DOC_BUFFER_CUDA_ARRAY_INTERFACE, NULL},
    {0},
};

// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

/* A view under construction. */
typedef struct {
    const TensorObject *t;
    int axis;         /* the next dimension of t to use */
    int ndim;         /* dimensions so far */
    int64_t offset;   /* in elements, from t's first */
    int64_t shape[CUDAGO_MAX_NDIM], strides[CUDAGO_MAX_NDIM];
} building;

/* Does a byte at either end of v, which begins offset elements behind t's first, also have elements of t or of what t is a
 * view of? Bits behind t's last element are nobody's if t is not a view. */
static QUIET int is_part(const TensorObject *t, const TensorObject *v, int64_t offset) {
    int64_t low, high, last, bits = t->dtype.bits * t->dtype.lanes;
    cudago_tensor_reach(t, &low, &last);
    cudago_tensor_reach(v, &low, &high);
    if ((t->bit + (offset + low) * bits) % 8) return 1;
    return (t->bit + (offset + high + 1) * bits) % 8 && (offset + high != last || t->flags & TENSOR_PART);
}

/* Elements of less than a byte: the view may begin within one. */
static QUIET PyObject *finish_packed(building *b) {
    const TensorObject *t = b->t;
    int64_t bits = t->bit + b->offset * t->dtype.bits * t->dtype.lanes; /* >> and & round towards the lower address */
    TensorObject *v = (TensorObject *)cudago_tensor_derive(t, t->ptr + (uint64_t)(bits >> 3), t->dtype, b->ndim, b->shape, b->strides);
    if (!v) return NULL;
    cudago_tensor_set(v, v->cell, v->ptr, v->dtype, b->shape, b->strides); /* COMPACT, without what t's first byte takes away */
    v->device = t->device;
    v->flags |= t->flags & TENSOR_READONLY;
    v->bit = v->size ? bits & 7 : 0;
    if (v->bit) v->flags &= ~(uint32_t)TENSOR_COMPACT;
    if (v->size && is_part(t, v, b->offset)) v->flags |= TENSOR_PART;
    return (PyObject *)v;
}

/* The layout of every tensor has been checked to fit the address space, in bits, so offsets cannot overflow here. */
static QUIET PyObject *finish(building *b) {
    const TensorObject *t = b->t;
    int64_t itemsize = cudago_itemsize(t->dtype);
    if (!itemsize) return finish_packed(b);
    return cudago_tensor_derive(t, t->ptr + (uint64_t)(b->offset * itemsize), t->dtype, b->ndim, b->shape, b->strides);
}

static int push(building *b, int64_t size, int64_t stride) {
    if (b->ndim == CUDAGO_MAX_NDIM) return PyErr_SetString(PyExc_IndexError, "too many dimensions"), -1;
    b->shape[b->ndim] = size;
    b->strides[b->ndim++] = stride;
    return 0;
}

static int take_int(building *b, Py_ssize_t i) {
    int64_t n = b->t->shape[b->axis];
    if (i < -n || i >= n) {
        PyErr_Format(PyExc_IndexError, "index %zd is out of range for dimension %d of size %lld", i, b->axis, (long long)n);
        return -1;
    }
    b->offset += (i < 0 ? i + n : i) * b->t->strides[b->axis++];
    return 0;
}

static int take_slice(building *b, PyObject *slice) {
    Py_ssize_t start, stop, step;
    int64_t stride = b->t->strides[b->axis];
    if (PySlice_Unpack(slice, &start, &stop, &step)) return -1;
    Py_ssize_t n = PySlice_AdjustIndices((Py_ssize_t)b->t->shape[b->axis++], &start, &stop, step);
    if (n) b->offset += start * stride;
    /* With fewer than two elements the stride is never used, and must not overflow because of a huge step. */
    return push(b, n, n > 1 ? stride * step : stride);
}

static int take_rest(building *b, int upto) {
    while (b->axis < upto) {
        if (push(b, b->t->shape[b->axis], b->t->strides[b->axis])) return -1;
        b->axis++;
    }
    return 0;
}

static int take(building *b, PyObject *key, int after) {
    if (key == Py_None) return push(b, 1, 0);
    if (key == Py_Ellipsis) return take_rest(b, b->t->ndim - after);
    if (PySlice_Check(key)) return take_slice(b, key);
    if (PyIndex_Check(key) && !PyBool_Check(key)) {
        Py_ssize_t i = PyNumber_AsSsize_t(key, PyExc_IndexError);
        if (i != -1 || !PyErr_Occurred()) return take_int(b, i);
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1; /* else an array: a mask, or a list of indices */
        PyErr_Clear();
    }
    PyErr_Format(PyExc_TypeError, "a tensor is indexed by integers, slices, None and ..., which make views, not by %R: masks and "
                                  "lists of indices would copy, which other libraries do (torch.from_dlpack, cupy.from_dlpack)",
                 (PyObject *)Py_TYPE(key));
    return -1;
}

/* Does key use up a dimension? */
static int consumes(PyObject *key) { return key != Py_None && key != Py_Ellipsis; }

PyObject *cudago_tensor_subscript(TensorObject *t, PyObject *key) {
    CUDAGO_ENTER(NULL);
    if (cudago_tensor_open(t)) return NULL;
    int tuple = PyTuple_Check(key);
    Py_ssize_t n = tuple ? PyTuple_Size(key) : 1;
    int used = 0, ellipses = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *k = tuple ? PyTuple_GetItem(key, i) : key;
        used += consumes(k);
        ellipses += k == Py_Ellipsis;
    }
    if (used > t->ndim || ellipses > 1) {
        if (ellipses > 1) PyErr_SetString(PyExc_IndexError, "an index can have only one ellipsis (...)");
        else PyErr_Format(PyExc_IndexError, "%d indices for a tensor of %d dimensions", used, t->ndim);
        return NULL;
    }
    building b = {.t = t};
    for (Py_ssize_t i = 0, after = used; i < n; i++) {
        PyObject *k = tuple ? PyTuple_GetItem(key, i) : key;
        after -= consumes(k);
        if (take(&b, k, (int)after)) return NULL;
    }
    return take_rest(&b, t->ndim) ? NULL : finish(&b);
}

PyObject *cudago_tensor_item(TensorObject *t, Py_ssize_t i) {
    if (cudago_tensor_open(t)) return NULL;
    if (!t->ndim) return PyErr_SetString(PyExc_TypeError, "a tensor without dimensions cannot be iterated over"), NULL;
    building b = {.t = t};
    return take_int(&b, i) || take_rest(&b, t->ndim) ? NULL : finish(&b);
}

/* The view whose dimension i is t's dimension axes[i]. */
static PyObject *permuted(const TensorObject *t, const int *axes) {
    int64_t shape[CUDAGO_MAX_NDIM], strides[CUDAGO_MAX_NDIM];
    for (int i = 0; i < t->ndim; i++) {
        shape[i] = t->shape[axes[i]];
        strides[i] = t->strides[axes[i]];
    }
    return cudago_tensor_derive(t, t->ptr, t->dtype, t->ndim, shape, strides);
}

static PyObject *reverse_axes(const TensorObject *t) {
    int axes[CUDAGO_MAX_NDIM];
    for (int i = 0; i < t->ndim; i++) axes[i] = t->ndim - 1 - i;
    return permuted(t, axes);
}

PyObject *cudago_tensor_get_T(TensorObject *t, void *unused) {
    (void)unused;
    return cudago_tensor_open(t) ? NULL : reverse_axes(t);
}

PyObject *cudago_tensor_get_mT(TensorObject *t, void *unused) {
    (void)unused;
    int axes[CUDAGO_MAX_NDIM], n = t->ndim;
    if (cudago_tensor_open(t)) return NULL;
    if (n < 2) return PyErr_Format(PyExc_ValueError, "mT exchanges the last two dimensions, got a tensor of %d", n), NULL;
    for (int i = 0; i < n; i++) axes[i] = i < n - 2 ? i : 2 * n - 3 - i;
    return permuted(t, axes);
}

/* --- shapes from Python -------------------------------------------------------------------------------------------- */

/* Replaces the single -1, if there is one, by what is left of size. */
QUIET int cudago_shape_now(int64_t size, int n, int64_t *shape) {
    int64_t known = 1;
    int open = -1;
    for (int i = 0; i < n; i++) {
        if (shape[i] == -1 && open < 0 && size >= 0) {
            open = i;
        } else if (shape[i] < 0) {
            if (shape[i] == -1 && open >= 0) return PyErr_Format(PyExc_ValueError, "only one dimension can be -1, got dimensions %d and %d", open, i), -1;
            return PyErr_Format(PyExc_ValueError, "dimension %d is negative: %lld", i, (long long)shape[i]), -1;
        } else if (__builtin_mul_overflow(known, shape[i], &known)) {
            return PyErr_SetString(PyExc_OverflowError, "the shape has more elements than fit 64 bits"), -1;
        }
    }
    if (open < 0) return 0;
    if (!known || size % known) {
        PyErr_Format(PyExc_ValueError, "dimension %d cannot be worked out: %lld elements into rows of %lld", open,
                     (long long)size, (long long)known);
        return -1;
    }
    shape[open] = size / known;
    return 0;
}

static int read_dims(PyObject *const *items, Py_ssize_t n, int64_t *shape) {
    if (n > CUDAGO_MAX_NDIM) {
        PyErr_Format(PyExc_ValueError, "at most %d dimensions, got %zd", CUDAGO_MAX_NDIM, n);
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *index = cudago_index(items[i], "a dimension");
        if (!index) return -1;
        int overflow;
        shape[i] = PyLong_AsLongLongAndOverflow(index, &overflow);
        Py_DECREF(index);
        if (overflow) return cudago_raise_number(PyExc_OverflowError, items[i], "a dimension must be below 2**63");
    }
    return (int)n;
}

/* An int, also as an array without dimensions, which has no length. One with some has __index__ too. -1 with an exception. */
static int is_one(PyObject *o) {
    if (PyLong_Check(o)) return 1;
    if (!PyIndex_Check(o)) return 0;
    if (PySequence_Check(o) && PySequence_Size(o) >= 0) return 0;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
    PyErr_Clear();
    return 1;
}

int cudago_dims_from_python(PyObject *o, const char *name, int64_t *shape) {
    int one = is_one(o);
    if (one) return one < 0 ? -1 : read_dims(&o, 1, shape);
    PyObject *items[CUDAGO_MAX_NDIM];
    PyObject *each = PyObject_GetIter(o);
    if (!each && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s must be an int or a sequence of ints, not %R", name, (PyObject *)Py_TYPE(o));
    if (!each) return -1;
    PyObject *tuple = PySequence_Tuple(each);
    Py_DECREF(each);
    if (!tuple) return -1;
    Py_ssize_t n = PyTuple_Size(tuple);
    for (Py_ssize_t i = 0; i < n && i < CUDAGO_MAX_NDIM; i++) items[i] = PyTuple_GetItem(tuple, i);
    int r = read_dims(items, n, shape);
    Py_DECREF(tuple);
    return r;
}

/* reshape(2, 3) or reshape((2, 3)) */
PyObject *cudago_tensor_reshape(TensorObject *t, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t nbytes;
    int64_t shape[CUDAGO_MAX_NDIM], size = 1;
    int ndim = n == 1 ? cudago_dims_from_python(args[0], "shape", shape) : read_dims(args, n, shape);
    if (ndim < 0 || cudago_tensor_open(t) || cudago_tensor_contiguous((PyObject *)t, &nbytes)) return NULL;
    if (cudago_shape_now(t->size, ndim, shape)) return NULL;
    for (int i = 0; i < ndim; i++) size = cudago_product(size, shape[i]);
    if (size != t->size) {
        PyErr_Format(PyExc_ValueError, "a tensor of %lld elements cannot take a shape of %lld", (long long)t->size,
                     (long long)size);
        return NULL;
    }
    return cudago_tensor_derive(t, t->ptr, t->dtype, ndim, shape, NULL);
}

/* Each dimension once, counted from either end. */
static int read_axes(const TensorObject *t, int n, const int64_t *given, int *axes) {
    uint64_t seen = 0;
    if (n != t->ndim) return PyErr_Format(PyExc_ValueError, "a tensor of %d dimensions has as many axes, got %d", t->ndim, n), -1;
    _Static_assert(CUDAGO_MAX_NDIM <= 64, "a bit for each dimension");
    for (int i = 0; i < n; i++) {
        int64_t axis = given[i] < 0 ? given[i] + n : given[i];
        if (axis < 0 || axis >= n)
            return PyErr_Format(PyExc_ValueError, "axis %lld is out of range for %d dimensions", (long long)given[i], n), -1;
        if (seen >> axis & 1) return PyErr_Format(PyExc_ValueError, "axis %lld is given twice", (long long)axis), -1;
        seen |= (uint64_t)1 << axis;
        axes[i] = (int)axis;
    }
    return 0;
}

/* transpose(), transpose(1, 0, 2) or transpose((1, 0, 2)) */
PyObject *cudago_tensor_transpose(TensorObject *t, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    int64_t given[CUDAGO_MAX_NDIM];
    int axes[CUDAGO_MAX_NDIM];
    int all = !n || (n == 1 && args[0] == Py_None);
    int count = all ? 0 : n == 1 ? cudago_dims_from_python(args[0], "axes", given)
                                 : read_dims(args, n, given);
    if (count < 0 || cudago_tensor_open(t)) return NULL;
    if (all) return reverse_axes(t);
    return read_axes(t, count, given, axes) ? NULL : permuted(t, axes);
}

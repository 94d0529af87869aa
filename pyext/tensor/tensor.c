// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

PyTypeObject *cudago_tensor_type;

/* --- life --------------------------------------------------------------------------------------------------------- */

QUIET TensorObject *cudago_tensor_alloc(int ndim) {
    /* Not from a list of used ones: tracemalloc would not know where such an object was made, and cu.debug.leaks say so. */
    TensorObject *t = cudago_alloc_native(cudago_tensor_type, sizeof *t);
    if (!t) return NULL;
    t->weak = NULL;
    t->cell = t->theirs = NULL;
    t->exports = 0;
    t->origin = ORIGIN_CUDAGO;
    t->bit = 0;
    t->ndim = ndim;
    t->shape = t->small;
    if (ndim > CUDAGO_SMALL_NDIM) {
        t->shape = malloc(2 * sizeof(int64_t) * (size_t)ndim);
        if (!t->shape) return Py_DECREF(t), (TensorObject *)PyErr_NoMemory();
    }
    t->strides = t->shape + ndim;
    return t;
}

QUIET void cudago_tensor_set(TensorObject *t, cudago_cell *cell, uint64_t ptr, DLDataType dtype, const int64_t *shape,
                             const int64_t *strides) {
    t->cell = cell;
    t->ptr = ptr;
    t->dtype = dtype;
    t->device = cell->ordinal;
    t->flags = cell->flags & CUDAGO_CELL_READONLY ? TENSOR_READONLY : 0;
    t->size = 1;
    for (int i = 0; i < t->ndim; i++) t->size = cudago_product(t->size, t->shape[i] = shape[i]);
    if (strides) {
        for (int i = 0; i < t->ndim; i++) t->strides[i] = strides[i];
        if (cudago_is_compact(t->ndim, t->shape, t->strides)) t->flags |= TENSOR_COMPACT;
    } else {
        cudago_c_strides(t->ndim, t->shape, t->strides);
        t->flags |= TENSOR_COMPACT;
    }
}

QUIET PyObject *cudago_tensor_derive(const TensorObject *t, uint64_t ptr, DLDataType dtype, int ndim, const int64_t *shape,
                                     const int64_t *strides) {
    if (cudago_tensor_open(t)) return NULL;
    TensorObject *v = cudago_tensor_alloc(ndim);
    if (!v) return NULL;
    cudago_cell_retain(t->cell);
    cudago_tensor_set(v, t->cell, ptr, dtype, shape, strides);
    v->flags |= t->flags & TENSOR_READONLY;
    v->device = t->device;
    v->origin = t->origin;
    v->flags |= t->flags & TENSOR_PART;
    if ((v->bit = t->bit)) v->flags &= ~(uint32_t)TENSOR_COMPACT;
    if ((v->theirs = t->theirs)) cudago_cell_retain(v->theirs);
    return (PyObject *)v;
}

QUIET PyObject *cudago_tensor_place(cudago_cell *cell, uint64_t base, uint64_t nbytes, uint64_t ptr, DLDataType dtype, int ndim,
                                    const int64_t *shape, const int64_t *strides) {
    /* The check reads no data: any non-null address will do if the memory has none for the host. */
    DLTensor d = {.data = (void *)(uintptr_t)(ptr ? ptr : 1), .device = {kDLCPU, 0}, .ndim = ndim, .dtype = dtype, .shape = (int64_t *)shape, .strides = (int64_t *)strides};
    cudago_extent e = {0};
    const char *wrong = cudago_tensor_check(&d, 0, &e);
    if (wrong) return PyErr_SetString(PyExc_ValueError, wrong), NULL;
    int64_t start = (int64_t)(ptr - base);
    if (e.size && (start + e.low < 0 || start + e.high > (int64_t)nbytes)) {
        PyErr_Format(PyExc_ValueError, "the tensor reaches bytes %lld to %lld of memory of %llu bytes",
                     (long long)(start + e.low), (long long)(start + e.high), (unsigned long long)nbytes);
        return NULL;
    }
    TensorObject *t = cudago_tensor_alloc(ndim);
    if (!t) return NULL;
    cudago_cell_retain(cell);
    cudago_tensor_set(t, cell, ptr, dtype, shape, strides);
    return (PyObject *)t;
}

QUIET cudago_cell *cudago_tensor_hold(const TensorObject *t, DLTensor *out) {
    if (cudago_tensor_open(t)) return NULL;
    cudago_tensor_describe(t, out);
    cudago_cell_retain(t->cell);
    return t->cell;
}

void cudago_cell_let_go(cudago_cell *cell) {
    /* Another library's tensor is given back with the exception put aside in any case. */
    if (cell->kind == CUDAGO_CELL_FOREIGN || atomic_load_explicit(&cell->refs, memory_order_relaxed) != 1) {
        cudago_cell_release_gil(cell);
        return;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace); /* a release function may run Python code */
    cudago_cell_release_gil(cell);
    PyErr_Restore(type, value, trace);
}

static PyObject *tensor_close(TensorObject *t, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER_CLOSE();
    if (t->cell && t->exports) {
        PyErr_Format(PyExc_BufferError, "tensor cannot be closed: %d buffer(s) of its memory are in use", t->exports);
        return NULL;
    }
    cudago_cell *cell = t->cell, *theirs = t->theirs;
    t->cell = t->theirs = NULL; /* first: the release may re-enter this function */
    if (theirs) cudago_cell_let_go(theirs);
    if (cell) cudago_note_closed(cell);
    if (cell) cudago_cell_let_go(cell);
    Py_RETURN_NONE;
}

static PyObject *tensor_exit(TensorObject *t, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return tensor_close(t, NULL);
}

static PyObject *tensor_enter(PyObject *self, PyObject *unused) {
    (void)unused;
    return cudago_tensor_open((TensorObject *)self) ? NULL : NEW_REF(self);
}

static void tensor_dealloc(TensorObject *t) {
    if (t->weak) PyObject_ClearWeakRefs((PyObject *)t);
    if (t->theirs && !cudago_forked) cudago_cell_let_go(t->theirs);
    if (t->cell && !cudago_forked) cudago_cell_let_go(t->cell);
    if (t->shape != t->small) free(t->shape);
    PyTypeObject *type = Py_TYPE((PyObject *)t);
    PyObject_Free(t); /* the function in its tp_free slot: the type takes no part in garbage collection */
    Py_DECREF(type);
}

/* --- for the rest of the border --------------------------------------------------------------------------------- */

static QUIET int64_t bytes_of(DLDataType d, int64_t elements) {
    int64_t itemsize = cudago_itemsize(d);
    return itemsize ? elements * itemsize : (elements * d.bits * d.lanes + 7) / 8;
}

QUIET int cudago_tensor_addressable(const TensorObject *t) {
    if (!t->bit) return 0;
    PyErr_Format(PyExc_BufferError, "the tensor begins within a byte, at bit %u, so that it has no address: its %s are packed; copy it first, "
                                    "with t.contiguous(stream=s)",
                 (unsigned)t->bit, cudago_dtype_name(t->dtype));
    return -1;
}

QUIET void cudago_tensor_reach(const TensorObject *t, int64_t *low, int64_t *high) {
    *low = *high = 0;
    for (int i = 0; i < t->ndim; i++) *(t->strides[i] < 0 ? low : high) += t->strides[i] * (t->shape[i] - 1);
}

QUIET int cudago_tensor_contiguous(PyObject *tensor, uint64_t *nbytes) {
    TensorObject *t = (TensorObject *)tensor;
    if (cudago_tensor_addressable(t)) return -1;
    if (!(t->flags & TENSOR_COMPACT)) {
        PyErr_SetString(PyExc_BufferError, "the tensor has gaps between its elements or is not in row-major order");
        return -1;
    }
    *nbytes = (uint64_t)bytes_of(t->dtype, t->size);
    return 0;
}

QUIET int cudago_dltensor_contiguous(const DLTensor *t, uint64_t *nbytes) {
    int64_t size = 1;
    for (int i = 0; i < t->ndim; i++) size *= t->shape[i];
    *nbytes = (uint64_t)bytes_of(t->dtype, size);
    return !t->strides || cudago_is_compact(t->ndim, t->shape, t->strides) ? 0 : -1;
}

QUIET void cudago_tensor_describe(const TensorObject *t, DLTensor *out) {
    const cudago_cell *c = t->cell;
    uint64_t at = t->ptr;
    if (c->device_type != kDLCUDA && c->host) at = t->ptr - c->ptr + c->host;
    *out = (DLTensor){.data = (void *)(uintptr_t)at, .device = {c->device_type, c->device_id}, .ndim = t->ndim, .dtype = t->dtype, .shape = t->shape, .strides = t->strides};
}

/* --- attributes ---------------------------------------------------------------------------------------------------- */

PyObject *cudago_tuple_of(int n, const int64_t *values, int64_t scale) {
    PyObject *tuple = PyTuple_New(n);
    for (int i = 0; tuple && i < n; i++) {
        PyObject *v = PyLong_FromLongLong(values[i] * scale);
        if (!v || PyTuple_SetItem(tuple, i, v)) Py_CLEAR(tuple);
    }
    return tuple;
}

static PyObject *get_shape(TensorObject *t, void *unused) { return (void)unused, cudago_tuple_of(t->ndim, t->shape, 1); }
static PyObject *get_strides(TensorObject *t, void *unused) { return (void)unused, cudago_tuple_of(t->ndim, t->strides, 1); }
static PyObject *get_dtype(TensorObject *t, void *unused) { return (void)unused, cudago_dtype_to_python(t->dtype); }
static PyObject *get_ndim(TensorObject *t, void *unused) { return (void)unused, PyLong_FromLong(t->ndim); }
static PyObject *get_size(TensorObject *t, void *unused) { return (void)unused, PyLong_FromLongLong(t->size); }
static QUIET PyObject *get_is_closed(TensorObject *t, void *unused) { return (void)unused, PyBool_FromLong(cudago_cell_closed(t->cell)); }
static PyObject *get_readonly(TensorObject *t, void *unused) {
    return (void)unused, PyBool_FromLong(t->flags & TENSOR_READONLY);
}
static PyObject *get_contiguous(TensorObject *t, void *unused) {
    return (void)unused, PyBool_FromLong(t->flags & TENSOR_COMPACT);
}
static PyObject *get_dtype_name(TensorObject *t, void *unused) {
    return (void)unused, PyUnicode_FromString(cudago_dtype_name(t->dtype));
}
static PyObject *get_itemsize(TensorObject *t, void *unused) {
    return (void)unused, PyLong_FromLongLong(bytes_of(t->dtype, 1));
}
static PyObject *get_nbytes(TensorObject *t, void *unused) {
    return (void)unused, PyLong_FromLongLong(bytes_of(t->dtype, t->size));
}
/* (bit of its first byte that the first element begins at, whether its first or last byte has elements of others) */
static QUIET PyObject *get_packing(TensorObject *t, void *unused) {
    return (void)unused, Py_BuildValue("(IN)", t->bit, PyBool_FromLong(t->flags & TENSOR_PART));
}

/* _await_work(): has the host wait for the work pending on the memory, as for an export to it. */
static PyObject *await_work(TensorObject *t, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    DLTensor d;
    cudago_cell *cell = cudago_tensor_hold(t, &d);
    if (!cell) return NULL;
    int r = cudago_cell_order(cell, CUDAGO_ANYWHERE, 0);
    cudago_cell_let_go(cell);
    if (r) return NULL;
    Py_RETURN_NONE;
}
/* _retyped(dtype): the same elements as another type of their size. */
static PyObject *retyped(TensorObject *t, PyObject *dtype) {
    CUDAGO_ENTER(NULL);
    DLDataType d;
    if (cudago_dtype_from_python(dtype, &d)) return NULL;
    if (d.bits * d.lanes != t->dtype.bits * t->dtype.lanes) return PyErr_SetString(PyExc_SystemError, "BUG: a type of another size"), NULL;
    return cudago_tensor_derive(t, t->ptr, d, t->ndim, t->shape, t->strides);
}
static QUIET PyObject *get_origin(TensorObject *t, void *unused) {
    static const char *const names[] = {"cudago", "exchange table", "capsule", "legacy capsule", "array interface"};
    return (void)unused, PyUnicode_FromString(names[t->origin]);
}
static PyObject *get_ordinal(TensorObject *t, void *unused) {
    (void)unused;
    if (t->device < 0) Py_RETURN_NONE;
    return PyLong_FromLong(t->device);
}
static PyObject *get_handle(TensorObject *t, void *unused) {
    (void)unused;
    return cudago_tensor_open(t) || cudago_tensor_addressable(t) ? NULL : PyLong_FromUnsignedLongLong(t->ptr);
}

/* (kind, DLPack device type, DLPack device id, allocation's first byte, allocation's size): for the Python face. */
static QUIET PyObject *get_memory(TensorObject *t, void *unused) {
    (void)unused;
    if (cudago_tensor_open(t)) return NULL;
    const cudago_cell *c = t->cell;
    return Py_BuildValue("(IiiKK)", c->kind, c->device_type, c->device_id, (unsigned long long)c->ptr,
                         (unsigned long long)c->size);
}

static Py_ssize_t tensor_length(TensorObject *t) {
    if (t->ndim) return (Py_ssize_t)t->shape[0];
    PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no length");
    return -1;
}

/* A tensor's truth value must not depend on its length: `if tensor:` is a mistake unless there is exactly one element
 * to look at, and that may be on a device. */
static int tensor_bool(TensorObject *t) {
    (void)t;
    PyErr_SetString(PyExc_TypeError, "a tensor is neither true nor false: compare with None, or look at t.numpy(stream=)");
    return -1;
}

/* Two tensors are equal if they view the same elements, as for Buffers; the elements' values are not compared. */
static QUIET PyObject *tensor_compare(TensorObject *t, PyObject *other, int op) {
    if ((op != Py_EQ && op != Py_NE) || !cudago_is_tensor(other)) Py_RETURN_NOTIMPLEMENTED;
    const TensorObject *o = (TensorObject *)other;
    size_t dims = sizeof(int64_t) * (size_t)t->ndim;
    int same = t == o || (t->cell && t->cell == o->cell && t->ptr == o->ptr && t->bit == o->bit && t->ndim == o->ndim &&
                          !memcmp(&t->dtype, &o->dtype, sizeof t->dtype) && !memcmp(t->shape, o->shape, dims) &&
                          !memcmp(t->strides, o->strides, dims));
    return PyBool_FromLong(same == (op == Py_EQ));
}
static Py_hash_t tensor_hash(TensorObject *t) { /* of what outlives close() */
    uint64_t h = t->ptr * 0x9E3779B97F4A7C15u ^ (uint64_t)t->dtype.code << 8 ^ t->dtype.bits;
    for (int i = 0; i < t->ndim; i++) h = h * 31 + (uint64_t)t->shape[i];
    return (Py_hash_t)(h == (uint64_t)-1 ? 1 : h);
}

static PyMethodDef methods[] = {
    {"close", METHOD(tensor_close), METH_NOARGS,
     DOC_TENSOR_CLOSE},
    {"reshape", METHOD(cudago_tensor_reshape), METH_FASTCALL,
     DOC_TENSOR_RESHAPE},
    {"transpose", METHOD(cudago_tensor_transpose), METH_FASTCALL,
     DOC_TENSOR_TRANSPOSE},
    {"__dlpack__", METHOD(cudago_tensor_dlpack), METH_FASTCALL | METH_KEYWORDS,
     DOC_TENSOR_DLPACK},
    {"__dlpack_device__", METHOD(cudago_tensor_dlpack_device), METH_NOARGS,
     DOC_TENSOR_DLPACK_DEVICE},
    {"_retyped", METHOD(retyped), METH_O, NULL},
    {"_await_work", METHOD(await_work), METH_NOARGS, NULL},
    {"__enter__", tensor_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(tensor_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"shape", (getter)get_shape, NULL, DOC_TENSOR_SHAPE, NULL},
    {"strides", (getter)get_strides, NULL, DOC_TENSOR_STRIDES, NULL},
    {"dtype", (getter)get_dtype, NULL, DOC_TENSOR_DTYPE, NULL},
    {"dtype_name", (getter)get_dtype_name, NULL, DOC_TENSOR_DTYPE_NAME, NULL},
    {"ndim", (getter)get_ndim, NULL, DOC_TENSOR_NDIM, NULL},
    {"size", (getter)get_size, NULL, DOC_TENSOR_SIZE, NULL},
    {"nbytes", (getter)get_nbytes, NULL, DOC_TENSOR_NBYTES, NULL},
    {"itemsize", (getter)get_itemsize, NULL, DOC_TENSOR_ITEMSIZE, NULL},
    {"handle", (getter)get_handle, NULL, DOC_TENSOR_HANDLE, NULL},
    {"is_closed", (getter)get_is_closed, NULL, DOC_TENSOR_IS_CLOSED, NULL},
    {"is_readonly", (getter)get_readonly, NULL, DOC_TENSOR_IS_READONLY, NULL},
    {"is_contiguous", (getter)get_contiguous, NULL, DOC_TENSOR_IS_CONTIGUOUS, NULL},
    {"origin", (getter)get_origin, NULL, DOC_TENSOR_ORIGIN, NULL},
    {"T", (getter)cudago_tensor_get_T, NULL, DOC_TENSOR_T, NULL},
    {"mT", (getter)cudago_tensor_get_mT, NULL, DOC_TENSOR_MT, NULL},
    {"__cuda_array_interface__", (getter)cudago_tensor_cai, NULL,
     DOC_TENSOR_CUDA_ARRAY_INTERFACE, NULL},
    {"buffer", (getter)cudago_tensor_buffer, NULL,
     DOC_TENSOR_BUFFER, NULL},
    {"_span", (getter)cudago_tensor_span, NULL, NULL, NULL},
    {"_packing", (getter)get_packing, NULL, NULL, NULL},
    {"_ordinal", (getter)get_ordinal, NULL, NULL, NULL},
    {"_memory", (getter)get_memory, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(TensorObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {Py_mp_subscript, cudago_tensor_subscript},
    {Py_mp_length, tensor_length},
    {Py_sq_item, cudago_tensor_item}, /* iteration */
    {Py_nb_bool, tensor_bool},
    {Py_tp_richcompare, tensor_compare},
    {Py_tp_hash, tensor_hash},
    {Py_bf_getbuffer, cudago_tensor_get_buffer},
    {Py_bf_releasebuffer, cudago_tensor_release_buffer},
    {0, NULL},
};
/* A tensor holds a cell and no Python object, so the collector need not see it; this halves the cost of making one. A
 * Python subclass would take part in garbage collection whatever its __slots__, so _tensor/tensor.py puts its methods into
 * this type instead. */
static PyType_Spec spec = {
    "cudago.Tensor",
    sizeof(TensorObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

/* --- module ------------------------------------------------------------------------------------------------------- */

static PyObject *fail_at(PyObject *module, PyObject *n) {
    (void)module;
    long v = PyLong_AsLong(n);
    if (v == -1 && PyErr_Occurred()) return NULL;
    cudago_exchange_fail_at((int)v);
    Py_RETURN_NONE;
}

/* _dtype(dtype): name and bits of an element. */
static PyObject *dtype_of(PyObject *module, PyObject *o) {
    (void)module;
    DLDataType d;
    return cudago_dtype_from_python(o, &d) ? NULL : Py_BuildValue("(si)", cudago_dtype_name(d), d.bits * d.lanes);
}

static PyMethodDef functions[] = {
    {"_tensor_through", cudago_tensor_through, METH_VARARGS, NULL},
    {"from_dlpack", METHOD(cudago_from_dlpack), METH_FASTCALL | METH_KEYWORDS, DOC_FROM_DLPACK},
    {"to_torch", cudago_to_torch, METH_O, DOC_TO_TORCH},
    {"_dtype", dtype_of, METH_O, NULL},
    {"_dlpack_fail_at", fail_at, METH_O, NULL},
    {0},
};

int cudago_tensor_room(PyObject *module) {
    cudago_name_dlpack = PyUnicode_InternFromString("__dlpack__");
    cudago_name_dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
    PyObject *type = PyType_FromSpec(&spec);
    if (!cudago_name_dlpack || !cudago_name_dlpack_device || !type) return -1;
    cudago_tensor_type = (PyTypeObject *)type;
    if (cudago_exchange_init(type) || PyModule_AddObjectRef(module, "Tensor", type)) return -1;
    if (cudago_add_methods(CLS_BUFFER, cudago_buffer_exchange) ||
        cudago_add_attributes(CLS_BUFFER, cudago_buffer_exchange_attributes))
        return -1;
    return PyModule_AddFunctions(module, functions) ? -1 : PyModule_AddFunctions(module, cudago_trace_functions);
}

// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

/* Memory of objects with __cuda_array_interface__. The protocol does not say when its owner may give memory back, nor in which
 * stream's order that happens. So the object is kept as another library's DLPack tensor is: until the last tensor over it is gone,
 * and all work on it has ended. */

static cudago_cell *cell_of(PyObject *owner, const DLTensor *d, int readonly, cudago_extent *e) {
    const char *wrong = cudago_tensor_check(d, readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0, e);
    if (wrong) return cudago_import_refuse(wrong, d), NULL;
    cudago_cell *c = cudago_foreign_new();
    if (!c) return (cudago_cell *)PyErr_NoMemory();
    cudago_producer p = cudago_producer_of(Py_TYPE(owner));
    cudago_foreign_take_object(c, d, e, &p.peer->ways[CUDAGO_WAY_INTERFACE], NEW_REF(owner), cudago_let_object_go);
    if (readonly) c->flags |= CUDAGO_CELL_READONLY;
    return c;
}

/* _tensor_through(owner, address, device, readonly, dtype, shape) -> Tensor */
PyObject *cudago_tensor_through(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *owner, *dtype, *dims;
    unsigned long long address;
    int32_t device;
    int readonly;
    int64_t shape[CUDAGO_MAX_NDIM];
    if (!PyArg_ParseTuple(args, "OKipOO", &owner, &address, &device, &readonly, &dtype, &dims)) return NULL;
    DLTensor d = {(void *)(uintptr_t)address, {kDLCUDA, device}, 0, {0}, shape, NULL, 0};
    d.ndim = cudago_dims_from_python(dims, "shape", shape);
    if (d.ndim < 0 || cudago_dtype_from_python(dtype, &d.dtype)) return NULL;
    cudago_extent e = {0};
    TensorObject *t = cudago_tensor_alloc(d.ndim);
    cudago_cell *c = t ? cell_of(owner, &d, readonly, &e) : NULL;
    if (!c) return Py_XDECREF(t), NULL;
    if (cudago_adopt_check(device, c->ptr, c->size)) return cudago_cell_let_go(c), Py_DECREF(t), NULL;
    cudago_tensor_adopt(t, c, &d, &e);
    t->origin = ORIGIN_INTERFACE;
    return (PyObject *)t;
}

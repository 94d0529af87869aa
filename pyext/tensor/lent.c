// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

/* What PyTorch lends, and what keeps it there. A tensor of PyTorch's is an object that refers to a storage, and the storage
 * has the memory. The tensor may be given another storage at any time (`t.set_(other)`, `t.data = other`), and everything
 * that counts the tensor alone, DLPack's managed tensors of PyTorch 2.15 too, then keeps the wrong memory. So we keep the
 * storage. What PyTorch frees within a storage, by resize_, it frees for everybody: storage.c. */

/* --- looking ----------------------------------------------------------------------------------------------------------- */

/* The imaginary part of a lazily conjugated tensor is negated lazily, and not even __dlpack__ refuses that. Such a part
 * has gaps, unless it is one element; others are not asked. */
QUIET int cudago_may_be_negated(const DLTensor *d, const cudago_extent *e) {
    return (d->dtype.code == kDLFloat || d->dtype.code == kDLBfloat) && (e->size == 1 || !e->compact);
}

static int refuse_negated(PyObject *o, const DLTensor *d) {
    PyObject *r = PyObject_CallMethod(o, "is_neg", NULL);
    int negated = r ? r == Py_True : -1;
    Py_XDECREF(r);
    if (!negated) return 0;
    if (negated > 0) cudago_import_refuse("its elements are negated only when they are read; x.resolve_neg() does it", d);
    return -1;
}

static int look(const DLPackExchangeAPI *api, PyObject *o, DLTensor *d, cudago_extent *e) {
    if (api->dltensor_from_py_object_no_sync(o, d)) return cudago_import_refused(o);
    const char *wrong = cudago_tensor_check(d, 0, e);
    return wrong ? cudago_import_refuse(wrong, d) : 0;
}

/* 1: d is what o lends, e its extent, and the consumer's stream is ordered; 2: the same, and other code has run since the
 * beginning; 0: use __dlpack__; -1: with an exception. Nothing may run between the borrowing and the use, since it might
 * change the tensor: whatever runs is followed by another look. */
static int borrow(const DLPackExchangeAPI *api, PyObject *o, intptr_t stream, DLTensor *d, cudago_extent *e) {
    if (look(api, o, d, e)) return -1;
    if (d->dtype.code == kDLComplex) return 0; /* as in through_table */
    int asked = cudago_may_be_negated(d, e);
    if (asked && refuse_negated(o, d)) return -1;
    int ordered = cudago_import_order(api, d->device, stream);
    if (ordered < 0) return -1;
    if (!asked && !ordered) return 1;
    return look(api, o, d, e) ? -1 : 2;
}

/* --- storages ---------------------------------------------------------------------------------------------------------- */

/* Calling Tensor.untyped_storage through its C function takes half as long as calling the method, and nothing else runs:
 * unless a mode is on that is told of each function of PyTorch's, such as a `with torch.device(...)`. So a storage is asked
 * for before the tensor is looked at. */
static PyCFunction storage_function; /* valid for good: PyTorch, once imported, stays loaded */
static PyObject *storage_method;     /* the descriptor that it is of */

/* The C function of a callable without arguments; NULL if it is written in Python. */
static PyCFunction c_function(PyObject *o) {
    if (!o || Py_TYPE(o) != &PyCFunction_Type || PyCFunction_GetFlags(o) != METH_NOARGS) return NULL;
    return PyCFunction_GetFunction(o);
}

int cudago_storage_way(PyTypeObject *type) {
    PyObject *method = PyObject_GetAttrString((PyObject *)type, "untyped_storage");
    if (!method) return PyErr_Clear(), STORAGE_NONE;
    int native = storage_method ? method == storage_method : !PyObject_HasAttrString(method, "__code__");
    Py_DECREF(method);
    return native ? STORAGE_NATIVE : STORAGE_METHOD;
}

/* The first time, with an object at hand to which the method can be bound. */
static void learn_function(PyObject *o) {
    PyObject *method = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "untyped_storage");
    PyObject *bound = method ? PyObject_CallMethod(method, "__get__", "O", o) : NULL;
    PyCFunction f = c_function(bound);
    PyErr_Clear();
    if (f && PyCFunction_GetSelf(bound) == o && !storage_method) {
        storage_method = NEW_REF(method);
        storage_function = f;
    }
    Py_XDECREF(bound);
    Py_XDECREF(method);
}

/* The storage's Python object is tracked by the collector, whose run would be that of anybody's finalizers: they might
 * exchange the storage after it was read. Since 3.12 the collector runs between two instructions of Python code only. */
static PyObject *storage_quietly(PyObject *o) {
    if (Py_Version >= 0x030C0000) return storage_function(o, NULL);
    int collects = PyGC_Disable();
    PyObject *s = storage_function(o, NULL);
    if (collects) PyGC_Enable();
    return s;
}

int cudago_storage_take(const cudago_producer *p, PyObject *o, PyObject **storage) {
    *storage = NULL;
    if (p->storage == STORAGE_NONE) return 0;
    if (p->storage == STORAGE_NATIVE && !storage_function) learn_function(o);
    *storage = p->storage == STORAGE_NATIVE && storage_function ? storage_quietly(o) : PyObject_CallMethod(o, "untyped_storage", NULL);
    return *storage ? 0 : -1;
}

/* --- cells -------------------------------------------------------------------------------------------------------------- */

static void drop_object(void *o) { Py_DECREF((PyObject *)o); }
/* Dropping the last reference runs code of others, which must not meet an exception that is on its way. */
void cudago_let_object_go(void *o) {
    if (Py_REFCNT((PyObject *)o) > 1 || !PyErr_Occurred()) Py_DECREF((PyObject *)o);
    else cudago_keep_exception(drop_object, o);
}

/* A tensor without a storage has no memory either: looking at it says so better. */
static int storage_or_none(const cudago_producer *p, PyObject *o, PyObject **storage) {
    return cudago_storage_take(p, o, storage) ? cudago_forgive() : 0;
}

static int borrow_stored(const cudago_producer *p, PyObject *o, intptr_t stream, DLTensor *d, cudago_extent *e, PyObject **storage) {
    if (storage_or_none(p, o, storage)) return -1;
    int r = borrow(p->api, o, stream, d, e);
    if (r != 2 || !*storage) return r;
    Py_CLEAR(*storage);
    if (storage_or_none(p, o, storage)) return -1;
    return look(p->api, o, d, e) ? -1 : 1;
}

int cudago_take_lent(const cudago_producer *p, PyObject *o, intptr_t stream, DLTensor *d, cudago_extent *e, cudago_cell **cell) {
    PyObject *storage;
    int r = borrow_stored(p, o, stream, d, e, &storage);
    cudago_cell *c = r > 0 ? cudago_foreign_new() : NULL;
    if (!c) {
        Py_XDECREF(storage);
        return r > 0 ? PyErr_NoMemory(), -1 : r;
    }
    cudago_foreign_take_object(c, d, e, &p->peer->ways[CUDAGO_WAY_TABLE], NEW_REF(o), cudago_let_object_go);
    if (storage) cudago_foreign_keep(c, storage, cudago_let_object_go);
    *cell = c;
    return 1;
}

/* The number that a method without arguments gives; 0 if it gives none, with or without an exception. */
static uint64_t number_of(PyObject *o, const char *method) {
    PyObject *v = PyObject_CallMethod(o, method, NULL);
    unsigned long long n = v && PyLong_Check(v) ? PyLong_AsUnsignedLongLong(v) : 0;
    Py_XDECREF(v);
    return PyErr_Occurred() ? 0 : n;
}

/* NumPy's arrays have no storage, but can be resized. */
static int keep_array(cudago_cell *c, PyObject *o) {
    PyObject *weak = NULL;
    int r = cudago_is_array(o) > 0 ? cudago_forbid_resize(o, &weak) : 0;
    if (weak) cudago_foreign_keep(c, weak, cudago_let_object_go);
    return r;
}

/* Of a type that we know less about: its storage may be another than that of the memory which it exports. */
int cudago_storage_keep(cudago_cell *c, const cudago_producer *p, PyObject *o) {
    if (!c->size) return 0;
    if (p->storage == STORAGE_NONE) return keep_array(c, o);
    PyObject *s = PyObject_CallMethod(o, "untyped_storage", NULL);
    uint64_t begin = s ? number_of(s, "data_ptr") : 0, size = begin ? number_of(s, "nbytes") : 0;
    if (PyErr_Occurred() && cudago_forgive()) return Py_XDECREF(s), -1;
    if (begin && begin <= c->ptr && c->ptr - begin + c->size <= size) cudago_foreign_keep(c, s, cudago_let_object_go);
    else Py_XDECREF(s);
    return 0;
}

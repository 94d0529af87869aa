// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

/* What PyTorch lends, and what keeps it there. A tensor of PyTorch's is an object that refers to a storage, and the storage
 * has the memory. The tensor may be given another storage at any time (`t.set_(other)`, `t.data = other`), and everything
 * that counts the tensor alone, DLPack's managed tensors of PyTorch 2.15 too, then keeps the wrong memory. So we keep the
 * storage. What PyTorch frees within a storage, by resize_, it frees for everybody. */

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

int cudago_borrow(const DLPackExchangeAPI *api, PyObject *o, intptr_t stream, DLTensor *d, cudago_extent *e) {
    if (look(api, o, d, e)) return -1;
    if (d->dtype.code == kDLComplex) return 0; /* as in through_table */
    int asked = cudago_may_be_negated(d, e);
    if (asked && refuse_negated(o, d)) return -1;
    int ordered = cudago_import_order(api, d->device, stream);
    if (ordered < 0) return -1;
    return (asked || ordered) && look(api, o, d, e) ? -1 : 1;
}

/* --- storages ---------------------------------------------------------------------------------------------------------- */

/* Calling Tensor.untyped_storage through its C function takes half as long as calling the method, and nothing else runs:
 * unless a mode is on that is told of each function of PyTorch's, such as a `with torch.device(...)`. */
static PyCFunction storage_function, mode_function;
static PyObject *storage_method; /* the descriptor that storage_function is of */
static PyObject *mode_asked;     /* the object that mode_function is of */

/* The C function of a callable without arguments; NULL if it is written in Python. */
static PyCFunction c_function(PyObject *o) {
    if (!o || Py_TYPE(o) != &PyCFunction_Type || PyCFunction_GetFlags(o) != METH_NOARGS) return NULL;
    return PyCFunction_GetFunction(o);
}

static void learn_modes(void) {
    PyObject *module = PyImport_ImportModule("torch._C");
    PyObject *asks = module ? PyObject_GetAttrString(module, "_is_torch_function_mode_enabled") : NULL;
    PyErr_Clear();
    mode_function = c_function(asks);
    mode_asked = asks; /* for good, as is storage_method: PyTorch, once imported, stays loaded */
    Py_XDECREF(module);
}

int cudago_storage_way(PyTypeObject *type) {
    PyObject *method = PyObject_GetAttrString((PyObject *)type, "untyped_storage");
    if (!method) return PyErr_Clear(), STORAGE_NONE;
    int native = storage_method ? method == storage_method : !PyObject_HasAttrString(method, "__code__");
    Py_DECREF(method);
    return native ? STORAGE_NATIVE : STORAGE_METHOD;
}

/* The first time, with an object at hand to which the method can be bound. */
static int learn_function(PyObject *o) {
    PyObject *method = PyObject_GetAttrString((PyObject *)Py_TYPE(o), "untyped_storage");
    PyObject *bound = method ? PyObject_CallMethod(method, "__get__", "O", o) : NULL;
    PyCFunction f = c_function(bound);
    PyErr_Clear();
    if (f && PyCFunction_GetSelf(bound) == o && !storage_method) {
        learn_modes();
        storage_method = NEW_REF(method);
        storage_function = f;
    }
    Py_XDECREF(bound);
    Py_XDECREF(method);
    return f != NULL;
}

static int mode_is_on(void) {
    PyObject *on = mode_function ? mode_function(PyCFunction_GetSelf(mode_asked), NULL) : NULL;
    int r = on != Py_False;
    Py_XDECREF(on);
    return r;
}

/* The storage's Python object is tracked by the collector, whose run would be that of anybody's finalizers. */
static PyObject *storage_quietly(PyObject *o) {
    int collects = PyGC_Disable();
    PyObject *s = storage_function(o, NULL);
    if (collects) PyGC_Enable();
    return s;
}

static int take_storage(const cudago_producer *p, PyObject *o, PyObject **storage) {
    *storage = NULL;
    if (p->storage == STORAGE_NONE) return 0;
    int learnt = p->storage == STORAGE_NATIVE && !storage_function;
    if (learnt) learn_function(o);
    if (p->storage == STORAGE_NATIVE && storage_function && !mode_is_on()) {
        *storage = storage_quietly(o);
        return *storage ? learnt : -1;
    }
    *storage = PyObject_CallMethod(o, "untyped_storage", NULL);
    return *storage ? 1 : -1;
}

int cudago_lent_storage(PyObject *o, PyObject **storage) {
    cudago_producer p = cudago_producer_of(Py_TYPE(o));
    return take_storage(&p, o, storage);
}

/* --- cells -------------------------------------------------------------------------------------------------------------- */

static void drop_object(void *o) { Py_DECREF((PyObject *)o); }
/* Dropping the last reference runs code of others, which must not meet an exception that is on its way. */
static void let_object_go(void *o) {
    if (Py_REFCNT((PyObject *)o) > 1) Py_DECREF((PyObject *)o);
    else cudago_keep_exception(drop_object, o);
}

static int alike(const DLTensor *a, const DLTensor *b) {
    return a->data == b->data && a->byte_offset == b->byte_offset && a->ndim == b->ndim && !memcmp(&a->dtype, &b->dtype, sizeof a->dtype) &&
           !memcmp(&a->device, &b->device, sizeof a->device);
}

cudago_cell *cudago_hold_lent(const cudago_producer *p, PyObject *o, DLTensor *d, cudago_extent *e) {
    DLTensor was = *d;
    PyObject *storage;
    int ran = take_storage(p, o, &storage);
    if (ran < 0) return NULL;
    int changed = ran && (look(p->api, o, d, e) || !alike(d, &was));
    cudago_cell *c = changed ? NULL : cudago_foreign_new();
    if (!c) {
        if (!PyErr_Occurred() && !changed) PyErr_NoMemory();
        if (!PyErr_Occurred()) cudago_import_refuse("it was changed while it was looked at", d);
        Py_XDECREF(storage);
        return NULL;
    }
    cudago_foreign_take_object(c, d, e, &p->peer->ways[CUDAGO_WAY_TABLE], NEW_REF(o), let_object_go);
    if (storage) cudago_foreign_keep(c, storage, let_object_go);
    return c;
}

/* The number that a method without arguments gives; 0 if it gives none, with or without an exception. */
static uint64_t number_of(PyObject *o, const char *method) {
    PyObject *v = PyObject_CallMethod(o, method, NULL);
    unsigned long long n = v && PyLong_Check(v) ? PyLong_AsUnsignedLongLong(v) : 0;
    Py_XDECREF(v);
    return PyErr_Occurred() ? 0 : n;
}

/* Of a type that we know less about: its storage may be another than that of the memory which it exports. */
int cudago_storage_keep(cudago_cell *c, const cudago_producer *p, PyObject *o) {
    if (p->storage == STORAGE_NONE || !c->size) return 0;
    PyObject *s = PyObject_CallMethod(o, "untyped_storage", NULL);
    uint64_t begin = s ? number_of(s, "data_ptr") : 0, size = begin ? number_of(s, "nbytes") : 0;
    if (PyErr_Occurred() && cudago_forgive()) return Py_XDECREF(s), -1;
    if (begin && begin <= c->ptr && c->ptr - begin + c->size <= size) cudago_foreign_keep(c, s, let_object_go);
    else Py_XDECREF(s);
    return 0;
}

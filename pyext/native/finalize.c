/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "native.h"

#include "_cgo_export.h"

/* weakref.finalize's contract, kept by Go: Go's registry decides at most once between the call, detach() and the exit,
 * runs what is left at exit newest first, and holds the Finalizer alive until then. */

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;
    PyObject *reference; /* weakref to the object */
    PyObject *function, *args, *kwargs;
} FinalizerObject;

static PyObject *run(FinalizerObject *self) { return PyObject_Call(self->function, self->args, self->kwargs); }

/* Takes what the finalizer holds away; it is dead by then. Drops Go's reference too. */
static void forget(FinalizerObject *self) {
    Py_CLEAR(self->function);
    Py_CLEAR(self->args);
    Py_CLEAR(self->kwargs);
    Py_DECREF((PyObject *)self);
}

static void run_unraisable(FinalizerObject *self) {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *r = run(self);
    if (r) Py_DECREF(r);
    else PyErr_WriteUnraisable(self->function);
    forget(self);
    PyErr_Restore(type, value, trace);
}

/* Go's registry at exit, with the GIL. */
void cudago_finalizer_exit(uintptr_t finalizer) { run_unraisable((FinalizerObject *)finalizer); }

/* The weak reference's callback: the object has died. */
static PyObject *fire(PyObject *capsule, PyObject *reference) {
    (void)reference;
    FinalizerObject *self = (FinalizerObject *)capsule;
    if (!cudago_forked && cudagoFinalizerTake(self->id)) run_unraisable(self);
    Py_RETURN_NONE;
}
static PyMethodDef fire_def = {"_fire", fire, METH_O, NULL};

/* _finalizer_new(cls, object, function, args, kwargs) */
PyObject *cudago_finalizer_new(PyObject *module, PyObject *arguments) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *object, *function, *args, *kwargs;
    if (!PyArg_ParseTuple(arguments, "OOO!O!", &object, &function, &PyTuple_Type, &args, &PyDict_Type, &kwargs)) return NULL;
    if (!PyCallable_Check(function))
        return PyErr_Format(PyExc_TypeError, "the function to call must be callable, not %R", (PyObject *)Py_TYPE(function));
    FinalizerObject *self = cudago_alloc(CLS_FINALIZER);
    if (!self) return NULL;
    PyObject *callback = PyCFunction_NewEx(&fire_def, (PyObject *)self, NULL);
    self->reference = callback ? PyWeakref_NewRef(object, callback) : NULL;
    Py_XDECREF(callback);
    if (!self->reference) {
        Py_DECREF(self);
        return NULL;
    }
    self->function = NEW_REF(function);
    self->args = NEW_REF(args);
    self->kwargs = NEW_REF(kwargs);
    self->id = cudagoFinalizerNew((uintptr_t)NEW_REF(self));
    return (PyObject *)self;
}

static PyObject *referent(FinalizerObject *self) {
    PyObject *o = self->reference ? PyObject_CallNoArgs(self->reference) : NEW_REF(Py_None);
    return o;
}

/* Called: runs the function, if it did not run yet, and gives its result. */
static PyObject *finalizer_call(FinalizerObject *self, PyObject *args, PyObject *kwargs) {
    CUDAGO_ENTER(NULL);
    if (PyTuple_Size(args) || (kwargs && PyDict_Size(kwargs)))
        return PyErr_SetString(PyExc_TypeError, "a finalizer is called without arguments"), NULL;
    if (!cudagoFinalizerTake(self->id)) Py_RETURN_NONE;
    PyObject *r = run(self);
    forget(self);
    return r;
}

static PyObject *what(FinalizerObject *self) {
    PyObject *o = referent(self);
    if (!o) return NULL;
    PyObject *r = o == Py_None ? NEW_REF(Py_None) : PyTuple_Pack(4, o, self->function, self->args, self->kwargs);
    Py_DECREF(o);
    return r;
}

static PyObject *finalizer_detach(FinalizerObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (!self->function) Py_RETURN_NONE;
    PyObject *r = what(self);
    if (!r || r == Py_None) return r;
    if (!cudagoFinalizerTake(self->id)) {
        Py_DECREF(r);
        Py_RETURN_NONE;
    }
    forget(self);
    return r;
}
static PyObject *finalizer_peek(FinalizerObject *self, PyObject *unused) {
    (void)unused;
    if (!self->function || !cudagoFinalizerAlive(self->id)) Py_RETURN_NONE;
    return what(self);
}
static PyObject *finalizer_alive(FinalizerObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(cudagoFinalizerAlive(self->id));
}
static PyObject *finalizer_atexit(FinalizerObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(cudagoFinalizerAtExit(self->id, -1));
}
static int finalizer_set_atexit(FinalizerObject *self, PyObject *value, void *unused) {
    (void)unused;
    if (!value) return PyErr_SetString(PyExc_AttributeError, "cannot delete atexit"), -1;
    int on = PyObject_IsTrue(value);
    if (on < 0) return -1;
    cudagoFinalizerAtExit(self->id, on);
    return 0;
}

static int finalizer_traverse(FinalizerObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->function);
    Py_VISIT(self->args);
    Py_VISIT(self->kwargs);
    return 0;
}
static void finalizer_dealloc(FinalizerObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    Py_XDECREF(self->reference);
    Py_XDECREF(self->function);
    Py_XDECREF(self->args);
    Py_XDECREF(self->kwargs);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"detach", METHOD(finalizer_detach), METH_NOARGS, DOC_FINALIZER_DETACH},
    {"peek", METHOD(finalizer_peek), METH_NOARGS, DOC_FINALIZER_PEEK},
    {0},
};
static PyGetSetDef getset[] = {
    {"alive", (getter)finalizer_alive, NULL, DOC_FINALIZER_ALIVE, NULL},
    {"atexit", (getter)finalizer_atexit, (setter)finalizer_set_atexit, DOC_FINALIZER_ATEXIT, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(FinalizerObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, finalizer_dealloc}, {Py_tp_traverse, finalizer_traverse}, {Py_tp_call, finalizer_call},
    {Py_tp_methods, methods},           {Py_tp_getset, getset},               {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_finalizer_spec = {
    "cudago._core.Finalizer", sizeof(FinalizerObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};

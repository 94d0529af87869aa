/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* The call of an executable and of a bound launch: what Python would add to the launch costs half as much again. */

/* The stream, by position or by name; NULL with an exception. */
PyObject *cudago_read_stream(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (n + (names ? PyTuple_Size(names) : 0) == 1 && (!names || cudago_names_stream(names))) return args[0];
    return PyErr_SetString(PyExc_TypeError, "a call takes one argument, stream"), NULL;
}

/* GraphExec.launch(stream), and its __call__ */
PyObject *cudago_exec_call(ExecObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    PyObject *stream = cudago_read_stream(args, n, names);
    return stream ? cudago_exec_launch(self, stream) : NULL;
}

/* The vectorcall protocol, which every interpreter has since 3.9, and the headers of the limited API from 3.12 on. */
typedef PyObject *vectorcall(PyObject *self, PyObject *const *args, size_t n_and_flag, PyObject *names);
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif
static const size_t OFFSET_FLAG = (size_t)1 << (8 * sizeof(size_t) - 1); /* PY_VECTORCALL_ARGUMENTS_OFFSET */

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    PyObject *step; /* an executable of one node; NULL before _open, and once the collector has cleared it */
    PyObject *node; /* that node; likewise */
    vectorcall *call; /* NULL before _open */
} BoundObject;

static vectorcall bound_vectorcall;

/* _open(executable, node) */
static PyObject *bound_open(BoundObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 2) return PyErr_SetString(PyExc_TypeError, "_open(executable, node)"), NULL;
    if (cudago_expect(args[0], CLS_EXEC, "executable") || cudago_expect(args[1], CLS_EXEC_NODE, "node")) return NULL;
    PyObject *step = self->step, *node = self->node;
    self->step = NEW_REF(args[0]);
    self->node = NEW_REF(args[1]);
    self->call = bound_vectorcall;
    Py_XDECREF(step);
    Py_XDECREF(node);
    Py_RETURN_NONE;
}

/* The stream is capturing: a node for the capture is made of what the executable has recorded. */
static PyObject *call_captured(BoundObject *self, PyObject *stream) {
    return PyObject_CallMethod((PyObject *)self, "_call_captured", "O", stream);
}

/* Of an executable that is closed, or lost: it is the bound launch that the user has closed. */
static QUIET int expect_step(PyObject *step) {
    ExecObject *e = (ExecObject *)step;
    if (!e || !e->x) return cudago_raise_closed("bound launch");
    return cudago_exec_lost(e->x) ? cudago_raise_lost("bound launch", e->device) : 0;
}

/* The executable is held: what converts the stream may drop this object. */
static PyObject *bound_call(BoundObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    PyObject *stream = cudago_read_stream(args, n, names), *step = self->step;
    if (!stream) return NULL;
    if (expect_step(step)) return NULL;
    Py_INCREF(step);
    int captured;
    int r = cudago_exec_launch_uncaptured((ExecObject *)step, stream, &captured);
    Py_DECREF(step);
    if (r) return NULL;
    if (captured) return call_captured(self, stream);
    Py_RETURN_NONE;
}

static PyObject *bound_vectorcall(PyObject *self, PyObject *const *args, size_t n, PyObject *names) {
    return bound_call((BoundObject *)self, args, (Py_ssize_t)(n & ~OFFSET_FLAG), names);
}

/* For callers that do not use the protocol, a tuple and a dict. */
static PyObject *bound_tp_call(PyObject *self, PyObject *args, PyObject *named) {
    CUDAGO_ENTER(NULL);
    Py_ssize_t n = PyTuple_Size(args), n_named = named ? PyDict_Size(named) : 0;
    if (n == 1 && !n_named) {
        PyObject *stream = PyTuple_GetItem(args, 0);
        return bound_call((BoundObject *)self, &stream, 1, NULL);
    }
    PyObject *method = PyObject_GetAttrString(self, "__call__"), *r = method ? PyObject_Call(method, args, named) : NULL;
    Py_XDECREF(method);
    return r;
}

static PyObject *bound_step(BoundObject *self, void *unused) {
    (void)unused;
    return self->step ? NEW_REF(self->step) : (cudago_raise_closed("bound launch"), NULL);
}
static PyObject *bound_node(BoundObject *self, void *unused) {
    (void)unused;
    return expect_step(self->step) ? NULL : NEW_REF(self->node);
}

static int bound_traverse(BoundObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->step);
    Py_VISIT(self->node);
    return 0;
}
static int bound_clear(BoundObject *self) {
    Py_CLEAR(self->step);
    Py_CLEAR(self->node);
    return 0;
}
static void bound_dealloc(BoundObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    bound_clear(self);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"__call__", METHOD(bound_call), METH_FASTCALL | METH_KEYWORDS | METH_COEXIST, DOC_BOUNDLAUNCH_CALL}, /* beside tp_call */
    {"_open", METHOD(bound_open), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"_step", (getter)bound_step, NULL, NULL, NULL},
    {"_node", (getter)bound_node, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {
    CUDAGO_WEAK_MEMBER(BoundObject),
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(BoundObject, call), Py_READONLY, NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, bound_dealloc},
    {Py_tp_call, bound_tp_call},
    {Py_tp_members, members},
    {Py_tp_traverse, bound_traverse},
    {Py_tp_clear, bound_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {0, NULL},
};
/* Calls of a Python subclass would look up __call__ each time: so Python's half goes into this class. */
static PyType_Spec spec = {
    "cudago.BoundLaunch",
    sizeof(BoundObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    slots,
};

int cudago_bound_type_init(PyObject *module) {
    PyObject *type = PyType_FromSpec(&spec);
    if (!type || PyObject_DelAttrString(type, "__vectorcalloffset__")) return -1; /* it has told the type; it is nobody else's affair */
    return PyModule_AddObject(module, "BoundLaunch", type);
}

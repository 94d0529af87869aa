/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* The call of an executable and of a bound launch: what Python would add to the launch costs half as much again. */

/* The stream, by position or by name; NULL with an exception. */
static PyObject *stream_of(PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (n + (names ? PyTuple_Size(names) : 0) == 1 && (!names || cudago_names_stream(names))) return args[0];
    return PyErr_SetString(PyExc_TypeError, "a call takes one argument, stream"), NULL;
}

/* GraphExec.__call__(stream) */
PyObject *cudago_exec_call(ExecObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    PyObject *stream = stream_of(args, n, names);
    return stream ? cudago_exec_launch(self, stream) : NULL;
}

typedef struct {
    PyObject_HEAD
    PyObject *step; /* an executable of one node; NULL before _open, and once the collector has cleared it */
} BoundObject;

/* _open(executable) */
static PyObject *bound_open(BoundObject *self, PyObject *step) {
    CUDAGO_ENTER(NULL);
    if (cudago_expect(step, CLS_EXEC, "executable")) return NULL;
    PyObject *before = self->step;
    self->step = NEW_REF(step);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

/* The stream is capturing: a node for the capture is made of what the executable has recorded. */
static PyObject *call_captured(BoundObject *self, PyObject *stream) {
    return PyObject_CallMethod((PyObject *)self, "_call_captured", "O", stream);
}

/* The executable is held: what converts the stream may drop this object. */
static PyObject *bound_call(BoundObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    PyObject *stream = stream_of(args, n, names), *step = self->step;
    if (!stream) return NULL;
    if (!step) return cudago_raise_closed("bound launch"), NULL;
    Py_INCREF(step);
    int captured;
    int r = cudago_exec_launch_uncaptured((ExecObject *)step, stream, &captured);
    Py_DECREF(step);
    if (r) return NULL;
    if (captured) return call_captured(self, stream);
    Py_RETURN_NONE;
}

static PyObject *bound_step(BoundObject *self, void *unused) {
    (void)unused;
    return self->step ? NEW_REF(self->step) : (cudago_raise_closed("bound launch"), NULL);
}

static int bound_traverse(BoundObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->step);
    return 0;
}
static int bound_clear(BoundObject *self) {
    Py_CLEAR(self->step);
    return 0;
}
static void bound_dealloc(BoundObject *self) {
    PyObject_GC_UnTrack(self);
    Py_XDECREF(self->step);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"__call__", METHOD(bound_call), METH_FASTCALL | METH_KEYWORDS, DOC_BOUNDLAUNCH_CALL},
    {"_open", METHOD(bound_open), METH_O, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"_step", (getter)bound_step, NULL, NULL, NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, bound_dealloc},
    {Py_tp_traverse, bound_traverse},
    {Py_tp_clear, bound_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {0, NULL},
};
static PyType_Spec spec = {
    "cudago._core.BoundLaunch",
    sizeof(BoundObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    slots,
};

int cudago_bound_type_init(PyObject *module) {
    PyObject *type = PyType_FromSpec(&spec);
    return type ? PyModule_AddObject(module, "BoundLaunch", type) : -1;
}

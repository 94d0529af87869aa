/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* The context manager of Stream.capture(), and of captures into other graphs. It is native because a signal handler may raise between any two bytecodes:
 * in Python that could happen after the capture has begun and before any code is in place that would end it. */

typedef struct {
    PyObject_HEAD
    PyObject *stream;
    PyObject *mode;
    PyObject *graph;            /* while it is being captured */
    PyObject *result, *captured; /* NULL, or what __enter__ returns, and a function that gets the graph when all went well */
    int entered;
} CaptureObject;

static PyTypeObject *capture_type;

/* _capture(stream, mode[, result, captured]) */
PyObject *cudago_capture_new(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if ((n != 2 && n != 4) || cudago_expect(args[0], CLS_STREAM, "stream")) return NULL;
    CaptureObject *self = (CaptureObject *)((allocfunc)PyType_GetSlot(capture_type, Py_tp_alloc))(capture_type, 0);
    if (!self) return NULL;
    self->stream = NEW_REF(args[0]);
    self->mode = NEW_REF(args[1]);
    if (n == 4) {
        self->result = NEW_REF(args[2]);
        self->captured = NEW_REF(args[3]);
    }
    return (PyObject *)self;
}

static PyObject *capture_enter(CaptureObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (self->entered) return PyErr_SetString(PyExc_ValueError, "a capture can be entered only once"), NULL;
    PyObject *args[] = {self->stream, self->mode};
    self->entered = 1; /* first: what the begin runs, and other threads while it waits, must not enter it too */
    self->graph = cudago_capture_begin(NULL, args, 2);
    if (!self->graph) return self->entered = 0, NULL;
    return NEW_REF(self->result ? self->result : self->graph);
}

/* What only another thread can end stays in the block, for that thread to leave it. */
static void put_back(CaptureObject *self, PyObject *graph) {
    if (!self->graph && cudago_is_anothers((GraphObject *)graph)) self->graph = graph;
    else Py_DECREF(graph);
}

static int end(CaptureObject *self, PyObject *discard) {
    PyObject *args[] = {self->graph, discard};
    self->graph = NULL;
    PyObject *r = cudago_capture_end(NULL, args, 2);
    put_back(self, args[0]);
    Py_XDECREF(r);
    return r ? 0 : -1;
}

/* Raises what the block raised, with an error of the end as a note on it. */
static PyObject *note_on(PyObject *first) {
    PyObject *type, *second, *trace;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
    PyErr_Fetch(&type, &second, &trace);
    PyErr_NormalizeException(&type, &second, &trace);
    PyObject *text = PyUnicode_FromFormat("The capture could not be ended: %S", second);
    PyObject *r = text ? PyObject_CallMethod(first, "add_note", "O", text) : NULL;
    Py_XDECREF(text);
    Py_XDECREF(type);
    Py_XDECREF(second);
    Py_XDECREF(trace);
    if (!r) return NULL;
    Py_DECREF(r);
    Py_RETURN_FALSE;
}

static PyObject *capture_exit(CaptureObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n != 3) return PyErr_SetString(PyExc_TypeError, "__exit__(type, value, traceback)"), NULL;
    if (!self->graph) Py_RETURN_FALSE;
    int raised = args[1] != Py_None;
    PyObject *graph = NEW_REF(self->graph), *r = NULL;
    int failed = end(self, raised ? Py_True : Py_False);
    if (failed && raised) r = note_on(args[1]);
    else if (!failed && !raised && self->captured && !cudago_is_over()) r = PyObject_CallFunctionObjArgs(self->captured, graph, NULL);
    else if (!failed) r = NEW_REF(Py_None);
    Py_DECREF(graph);
    if (!r) return NULL;
    Py_DECREF(r);
    Py_RETURN_FALSE;
}

static int capture_traverse(CaptureObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->stream);
    Py_VISIT(self->graph);
    Py_VISIT(self->result);
    Py_VISIT(self->captured);
    return 0;
}

static QUIET int is_over(PyObject *graph) { return !((GraphObject *)graph)->capturing; }

/* A block that is left without __exit__, as when a generator is never resumed. _capture_end may have been called. */
static void abandon(CaptureObject *self) {
    PyObject *type, *value, *trace;
    if (!self->graph) return;
    if (is_over(self->graph)) {
        Py_CLEAR(self->graph);
        return;
    }
    PyErr_Fetch(&type, &value, &trace);
    if (end(self, Py_True)) PyErr_WriteUnraisable(self->stream);
    Py_CLEAR(self->graph); /* whose end is then that of the capture, in the right thread */
    PyErr_Restore(type, value, trace);
}

static int capture_clear(CaptureObject *self) {
    abandon(self);
    Py_CLEAR(self->result);
    Py_CLEAR(self->captured);
    return 0;
}

static void capture_dealloc(CaptureObject *self) {
    PyObject_GC_UnTrack(self);
    capture_clear(self);
    Py_XDECREF(self->stream);
    Py_XDECREF(self->mode);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"__enter__", METHOD(capture_enter), METH_NOARGS, NULL},
    {"__exit__", METHOD(capture_exit), METH_FASTCALL, NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, capture_dealloc},
    {Py_tp_traverse, capture_traverse},
    {Py_tp_clear, capture_clear},
    {Py_tp_methods, methods},
    {0, NULL},
};
static PyType_Spec spec = {
    "cudago._core.Capture",
    sizeof(CaptureObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

int cudago_capture_type_init(void) {
    capture_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return capture_type ? 0 : -1;
}

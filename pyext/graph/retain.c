/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* What a graph as a whole keeps: objects that work of other libraries uses, of which cudago sees only the nodes. */

static PyObject *memory_of(PyObject *object) { return (PyObject *)cudago_operand(object, 0, "object"); }

/* A new reference to what is to be kept: of memory its holder, so that closing or resizing the object takes nothing away. */
static PyObject *kept_of(PyObject *object) {
    if (object == Py_None || PyLong_Check(object))
        return PyErr_Format(PyExc_TypeError, "an object that owns something was expected, not %R: neither None nor an address keeps anything alive", (PyObject *)Py_TYPE(object)),
               NULL;
    if (cudago_is_tensor(object)) { /* it may be no run of bytes */
        PyObject *span = PyObject_GetAttrString(object, "_span"), *buffer = span ? PyTuple_GetItem(span, 0) : NULL;
        PyObject *kept = buffer ? memory_of(buffer) : NULL;
        Py_XDECREF(span);
        return kept;
    }
    if (cudago_is(object, CLS_BUFFER) || cudago_is(object, CLS_POINTER)) return memory_of(object);
    int exports = PyObject_CheckBuffer(object) ? 1 : cudago_has((PyObject *)Py_TYPE(object), "__dlpack__");
    if (exports <= 0) return exports ? NULL : NEW_REF(object);
    PyObject *kept = memory_of(object);
    /* One that cannot lend its memory (sparse, strided, with a gradient) is kept as it is. */
    if (!kept && (PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_TypeError) ||
                  PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_RuntimeError))) {
        PyErr_Clear();
        return NEW_REF(object);
    }
    return kept;
}

/* In a capture nothing of the graph is being copied, which other calls wait for. */
static QUIET int is_built(GraphObject *self) { return !self->capturing; }
static QUIET int open_now(GraphObject *self) { return self->capturing ? 0 : cudago_graph_open(self); }

static QUIET int retain_now(GraphObject *self, PyObject *const *kept, cudago_ref *refs, int n, cudago_status *st) {
    uint64_t capture = self->capturing ? self->capture : 0;
    if (!capture && cudago_graph_open(self)) return -1;
    for (int i = 0; i < n; i++) {
        OperandObject *o = Py_TYPE(kept[i]) == cudago_cls[CLS_OPERAND] ? (OperandObject *)kept[i] : NULL;
        cudago_ref_set(&refs[i], kept[i], o ? o->nbytes : 0, ROLE_OBJECT, REASON_RETAIN);
    }
    if (capture) cudagoCaptureRetain(capture, refs, n, st);
    else cudagoGraphRetain(self->id, refs, n, st);
    return 0;
}

static int retain(GraphObject *self, PyObject *const *kept, int n) {
    cudago_status st = {0};
    cudago_ref *refs = malloc(((size_t)n + 1) * sizeof *refs);
    if (!refs) return PyErr_NoMemory(), -1;
    int r = is_built(self) && cudago_graph_ready(self) ? -1 : retain_now(self, kept, refs, n, &st);
    free(refs);
    if (r) return -1;
    return st.kind ? cudago_raise(&st) : 0;
}

/* _retain(*objects) */
PyObject *cudago_graph_retain(PyObject *graph, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    GraphObject *self = (GraphObject *)graph;
    if (open_now(self)) return NULL;
    PyObject **kept = calloc((size_t)n + 1, sizeof *kept);
    if (!kept) return PyErr_NoMemory();
    Py_ssize_t made = 0;
    while (made < n && (kept[made] = kept_of(args[made]))) made++;
    int r = made < n || n > INT32_MAX ? -1 : retain(self, kept, (int)n);
    for (Py_ssize_t i = 0; i < made; i++) Py_DECREF(kept[i]);
    free(kept);
    if (r) return NULL;
    Py_RETURN_NONE;
}

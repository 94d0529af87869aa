/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

_Atomic int cudago_captures_open; /* by us; a stream that nobody captures is then not asked */

/* Operations on a stream that captures. Go makes the driver call, finds the node that it added, and gives the node's
 * operands to the captured graph. */

void cudago_ref_set(cudago_ref *r, PyObject *object, uint64_t nbytes, int role, int reason) {
    *r = (cudago_ref){.object = (uintptr_t)NEW_REF(object), .nbytes = nbytes, .role = role, .reason = reason};
}

Py_ssize_t cudago_refs_from_list(PyObject *list, cudago_ref *refs) {
    Py_ssize_t n = list ? PyList_Size(list) : 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        OperandObject *o = (OperandObject *)PyList_GetItem(list, i);
        cudago_ref_set(&refs[i], (PyObject *)o, o->nbytes, ROLE_ARGUMENT + o->index, REASON_KERNEL);
    }
    return n;
}

int cudago_capture_memcpy(cudago_stream *s, OperandObject *dst, OperandObject *src, uint64_t size) {
    cudago_ref refs[2];
    cudago_status st = {0};
    cudago_ref_set(&refs[0], (PyObject *)src, src->nbytes, ROLE_SRC, REASON_MEMCPY);
    cudago_ref_set(&refs[1], (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMCPY);
    cudagoCaptureMemcpy(s->id, dst->address, src->address, size, refs, 2, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

int cudago_capture_memset(cudago_stream *s, OperandObject *dst, uint32_t value, uint32_t width, uint64_t count) {
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMSET);
    cudagoCaptureMemset(s->id, dst->address, value, width, count, &ref, 1, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

int cudago_capture_launch(cudago_stream *s, const void *config, ConfigObject *c, cudago_kernel *k, void **params,
                          PyObject *kernel, PyObject *kept) {
    cudago_ref refs[CUDAGO_MAX_PARAMS + 1];
    cudago_status st = {0};
    Py_ssize_t n = cudago_refs_from_list(kept, refs);
    cudago_ref_set(&refs[n++], kernel, 0, ROLE_KERNEL, REASON_KERNEL);
    cudagoCaptureLaunch(s->id, (void *)config, k->id, c->grid, c->block, c->shared_memory, params, refs, (int)n, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

/* _capture_begin(stream, mode): a Graph that is being captured. */
PyObject *cudago_capture_begin(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 2 || cudago_expect(args[0], CLS_STREAM, "stream")) return NULL;
    cudago_stream *s = ((StreamObject *)args[0])->s;
    if (!s) return cudago_raise_closed("stream"), NULL;
    long mode = PyLong_AsLong(args[1]);
    if (mode == -1 && PyErr_Occurred()) return NULL;
    GraphObject *self = cudago_alloc(CLS_GRAPH);
    if (!self) return NULL;
    self->device = s->device;
    self->ctx = s->ctx;
    cudago_status st = {0};
    cudagoCaptureBegin(s->id, (int)mode, &st);
    if (st.kind) {
        cudago_raise(&st);
        Py_DECREF(self);
        return NULL;
    }
    cudago_stream_retain(s); /* the block may close its stream, and must be able to end */
    self->capturing = s;
    atomic_fetch_add(&cudago_captures_open, 1);
    return (PyObject *)self;
}

/* _capture_end(graph, discard): the graph is whole, or the capture was invalid and the error says why. */
PyObject *cudago_capture_end(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    if (cudago_unusable) Py_RETURN_NONE; /* an open with block, ended by the interpreter */
    CUDAGO_ENTER(NULL);
    if (n != 2 || cudago_expect(args[0], CLS_GRAPH, "graph")) return NULL;
    GraphObject *g = (GraphObject *)args[0];
    cudago_stream *s = g->capturing;
    int discard = PyObject_IsTrue(args[1]);
    if (discard < 0) return NULL;
    if (!s) return PyErr_SetString(PyExc_ValueError, "the graph is not being captured"), NULL;
    cudago_status st = {0};
    int32_t open = 0;
    g->id = cudagoCaptureEnd(s->id, discard, &g->held, &open, &st);
    if (!open) { /* otherwise it is another thread's to end, and goes on */
        g->capturing = NULL;
        atomic_fetch_sub(&cudago_captures_open, 1);
        cudago_stream_release(s);
        cudago_free_put_off(); /* now, before the next capture begins */
    }
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Several prefetches of managed memory in one call. */

typedef struct {
    Py_ssize_t n;
    BufferObject **buffers; /* held */
    cudago_prefetch *list;  /* for Go; the cells are held during the call */
    cudago_cell **cells;
} prefetches;

static void prefetches_free(prefetches *p) {
    for (Py_ssize_t i = 0; p->buffers && i < p->n; i++) Py_XDECREF((PyObject *)p->buffers[i]);
    free(p->buffers);
    free(p->list);
    free(p->cells);
}

static int prefetches_read(prefetches *p, PyObject *buffers, PyObject *locations) {
    if (!PyList_Check(buffers) || !PyList_Check(locations) || PyList_Size(buffers) != PyList_Size(locations))
        return PyErr_SetString(PyExc_TypeError, "_prefetch_batch(stream, buffers, locations) takes two lists of one length"), -1;
    p->n = PyList_Size(buffers);
    p->buffers = calloc((size_t)p->n + 1, sizeof *p->buffers);
    p->list = calloc((size_t)p->n + 1, sizeof *p->list);
    p->cells = calloc((size_t)p->n + 1, sizeof *p->cells);
    if (!p->buffers || !p->list || !p->cells) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        PyObject *buffer = PyList_GetItem(buffers, i), *at = PyList_GetItem(locations, i);
        if (!buffer || !at || cudago_expect(buffer, CLS_BUFFER, "buffer") || cudago_int32(at, "location", INT32_MIN, &p->list[i].at)) return -1;
        p->buffers[i] = (BufferObject *)NEW_REF(buffer);
    }
    return 0;
}

static QUIET void note(const prefetches *p, Py_ssize_t n, cudago_stream *s, uint64_t position) {
    for (Py_ssize_t i = 0; i < n; i++) cudago_cell_note(p->cells[i], s, position);
}

static int prefetches_away(prefetches *p, cudago_stream *s) {
    cudago_status st = {0};
    for (Py_ssize_t i = 0; i < p->n; i++) cudago_cell_retain(p->cells[i]);
    cudago_leave l = cudago_gil_leave(s);
    cudagoPrefetchBatch(s->id, p->list, (int64_t)p->n, &st);
    note(p, p->n, s, cudago_gil_back(&l, st.kind));
    for (Py_ssize_t i = 0; i < p->n; i++) cudago_cell_release(p->cells[i]);
    cudago_leave_end(&l);
    return st.kind ? cudago_raise(&st) : 0;
}

static QUIET int prefetches_now(prefetches *p, StreamObject *stream) {
    cudago_stream *s = cudago_stream_now(stream);
    if (!s) return -1;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        cudago_span b;
        if (cudago_buffer_now(p->buffers[i], &b)) {
            char name[40];
            snprintf(name, sizeof name, "prefetch %lld", (long long)i);
            return cudago_raise_closed_named(name);
        }
        p->cells[i] = b.cell;
        p->list[i].ptr = b.ptr;
        p->list[i].size = b.size;
    }
    for (Py_ssize_t i = 0; i < p->n; i++)
        if (cudago_cell_reserve(p->cells[i], s)) return note(p, i, s, 0), -1;
    return prefetches_away(p, s);
}

/* _prefetch_batch(stream, buffers, locations): the Python face has checked that the buffers are managed memory */
PyObject *cudago_prefetch_batch(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 3) return PyErr_SetString(PyExc_TypeError, "_prefetch_batch(stream, buffers, locations)"), NULL;
    PyObject *borrowed = NULL;
    prefetches p = {0};
    StreamObject *stream = NULL;
    int r = prefetches_read(&p, args[1], args[2]);
    if (!r && !(stream = cudago_stream_arg(args[0], &borrowed))) r = -1;
    if (!r) r = prefetches_now(&p, stream);
    prefetches_free(&p);
    Py_XDECREF(borrowed);
    if (r) return NULL;
    Py_RETURN_NONE;
}

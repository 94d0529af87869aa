/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Advice about managed memory. The Python half has checked that the memory is managed; here a location is a number. */

static QUIET int managed(BufferObject *self, Py_ssize_t n, Py_ssize_t want) {
    if (cudago_cell_now(self->cell, "buffer")) return -1;
    if (n == want && self->cell->kind == CUDAGO_CELL_MANAGED) return 0;
    PyErr_SetString(PyExc_TypeError, "not managed memory");
    return -1;
}

static int advise_away(cudago_span b, int32_t device, int32_t advice, int32_t at) {
    cudago_status st = {0};
    cudago_cell_retain(b.cell);
    Py_BEGIN_ALLOW_THREADS
    cudagoAdvise(device, b.ptr, b.size, advice, at, &st);
    Py_END_ALLOW_THREADS
    cudago_cell_release(b.cell);
    return st.kind ? cudago_raise(&st) : 0;
}
static QUIET int advise_now(BufferObject *self, int32_t advice, int32_t at) {
    cudago_span b;
    if (cudago_buffer_now(self, &b)) return -1;
    return advise_away(b, self->device, advice, at);
}

/* _advise(advice, location) */
PyObject *cudago_buffer_advise(BufferObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    int32_t advice, at;
    if (managed(self, n, 2) || cudago_int32(args[0], "advice", INT32_MIN, &advice) ||
        cudago_int32(args[1], "location", INT32_MIN, &at) || advise_now(self, advice, at))
        return NULL;
    Py_RETURN_NONE;
}

static int prefetch_away(cudago_stream *s, cudago_span b, int32_t at) {
    cudago_status st = {0};
    cudago_cell_retain(b.cell);
    cudago_leave l = cudago_gil_leave(s);
    cudagoPrefetch(s->id, b.ptr, b.size, at, &st);
    cudago_cell_note(b.cell, s, cudago_gil_back(&l, st.kind));
    cudago_cell_release(b.cell);
    cudago_leave_end(&l);
    return st.kind ? cudago_raise(&st) : 0;
}
static QUIET int prefetch_now(BufferObject *self, StreamObject *stream, int32_t at) {
    cudago_span b;
    cudago_stream *s = cudago_stream_now(stream);
    if (!s || cudago_buffer_now(self, &b) || cudago_cell_reserve(b.cell, s)) return -1;
    return prefetch_away(s, b, at);
}

/* _prefetch(location, stream) */
PyObject *cudago_buffer_prefetch(BufferObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    int32_t at;
    if (managed(self, n, 2) || cudago_int32(args[0], "location", INT32_MIN, &at)) return NULL;
    PyObject *keep = NULL;
    StreamObject *stream = cudago_stream_arg(args[1], &keep);
    int r = stream ? prefetch_now(self, stream, at) : -1;
    Py_XDECREF(keep);
    if (r) return NULL;
    Py_RETURN_NONE;
}

static int range_away(cudago_span b, int32_t device, cudago_advice *range) {
    cudago_status st = {0};
    cudago_cell_retain(b.cell);
    Py_BEGIN_ALLOW_THREADS
    cudagoRangeAttributes(device, b.ptr, b.size, range, &st);
    Py_END_ALLOW_THREADS
    cudago_cell_release(b.cell);
    return st.kind ? cudago_raise(&st) : 0;
}
static QUIET int range_now(BufferObject *self, cudago_advice *range) {
    cudago_span b;
    if (managed(self, 0, 0) || cudago_buffer_now(self, &b)) return -1;
    return range_away(b, self->device, range);
}

/* _range() -> (read_mostly, preferred, accessed_by, last_prefetch) */
PyObject *cudago_buffer_range(BufferObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    cudago_advice range = {0};
    if (range_now(self, &range)) return NULL;
    PyObject *accessed = PyTuple_New(range.accessed);
    for (int32_t i = 0; accessed && i < range.accessed; i++) PyTuple_SetItem(accessed, i, PyLong_FromLong(range.accessed_by[i]));
    if (!accessed) return NULL;
    return Py_BuildValue("iiNi", range.read_mostly, range.preferred, accessed, range.prefetched);
}

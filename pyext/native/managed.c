/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Advice about managed memory. The Python half has checked that it is managed; here a location is a number. */

static int managed(BufferObject *self, Py_ssize_t n, Py_ssize_t want) {
    if (!self->cell) return cudago_raise_closed("buffer");
    if (n == want && self->cell->kind == CUDAGO_CELL_MANAGED) return 0;
    PyErr_SetString(PyExc_TypeError, "not managed memory");
    return -1;
}

static int number_of(PyObject *o, int32_t *out) {
    long v = PyLong_AsLong(o);
    if (v == -1 && PyErr_Occurred()) return -1;
    *out = (int32_t)v;
    return 0;
}

/* _advise(advice, location) */
PyObject *cudago_buffer_advise(BufferObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    int32_t advice, at;
    if (managed(self, n, 2) || number_of(args[0], &advice) || number_of(args[1], &at)) return NULL;
    cudago_status st = {0};
    cudago_cell *cell = self->cell; /* close() of another thread may take the buffer's */
    uint64_t ptr = self->ptr, size = self->size;
    cudago_cell_retain(cell);
    Py_BEGIN_ALLOW_THREADS
    cudagoAdvise(self->device, ptr, size, advice, at, &st);
    Py_END_ALLOW_THREADS
    cudago_cell_release_gil(cell);
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

/* _prefetch(location, stream) */
PyObject *cudago_buffer_prefetch(BufferObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    int32_t at;
    if (managed(self, n, 2) || number_of(args[0], &at)) return NULL;
    PyObject *keep = NULL;
    cudago_stream *s = cudago_stream_arg(args[1], &keep);
    if (!s) return NULL;
    cudago_status st = {0};
    cudago_cell *cell = self->cell;
    uint64_t id = s->id, ptr = self->ptr, size = self->size;
    s->launched++;
    cudago_cell_retain(cell);
    Py_BEGIN_ALLOW_THREADS
    cudagoPrefetch(id, ptr, size, at, &st);
    Py_END_ALLOW_THREADS
    cudago_cell_release_gil(cell);
    Py_XDECREF(keep);
    if (st.kind) return cudago_raise(&st), NULL;
    Py_RETURN_NONE;
}

/* _range() -> (read_mostly, preferred, accessed_by, last_prefetch) */
PyObject *cudago_buffer_range(BufferObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (managed(self, 0, 0)) return NULL;
    cudago_status st = {0};
    cudago_range range = {0};
    cudago_cell *cell = self->cell;
    uint64_t ptr = self->ptr, size = self->size;
    cudago_cell_retain(cell);
    Py_BEGIN_ALLOW_THREADS
    cudagoRangeAttributes(self->device, ptr, size, &range, &st);
    Py_END_ALLOW_THREADS
    cudago_cell_release_gil(cell);
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *accessed = PyTuple_New(range.accessed);
    for (int32_t i = 0; accessed && i < range.accessed; i++) PyTuple_SetItem(accessed, i, PyLong_FromLong(range.accessed_by[i]));
    if (!accessed) return NULL;
    return Py_BuildValue("iiNi", range.read_mostly, range.preferred, accessed, range.prefetched);
}

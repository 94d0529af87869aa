/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Virtual memory that processes share: a list of pieces, each a file descriptor and its size, which the receiver maps side
 * by side. Nobody has to let go before anybody else, unlike with memory of a pool. */

static PyObject *list_of(const cudago_piece *pieces, int n) {
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *pair = Py_BuildValue("LK", (long long)pieces[i].fd, (unsigned long long)pieces[i].size);
        if (!pair) Py_CLEAR(list);
        else PyList_SetItem(list, i, pair);
    }
    return list;
}

/* _virtual_export(buffer) -> (pieces, offset), or None if the memory is not one that can grow: the descriptors are open as
 * long as the memory is there; offset is where the buffer begins in the pieces. */
PyObject *cudago_virtual_export(PyObject *module, PyObject *buffer) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (cudago_expect(buffer, CLS_BUFFER, "buffer")) return NULL;
    cudago_span b;
    if (cudago_buffer_now((BufferObject *)buffer, &b)) return NULL;
    if (!cudago_cell_grows(b.cell)) Py_RETURN_NONE;
    if (!b.size) return PyErr_SetString(PyExc_ValueError, "it has no bytes"), NULL;
    uint64_t id = ((cudago_virtual_cell *)b.cell)->id, from = b.ptr - b.cell->ptr, offset = 0;
    int n = 0;
    cudago_status st = {0};
    cudago_cell_retain(b.cell); /* another thread may close the buffer */
    cudago_piece *pieces;
    Py_BEGIN_ALLOW_THREADS
    pieces = cudagoVirtualExport(id, from, b.size, &n, &offset, &st);
    Py_END_ALLOW_THREADS
    cudago_cell_release(b.cell);
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *list = list_of(pieces, n);
    free(pieces);
    return list ? Py_BuildValue("NK", list, (unsigned long long)offset) : NULL;
}

/* What importing needs, looked at after everything that runs Python. */
static QUIET cudago_stream *may_import(StreamObject *stream) {
    cudago_stream *s = cudago_stream_to_hold(stream);
    int capturing = s ? cudago_capturing(s) : -1;
    if (capturing < 0) return NULL;
    if (!capturing) return s;
    PyErr_SetString(PyExc_ValueError, "memory cannot be imported on a stream that is capturing, since no node of a graph does that: "
                                      "import it before the capture, or on another stream");
    return NULL;
}

typedef struct {
    cudago_piece *pieces;
    int n;
    uint64_t offset, size;
} borrowing;

static uint64_t import_away(const borrowing *b, StreamObject *stream, cudago_stream *s, uint64_t *ptr, int *visible) {
    cudago_status st = {0};
    int32_t device = stream->device;
    uint32_t generation = s->generation;
    uint64_t on = s->id, id;
    Py_BEGIN_ALLOW_THREADS
    id = cudagoVirtualImport(device, b->pieces, b->n, b->offset, b->size, on, ptr, &st);
    *visible = cudagoHostVisible(device);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st), 0;
    if (!cudago_made("buffer", device, generation)) return id;
    cudagoBufferRelease(id);
    return 0;
}

static cudago_cell *import_cell(const borrowing *b, StreamObject *stream) {
    uint64_t ptr = 0;
    int visible = 0;
    cudago_stream *s = may_import(stream);
    cudago_virtual_cell *c = s ? calloc(1, sizeof *c) : NULL;
    if (!c) return s ? (cudago_cell *)PyErr_NoMemory() : NULL;
    cudago_stream_retain(s); /* it may be closed while the GIL is released */
    c->id = import_away(b, stream, s, &ptr, &visible);
    if (c->id) {
        cudago_cell_init(&c->pool.cell, CUDAGO_CELL_DEVICE, cudago_virtual_cell_release);
        cudago_pool_cell_fill(&c->pool, stream->device, visible, ptr, b->size, s);
        c->pool.cell.flags |= CUDAGO_CELL_IMPORTED;
    } else {
        free(c);
        c = NULL;
    }
    cudago_stream_release(s);
    return (cudago_cell *)c;
}

/* Fills in the pieces from a list of pairs; they are the caller's to free in any case. */
static int pieces_of(PyObject *list, borrowing *b) {
    Py_ssize_t n = PyList_Size(list);
    if (!(b->pieces = calloc((size_t)n + 1, sizeof *b->pieces))) return PyErr_NoMemory(), -1;
    for (b->n = 0; b->n < n; b->n++) {
        int32_t fd;
        PyObject *pair = PyList_GetItem(list, b->n);
        if (!pair || !PyTuple_Check(pair) || PyTuple_Size(pair) != 2)
            return PyErr_SetString(PyExc_TypeError, "pieces must be pairs of a file descriptor and a size"), -1;
        Py_INCREF(pair); /* the numbers may be objects that run Python, which changes the list */
        int bad = cudago_int32(PyTuple_GetItem(pair, 0), "fd", 0, &fd) ||
                  cudago_size(PyTuple_GetItem(pair, 1), "size in bytes", &b->pieces[b->n].size);
        Py_DECREF(pair);
        if (bad) return -1;
        b->pieces[b->n].fd = fd;
    }
    return 0;
}

/* _virtual_import(stream, pieces, offset, size) -> Buffer over size bytes at offset of the pieces, on the stream's device;
 * their descriptors stay open */
PyObject *cudago_virtual_import(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *on, *list, *offset, *size, *keep = NULL;
    borrowing b = {0};
    if (!PyArg_ParseTuple(args, "OO!OO", &on, &PyList_Type, &list, &offset, &size) || cudago_size(offset, "offset in bytes", &b.offset) ||
        cudago_size(size, "size in bytes", &b.size)) return NULL;
    cudago_cell *cell = NULL;
    StreamObject *stream = pieces_of(list, &b) ? NULL : cudago_stream_arg(on, &keep);
    cudago_note_site();
    if (stream) cell = import_cell(&b, stream);
    free(b.pieces);
    Py_XDECREF(keep);
    return cell ? cudago_buffer_new(cell, cell->ptr, cell->size, cell->ordinal) : NULL;
}

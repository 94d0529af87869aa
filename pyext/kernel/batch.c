/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* Several copies in one call: all operands are made first, then all are looked at, then all are copied. */

typedef struct {
    OperandObject *sides[2]; /* dst, src */
    uintptr_t theirs[2];     /* the streams of their libraries, or 0 */
    int32_t theirs_at[2];    /* their devices */
    int keep[2];             /* until the work has ended */
} pair;

typedef struct {
    Py_ssize_t n;
    pair *pairs;
    cudago_copy *copies; /* for Go */
    StreamObject *stream;
    int pageable;
} batch;

static void batch_free(batch *b) {
    for (Py_ssize_t i = 0; b->pairs && i < b->n; i++)
        for (int k = 0; k < 2; k++) Py_XDECREF(b->pairs[i].sides[k]);
    free(b->pairs);
    free(b->copies);
}

enum { NAME_SIZE = 40 };

/* What errors call a side of a copy. */
static QUIET const char *side_name(char *out, Py_ssize_t i, int k) {
    snprintf(out, NAME_SIZE, "copy %lld: %s", (long long)i, k ? "src" : "dst");
    return out;
}

/* Makes Operands of two lists of equal length. */
static int batch_read(batch *b, PyObject *dsts, PyObject *srcs) {
    if (!PyList_Check(dsts) || !PyList_Check(srcs) || PyList_Size(dsts) != PyList_Size(srcs))
        return PyErr_SetString(PyExc_TypeError, "_copy_batch(stream, dsts, srcs) takes two lists of one length"), -1;
    b->n = PyList_Size(dsts);
    b->pairs = calloc((size_t)b->n + 1, sizeof *b->pairs);
    b->copies = calloc((size_t)b->n + 1, sizeof *b->copies);
    if (!b->pairs || !b->copies) return PyErr_NoMemory(), -1;
    for (Py_ssize_t i = 0; i < b->n; i++)
        for (int k = 0; k < 2; k++) {
            char name[NAME_SIZE];
            PyObject *object = NEW_REF(PyList_GetItem(k ? srcs : dsts, i)); /* a conversion may change the lists */
            if (!object) return -1;
            b->pairs[i].sides[k] = cudago_operand(object, k ? 0 : OPERAND_WRITABLE, side_name(name, i, k));
            Py_DECREF(object);
            if (!b->pairs[i].sides[k]) return -1;
        }
    return 0;
}

/* What depends on the stream's device, and may run Python. */
static int batch_prepare(batch *b) {
    for (Py_ssize_t i = 0; i < b->n; i++)
        for (int k = 0; k < 2; k++) {
            OperandObject *o = b->pairs[i].sides[k];
            if (cudago_theirs(o, b->stream->device, &b->pairs[i].theirs[k], &b->pairs[i].theirs_at[k])) return -1;
            b->pairs[i].keep[k] = cudago_outlasts(o);
            b->pageable |= o->pageable;
        }
    if (!b->pageable || cudago_may_be_capturing(b->stream)) return 0;
    /* The driver blocks until a copy of pageable memory has had its turn, and there Ctrl-C is not heard. */
    cudago_stream *s = cudago_stream_now(b->stream);
    return s ? cudago_wait_stream(s) : -1;
}

static QUIET int sizes_now(const pair *p, Py_ssize_t i) {
    const OperandObject *dst = p->sides[0], *src = p->sides[1];
    char where[NAME_SIZE];
    snprintf(where, sizeof where, "copy %lld: ", (long long)i);
    if (dst->nbytes == src->nbytes && cudago_overlap(dst->address, src->address, dst->nbytes))
        return cudago_raise_overlap(where, dst->address, src->address, dst->nbytes);
    if (dst->nbytes == src->nbytes) return 0;
    PyErr_Format(PyExc_ValueError, "copy %zd: src has %llu bytes, dst %llu: a copy needs the same size on both sides", i,
                 (unsigned long long)src->nbytes, (unsigned long long)dst->nbytes);
    return -1;
}

/* Between memory of devices, one of which is not the stream's? */
static QUIET int goes_across(const pair *p, int32_t device) {
    int32_t to = p->sides[0]->device, from = p->sides[1]->device;
    return to >= 0 && from >= 0 && (to != device || from != device);
}

static QUIET int pair_now(const pair *p, Py_ssize_t i, int32_t device, int capturing) {
    OperandObject *dst = p->sides[0], *src = p->sides[1];
    char to[NAME_SIZE], from[NAME_SIZE];
    side_name(to, i, 0);
    side_name(from, i, 1);
    if (cudago_operand_now(dst)) return cudago_raise_closed_named(to);
    if (cudago_operand_now(src)) return cudago_raise_closed_named(from);
    if (!capturing && goes_across(p, device)) return sizes_now(p, i);
    if (cudago_stream_reaches(dst->cell, dst->device, device, to) || cudago_stream_reaches(src->cell, src->device, device, from)) return -1;
    return sizes_now(p, i);
}

static QUIET void note(const batch *b, cudago_stream *s, Py_ssize_t sides, uint64_t position) {
    for (Py_ssize_t i = 0; i < sides; i++) {
        cudago_cell *cell = b->pairs[i / 2].sides[i % 2]->cell;
        if (cell) cudago_cell_note(cell, s, position);
    }
}

static QUIET void keep(const batch *b, cudago_stream *s, uint64_t position) {
    for (Py_ssize_t i = 0; i < 2 * b->n; i++) {
        if (!b->pairs[i / 2].keep[i % 2]) continue;
        uintptr_t ref = (uintptr_t)NEW_REF(b->pairs[i / 2].sides[i % 2]);
        cudago_keep_until(s, position, &ref, 1);
    }
}

/* Behind the work of other libraries, with the GIL released: the Operands are held by the caller. Copies that were queued
 * before one that failed use the memory all the same, so a failure of the driver's call is noted like a success. */
static int batch_away(const batch *b, cudago_stream *s) {
    cudago_status st = {0};
    int stopped = 0;
    for (Py_ssize_t i = 0; i < 2 * b->n; i++) {
        cudago_cell *cell = b->pairs[i / 2].sides[i % 2]->cell;
        if (cell) cudago_cell_retain(cell);
    }
    cudago_leave l = cudago_gil_leave(s);
    for (Py_ssize_t i = 0; i < 2 * b->n && !stopped; i++) {
        uintptr_t theirs = b->pairs[i / 2].theirs[i % 2];
        int32_t at = b->pairs[i / 2].theirs_at[i % 2];
        if (theirs && (at != s->device || !cudago_same_stream(theirs, s->h))) stopped = cudagoStreamsOrder(at, theirs, s->device, s->h, &st) || st.kind;
    }
    if (!stopped) cudagoMemcpyBatch(s->id, b->copies, (int64_t)b->n, b->pageable, &st);
    uint64_t position = cudago_gil_back(&l, stopped);
    note(b, s, 2 * b->n, stopped ? 0 : position);
    if (!stopped) keep(b, s, position);
    for (Py_ssize_t i = 0; i < 2 * b->n; i++) {
        cudago_cell *cell = b->pairs[i / 2].sides[i % 2]->cell;
        if (cell) cudago_cell_release(cell);
    }
    cudago_leave_end(&l);
    if (stopped) return cudago_not_ordered(&st);
    return st.kind ? cudago_raise(&st) : 0;
}

/* Looks again before each, because recording one may let others run. */
static QUIET int record_now(const batch *b, Py_ssize_t i) {
    cudago_stream *s = cudago_stream_now(b->stream);
    if (!s || pair_now(&b->pairs[i], i, s->device, 1)) return -1;
    OperandObject *dst = b->pairs[i].sides[0];
    int capturing = cudago_capturing(s);
    if (capturing > 0) return dst->nbytes ? cudago_record.memcpy(s, dst, b->pairs[i].sides[1], dst->nbytes) : 0;
    if (!capturing) PyErr_SetString(PyExc_ValueError, "the capture of the stream ended before all copies were recorded");
    return -1;
}

static int batch_record(const batch *b) {
    for (Py_ssize_t i = 0; i < b->n; i++)
        if (record_now(b, i)) return -1;
    return 0;
}

/* CUDAGO_AGAIN if the stream is capturing, so that each copy is to be recorded. */
static QUIET int batch_now(const batch *b) {
    cudago_stream *s = cudago_stream_now(b->stream);
    if (!s) return -1;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return -1;
    for (Py_ssize_t i = 0; i < b->n; i++) {
        const pair *p = &b->pairs[i];
        if (pair_now(p, i, s->device, capturing)) return -1;
        OperandObject *dst = p->sides[0], *src = p->sides[1];
        b->copies[i] = (cudago_copy){dst->address, src->address, dst->nbytes, goes_across(p, s->device), dst->device, src->device};
    }
    if (capturing) return CUDAGO_AGAIN;
    for (Py_ssize_t i = 0; i < 2 * b->n; i++) {
        cudago_cell *cell = b->pairs[i / 2].sides[i % 2]->cell;
        if (cell && cudago_cell_reserve(cell, s)) return note(b, s, i, 0), -1;
    }
    return batch_away(b, s);
}

/* _copy_batch(stream, dsts, srcs) */
PyObject *cudago_copy_batch(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 3) return PyErr_SetString(PyExc_TypeError, "_copy_batch(stream, dsts, srcs)"), NULL;
    PyObject *borrowed = NULL;
    batch b = {0};
    int r = batch_read(&b, args[1], args[2]);
    if (!r && !(b.stream = cudago_stream_arg(args[0], &borrowed))) r = -1;
    cudago_note_site();
    if (!r) r = batch_prepare(&b);
    if (!r) r = batch_now(&b);
    if (r == CUDAGO_AGAIN) r = batch_record(&b);
    batch_free(&b);
    Py_XDECREF(borrowed);
    if (r) return NULL;
    Py_RETURN_NONE;
}

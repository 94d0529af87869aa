/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* Copies of rows with gaps between them: one driver call, and in a graph one node. */

#define MOST ((uint64_t)1 << 40) /* the product of three is less than 2**128 */

int cudago_read_box(PyObject *numbers, cudago_box *box) {
    uint64_t *to[] = {&box->width, &box->rows, &box->slices, &box->dst_pitch, &box->dst_height, &box->src_pitch, &box->src_height};
    if (PyTuple_Size(numbers) != 7) return PyErr_SetString(PyExc_TypeError, "a box is a tuple of 7 numbers"), -1;
    for (int i = 0; i < 7; i++) {
        *to[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(numbers, i));
        if (*to[i] == (uint64_t)-1 && PyErr_Occurred()) return -1;
        if (!*to[i] || *to[i] > MOST) return PyErr_SetString(PyExc_ValueError, "the numbers of a box are 1 to 2**40"), -1;
    }
    return 0;
}

/* The bytes from the first to the last. */
static QUIET unsigned __int128 reach(const cudago_box *b, uint64_t pitch, uint64_t height) {
    unsigned __int128 slice = (unsigned __int128)pitch * height;
    return slice * (b->slices - 1) + (unsigned __int128)pitch * (b->rows - 1) + b->width;
}

static QUIET int side_fits(const cudago_box *b, uint64_t pitch, uint64_t height, const OperandObject *o, const char *name) {
    if (o->array) { /* which has no pitch: the driver checks the sizes */
        if ((unsigned __int128)b->width * b->rows * b->slices == o->nbytes) return 0;
        return PyErr_Format(PyExc_ValueError, "a copy of an array is one of all its %llu bytes", (unsigned long long)o->nbytes), -1;
    }
    if (reach(b, pitch, height) <= o->nbytes && pitch >= b->width && height >= b->rows) return 0;
    return PyErr_Format(PyExc_ValueError, "the rows of %s are not inside its %llu bytes", name, (unsigned long long)o->nbytes), -1;
}
QUIET int cudago_box_fits(const cudago_box *b, const OperandObject *dst, const OperandObject *src) {
    if (side_fits(b, b->dst_pitch, b->dst_height, dst, "dst")) return -1;
    return side_fits(b, b->src_pitch, b->src_height, src, "src");
}

/* A driver call about to be made: everything it uses is open, and nothing has run since that was checked. */
typedef struct {
    cudago_stream *s;
    uint64_t dst, src;
    int32_t dst_side, src_side; /* SIDE_... */
    cudago_cell *cells[2];  /* NULL where none */
    OperandObject *keep[2]; /* kept until the work has ended, or NULL */
    cudago_box box;
} transfer;

static QUIET int finish(const transfer *t, cudago_status *st, uint64_t position) {
    for (int i = 0; i < 2; i++)
        if (t->cells[i]) cudago_cell_note(t->cells[i], t->s, position);
    if (st->kind) return cudago_raise(st);
    for (int i = 0; i < 2; i++) {
        if (!t->keep[i]) continue;
        uintptr_t ref = (uintptr_t)NEW_REF(t->keep[i]);
        cudago_keep_until(t->s, position, &ref, 1);
    }
    return 0;
}

/* With the GIL released, because the call goes through Go: the cells are held for the call. */
static int transfer_away(const transfer *t) {
    cudago_status st = {0};
    for (int i = 0; i < 2; i++)
        if (t->cells[i]) cudago_cell_retain(t->cells[i]);
    cudago_leave l = cudago_gil_leave(t->s);
    cudagoMemcpyBox(t->s->id, t->dst, t->src, t->dst_side, t->src_side, (cudago_box *)&t->box, &st);
    int result = finish(t, &st, cudago_gil_back(&l, st.kind));
    for (int i = 0; i < 2; i++)
        if (t->cells[i]) cudago_cell_release(t->cells[i]);
    cudago_leave_end(&l);
    return result;
}

static QUIET int transfer_now(const transfer *t) {
    if (t->cells[0] && cudago_cell_reserve(t->cells[0], t->s)) return -1;
    if (t->cells[1] && cudago_cell_reserve(t->cells[1], t->s)) {
        if (t->cells[0]) cudago_cell_note(t->cells[0], t->s, 0);
        return -1;
    }
    return transfer_away(t);
}

static QUIET int box_now(StreamObject *stream, OperandObject *dst, OperandObject *src, const int *keep, const cudago_box *b) {
    cudago_stream *s = cudago_stream_now(stream);
    if (!s || cudago_operand_now(dst) || cudago_operand_now(src) || cudago_box_fits(b, dst, src)) return -1;
    if (cudago_stream_reaches(dst->cell, dst->device, s->device, "dst") || cudago_stream_reaches(src->cell, src->device, s->device, "src")) return -1;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return -1;
    if (capturing) return cudago_record.box(s, dst, src, b);
    transfer t = {s, dst->address, src->address, cudago_side(dst), cudago_side(src), {dst->cell, src->cell}, {keep[0] ? dst : NULL, keep[1] ? src : NULL}, *b};
    return transfer_now(&t);
}

/* The driver blocks until a copy of pageable memory has had its turn, and there Ctrl-C is not heard. */
static int await_turn(StreamObject *stream, OperandObject *const *sides) {
    if ((!sides[0]->pageable && !sides[1]->pageable) || cudago_may_be_capturing(stream)) return 0;
    cudago_stream *s = cudago_stream_now(stream);
    return s ? cudago_wait_stream(s) : -1;
}

/* _copy_box(stream, dst, src, box): dst and src are tensors of bytes, which begin where the box begins, or arrays. */
PyObject *cudago_copy_box(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    cudago_box box;
    if (n != 4) return PyErr_SetString(PyExc_TypeError, "_copy_box(stream, dst, src, box)"), NULL;
    if (cudago_read_box(args[3], &box)) return NULL;
    PyObject *borrowed = NULL;
    OperandObject *sides[2] = {cudago_operand(args[1], OPERAND_WRITABLE | OPERAND_BOX, "dst"), NULL};
    StreamObject *stream = NULL;
    int r = -1;
    if (sides[0] && (sides[1] = cudago_operand(args[2], OPERAND_BOX, "src")) && (stream = cudago_stream_arg(args[0], &borrowed))) {
        int keep[2] = {cudago_outlasts(sides[0]), cudago_outlasts(sides[1])};
        cudago_note_site();
        r = await_turn(stream, sides);
        if (!r) r = box_now(stream, sides[0], sides[1], keep, &box);
    }
    Py_XDECREF(sides[0]);
    Py_XDECREF(sides[1]);
    Py_XDECREF(borrowed);
    if (r) return NULL;
    Py_RETURN_NONE;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* --- copies: copy_from(src, *, stream) and copy_to(dst, *, stream) ------------------------------------------------- */

/* A copy between a Buffer and anything else: its evaluated arguments. */
typedef struct {
    BufferObject *buffer;
    PyObject *other;
    OperandObject *operand; /* of other; NULL for a Buffer that no graph has to keep */
    OperandObject *mine;    /* of buffer, for a graph; NULL if not needed so far */
    StreamObject *stream;
    uintptr_t theirs;       /* the stream of other's library, or 0 */
    int32_t theirs_at;      /* its device */
    int from, keep;         /* keep: operand, until the work has ended */
} copying;

/* A driver call about to be made: everything it uses is open, and nothing has run since that was checked. */
typedef struct {
    uint64_t dst, src, size;
    cudago_cell *cells[2]; /* NULL where none */
    cudago_stream *s;
    OperandObject *keep;   /* kept until the work has ended, or NULL */
    int pageable;
    int across;            /* between memory of devices, one of which is not the stream's: they need no access */
    int32_t devices[2];    /* of dst and src, for that */
    uintptr_t theirs;      /* another library's stream, whose work comes first, or 0 */
    int32_t theirs_at;     /* its device */
} transfer;

static QUIET int32_t call_driver(const transfer *t) {
    uintptr_t pushed;
    int32_t r = cudago_ctx_enter(t->s->ctx, &pushed);
    if (!r) r = cu.cuMemcpyAsync(t->dst, t->src, t->size, t->s->h);
    cudago_ctx_leave(pushed);
    return r;
}

static QUIET int finish(const transfer *t, int32_t r, cudago_status *st, uint64_t position) {
    for (int i = 0; i < 2; i++)
        if (t->cells[i]) cudago_cell_note(t->cells[i], t->s, position);
    if (r) return st && st->kind ? cudago_raise(st) : cudago_raise_result("cuMemcpyAsync", r);
    if (!t->keep) return 0;
    uintptr_t ref = (uintptr_t)NEW_REF(t->keep);
    cudago_keep_until(t->s, position, &ref, 1);
    return 0;
}

static QUIET void unreserve(const transfer *t) {
    for (int i = 0; i < 2; i++)
        if (t->cells[i]) cudago_cell_note(t->cells[i], t->s, 0);
}

/* With the GIL released: the cells are held for the call. */
static int transfer_away(const transfer *t) {
    for (int i = 0; i < 2; i++)
        if (t->cells[i]) cudago_cell_retain(t->cells[i]);
    cudago_status st = {0};
    int32_t r = CUDAGO_NOT_CALLED;
    int stopped = 0, result = 0;
    cudago_leave l = cudago_gil_leave(t->s);
    if (t->theirs) stopped = cudagoStreamsOrder(t->theirs_at, t->theirs, t->s->device, t->s->h, &st) || st.kind;
    if (!stopped && t->across) { /* the contexts are Go's */
        cudagoMemcpyPeer(t->s->id, t->dst, t->devices[0], t->src, t->devices[1], t->size, &st);
        r = st.kind ? CUDAGO_NOT_CALLED : 0;
    } else if (!stopped) r = call_driver(t);
    uint64_t position = cudago_gil_back(&l, r);
    if (stopped) unreserve(t);
    else result = finish(t, r, &st, position);
    for (int i = 0; i < 2; i++)
        if (t->cells[i]) cudago_cell_release(t->cells[i]);
    cudago_leave_end(&l);
    return stopped ? cudago_not_ordered(&st) : result;
}

/* Device and pinned memory is enqueued like a launch; pageable memory makes the driver block. */
static QUIET int transfer_now(const transfer *t) {
    if (t->cells[0] && cudago_cell_reserve(t->cells[0], t->s)) return -1;
    if (t->cells[1] && cudago_cell_reserve(t->cells[1], t->s)) {
        if (t->cells[0]) cudago_cell_note(t->cells[0], t->s, 0);
        return -1;
    }
    int far = t->across || (t->theirs && t->theirs_at != t->s->device); /* what has to do with two contexts is Go's */
    if (t->pageable || far || !cudago_keeps_gil(t->s)) return transfer_away(t);
    if (t->theirs && cudago_order_after(t->s, t->theirs)) return unreserve(t), -1;
    int32_t r = call_driver(t);
    return finish(t, r, NULL, r ? 0 : cudago_queued(t->s));
}

static QUIET int32_t home(const cudago_cell *cell, int32_t device) { return cell && cell->kind == CUDAGO_CELL_MANAGED ? -1 : device; }

static QUIET int raise_sizes(const copying *c, uint64_t buffer, uint64_t other) {
    PyErr_Format(PyExc_ValueError, "%s has %llu bytes, the buffer %llu: a copy needs the same size on both sides",
                 c->from ? "src" : "dst", (unsigned long long)other, (unsigned long long)buffer);
    return -1;
}

/* The other side of the copy, open and of the right size. */
static QUIET int other_side(const copying *c, const cudago_span *b, cudago_span *out) {
    if (c->operand) {
        if (cudago_operand_now(c->operand)) return cudago_raise_closed_named(c->from ? "src" : "dst"), -1;
        *out = (cudago_span){c->operand->cell, c->operand->address, c->operand->nbytes, c->operand->readonly};
    } else {
        if (cudago_buffer_now((BufferObject *)c->other, out)) return cudago_raise_closed_named(c->from ? "src" : "dst"), -1;
        if (!c->from && cudago_writable(out->readonly, "dst")) return -1;
    }
    return out->size == b->size ? 0 : raise_sizes(c, b->size, out->size);
}

QUIET int cudago_raise_overlap(const char *where, uint64_t dst, uint64_t src, uint64_t size) {
    char text[200];
    snprintf(text, sizeof text, "%sdst (%llu bytes at %#llx) and src (at %#llx) overlap: a copy moves its bytes in any order, so copy by way of other memory",
             where, (unsigned long long)size, (unsigned long long)dst, (unsigned long long)src);
    return PyErr_SetString(PyExc_ValueError, text), -1;
}

static QUIET int apart(const copying *c, const cudago_span *b, const cudago_span *o) {
    if (!cudago_overlap(b->ptr, o->ptr, b->size) || (c->operand && c->operand->array)) return 0;
    return cudago_raise_overlap("", c->from ? b->ptr : o->ptr, c->from ? o->ptr : b->ptr, b->size);
}

/* What a capture records, and copies of host memory, need access to memory of another device. */
static QUIET int both_reach(const copying *c, const cudago_span *b, int32_t own, const cudago_span *o, int32_t other, int32_t device) {
    if (cudago_stream_reaches(b->cell, own, device, c->from ? "dst" : "src")) return -1;
    return cudago_stream_reaches(o->cell, other, device, c->from ? "src" : "dst");
}

/* CUDAGO_AGAIN if the stream is capturing and what its graph has to keep was not made an Operand. */
static QUIET int copy_now(const copying *c) {
    cudago_span b, o;
    cudago_stream *s = cudago_stream_now(c->stream);
    if (!s || cudago_buffer_now(c->buffer, &b)) return -1;
    if (c->from && cudago_writable(b.readonly, "the buffer")) return -1;
    if (other_side(c, &b, &o) || apart(c, &b, &o)) return -1;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return -1;
    if (!b.size && !capturing) return 0;
    int32_t own = home(b.cell, c->buffer->device), other = c->operand ? c->operand->device : home(o.cell, ((BufferObject *)c->other)->device);
    int elsewhere = (own >= 0 && own != s->device) || (other >= 0 && other != s->device), across = elsewhere && own >= 0 && other >= 0 && !capturing;
    if (elsewhere && !across && both_reach(c, &b, own, &o, other, s->device)) return -1;
    if (capturing) {
        if (!c->mine || !c->operand) return CUDAGO_AGAIN;
        return cudago_record.memcpy(s, c->from ? c->mine : c->operand, c->from ? c->operand : c->mine, b.size);
    }
    transfer t = {.across = across, .devices = {c->from ? own : other, c->from ? other : own}, .dst = c->from ? b.ptr : o.ptr, .src = c->from ? o.ptr : b.ptr, .size = b.size, .cells = {b.cell, o.cell}, .s = s, .pageable = c->operand && c->operand->pageable, .theirs_at = c->theirs_at};
    if (!cudago_same_stream(c->theirs, s->h) || c->theirs_at != s->device) t.theirs = c->theirs;
    if (c->keep) t.keep = c->operand;
    return transfer_now(&t);
}

/* Of a copy from pageable memory the driver stages up to this many bytes, and returns. Larger copies, and those to
 * pageable memory, block in the driver until it is their turn, and there Ctrl-C is not heard: so we wait for their turn
 * before. CUDA Driver API, "API synchronization behavior". */
enum { STAGED_BYTES = 64 << 10 };

static int await_turn(const copying *c) {
    const OperandObject *o = c->operand;
    if (!o || !o->pageable || (c->from && o->nbytes <= STAGED_BYTES) || cudago_may_be_capturing(c->stream)) return 0;
    cudago_stream *s = cudago_stream_now(c->stream);
    if (!s) return -1;
    return cudago_wait_stream(s);
}

static int make_operand(OperandObject **at, PyObject *object, int writable, const char *name) {
    if (!*at) *at = cudago_operand(object, writable ? OPERAND_WRITABLE : 0, name);
    return *at ? 0 : -1;
}

static int run(copying *c) {
    const char *name = c->from ? "src" : "dst";
    if (Py_TYPE(c->other) != cudago_cls[CLS_BUFFER]) {
        if (make_operand(&c->operand, c->other, !c->from, name)) return -1;
        if (cudago_theirs(c->operand, c->stream->device, &c->theirs, &c->theirs_at)) return -1;
        c->keep = cudago_outlasts(c->operand);
    }
    cudago_note_site();
    if (await_turn(c)) return -1;
    int r = copy_now(c);
    if (r != CUDAGO_AGAIN) return r;
    if (make_operand(&c->mine, (PyObject *)c->buffer, 0, c->from ? "dst" : "src") || make_operand(&c->operand, c->other, !c->from, name))
        return -1;
    return copy_now(c);
}

/* One argument, by position or by its name, and stream=. */
enum { TAKES_SRC,
       TAKES_DST,
       TAKES_VALUE };
static const char *const signatures[] = {
    "copy_from(src, *, stream) takes one operand and stream=",
    "copy_to(dst, *, stream) takes one operand and stream=",
    "fill(value, *, stream) takes a value and stream=",
};
static int read_named(PyObject *const *given, PyObject *names, int which, PyObject **args) {
    static cudago_keyword known[][2] = {{{"src", NULL}, {"stream", NULL}}, {{"dst", NULL}, {"stream", NULL}}, {{"value", NULL}, {"stream", NULL}}};
    int first = cudago_which(known[which], 2, PyTuple_GetItem(names, 0)), last = cudago_which(known[which], 2, PyTuple_GetItem(names, 1));
    if (first + last != 1) return 0; /* one of them is none, or both are the same */
    args[first] = given[0];
    args[last] = given[1];
    return 1;
}
static int read_arguments(PyObject *const *given, Py_ssize_t n, PyObject *names, int which, PyObject **args) {
    if (n == 1 && cudago_names_stream(names)) return args[0] = given[0], args[1] = given[1], 0;
    if (!n && names && PyTuple_Size(names) == 2 && read_named(given, names, which, args)) return 0;
    if (PyErr_Occurred()) return -1;
    return PyErr_Format(PyExc_TypeError, "%s", signatures[which]), -1;
}

static PyObject *buffer_copy(BufferObject *self, PyObject *const *given, Py_ssize_t n, PyObject *names, int from) {
    CUDAGO_ENTER(NULL);
    PyObject *args[2];
    if (read_arguments(given, n, names, from ? TAKES_SRC : TAKES_DST, args)) return NULL;
    cudago_span open;
    /* Checked here so that the first mistake is reported first, and again in copy_now. */
    if (cudago_buffer_now(self, &open)) return NULL;
    PyObject *keep = NULL;
    copying c = {.buffer = self, .other = args[0], .from = from, .stream = cudago_stream_arg(args[1], &keep)};
    int r = c.stream ? run(&c) : -1;
    Py_XDECREF(c.operand);
    Py_XDECREF(c.mine);
    Py_XDECREF(keep);
    if (r) return NULL;
    Py_RETURN_NONE;
}

static PyObject *buffer_copy_from(BufferObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return buffer_copy(self, args, n, names, 1);
}
static PyObject *buffer_copy_to(BufferObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    return buffer_copy(self, args, n, names, 0);
}

/* --- fills: fill(value, *, stream) ------------------------------------------------------------------------------------ */

static int raise_no_byte(PyObject *number) {
    PyObject *text = cudago_number_text(number);
    if (text)
        PyErr_Format(PyExc_OverflowError,
                     "an int fills each byte, so it must be -128 to 255, got %U: a wider value comes as a NumPy scalar or as "
                     "bytes, and a tensor is filled in its dtype",
                     text);
    Py_XDECREF(text);
    return -1;
}

/* What bytes are filled with: an int of one byte, or bytes of 1, 2 or 4. The width never depends on an int's value. */
int cudago_fill_value(PyObject *value, uint32_t *out, uint32_t *width) {
    *out = 0;
    if (PyLong_Check(value)) {
        int overflow;
        long long v = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow || v < -128 || v > 255)
            return raise_no_byte(value);
        *width = 1;
        *out = (uint8_t)v;
        return 0;
    }
    Py_buffer view;
    if (!PyObject_CheckBuffer(value)) {
        if (cudago_refuse_slot(value, "value")) return -1;
        PyErr_Format(PyExc_TypeError,
                     "fill value must be an int of one byte, or bytes or a NumPy scalar of 1, 2 or 4 bytes, not %R",
                     (PyObject *)Py_TYPE(value));
        return -1;
    }
    if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)) return -1;
    Py_ssize_t n = view.len;
    if (n == 1 || n == 2 || n == 4) memcpy(out, view.buf, (size_t)n);
    PyBuffer_Release(&view);
    if (n != 1 && n != 2 && n != 4)
        return PyErr_Format(PyExc_ValueError, "fill value must have 1, 2 or 4 bytes, got %zd: a tensor takes others, as in buf.view(dtype).fill(value)", n), -1;
    *width = (uint32_t)n;
    return 0;
}

QUIET int cudago_fill_fits(uint32_t width, uint64_t address, uint64_t size) {
    if (size % width) return PyErr_Format(PyExc_ValueError, "a fill value of %u bytes does not divide %llu bytes", width, (unsigned long long)size), -1;
    if (address % width == 0) return 0;
    char text[160]; /* the limited API's own formats have no long hexadecimal numbers */
    snprintf(text, sizeof text, "a fill value of %u bytes needs memory that begins at a multiple of %u, not at %#llx: a tensor takes others, as in buf.view(dtype).fill(value)",
             width, width, (unsigned long long)address);
    return PyErr_SetString(PyExc_ValueError, text), -1;
}

QUIET int cudago_may_be_lent(const cudago_cell *cell) {
    return !cell || (cudago_cell_is_host(cell) && cell->kind != CUDAGO_CELL_PINNED && cell->kind != CUDAGO_CELL_MANAGED);
}

static int is_invalid_value(PyObject *error) {
    enum { INVALID_VALUE = 1 }; /* CUDA_ERROR_INVALID_VALUE */
    PyObject *code = PyObject_GetAttrString(error, "code");
    int is = code && PyLong_Check(code) && PyLong_AsLong(code) == INVALID_VALUE;
    Py_XDECREF(code);
    PyErr_Clear(); /* another exception than a CUDAError */
    return is;
}

int cudago_fill_failed(int lent, uint64_t address, const char *what) {
    PyObject *type, *value, *trace;
    if (!lent) return -1;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (!value || !is_invalid_value(value) || cudago_host_known(address)) return PyErr_Restore(type, value, trace), -1;
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return PyErr_Format(PyExc_BufferError, "%s is pageable host memory: fill the array itself", what), -1;
}

/* With the GIL released: the call goes through Go. */
static int fill_away(cudago_stream *s, const cudago_span *b, uint32_t value, uint32_t width) {
    cudago_status st = {0};
    cudago_cell_retain(b->cell);
    cudago_leave l = cudago_gil_leave(s);
    cudagoMemset(s->id, b->ptr, value, width, b->size / width, &st);
    cudago_cell_note(b->cell, s, cudago_gil_back(&l, st.kind));
    cudago_cell_release(b->cell);
    cudago_leave_end(&l);
    return st.kind ? cudago_raise(&st) : 0;
}

/* mine: an Operand of the buffer, or NULL. CUDAGO_AGAIN if it is NULL and the stream is capturing. */
static QUIET int fill_now(BufferObject *self, StreamObject *stream, OperandObject *mine, uint32_t value, uint32_t width) {
    cudago_span b;
    cudago_stream *s = cudago_stream_now(stream);
    if (!s || cudago_buffer_now(self, &b)) return -1;
    if (cudago_writable(b.readonly, "the buffer") || cudago_fill_fits(width, b.ptr, b.size)) return -1;
    if (!b.size) return 0;
    int capturing = cudago_capturing(s);
    if (capturing < 0 || cudago_stream_accesses(b.cell, b.ptr, home(b.cell, self->device), s->device, "the memory")) return -1;
    if (capturing) return mine ? cudago_record.memset(s, mine, value, width, b.size / width) : CUDAGO_AGAIN;
    if (cudago_cell_reserve(b.cell, s)) return -1;
    return fill_away(s, &b, value, width);
}

static PyObject *buffer_fill(BufferObject *self, PyObject *const *given, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    PyObject *args[2];
    if (read_arguments(given, n, names, TAKES_VALUE, args)) return NULL;
    cudago_span open;
    uint32_t value, width;
    if (cudago_buffer_now(self, &open) || cudago_writable(open.readonly, "the buffer")) return NULL;
    int lent = cudago_may_be_lent(open.cell);
    uint64_t at = open.ptr;
    if (cudago_fill_value(args[0], &value, &width)) return NULL;
    PyObject *keep = NULL;
    StreamObject *stream = cudago_stream_arg(args[1], &keep);
    if (!stream) return NULL;
    cudago_note_site();
    int r = fill_now(self, stream, NULL, value, width);
    if (r == CUDAGO_AGAIN) {
        OperandObject *mine = cudago_operand((PyObject *)self, OPERAND_WRITABLE, "dst");
        r = mine ? fill_now(self, stream, mine, value, width) : -1;
        Py_XDECREF(mine);
    }
    Py_XDECREF(keep);
    if (!r) Py_RETURN_NONE;
    return cudago_fill_failed(lent, at, "the buffer"), NULL;
}

PyMethodDef cudago_buffer_copies[] = {
    {"copy_from", METHOD(buffer_copy_from), METH_FASTCALL | METH_KEYWORDS, DOC_BUFFER_COPY_FROM},
    {"copy_to", METHOD(buffer_copy_to), METH_FASTCALL | METH_KEYWORDS, DOC_BUFFER_COPY_TO},
    {"fill", METHOD(buffer_fill), METH_FASTCALL | METH_KEYWORDS, DOC_BUFFER_FILL},
    {0},
};

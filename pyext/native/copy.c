/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"
#include "tensor.h"

void cudago_raise_sizes(int from, uint64_t buffer, uint64_t other) {
    PyErr_Format(PyExc_ValueError, "%s has %llu bytes, the buffer %llu: a copy needs the same size on both sides",
                 from ? "src" : "dst", (unsigned long long)other, (unsigned long long)buffer);
}

/* A copy whose operands need no keeping: device and pinned memory. Pageable memory makes the driver block, so the GIL
 * goes; otherwise a copy is enqueued like a launch. */
int cudago_memcpy(uint64_t dst, uint64_t src, uint64_t size, cudago_stream *s, int pageable) {
    if (!size) return 0;
    int pushed;
    int32_t r;
    cudago_note_site();
    if (!pageable && cudago_budget(s)) {
        r = cudago_ctx_enter(s->ctx, &pushed);
        if (!r) r = cu.cuMemcpyAsync(dst, src, size, s->h);
        cudago_ctx_leave(pushed);
    } else {
        Py_BEGIN_ALLOW_THREADS
        r = cudago_ctx_enter(s->ctx, &pushed);
        if (!r) r = cu.cuMemcpyAsync(dst, src, size, s->h);
        cudago_ctx_leave(pushed);
        Py_END_ALLOW_THREADS
    }
    return r ? cudago_raise_result("cuMemcpyAsync", r) : 0;
}

/* From pageable memory the driver takes up to so many bytes aside, and returns. Larger copies, and those to pageable
 * memory, block in it until it is their turn, and there it hears no Ctrl-C: so their turn is waited for before. CUDA
 * Driver API, "API synchronization behavior". */
enum { STAGED_BYTES = 64 << 10 };

static int await_turn(BufferObject *b, const OperandObject *o, int from, cudago_stream *s) {
    if (!o->pageable || (from && o->nbytes <= STAGED_BYTES) || cudago_capturing(s)) return 0;
    cudago_stream_retain(s); /* another thread may close the stream or the buffer meanwhile */
    int r = cudago_wait(WAIT_STREAM, s->id);
    if (!r && s->closed) r = cudago_raise_closed("stream");
    cudago_stream_release(s);
    if (!r && !b->cell) r = cudago_raise_closed("buffer");
    return r;
}

/* A copy between a Buffer and anything else. While s captures, both sides are kept by the graph. */
int cudago_copy_operand(PyObject *buffer, PyObject *other, int from, cudago_stream *s) {
    BufferObject *b = (BufferObject *)buffer;
    OperandObject *o = cudago_operand(other, from ? 0 : OPERAND_WRITABLE, from ? "src" : "dst");
    if (!o) return -1;
    int r = -1;
    if (o->nbytes != b->size) {
        cudago_raise_sizes(from, b->size, o->nbytes);
    } else if (await_turn(b, o, from, s)) {
        r = -1;
    } else if (cudago_capturing(s)) {
        OperandObject *mine = cudago_operand(buffer, 0, from ? "dst" : "src");
        if (mine) {
            OperandObject *dst = from ? mine : o, *src = from ? o : mine;
            r = cudago_capture_memcpy(s, dst, src, b->size);
            Py_DECREF(mine);
        }
    } else {
        cudago_cell_used(b->cell, s);
        if (o->cell) cudago_cell_used(o->cell, s);
        r = o->host ? 0 : cudago_order_after(other, s);
        if (!r) r = cudago_memcpy(from ? b->ptr : o->address, from ? o->address : b->ptr, b->size, s, o->pageable);
        if (!r && o->cell && o->cell->kind == CUDAGO_CELL_FOREIGN && !o->host) {
            PyObject *kept = PyList_New(0); /* its library frees in the order of its own streams */
            r = !kept || PyList_Append(kept, (PyObject *)o) ? -1 : cudago_keep_until_done(s, kept);
            Py_XDECREF(kept);
        }
    }
    Py_DECREF(o);
    return r;
}

/* An int that fits 1, 2 or 4 bytes, or bytes of that length. Like the driver's, an int is one byte if it fits. */
int cudago_fill_value(PyObject *value, uint64_t size, uint32_t *out, uint32_t *width) {
    *out = 0;
    if (PyLong_Check(value)) {
        long long v = PyLong_AsLongLong(value);
        if (v == -1 && PyErr_Occurred()) return -1;
        if (v < INT32_MIN || v > UINT32_MAX)
            return PyErr_Format(PyExc_OverflowError, "fill value must fit 4 bytes, got %S", value), -1;
        *width = v >= -128 && v <= 255 ? 1 : v >= -32768 && v <= 65535 ? 2 : 4;
        *out = *width == 1 ? (uint8_t)v : *width == 2 ? (uint16_t)v : (uint32_t)v;
    } else {
        Py_buffer view;
        if (!PyObject_CheckBuffer(value)) {
            PyErr_Format(PyExc_TypeError, "fill value must be an int, or bytes or a NumPy scalar of 1, 2 or 4 bytes, not %R",
                         (PyObject *)Py_TYPE(value));
            return -1;
        }
        if (PyObject_GetBuffer(value, &view, PyBUF_SIMPLE)) return -1;
        Py_ssize_t n = view.len;
        if (n == 1 || n == 2 || n == 4) memcpy(out, view.buf, (size_t)n);
        PyBuffer_Release(&view);
        if (n != 1 && n != 2 && n != 4) {
            PyErr_Format(PyExc_ValueError, "fill value must have 1, 2 or 4 bytes, got %zd", n);
            return -1;
        }
        *width = (uint32_t)n;
    }
    if (size % *width) {
        PyErr_Format(PyExc_ValueError, "a fill value of %u bytes does not divide %llu bytes", *width, (unsigned long long)size);
        return -1;
    }
    return 0;
}

int cudago_fill(PyObject *buffer, uint32_t value, uint32_t width, cudago_stream *s) {
    BufferObject *b = (BufferObject *)buffer;
    if (!b->size) return 0;
    if (cudago_capturing(s)) {
        OperandObject *o = cudago_operand(buffer, 0, "dst");
        if (!o) return -1;
        int r = cudago_capture_memset(s, o, value, width, b->size / width);
        Py_DECREF(o);
        return r;
    }
    cudago_cell_used(b->cell, s);
    cudago_status st = {0};
    uint64_t id = s->id, ptr = b->ptr, count = b->size / width;
    s->launched++;
    Py_BEGIN_ALLOW_THREADS
    cudagoMemset(id, ptr, value, width, count, &st);
    Py_END_ALLOW_THREADS
    return st.kind ? cudago_raise(&st) : 0;
}

/* Makes the stream `then` wait for what is queued on `first`, both numbers of the device. The event is one per device:
 * a wait is for its latest record, and the GIL keeps the pair together. */
int cudago_order_streams(int32_t device, uintptr_t ctx, uintptr_t first, uintptr_t then) {
    static uintptr_t events[CUDAGO_MAX_DEVICES];
    if (first == then) return 0;
    if (!events[device]) {
        cudago_status st = {0};
        events[device] = cudagoEventForGood(device, &st);
        if (st.kind) return cudago_raise(&st);
    }
    int pushed;
    int32_t first_captures = 0, then_captures = 0;
    int32_t r = cudago_ctx_enter(ctx, &pushed);
    if (!r) r = cu.cuStreamIsCapturing(first, &first_captures);
    if (!r) r = cu.cuStreamIsCapturing(then, &then_captures);
    if (!r && !first_captures && !then_captures) {
        r = cu.cuEventRecord(events[device], first);
        if (!r) r = cu.cuStreamWaitEvent(then, events[device], 0);
    }
    cudago_ctx_leave(pushed);
    if (r) return cudago_raise_result("cuStreamWaitEvent", r);
    if (!first_captures && !then_captures) return 0;
    PyErr_SetString(PyExc_BufferError, "the other library's stream and ours cannot be ordered while one is capturing: use one "
                                       "stream for both, or pass stream=-1 and order them yourself");
    return -1;
}

/* Makes s wait for what another library has queued on its current stream: obj is its, and may not be written yet. */
int cudago_order_after(PyObject *obj, cudago_stream *s) {
    intptr_t theirs;
    DLDevice device = {2, s->device}; /* kDLCUDA */
    if (cudago_is(obj, CLS_BUFFER) || cudago_is(obj, CLS_POINTER) || cudago_is_tensor(obj)) return 0;
    if (cudago_foreign_stream(obj, device, &theirs)) return -1;
    return cudago_order_streams(s->device, s->ctx, (uintptr_t)theirs, s->h);
}

/* For exchange with others: makes a consumer's stream wait for the work that is pending on a cell of ours, or the host
 * if consumer is 0. */
int cudago_stream_order(cudago_cell *cell, intptr_t consumer) {
    if (!consumer && !cudago_cell_has_stream(cell)) cudago_host_access(cell->ptr, cell->size);
    if (!cudago_cell_has_stream(cell)) return 0; /* pinned and managed memory: see Notes of PinnedMemoryResource */
    cudago_pool_cell *c = (cudago_pool_cell *)cell;
    if (consumer && (uintptr_t)consumer == c->stream->h && !c->last_stream) return 0;
    if (cudago_capturing(c->stream)) {
        PyErr_SetString(PyExc_BufferError, "the memory's stream is capturing, so its work cannot be waited for; pass "
                                           "stream=-1 to order it yourself");
        return -1;
    }
    if (!consumer) {
        if (c->last_stream && cudago_wait(WAIT_STREAM, c->last_stream)) PyErr_Clear(); /* closed: nothing is pending */
        if (cudago_wait(WAIT_STREAM, c->stream->id)) return -1;
        cudago_host_access(cell->ptr, cell->size);
        return 0;
    }
    cudago_stream *s = c->stream;
    if (s->mark && !c->last_stream) {
        /* The launch budget's mark serves: recorded later than it believes, it proves no less. */
        int pushed;
        int32_t r = cudago_ctx_enter(s->ctx, &pushed);
        if (!r) r = cu.cuEventRecord(s->mark, s->h);
        if (!r) s->marked = s->launched;
        if (!r) r = cu.cuStreamWaitEvent((uintptr_t)consumer, s->mark, 0);
        cudago_ctx_leave(pushed);
        return r ? cudago_raise_result("cuStreamWaitEvent", r) : 0;
    }
    cudago_status st = {0};
    cudagoStreamOrder(c->stream->id, c->last_stream, (uint64_t)consumer, &st);
    return st.kind ? cudago_raise(&st) : 0;
}

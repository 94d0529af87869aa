/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Device memory that another allocator gave, in the order of a stream. The cell holds the object that owns it, which goes
 * when the stream has been made to wait for all uses on others: what that object then does in the stream's order, such as
 * giving the memory back, comes after them. The collector does not see that reference. */
typedef struct {
    cudago_pool_cell pool;
    PyObject *owner;
    cudago_cell *of; /* memory of ours that it is a part of, or NULL: other devices have access to that, or not */
} adopted_cell;

QUIET const cudago_cell *cudago_adopted_of(const cudago_cell *cell) {
    return cell->flags & CUDAGO_CELL_ADOPTED ? ((const adopted_cell *)cell)->of : NULL;
}

static int joined_away(cudago_pool_cell *c, int32_t *r) {
    cudago_leave l = cudago_gil_leave(c->stream);
    int done = cudago_pool_cell_joined(c, r);
    cudago_gil_back(&l, 1);
    cudago_leave_end(&l);
    return done;
}

/* What a reset has taken is not waited for, but its owner goes all the same. */
static int joined_or_later(cudago_pool_cell *c, int32_t *r) {
    if (cudago_stream_lost(c->stream)) return !cudago_resetting(c->stream->device);
    return cudago_pool_cell_may_stick(c) ? joined_away(c, r) : cudago_pool_cell_joined(c, r);
}

static void let_owner_go(void *owner) { Py_DecRef(owner); }

static void release_adopted(cudago_cell *cell) {
    adopted_cell *c = (adopted_cell *)cell;
    int32_t r = 0;
    int gone = cudago_forked || cudago_closed;
    if (!gone && !cudago_stream_lost(c->pool.stream) && cudago_is_late(&c->pool)) return;
    if (!gone && !joined_or_later(&c->pool, &r)) {
        cudago_put_off(cell);
        /* Drain soon: nothing else triggers a retry. */
        if (r) atomic_store_explicit(&cudago_drop_hint, 1, memory_order_relaxed);
        return;
    }
    /* While the stream is there: the owner may free the memory in it. */
    if (!gone) cudago_keep_exception(let_owner_go, c->owner);
    if (c->of && !cudago_forked) cudago_cell_release(c->of);
    cudago_pool_cell_forget(&c->pool);
    free(c);
}

static QUIET cudago_cell *adopt_now(StreamObject *stream, adopted_cell *c, int visible, uint64_t ptr, uint64_t size, PyObject *owner, BufferObject *of) {
    cudago_stream *s = cudago_stream_to_hold(stream);
    if (!s || (of && cudago_cell_now(of->cell, "buffer"))) return NULL;
    cudago_cell_init(&c->pool.cell, CUDAGO_CELL_POOL, release_adopted);
    c->pool.cell.flags |= CUDAGO_CELL_ADOPTED;
    c->owner = NEW_REF(owner);
    if (of) cudago_cell_retain(c->of = of->cell);
    return cudago_pool_cell_fill(&c->pool, stream->device, visible, ptr, size, s);
}

int cudago_adopt_check(int32_t device, uint64_t ptr, uint64_t size) {
    cudago_status st = {0};
    Py_BEGIN_ALLOW_THREADS
    cudagoAdoptCheck(device, ptr, size, &st);
    Py_END_ALLOW_THREADS
    return st.kind ? cudago_raise(&st) : 0;
}

static PyObject *adopt(StreamObject *stream, uint64_t ptr, uint64_t size, PyObject *owner, BufferObject *of) {
    cudago_status st = {0};
    uint32_t generation;
    int visible;
    int32_t device = stream->device;
    if (cudago_making(device, &generation)) return NULL;
    adopted_cell *c = calloc(1, sizeof *c);
    if (!c) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    visible = cudagoHostVisible(device);
    cudagoAdoptCheck(device, ptr, size, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return free(c), cudago_raise(&st), NULL;
    if (cudago_made("buffer", device, generation) || !adopt_now(stream, c, visible, ptr, size, owner, of)) {
        free(c);
        return NULL;
    }
    return cudago_buffer_new(&c->pool.cell, ptr, size, device);
}

/* _buffer_adopt(address, size, stream, owner[, of]) -> Buffer; of: the buffer of ours that has the memory */
PyObject *cudago_buffer_adopt(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 4 && n != 5) return PyErr_SetString(PyExc_TypeError, "_buffer_adopt(address, size, stream, owner[, of])"), NULL;
    if (n == 5 && cudago_expect(args[4], CLS_BUFFER, "of")) return NULL;
    uint64_t ptr, size;
    if (cudago_uint64(args[0], "address", "a CUdeviceptr", &ptr) || cudago_size(args[1], "size in bytes", &size)) return NULL;
    PyObject *keep = NULL;
    StreamObject *stream = cudago_stream_arg(args[2], &keep);
    PyObject *buffer = stream ? adopt(stream, ptr, size, args[3], n == 5 ? (BufferObject *)args[4] : NULL) : NULL;
    Py_XDECREF(keep);
    return buffer;
}

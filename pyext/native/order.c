/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"
#include "tensor.h"

/* Order between streams: before memory is given to another library, and after work of another library on what we are
 * given. */

/* For each device its context, and an event that is recorded in one stream and waited for in another. A wait is for the
 * latest record, and the GIL keeps the pair together, so one is enough. Made before it is needed: cuEventCreate waits while
 * another thread is stuck in a full launch queue. */
static uintptr_t contexts[CUDAGO_MAX_DEVICES], events[CUDAGO_MAX_DEVICES];

int cudago_device_ready(int32_t device, uint32_t *generation) {
    if (cudago_making(device, generation)) return -1;
    if (events[device]) return 0;
    cudago_status st = {0};
    int32_t pageable;
    uintptr_t ctx, event = 0;
    Py_BEGIN_ALLOW_THREADS
    ctx = cudagoDeviceContext(device, &pageable, &st);
    if (!st.kind) event = cudagoEventForGood(device, &st);
    Py_END_ALLOW_THREADS
    if (st.kind) return cudago_raise(&st);
    if (cudago_made("device", device, *generation)) return -1;
    contexts[device] = ctx;
    events[device] = event;
    return 0;
}

/* The reset has taken both away. */
QUIET void cudago_device_forget(int32_t device) { contexts[device] = events[device] = 0; }

uintptr_t cudago_context_of(int32_t device) { return contexts[device]; }

static QUIET int captures(uintptr_t stream, int32_t *r) {
    int32_t status = 0;
    if (!*r) *r = cu.cuStreamIsCapturing(stream, &status);
    return status != 0;
}

static QUIET int refuse_capture(void) {
    PyErr_SetString(PyExc_BufferError, "the other library's stream and ours cannot be ordered while one is capturing: use one "
                                       "stream for both, or pass stream=-1 and order them yourself");
    return -1;
}

QUIET int cudago_order_streams(int32_t device, uintptr_t first, uintptr_t then) {
    if (first == then) return 0;
    int pushed, busy = 0;
    if (!events[device] || cudago_resetting(device)) return cudago_raise_lost("device", device);
    int32_t r = cudago_ctx_enter(contexts[device], &pushed);
    busy = captures(first, &r) || captures(then, &r);
    if (!r && !busy) r = cu.cuEventRecord(events[device], first);
    if (!r && !busy) r = cu.cuStreamWaitEvent(then, events[device], 0);
    cudago_ctx_leave(pushed);
    if (r) return cudago_raise_result("cuStreamWaitEvent", r);
    return busy ? refuse_capture() : 0;
}

/* Somebody else's memory may come before the first use of the device here. */
int cudago_order_foreign(int32_t device, uintptr_t first, uintptr_t then) {
    if (device < 0 || device >= CUDAGO_MAX_DEVICES) return PyErr_SetString(PyExc_BufferError, "no such device"), -1;
    uint32_t generation;
    if (cudago_open() || cudago_device_ready(device, &generation)) return -1;
    return cudago_order_streams(device, first, then);
}

int cudago_theirs(OperandObject *o, int32_t device, uintptr_t *stream) {
    intptr_t theirs;
    DLDevice on = {kDLCUDA, device};
    PyObject *obj = o->object;
    *stream = o->stream;
    if (o->interface || o->host) return 0;
    if (cudago_is(obj, CLS_BUFFER) || cudago_is(obj, CLS_POINTER) || cudago_is_tensor(obj)) return 0;
    if (cudago_foreign_stream(obj, on, &theirs)) return -1;
    *stream = (uintptr_t)theirs;
    return 0;
}

/* --- what is pending on memory of ours ----------------------------------------------------------------------------- */

static QUIET int refuse_own_capture(void) {
    PyErr_SetString(PyExc_BufferError, "a stream that uses the memory is capturing, so its work cannot be waited for; pass "
                                       "stream=-1 to order it yourself");
    return -1;
}

/* Which streams may have work pending on the cell, and up to where? Launches of graphs are not noted one by one: memory
 * that some graph was given waits for all of them. */
typedef struct {
    cudago_clock *clock; /* held */
    uint64_t position;
} pending;

typedef struct {
    size_t n;
    pending *at; /* NULL while there is none */
} pendings;

static QUIET int add(pendings *list, cudago_clock *c, uint64_t position) {
    if (!cudago_pending(c, position)) return 0;
    pending *more = realloc(list->at, (list->n + 1) * sizeof *more);
    if (!more) return -1;
    atomic_fetch_add(&c->refs, 1);
    list->at = more;
    more[list->n++] = (pending){c, position};
    return 0;
}

static QUIET void forget(pendings *list) {
    for (size_t i = 0; i < list->n; i++) cudago_clock_release(list->at[i].clock);
    free(list->at);
}

static QUIET int pending_on(const cudago_cell *cell, pendings *list) {
    int r = 0;
    *list = (pendings){0};
    if (cudago_cell_has_stream(cell)) {
        cudago_pool_cell *c = (cudago_pool_cell *)cell;
        cudago_use *use = cudago_uses_at(&c->uses);
        for (uint32_t i = 0; !r && i < c->uses.n; i++) r = add(list, use[i].clock, use[i].position);
    }
    if (cell->kind == CUDAGO_CELL_GRAPH || cell->flags & CUDAGO_CELL_IN_GRAPH)
        for (cudago_stream *s = cudago_streams; !r && s; s = s->next) r = add(list, s->clock, s->graphs);
    if (!r) return 0;
    forget(list);
    return PyErr_NoMemory(), -1;
}

static int wait_for(pending *p) {
    if (!cudago_pending(p->clock, p->position)) return 0;
    int unmarkable = cudago_unmarkable(p->clock, p->position);
    if (unmarkable) return unmarkable < 0 ? -1 : refuse_own_capture();
    return cudago_wait_position(p->clock->id, p->position);
}

static QUIET int may_wait(cudago_stream *own) {
    int capturing = cudago_capturing(own);
    return capturing > 0 ? refuse_own_capture() : capturing;
}

/* The host waits for all of the memory's own stream, since others may have queued work there through its handle. */
static int order_host(cudago_cell *cell) {
    pendings list;
    int r = 0;
    if (cudago_cell_has_stream(cell)) {
        cudago_stream *own = ((cudago_pool_cell *)cell)->stream;
        if (may_wait(own) || cudago_wait_stream(own)) return -1;
    }
    if (pending_on(cell, &list)) return -1;
    for (size_t i = 0; !r && i < list.n; i++) r = wait_for(&list.at[i]);
    forget(&list);
    if (!r) cudago_host_access(cell->ptr, cell->size);
    return r;
}

/* A wait for work outside a capture would spoil it. */
static QUIET int join_all(const pendings *list, uintptr_t ctx, uintptr_t consumer) {
    if (!list->n) return 0;
    int pushed;
    int32_t code = cudago_ctx_enter(ctx, &pushed);
    int busy = captures(consumer, &code);
    cudago_ctx_leave(pushed);
    if (code) return cudago_raise_result("cuStreamIsCapturing", code);
    if (busy) return refuse_capture();
    for (size_t i = 0; i < list->n; i++) {
        int r = cudago_join_handle(consumer, list->at[i].clock, list->at[i].position);
        if (r == CUDAGO_AGAIN) return refuse_own_capture();
        if (r) return r;
    }
    return 0;
}

static QUIET int order_consumer(cudago_cell *cell, uintptr_t ctx, uintptr_t consumer) {
    cudago_stream *own = cudago_cell_has_stream(cell) ? ((cudago_pool_cell *)cell)->stream : NULL;
    if (own && consumer != own->h) {
        if (may_wait(own)) return -1;
        if (cudago_order_streams(own->device, own->h, consumer)) return -1;
    }
    pendings list;
    if (pending_on(cell, &list)) return -1;
    int r = join_all(&list, ctx, consumer);
    forget(&list);
    return r;
}

static QUIET uintptr_t context_of_cell(const cudago_cell *cell) {
    if (cudago_cell_has_stream(cell)) return ((const cudago_pool_cell *)cell)->stream->ctx;
    return contexts[((const cudago_go_cell *)cell)->device];
}

int cudago_cell_order(cudago_cell *cell, intptr_t consumer) {
    int ours = cudago_cell_has_stream(cell) || cell->kind == CUDAGO_CELL_GRAPH;
    if (cudago_cell_now(cell, "memory")) return -1;
    if (consumer) return ours ? order_consumer(cell, context_of_cell(cell), (uintptr_t)consumer) : 0;
    if (ours) return order_host(cell) ? -1 : cudago_cell_now(cell, "memory"); /* the wait gave the GIL away */
    cudago_host_access(cell->ptr, cell->size); /* pinned and managed memory: see Notes of PinnedMemoryResource */
    return 0;
}

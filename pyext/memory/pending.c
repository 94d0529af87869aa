/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

QUIET void cudago_cell_keep(cudago_cell *cell, cudago_stream *s, uint64_t position) {
    cudago_cell_retain(cell);
    uintptr_t ref = (uintptr_t)cell | CUDAGO_REF_CELL;
    cudago_keep_until(s, position, &ref, 1);
}

/* --- work that is pending on our memory --------------------------------------------------------------------------- */

static QUIET int refuse_own_capture(void) {
    PyErr_SetString(PyExc_BufferError, "a stream that uses the memory is capturing, so its work cannot be waited for; pass "
                                       "stream=-1 to order it yourself");
    return -1;
}

/* Which streams may have work pending on the cell, and up to which position? Launches of graphs are not noted one by
 * one, so memory that a graph was given waits for all of them. */
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

static QUIET int32_t cell_device(const cudago_cell *cell) { return ((const cudago_go_cell *)cell)->device; }

/* Is no work known to use the cell but what is in its own stream? So it is with most. */
static QUIET int used_at_home(const cudago_cell *cell) {
    return cell->kind == CUDAGO_CELL_POOL && !((const cudago_pool_cell *)cell)->uses.n && !(cell->flags & CUDAGO_CELL_IN_GRAPH);
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
    if (cell->kind == CUDAGO_CELL_VARIABLE) /* a kernel uses it without being given it, so anything may be using it */
        for (cudago_stream *s = cudago_streams; !r && s; s = s->next)
            if (s->device == cell_device(cell)) r = add(list, s->clock, atomic_load(&s->clock->queued));
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

/* The host waits for everything on the memory's own stream, since others may have queued work there through its
 * handle, unless it has done so already. A position does not say so: the allocation itself has none. */
static int host_after_own(cudago_pool_cell *c) {
    cudago_stream *own = c->stream;
    uint64_t mark = cudago_stream_mark(own);
    if (may_wait(own)) return -1;
    if ((mark && mark == c->settled) || cudago_stream_done(own, mark, c->awaited)) return 0;
    if (cudago_wait_stream(own)) return -1;
    c->settled = mark;
    return 0;
}

static int order_host(cudago_cell *cell) {
    pendings list;
    int r = 0;
    if (cudago_captured_is(cell, CAPTURED_OPEN)) return refuse_own_capture();
    if (cell->kind == CUDAGO_CELL_GRAPH && cudago_cell_allocated(cell)) return -1; /* there is nothing that it could read */
    if (cudago_cell_has_stream(cell) && host_after_own((cudago_pool_cell *)cell)) return -1;
    if (pending_on(cell, &list)) return -1;
    for (size_t i = 0; !r && i < list.n; i++) r = wait_for(&list.at[i]);
    forget(&list);
    if (!r) cudago_host_access(cell->ptr, cell->size);
    return r;
}

/* A wait for work outside a capture would invalidate the capture. */
static QUIET int may_join(uintptr_t ctx, uintptr_t consumer) {
    uintptr_t pushed;
    int32_t code = cudago_ctx_enter(ctx, &pushed);
    int busy = cudago_is_capturing(consumer, &code);
    cudago_ctx_leave(pushed);
    if (code) return cudago_raise_result("cuStreamIsCapturing", code);
    return busy ? cudago_refuse_capture() : 0;
}

static int join_all(const pendings *list, uintptr_t ctx, uintptr_t consumer) {
    if (list->n && may_join(ctx, consumer)) return -1;
    for (size_t i = 0; i < list->n; i++) {
        int r = cudago_join_handle(consumer, list->at[i].clock, list->at[i].position);
        if (r == CUDAGO_AGAIN) return refuse_own_capture();
        if (r) return r;
    }
    return 0;
}

/* Only of the legacy default stream is it remembered: another's handle may belong to a new stream by now. */
enum { LEGACY = 1 };

static int consumer_after_own(cudago_pool_cell *c, uintptr_t consumer) {
    cudago_stream *own = c->stream;
    uint64_t mark = cudago_stream_mark(own);
    if (consumer == own->h) return 0;
    if (may_wait(own)) return -1;
    if ((mark && consumer == LEGACY && mark == c->ordered) || cudago_stream_done(own, mark, c->awaited)) return 0;
    if (cudago_order(own->device, own->h, consumer)) return -1;
    if (consumer == LEGACY) c->ordered = mark;
    return 0;
}

/* The caller holds the cell, and so its stream. */
static int order_consumer(cudago_cell *cell, uintptr_t ctx, uintptr_t consumer) {
    if (cudago_cell_has_stream(cell) && consumer_after_own((cudago_pool_cell *)cell, consumer)) return -1;
    if (used_at_home(cell)) return 0;
    pendings list;
    if (pending_on(cell, &list)) return -1;
    int r = join_all(&list, ctx, consumer);
    forget(&list);
    return r;
}

static QUIET uintptr_t context_of_cell(const cudago_cell *cell) {
    if (cudago_cell_has_stream(cell)) return ((const cudago_pool_cell *)cell)->stream->ctx;
    return cudago_context_of(((const cudago_go_cell *)cell)->device);
}

int cudago_cell_order(cudago_cell *cell, intptr_t consumer) {
    int ours = cudago_cell_on_device(cell) || cudago_cell_has_stream(cell);
    if (cudago_cell_now(cell, "memory")) return -1;
    if (ours) {
        int r = consumer ? order_consumer(cell, context_of_cell(cell), (uintptr_t)consumer) : order_host(cell);
        return r ? -1 : cudago_cell_now(cell, "memory"); /* both may have released the GIL */
    }
    if (consumer) return 0;
    cudago_host_access(cell->ptr, cell->size); /* pinned and managed memory: see the Notes of PinnedMemoryResource */
    return 0;
}

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

/* Is no work known to use the cell but what is in its own stream? So it is with most. */
static QUIET int used_at_home(const cudago_cell *cell) {
    return !cell->uses.n && !cudago_cell_looked_up(cell) && !(cell->flags & CUDAGO_CELL_IN_GRAPH);
}

static QUIET int pending_on(cudago_cell *cell, pendings *list) {
    int r = 0;
    *list = (pendings){0};
    cell = cudago_cell_for_graphs(cell);
    cudago_use *use = cudago_uses_at(&cell->uses);
    for (uint32_t i = 0; !r && i < cell->uses.n; i++) r = add(list, use[i].clock, use[i].position);
    if (cell->kind == CUDAGO_CELL_GRAPH || cell->flags & CUDAGO_CELL_IN_GRAPH)
        for (cudago_stream *s = cudago_streams; !r && s; s = s->next) r = add(list, s->clock, s->graphs);
    if (cell->kind == CUDAGO_CELL_VARIABLE) /* a kernel uses it without being given it, so anything may be using it */
        for (cudago_stream *s = cudago_streams; !r && s; s = s->next)
            if (s->device == cell->ordinal) r = add(list, s->clock, atomic_load(&s->clock->queued));
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
static QUIET int may_join(int32_t device, uintptr_t consumer) {
    uintptr_t pushed;
    int32_t code = cudago_ctx_enter(cudago_context_of(device), &pushed);
    int busy = cudago_is_capturing(consumer, &code);
    cudago_ctx_leave(pushed);
    if (code) return cudago_raise_result("cuStreamIsCapturing", code);
    return busy ? cudago_refuse_capture() : 0;
}

static int join_all(const pendings *list, int32_t device, uintptr_t consumer) {
    uint32_t generation; /* the memory may be used on the device before it is here */
    if (list->n && (cudago_device_ready(device, &generation) || may_join(device, consumer))) return -1;
    for (size_t i = 0; i < list->n; i++) {
        int r = cudago_join_handle(device, consumer, list->at[i].clock, list->at[i].position);
        if (r == CUDAGO_AGAIN) return refuse_own_capture();
        if (r) return r;
    }
    return 0;
}

/* Only of the legacy default stream is it remembered: another's handle may belong to a new stream by now. */
enum { LEGACY = 1 };

static int consumer_after_own(cudago_pool_cell *c, int32_t device, uintptr_t consumer) {
    cudago_stream *own = c->stream;
    uint64_t mark = cudago_stream_mark(own);
    int across = own->device != device, remembered = consumer == LEGACY && !across;
    if (consumer == own->h && !across) return 0;
    if (may_wait(own)) return -1;
    if ((mark && remembered && mark == c->ordered) || cudago_stream_done(own, mark, c->awaited)) return 0;
    if (across ? cudago_order_across(own->device, own->h, device, consumer) : cudago_order(device, own->h, consumer)) return -1;
    if (remembered) c->ordered = mark;
    return 0;
}

/* The caller holds the cell, and so its stream. */
static int order_consumer(cudago_cell *cell, int32_t device, uintptr_t consumer) {
    if (cudago_cell_has_stream(cell) && consumer_after_own((cudago_pool_cell *)cell, device, consumer)) return -1;
    if (used_at_home(cell)) return 0;
    pendings list;
    if (pending_on(cell, &list)) return -1;
    int r = join_all(&list, device, consumer);
    forget(&list);
    return r;
}

/* The device of a consumer who names none: that of memory which is of one, as DLPack has it; or what its stream says. */
static QUIET int32_t consumer_device(const cudago_cell *cell, int32_t device, uintptr_t consumer) {
    if (device >= 0) return device;
    if (cudago_cell_on_device(cell) || (cell->kind == CUDAGO_CELL_FOREIGN && cell->device_type == kDLCUDA)) return cell->ordinal;
    return cudagoConsumerDevice(consumer);
}

int cudago_cell_order(cudago_cell *cell, int32_t device, intptr_t consumer) {
    if (cudago_cell_now(cell, "memory")) return -1;
    int idle = !cudago_cell_has_stream(cell) && used_at_home(cell);
    if (idle && consumer) return 0;
    if (consumer) device = consumer_device(cell, device, (uintptr_t)consumer);
    int r = consumer && device >= 0 ? order_consumer(cell, device, (uintptr_t)consumer) : order_host(cell);
    return r ? -1 : cudago_cell_now(cell, "memory"); /* both may have released the GIL */
}

void cudago_cell_viewed(const cudago_cell *cell) { cudago_host_access(cell->ptr, cell->size); }

/* --- uses in streams of other devices ------------------------------------------------------------------------------- */

/* For each device whose reset destroys memory, a bit for each other device that was given some to use, if only in a graph. Never
 * cleared. Guarded by the GIL. */
static uint32_t used_from[CUDAGO_MAX_DEVICES];

QUIET void cudago_is_used_from(int32_t home, int32_t device) { used_from[home] |= 1u << device; }

QUIET int cudago_cell_reserve_next(cudago_cell *cell, cudago_stream *s) {
    int32_t home = cudago_cell_home(cell);
    if (cell->kind == CUDAGO_CELL_GRAPH && cudago_graph_memory_reserve(cell)) return -1;
    if (cudago_uses_reserve(&cudago_cell_for_graphs(cell)->uses, s)) {
        if (cell->kind == CUDAGO_CELL_GRAPH) cudago_graph_memory_note(cell);
        return -1;
    }
    if (home >= 0 && home != s->device) cudago_is_used_from(home, s->device);
    return 0;
}

int cudago_wait_for_far_uses(int32_t device) {
    pendings list = {0};
    int r = 0;
    for (cudago_stream *s = cudago_streams; !r && s; s = s->next)
        if (s->device != device && used_from[device] >> s->device & 1 && !cudago_stream_lost(s)) r = add(&list, s->clock, atomic_load(&s->clock->queued));
    if (r) PyErr_NoMemory();
    for (size_t i = 0; !r && i < list.n; i++) r = wait_for(&list.at[i]);
    forget(&list);
    return r ? -1 : 0;
}

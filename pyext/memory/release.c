/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* How memory is given back: by the last holder's release of its cell, with the GIL. */

static cudago_cell *put_off; /* waits for a capture or a reset to end; guarded by the GIL */

QUIET void cudago_put_off(cudago_cell *cell) {
    cell->next = put_off;
    put_off = cell;
}

/* Makes the memory's own stream wait for its uses on others. 0 if the memory cannot be given back now: a free in a
 * stream that is capturing would become a node of its graph, and a use in a stream that is capturing cannot be waited
 * for. If a failed call is the reason, *r is its code. */
QUIET int cudago_pool_cell_joined(cudago_pool_cell *c, int32_t *r) {
    if (cudago_capture_open(c->stream, r) || *r) return 0;
    cudago_use *use = cudago_uses_at(&c->cell.uses);
    for (uint32_t i = 0; i < c->cell.uses.n; i++)
        if (cudago_join_or_later(c->stream, use[i].clock, use[i].position, r)) return 0;
    return 1;
}

/* Stream-ordered memory is freed on the stream it was allocated on. A free can happen while somebody captures, even in
 * this thread: switching to the relaxed mode keeps it from invalidating that capture. 0 if it must be tried later. A
 * free that failed must not be: the driver may have made it and reported an earlier error. */
static QUIET int free_now(cudago_pool_cell *c, int32_t *r) {
    CUstreamCaptureMode mode;
    uintptr_t pushed;
    if (!cudago_pool_cell_joined(c, r)) return 0;
    /* The per-thread stream is a different one in each thread, and a release may run in any thread; the legacy stream
     * waits for them all. */
    uintptr_t stream = c->stream->h == CU_STREAM_PER_THREAD ? CU_STREAM_LEGACY : c->stream->h;
    int32_t strict = cudago_relax(&mode);
    /* Without the GIL another thread may make the stream join a capture, for which it takes Go's lock: see record.c. */
    int locked = cudago_record_begins(), joins = locked && (cudago_capture_open(c->stream, r) || *r);
    if (!joins) *r = cudago_ctx_enter(c->stream->ctx, &pushed);
    int done = !joins && (!*r || cudago_result_persists(*r));
    if (done && !*r) *r = cu.cuMemFreeAsync(c->cell.ptr, stream);
    if (!joins) cudago_ctx_leave(pushed);
    cudago_record_ends(locked);
    cudago_relax_end(strict, &mode);
    return done;
}

QUIET void cudago_pool_cell_forget(cudago_pool_cell *c) {
    if (c->listed) cudago_large_remove(c);
    if (!cudago_forked) cudago_uses_free(&c->cell.uses);
    if (!cudago_forked) cudago_stream_release(c->stream);
    if (c->held && !cudago_forked) cudago_pool_let_go(c->held);
    if (c->cell.flags & CUDAGO_CELL_POOLED) cudago_host_allocations[c->home]--;
}

/* Cells that have ended are kept for new ones: malloc and free cost more than all else that is done for a cell. With
 * AddressSanitizer none are, so that it sees their end. */
#ifdef __SANITIZE_ADDRESS__
enum { MOST_SPARE = 0 };
#else
enum { MOST_SPARE = 64 };
#endif
static cudago_cell *spare;
static int n_spare;

QUIET cudago_pool_cell *cudago_pool_cell_new(void) {
    cudago_pool_cell *c = (cudago_pool_cell *)spare;
    if (c) spare = spare->next, n_spare--;
    else c = malloc(sizeof *c);
    if (!c) return NULL;
    /* Not what cudago_cell_init and cudago_pool_cell_fill set, nor the room for uses: gcc has an instruction for long zeroing whose
     * start takes longer than all of this. */
    c->cell.host = 0;
    c->stream = NULL;
    memset(&c->resource, 0, sizeof *c - offsetof(cudago_pool_cell, resource));
    return c;
}
QUIET void cudago_pool_cell_free(cudago_pool_cell *c) {
    if (n_spare == MOST_SPARE) {
        free(c);
        return;
    }
    c->cell.next = spare;
    spare = &c->cell;
    n_spare++;
}

/* Nobody else knows the cell any more, so the GIL can be released; no capture of its stream begins meanwhile. */
static int free_away(cudago_pool_cell *c, int32_t *r) {
    cudago_leave l = cudago_gil_leave(c->stream);
    int done = free_now(c, r);
    cudago_gil_back(&l, 1);
    cudago_leave_end(&l);
    return done;
}

/* What a reset or the end of the process has taken is not given back. */
static QUIET int is_gone(const cudago_pool_cell *c) {
    return !c->cell.ptr || cudago_forked || cudago_closed ||
           (cudago_stream_lost(c->stream) && !cudago_resetting(c->stream->device));
}
/* May a call of the release wait for a thread that waits for a callback? See cudago_step_aside. Without a thread of ours
 * in the driver only one of another library can be stuck: a free waits for it in a stream that both have, a join in any. */
QUIET int cudago_pool_cell_may_stick(cudago_pool_cell *c) {
    if (!cudago_callbacks_alive) return 0;
    return cudago_exclusive || cudago_queues_busy() || c->stream->foreign || c->stream->clock->exposed || cudago_far_use(c);
}
static int free_or_later(cudago_pool_cell *c, int32_t *r) {
    if (cudago_resetting(c->stream->device)) return 0; /* the reset may fail */
    c->stream->freed = 1;
    if (c->held) cudago_pool_freed_on(c->held, c->stream->id);
    if (c->held && c->held->gives_back) c->stream->gives_back = 1;
    return cudago_pool_cell_may_stick(c) ? free_away(c, r) : free_now(c, r);
}

/* Another process has imported the memory: it must free it first. Nothing tells when it has, so each drain asks. */
static QUIET int is_lent(const cudago_pool_cell *c) {
    if (!(c->cell.flags & CUDAGO_CELL_EXPORTED) || cudagoMayFree(c->resource, c->cell.ptr)) return 0;
    atomic_store_explicit(&cudago_drop_hint, 1, memory_order_relaxed);
    return 1;
}
void cudago_release_pool(cudago_cell *cell) {
    cudago_pool_cell *c = (cudago_pool_cell *)cell;
    int32_t r = 0;
    if (!is_gone(c) && is_lent(c)) {
        cudago_put_off(cell);
        return;
    }
    if (!is_gone(c) && cudago_is_late(c)) return;
    if (!is_gone(c) && !free_or_later(c, &r)) {
        cudago_put_off(cell);
        /* Drain soon: nothing else triggers a retry. */
        if (r) atomic_store_explicit(&cudago_drop_hint, 1, memory_order_relaxed);
        return;
    }
    if (r) cudago_warn_result("cuMemFreeAsync", r);
    cudago_pool_cell_forget(c);
    cudago_pool_cell_free(c);
}

/* Has Go release what it owns after the uses of the cell, and after what is in a stream now unless that is 0. */
static void release_after(cudago_cell *cell, uint64_t id, uint64_t stream, cudago_releaser *go) {
    cudago_use *use = cudago_uses_at(&cell->uses);
    uint32_t n = cell->uses.n;
    uint64_t ids[n + 1], positions[n + 1];
    for (uint32_t i = 0; i < n; i++) ids[i] = use[i].clock->id, positions[i] = use[i].position;
    go(id, stream, ids, positions, (int)n);
}

/* Unmapping is not stream-ordered, so Go waits for the uses and for everything that is in its own stream now. */
void cudago_idle_release(cudago_virtual_cell *c, cudago_releaser *go) {
    if (!cudago_forked && c->id) release_after(&c->pool.cell, c->id, c->pool.stream->id, go);
    cudago_pool_cell_forget(&c->pool);
    free(c);
}
void cudago_virtual_cell_release(cudago_cell *cell) { cudago_idle_release((cudago_virtual_cell *)cell, cudagoVirtualRelease); }
void cudago_release_virtual(cudago_cell *cell) {
    cudago_tally_add(TALLY_VIRTUAL, -1, -(int64_t)cell->size);
    cudago_virtual_cell_release(cell);
}

/* With the GIL. Our captures begin under it, so none can begin between the check and the free. */
void cudago_free_put_off(void) {
    cudago_cell *cell = put_off, *next;
    put_off = NULL;
    for (; cell; cell = next) {
        next = cell->next;
        cell->release(cell);
    }
}

/* What belongs to no stream. The driver itself waits where it frees pinned memory, but for one device alone. */
void cudago_go_cell_release(cudago_go_cell *c, cudago_releaser *go) {
    if (!cudago_forked) {
        release_after(&c->cell, c->id, 0, go);
        cudago_uses_free(&c->cell.uses);
    }
    free(c);
}

/* Memory that Go releases: pinned, managed. */
void cudago_release_go(cudago_cell *cell) {
    cudago_go_cell *c = (cudago_go_cell *)cell;
    cudago_tally_add(cell->kind == CUDAGO_CELL_MANAGED ? TALLY_MANAGED : TALLY_PINNED, -1, -(int64_t)cell->size);
    cudago_host_allocations[c->device]--;
    cudago_go_cell_release(c, cudagoHostRelease);
}

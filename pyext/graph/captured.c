/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Memory that is allocated on a stream that is capturing: a node of the graph allocates it, and a node frees it if the
 * user lets go while the capture is open. See cudago_captured_cell. */

QUIET void cudago_graph_cell(cudago_go_cell *c, uint64_t id, int32_t device, uint64_t ptr, uint64_t size, int visible) {
    c->id = id;
    c->device = device;
    c->cell.class = cudago_exports_class(device);
    c->cell.device_type = kDLCUDA;
    c->cell.device_id = c->cell.ordinal = device;
    c->cell.ptr = ptr;
    c->cell.size = size;
    if (visible) cudago_cell_show(&c->cell, device);
}

/* The cell that graphs keep. */
static void release_kept(cudago_cell *cell) {
    cudago_captured_cell *c = (cudago_captured_cell *)cell;
    cudago_go_cell_release(&c->go, cudagoGraphMemoryReleaseAfter);
}

/* While callbacks are alive without the GIL: a free may wait for another thread's full launch queue. */
static void free_away(cudago_captured_cell *c) {
    PyThreadState *t = cudago_step_aside();
    cudagoCaptureFreeLast(c->go.id, c->closed_at);
    cudago_step_back(t);
}

/* The user's cell. If another thread ends the capture meanwhile, the launches of its graph leave the memory allocated. */
static void release_users(cudago_cell *cell) {
    cudago_captured_cell *c = (cudago_captured_cell *)cell;
    if (!cudago_forked && !cudago_closed && !cudago_cell_lost(cell) && cudago_captured_is(cell, CAPTURED_OPEN)) free_away(c);
    if (!cudago_forked) cudago_stream_release(c->stream);
    cudago_cell_release_gil(c->kept);
    free(c);
}

static QUIET void fill_in(cudago_captured_cell *c, const _Atomic int32_t *state, const ResourceObject *by, uint64_t id, uint64_t ptr, uint64_t size) {
    cudago_graph_cell(&c->go, id, by->device, ptr, size, by->host_visible);
    c->go.peers = UINT32_MAX; /* those of the pool, which may have changed */
    c->go.cell.flags |= CUDAGO_CELL_CAPTURED;
    c->state = state;
}

/* With the GIL: an allocation waits for nobody. */
QUIET cudago_cell *cudago_capture_allocate(ResourceObject *self, uint64_t size, cudago_stream *s, int32_t *others) {
    cudago_captured_cell *users = calloc(1, sizeof *users), *kept = calloc(1, sizeof *kept);
    _Atomic int32_t *state = calloc(1, sizeof *state); /* Go's, once it has made the allocation */
    cudago_status st = {0};
    uint64_t ptr = 0, id = 0;
    if (users && kept && state) id = cudagoCaptureAlloc(s->id, self->id, size, (int32_t *)state, &ptr, others, &st);
    if (!id) {
        free(users);
        free(kept);
        free(state);
        if (*others) return NULL;
        return st.kind ? (cudago_raise(&st), NULL) : (cudago_cell *)PyErr_NoMemory();
    }
    cudago_cell_init(&kept->go.cell, CUDAGO_CELL_GRAPH, release_kept);
    cudago_cell_init(&users->go.cell, CUDAGO_CELL_GRAPH, release_users);
    fill_in(kept, state, self, id, ptr, size);
    fill_in(users, state, self, id, ptr, size);
    users->kept = &kept->go.cell;
    users->stream = s;
    cudago_stream_retain(s);
    return &users->go.cell;
}

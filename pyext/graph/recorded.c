/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* Launches and copies into an open capture that C records. As added.c does for graphs that are built node by node, C makes the
 * driver's call and writes down what it has added, which Go reads once the capture has ended. If that is all there is, the
 * graph is then like one that C has built. */

cudago_recorded *cudago_recorded_new(void) { return calloc(1, sizeof(cudago_recorded)); }
QUIET void cudago_recorded_free(cudago_recorded *r) {
    if (!r) return;
    free(r->nodes.handles);
    free(r->nodes.added);
    free(r->nodes.uses);
    free(r);
}

int cudago_recorded_stop(cudago_recorded *r) {
    int32_t none = RECORDED_NOBODY;
    if (!atomic_compare_exchange_strong(&r->turn, &none, RECORDED_GO)) return 0;
    atomic_store(&r->last, NULL);
    return 1;
}
void cudago_recorded_resume(cudago_recorded *r) {
    atomic_store(&r->turn, RECORDED_NOBODY);
}

static QUIET void over(cudago_recorded *r) { atomic_store_explicit(&r->turn, RECORDED_NOBODY, memory_order_release); }

/* Takes C's turn, with room for one more call; 0: it is Go's. */
static QUIET int begin(cudago_recorded *r, int n_refs) {
    int32_t none = RECORDED_NOBODY;
    if (!atomic_compare_exchange_strong(&r->turn, &none, RECORDED_C)) return 0;
    if (!cudago_nodes_reserve(&r->nodes, (size_t)n_refs)) return 1;
    over(r);
    return 0;
}

/* The node that the call before has added to the capture, or 0: a captured operation is all that the stream waits for. */
static QUIET CUgraphNode added_to(uintptr_t stream) {
    CUstreamCaptureStatus status = 0;
    unsigned long long id = 0;
    CUgraph graph = 0;
    CUgraphNode room = 0, *nodes = &room; /* see cudagoRawStreamGetCaptureInfo */
    CUgraphEdgeData *edges = NULL;
    size_t n = 0;
    if (cu.cuStreamGetCaptureInfo(stream, &status, &id, &graph, &nodes, &edges, &n)) return 0;
    return n == 1 ? nodes[0] : 0;
}

QUIET PyObject *cudago_recorded_last(cudago_stream *s) {
    cudago_recorded *r = s->recorded;
    PyObject *last = r ? atomic_load(&r->last) : NULL;
    return last ? NEW_REF(last) : NULL; /* Go drops it with the GIL, and took it out before */
}

QUIET int cudago_records_here(const cudago_stream *s, const cudago_ref *refs, int n) {
    return s->recorded && !cudago_uses_capture(refs, n) && begin(s->recorded, n);
}

/* What the new node waits for, if nobody else records in the capture. */
static QUIET int32_t latest(const cudago_recorded *r) { return (int32_t)r->nodes.n - 1; }

/* A launch: its record keeps the configuration. */
static QUIET void note_launch(cudago_recorded *r, CUgraphNode node, const cudago_packing *p, const cudago_ref *refs, int n) {
    cudago_nodes_note(&r->nodes, node, latest(r), p->k, (const ConfigObject *)PyTuple_GetItem(p->record, 1), refs, n);
    atomic_store_explicit(&r->last, p->record, memory_order_release);
}

/* Into the capture, so that it waits for no queue. */
static QUIET int32_t call_launch(const cudago_stream *s, CUlaunchConfig *config, const cudago_packing *p, CUgraphNode *node) {
    uintptr_t pushed;
    int32_t code = cudago_ctx_enter(s->ctx, &pushed);
    if (!code) code = cu.cuLaunchKernelEx(config, p->k->f, (void **)p->params, NULL);
    if (!code) *node = added_to(s->h);
    cudago_ctx_leave(pushed);
    return code;
}

static int launch_refused(const cudago_packing *p, ConfigObject *c, cudago_ref *refs, int n, int32_t code) {
    cudago_shape shape = cudago_shape_of(c);
    cudago_refs_drop(refs, n);
    return cudago_launch_error("cuLaunchKernelEx", p->kernel, p->k, &shape, code);
}

QUIET int cudago_record_launch(cudago_stream *s, CUlaunchConfig *config, ConfigObject *c, const cudago_packing *p, cudago_ref *refs,
                               int n) {
    cudago_recorded *r = s->recorded;
    CUgraphNode node = 0;
    int32_t code = call_launch(s, config, p, &node);
    if (!code) note_launch(r, node, p, refs, n);
    over(r);
    return code ? launch_refused(p, c, refs, n, code) : 0;
}

static QUIET int32_t call_copy(const cudago_stream *s, uint64_t dst, uint64_t src, uint64_t size, CUgraphNode *node) {
    uintptr_t pushed;
    int32_t code = cudago_ctx_enter(s->ctx, &pushed);
    if (!code) code = cu.cuMemcpyAsync(dst, src, size, s->h);
    if (!code) *node = added_to(s->h);
    cudago_ctx_leave(pushed);
    return code;
}

static int copy_refused(const cudago_stream *s, uint64_t size, cudago_ref *refs, int32_t code) {
    char text[32];
    cudago_refs_drop(refs, 2);
    snprintf(text, sizeof text, "%llu bytes", (unsigned long long)size);
    return cudago_raise_update("cuMemcpyAsync", code, s->device, text);
}

QUIET int cudago_record_memcpy(cudago_stream *s, uint64_t dst, uint64_t src, uint64_t size, cudago_ref *refs) {
    cudago_recorded *r = s->recorded;
    CUgraphNode node = 0;
    int32_t code = call_copy(s, dst, src, size, &node);
    if (!code) {
        cudago_nodes_note(&r->nodes, node, latest(r), NULL, NULL, refs, 2);
        r->nodes.added[r->nodes.n_added - 1].unified = 1;
    }
    over(r);
    return code ? copy_refused(s, size, refs, code) : 0;
}

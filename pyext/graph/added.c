/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Kernels and copies that C adds to graphs. Going through Go would cost more than the driver call: so C makes the call, and
 * writes down for Go what it has added. What a node uses is held from before the call: its refs are counted, and are the
 * graph's from then on, wherever they are written down; a kernel's record is the last of them (cudago_refs_of). The
 * collector sees them at once. */

static QUIET int has_room(void **list, size_t *cap, size_t need, size_t item) {
    if (need <= *cap) return 1;
    size_t more = *cap < 8 ? 8 : 2 * *cap;
    if (more < need) more = need;
    void *bigger = realloc(*list, more * item);
    if (!bigger) return 0;
    *list = bigger;
    *cap = more;
    return 1;
}

QUIET int cudago_nodes_reserve(cudago_nodes *s, size_t n_uses) {
    int has = has_room((void **)&s->handles, &s->cap, s->n + 1, sizeof *s->handles) &&
              has_room((void **)&s->added, &s->cap_added, s->n_added + 1, sizeof *s->added) &&
              has_room((void **)&s->uses, &s->cap_uses, s->n_uses + n_uses, sizeof *s->uses);
    return has ? 0 : -1;
}

cudago_nodes *cudago_nodes_new(void) { return calloc(1, sizeof(cudago_nodes)); }
cudago_nodes *cudago_nodes_move(cudago_nodes *from) {
    cudago_nodes *to = malloc(sizeof *to);
    if (!to) return NULL;
    *to = *from;
    *from = (cudago_nodes){0};
    return to;
}
void cudago_nodes_free(cudago_nodes *s) {
    if (!s) return;
    free(s->handles);
    free(s->added);
    free(s->uses);
    free(s);
}
/* A held list that cannot grow hides the object from the collector, which at worst leaks a cycle. */
static QUIET void enter(cudago_held *h, PyObject *object) {
    if (h->n < h->cap || !cudago_held_grow(h)) h->v[h->n++] = object;
}
QUIET void cudago_nodes_show(cudago_nodes *s, cudago_held *h) {
    if (!s || !h || s->n_shown == s->n_uses) return;
    h->changed = 1;
    while (s->n_shown < s->n_uses) enter(h, s->uses[s->n_shown++]);
}
int cudago_nodes_traverse(cudago_nodes *s, visitproc visit, void *arg) {
    if (!s || cudago_unusable) return 0; /* at exit Go has freed it */
    for (size_t i = s->n_shown; i < s->n_uses; i++) Py_VISIT(s->uses[i]);
    return 0;
}
QUIET void cudago_nodes_taken(cudago_nodes *s, cudago_held *h) {
    cudago_nodes_show(s, h);
    s->n_added = s->n_uses = s->n_shown = 0;
    if (s->cap_added <= 64) return; /* the room that is kept for the next */
    free(s->added);
    free(s->uses);
    s->added = NULL;
    s->uses = NULL;
    s->cap_added = s->cap_uses = 0;
}

QUIET int cudago_has_attributes(const ConfigObject *c) { return c->cluster[0] || c->cooperative || c->has_priority || c->programmatic; }

/* Only an open capture may use what it allocates: Go knows the captures. */
QUIET int cudago_uses_capture(const cudago_ref *refs, int n) {
    for (int i = 0; i < n; i++)
        if (refs[i].memory) return 1;
    return 0;
}

/* Is there a node for which the new one can wait? The errors are Go's. */
static QUIET int knows(const cudago_nodes *s, const cudago_place *p) {
    if (!p->n) return 1;
    uint64_t index = (uint32_t)p->v[0];
    return p->n == 1 && p->v[0] >> 32 == s->id && index < s->n && index <= INT32_MAX && s->handles[index];
}

QUIET int cudago_can_add(const GraphObject *g, const cudago_place *p, const cudago_ref *refs, int n, const ConfigObject *c) {
    cudago_nodes *s = g->nodes;
    if (!s || s->through_go || p->name_len || (c && cudago_has_attributes(c)) || !knows(s, p) || cudago_uses_capture(refs, n)) return 0;
    return !cudago_nodes_reserve(s, (size_t)n);
}

QUIET CUDA_KERNEL_NODE_PARAMS cudago_node_params(const cudago_kernel *k, void **params, const ConfigObject *c) {
    return (CUDA_KERNEL_NODE_PARAMS){.Func = k->f,
                                     .GridDimX = c->grid[0],
                                     .GridDimY = c->grid[1],
                                     .GridDimZ = c->grid[2],
                                     .BlockDimX = c->block[0],
                                     .BlockDimY = c->block[1],
                                     .BlockDimZ = c->block[2],
                                     .SharedMemBytes = c->shared_memory,
                                     .KernelParams = (uintptr_t)params};
}

QUIET PyObject *cudago_last_record(const GraphObject *g) {
    const cudago_nodes *s = g->nodes;
    return s && s->n_added && s->added[s->n_added - 1].config ? NEW_REF(s->uses[s->n_uses - 1]) : NULL;
}

/* What the new node waits for, as the driver is told: at is where that is put. */
static QUIET CUgraphNode *before(const GraphObject *g, const cudago_place *p, CUgraphNode *at) {
    if (!p->n) return NULL;
    *at = g->nodes->handles[(uint32_t)p->v[0]];
    return at;
}

static PyObject *kernel_refused(const cudago_packing *l, cudago_ref *refs, int n, const ConfigObject *c, int32_t code) {
    cudago_shape shape = cudago_shape_of(c);
    cudago_refs_drop(refs, n);
    return cudago_launch_error("cuGraphAddKernelNode", l->kernel, l->k, &shape, code), NULL;
}

static uint64_t copy_refused(const GraphObject *g, const OperandObject *dst, const OperandObject *src, cudago_ref *refs, int32_t code) {
    char text[80];
    cudago_copy_text(text, sizeof text, dst, src);
    cudago_refs_drop(refs, 2);
    return cudago_raise_update("cuGraphAddMemcpyNode", code, g->device, text), 0;
}

QUIET void cudago_held_show(cudago_held *h, const cudago_ref *refs, int n) {
    h->changed = 1;
    for (int i = 0; i < n; i++) enter(h, (PyObject *)refs[i].object);
}

static QUIET int32_t place_of(const cudago_place *p) { return p->n ? (int32_t)p->v[0] : -1; }

QUIET uint64_t cudago_nodes_note(cudago_nodes *s, CUgraphNode node, int32_t after, const cudago_kernel *k, const ConfigObject *c,
                                 const cudago_ref *refs, int n) {
    s->added[s->n_added++] = (cudago_added){.config = c, .k = k, .after = after, .n_uses = n, .site = cudago_site()};
    for (int i = 0; i < n; i++) s->uses[s->n_uses++] = (PyObject *)refs[i].object;
    s->handles[s->n] = node;
    return s->id << 32 | s->n++;
}

QUIET PyObject *cudago_add_kernel(NodeObject *self, const cudago_place *p, const cudago_packing *l, cudago_ref *refs, int n,
                                  const ConfigObject *c) {
    GraphObject *g = (GraphObject *)self->graph;
    CUDA_KERNEL_NODE_PARAMS what = cudago_node_params(l->k, (void **)l->params, c);
    CUgraphNode node = 0, at;
    uintptr_t pushed;
    int32_t r = cudago_ctx_enter(g->ctx, &pushed);
    if (!r) r = cu.cuGraphAddKernelNode(&node, g->nodes->h, before(g, p, &at), (size_t)p->n, &what);
    cudago_ctx_leave(pushed);
    if (r) return kernel_refused(l, refs, n, c, r);
    cudago_node_number(self, cudago_nodes_note(g->nodes, node, place_of(p), l->k, c, refs, n));
    cudago_slots_note(&g->slots, p->note, self->number);
    return NEW_REF(self);
}

QUIET uint64_t cudago_add_memcpy(GraphObject *g, const cudago_place *p, const OperandObject *dst, const OperandObject *src,
                                 cudago_ref *refs) {
    CUDA_MEMCPY3D what = cudago_memcpy_params(dst->address, dst->host, src->address, src->host, dst->nbytes);
    CUgraphNode node = 0, at;
    uintptr_t pushed;
    int32_t r = cudago_ctx_enter(g->ctx, &pushed);
    if (!r) r = cu.cuGraphAddMemcpyNode(&node, g->nodes->h, before(g, p, &at), (size_t)p->n, &what, g->ctx);
    cudago_ctx_leave(pushed);
    if (r) return copy_refused(g, dst, src, refs, r);
    uint64_t number = cudago_nodes_note(g->nodes, node, place_of(p), NULL, NULL, refs, 2);
    cudago_slots_note(&g->slots, p->note, number);
    return number;
}

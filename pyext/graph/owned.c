/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Nodes of executables that C updates. Go's part of an update costs many times the driver call. So the first update has Go
 * leave the node to C, with counts of C's own of what the node uses; further ones stay here. Go takes its nodes back
 * before it does anything else with the executable (owned.go).
 *
 * What an update replaces is dropped once no launch of the executable is in flight: at once, or by Go, which knows how to
 * wait for launches. */

QUIET cudago_owned *cudago_owned_find(cudago_exec *x, uint64_t node) {
    for (int i = 0; i < x->n_owned; i++)
        if (x->owned[i].node == node) return &x->owned[i];
    return NULL;
}

/* NULL: it is Go's affair. A node that was removed from its graph cannot be updated. */
QUIET cudago_owned *cudago_owned_of(cudago_exec *x, uint64_t node) {
    if (x->of->removals) return NULL;
    cudago_owned *w = cudago_owned_find(x, node);
    if (w || x->n_owned == CUDAGO_MAX_OWNED) return w;
    if (!x->owned && !(x->owned = calloc(CUDAGO_MAX_OWNED, sizeof *x->owned))) return NULL;
    w = &x->owned[x->n_owned];
    if (!cudagoExecOwn(x->id, node, w)) return NULL;
    x->n_owned++;
    return w;
}

static QUIET void hide(cudago_held *h, uintptr_t object) {
    for (size_t i = h->n; i > 0; i--)
        if ((uintptr_t)h->v[i - 1] == object) {
            h->v[i - 1] = h->v[--h->n];
            return;
        }
}

void cudago_gone_drop(cudago_gone *gone) {
    cudago_refs_drop(gone->refs ? gone->refs : gone->few, gone->n);
    free(gone->refs);
}

/* What is gone is hidden from the collector: while launches may use it, nobody may clear it. */
static QUIET void let_go(ExecObject *self, cudago_gone *gone) {
    cudago_ref *refs = gone->refs ? gone->refs : gone->few;
    for (int i = 0; i < gone->n; i++) hide(self->held, refs[i].object);
    if (!cudago_uses_pending(&self->x->uses)) return;
    cudagoExecRetire(self->x->id, refs, gone->n);
    gone->n = 0;
}

/* --- copies ------------------------------------------------------------------------------------------------------------- */

QUIET int cudago_owned_takes_sides(const cudago_owned *w, OperandObject *const *o) {
    for (int i = 0; i < 2; i++)
        if (o[i] && (o[i]->nbytes != w->size || (o[i]->cell && o[i]->cell->flags & CUDAGO_CELL_CAPTURED))) return 0;
    return !w->is_kernel;
}

/* A side that was not made as host memory stays unified: see cudagoUpdateMemcpy. */
static QUIET void set_sides(cudago_owned *w, OperandObject *const *o) {
    if (o[0]) w->dst = o[0]->address, w->dst_host = w->dst_host && o[0]->host;
    if (o[1]) w->src = o[1]->address, w->src_host = w->src_host && o[1]->host;
}

static QUIET int32_t call_memcpy(const cudago_exec *x, const cudago_owned *w) {
    CUDA_MEMCPY3D p = {.SrcPitch = w->size, .DstPitch = w->size, .SrcHeight = 1, .DstHeight = 1, .WidthInBytes = w->size, .Height = 1, .Depth = 1};
    p.SrcMemoryType = w->src_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
    p.DstMemoryType = w->dst_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
    if (w->src_host) p.SrcHost = (uintptr_t)w->src;
    else p.SrcDevice = w->src;
    if (w->dst_host) p.DstHost = (uintptr_t)w->dst;
    else p.DstDevice = w->dst;
    int pushed;
    int32_t r = cudago_ctx_enter(x->ctx, &pushed);
    if (!r) r = cu.cuGraphExecMemcpyNodeSetParams(x->h, w->def, &p, x->ctx);
    cudago_ctx_leave(pushed);
    return r;
}

/* Puts a new ref in the place of the one with its role, which is then gone. There is one: a copy with a side that is not
 * retained is not left to C. */
static QUIET void exchange(ExecObject *self, cudago_owned *w, const cudago_ref *ref, cudago_gone *gone) {
    for (int i = 0; i < w->n; i++) {
        if (w->refs[i].role != ref->role) continue;
        gone->few[gone->n++] = w->refs[i];
        w->refs[i] = *ref;
        cudago_held_show(self->held, ref, 1);
        return;
    }
}

/* The CUresult. */
QUIET int32_t cudago_owned_memcpy(ExecObject *self, cudago_owned *w, OperandObject *const *o, cudago_gone *gone) {
    cudago_owned now = *w;
    cudago_ref refs[2];
    int n = 0;
    for (int i = 0; i < 2; i++)
        if (o[i]) cudago_ref_set(&refs[n++], (PyObject *)o[i], o[i]->nbytes, i ? ROLE_SRC : ROLE_DST, REASON_MEMCPY);
    set_sides(&now, o);
    int32_t r = call_memcpy(self->x, &now);
    if (r) {
        memcpy(gone->few, refs, sizeof refs);
        gone->n = n;
        return r;
    }
    *w = now;
    for (int i = 0; i < n; i++) exchange(self, w, &refs[i], gone);
    let_go(self, gone);
    return 0;
}

/* --- kernels ------------------------------------------------------------------------------------------------------------ */

QUIET int cudago_owned_takes_kernel(const cudago_owned *w, const cudago_ref *refs, int n, const ConfigObject *c) {
    return w->is_kernel && !cudago_has_attributes(c) && !cudago_uses_capture(refs, n);
}

static QUIET int32_t call_kernel(const cudago_exec *x, const cudago_owned *w, const cudago_kernel *k, void **params, const ConfigObject *c) {
    CUDA_KERNEL_NODE_PARAMS p = cudago_node_params(k, params, c);
    int pushed;
    int32_t r = cudago_ctx_enter(x->ctx, &pushed);
    if (!r) r = cu.cuGraphExecKernelNodeSetParams(x->h, w->def, &p);
    cudago_ctx_leave(pushed);
    return r;
}

/* The CUresult. Takes over the refs. -1: out of memory. */
QUIET int32_t cudago_owned_kernel(ExecObject *self, cudago_owned *w, const cudago_kernel *k, void **params, const cudago_ref *refs,
                                  int n, const ConfigObject *c, cudago_gone *gone) {
    cudago_ref *kept = malloc((size_t)n * sizeof *kept);
    if (!kept) return -1;
    memcpy(kept, refs, (size_t)n * sizeof *kept);
    int32_t r = call_kernel(self->x, w, k, params, c);
    *gone = (cudago_gone){.refs = r ? kept : w->refs, .n = r ? n : w->n};
    if (r) return r;
    w->refs = kept;
    w->n = n;
    w->kernel = k->id;
    w->shape = cudago_shape_of(c);
    cudago_held_show(self->held, kept, n);
    let_go(self, gone);
    return 0;
}

/* A new reference to the record of a kernel node, or NULL. */
QUIET PyObject *cudago_owned_record(const cudago_owned *w) {
    for (int i = 0; w && w->is_kernel && i < w->n; i++)
        if (w->refs[i].role == ROLE_KERNEL) return NEW_REF((PyObject *)w->refs[i].object);
    return NULL;
}

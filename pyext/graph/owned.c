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

void cudago_gone_drop(cudago_gone *gone) {
    cudago_refs_drop(gone->refs ? gone->refs : gone->few, gone->n);
    free(gone->refs);
}

/* The use with a launch under way, if there is one alone, in a stream that nobody else puts work into; else NULL. */
static QUIET cudago_stream *only_stream(cudago_uses *u, uint64_t *position) {
    cudago_use *use = cudago_uses_at(u), *only = NULL;
    for (uint32_t i = 0; i < u->n; i++) {
        if (!cudago_pending(use[i].clock, use[i].position)) continue;
        if (only) return NULL;
        only = &use[i];
    }
    if (!only || only->clock->exposed) return NULL;
    cudago_stream *s = cudago_streams;
    while (s && s->clock != only->clock) s = s->next;
    *position = only->position;
    int can = s && !s->foreign && !cudago_stream_lost(s) && atomic_load(&s->refs) > 0; /* nobody adds to one that is closed */
    return can ? s : NULL;
}

/* What is gone is hidden from the collector: while launches may use it, nobody may clear it. The stream keeps it as it keeps
 * what launches use, if there is only one; otherwise Go does. */
static QUIET void let_go(ExecObject *self, cudago_gone *gone) {
    cudago_ref *refs = gone->refs ? gone->refs : gone->few;
    for (int i = 0; i < gone->n; i++) cudago_held_hide(self->held, refs[i].object);
    if (!gone->n || !cudago_uses_pending(&self->x->uses)) return;
    uint64_t position;
    cudago_stream *s = only_stream(&self->x->uses, &position);
    for (int i = 0; s && i < gone->n; i++) cudago_keep_until(s, position, &refs[i].object, 1);
    if (!s) cudagoExecRetire(self->x->id, refs, gone->n);
    gone->n = 0;
}

/* --- copies ------------------------------------------------------------------------------------------------------------- */

/* Memory of the host, of a device or managed memory in the place of another of these Go refuses. */
static QUIET int is_like(const cudago_owned *w, int role, const OperandObject *o) {
    for (int i = 0; i < w->n; i++)
        if (w->refs[i].role == role && cudago_operand_place((OperandObject *)w->refs[i].object) != cudago_operand_place(o)) return 0;
    return 1;
}

QUIET int cudago_owned_takes_sides(const cudago_owned *w, OperandObject *const *o) {
    if (w->is_kernel) return 0;
    for (int i = 0; i < 2; i++) {
        if (!o[i]) continue;
        if (o[i]->nbytes != w->size || (o[i]->cell && o[i]->cell->flags & CUDAGO_CELL_CAPTURED)) return 0;
        if (!is_like(w, i ? ROLE_SRC : ROLE_DST, o[i])) return 0;
    }
    return !cudago_overlap(o[0] ? o[0]->address : w->dst, o[1] ? o[1]->address : w->src, w->size); /* which Go refuses */
}

/* A side that was not made as host memory stays unified: see cudagoUpdateMemcpy. */
static QUIET void set_sides(cudago_owned *w, OperandObject *const *o) {
    if (o[0]) w->dst = o[0]->address, w->dst_host = w->dst_host && o[0]->host;
    if (o[1]) w->src = o[1]->address, w->src_host = w->src_host && o[1]->host;
}

static QUIET int32_t call_memcpy(const cudago_exec *x, const cudago_owned *w) {
    CUDA_MEMCPY3D p = cudago_memcpy_params(w->dst, w->dst_host, w->src, w->src_host, w->size);
    uintptr_t pushed;
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
    uint64_t dst = w->dst, src = w->src;
    int32_t dst_host = w->dst_host, src_host = w->src_host;
    cudago_ref refs[2];
    int n = 0;
    for (int i = 0; i < 2; i++)
        if (o[i]) cudago_ref_set(&refs[n++], (PyObject *)o[i], o[i]->nbytes, i ? ROLE_SRC : ROLE_DST, REASON_MEMCPY);
    set_sides(w, o);
    int32_t r = call_memcpy(self->x, w);
    if (r) {
        w->dst = dst, w->src = src, w->dst_host = dst_host, w->src_host = src_host;
        memcpy(gone->few, refs, sizeof refs);
        gone->n = n;
        return r;
    }
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
    uintptr_t pushed;
    int32_t r = cudago_ctx_enter(x->ctx, &pushed);
    if (!r) r = cu.cuGraphExecKernelNodeSetParams(x->h, w->def, &p);
    cudago_ctx_leave(pushed);
    return r;
}

/* A copy of what the driver is told, in one piece. NULL: out of memory. */
static QUIET void **told(const cudago_kernel *k, void *const *params) {
    size_t pointers = ((size_t)k->n * sizeof *params + 15) & ~(size_t)15;
    void **own = malloc(pointers + k->size + 1);
    for (int i = 0; own && i < k->n; i++) {
        own[i] = (uint8_t *)own + pointers + k->params[i].offset;
        memcpy(own[i], params[i], k->params[i].size);
    }
    return own;
}

/* The CUresult. Takes over the refs. -1: out of memory. */
QUIET int32_t cudago_owned_kernel(ExecObject *self, cudago_owned *w, const cudago_kernel *k, void **params, const cudago_ref *refs,
                                  int n, const ConfigObject *c, cudago_gone *gone) {
    cudago_ref *kept = malloc((size_t)(n + k->n + 1) * sizeof *kept); /* a struct may have several */
    void **copy = told(k, params);
    if (!kept || !copy) return free(kept), free(copy), -1;
    memcpy(kept, refs, (size_t)n * sizeof *kept);
    int32_t r = call_kernel(self->x, w, k, params, c);
    gone->refs = r ? kept : w->refs;
    gone->n = r ? n : w->n;
    free(r ? copy : w->params);
    if (r) return r;
    w->refs = kept;
    w->n = n;
    w->params = copy;
    w->k = k;
    w->kernel = k->id;
    w->shape = cudago_shape_of(c);
    cudago_held_show(self->held, kept, n);
    let_go(self, gone);
    return 0;
}

static QUIET PyObject *record_of(const cudago_owned *w) {
    for (int i = w->n; i > 0; i--)
        if (w->refs[i - 1].role == ROLE_KERNEL) return (PyObject *)w->refs[i - 1].object;
    return NULL;
}
QUIET PyObject *cudago_owned_record(const cudago_owned *w) {
    PyObject *record = w && w->is_kernel ? record_of(w) : NULL;
    return record ? NEW_REF(record) : NULL;
}

/* --- some arguments of a kernel ----------------------------------------------------------------------------------------- */

/* The record changes with the arguments, which nobody may see who has asked for it before. */
QUIET cudago_owned *cudago_owned_changeable(cudago_exec *x, uint64_t node, PyObject **record) {
    cudago_owned *w = x->of->removals ? NULL : cudago_owned_find(x, node);
    if (!w || !w->k) return NULL;
    *record = (PyObject *)w->refs[w->n - 1].object;
    return Py_REFCNT(*record) == 1 ? w : NULL;
}

QUIET int cudago_owned_lost(const cudago_owned *w) {
    for (int i = 0; i < w->n - 1; i++)
        if (cudago_operand_lost((OperandObject *)w->refs[i].object)) return 1;
    return 0;
}

static inline QUIET void swap(uint8_t *a, uint8_t *b, size_t n) { /* n is a constant, 8 or less */
    uint8_t was[8];
    memcpy(was, a, n);
    memcpy(a, b, n);
    memcpy(b, was, n);
}
/* A second time undoes it. */
static QUIET void swap_values(const cudago_owned *w, const cudago_change *c, const cudago_packing *p) {
    for (int i = 0; i < c->n; i++) {
        uint8_t *a = w->params[c->which[i]], *b = p->params[c->which[i]];
        uint32_t left = w->k->params[c->which[i]].size;
        for (; left >= 8; left -= 8, a += 8, b += 8) swap(a, b, 8);
        for (; left >= 4; left -= 4, a += 4, b += 4) swap(a, b, 4);
        for (; left; left--, a++, b++) swap(a, b, 1);
    }
}

/* Puts an operand, or none, in the place of that of a parameter, which had one, or none. There is room for all. */
static QUIET void put_operand(ExecObject *self, cudago_owned *w, int role, const cudago_ref *now, cudago_gone *gone) {
    int i = 0;
    while (w->refs[i].role != role && w->refs[i].role != ROLE_KERNEL) i++;
    int had = w->refs[i].role == role;
    if (had) gone->few[gone->n++] = w->refs[i];
    if (had != (now != NULL)) { /* those behind it move: the record is the last */
        memmove(&w->refs[i + !had], &w->refs[i + had], (size_t)(w->n - i - had) * sizeof *w->refs);
        w->n += had ? -1 : 1;
    }
    if (!now) return;
    w->refs[i] = *now;
    cudago_held_show(self->held, now, 1);
}

static QUIET const cudago_ref *with_role(const cudago_ref *refs, int n, int role) {
    for (int i = 0; i < n; i++)
        if (refs[i].role == role) return &refs[i];
    return NULL;
}

/* The CUresult. Takes over the refs, which are those of the arguments that change. c->items are then what was replaced. */
QUIET int32_t cudago_owned_change(ExecObject *self, cudago_owned *w, PyObject *record, cudago_change *c, const cudago_packing *p,
                                  const cudago_ref *refs, int n, cudago_gone *gone) {
    swap_values(w, c, p);
    int32_t r = call_kernel(self->x, w, w->k, w->params, (ConfigObject *)PyTuple_GetItem(record, 1));
    if (r) {
        swap_values(w, c, p);
        memcpy(gone->few, refs, (size_t)n * sizeof *refs);
        gone->n = n;
        return r;
    }
    for (int i = 0; i < c->n; i++) {
        int role = ROLE_PARAMETER + c->which[i];
        put_operand(self, w, role, with_role(refs, n, role), gone);
        PyObject *was = NEW_REF(PyTuple_GetItem(record, 2 + c->which[i]));
        PyTuple_SetItem(record, 2 + c->which[i], c->items[i]);
        c->items[i] = was;
    }
    let_go(self, gone);
    return 0;
}

/* What is replaced must be a number too, so that nothing is kept for it, and nothing runs when it is dropped. */
QUIET int cudago_owned_number(const cudago_exec *x, cudago_owned *w, PyObject *record, int which, PyObject *given, int32_t *r) {
    PyObject *was = PyTuple_GetItem(record, 2 + which);
    uint32_t size = w->k->params[which].size;
    uint8_t now[8], before[8];
    if (!(PyLong_CheckExact(was) || PyFloat_CheckExact(was)) || !cudago_pack_number(&w->k->params[which], given, now)) return 0;
    memcpy(before, w->params[which], size);
    memcpy(w->params[which], now, size);
    *r = call_kernel(x, w, w->k, w->params, (ConfigObject *)PyTuple_GetItem(record, 1));
    if (!*r) return !PyTuple_SetItem(record, 2 + which, NEW_REF(given));
    memcpy(w->params[which], before, size);
    return 0;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* Other arguments for some of the parameters of a kernel node in an executable. The driver wants all of them at each update.
 * What C has told it before is kept with the node (owned.c), so only what changes is evaluated and packed, and only that is
 * exchanged in the node's record. Whatever is not that simple is left to Python: the first update, which has nothing to
 * build on, and those after somebody has asked for the record. */

enum { SMALL_VALUES = 256 }; /* bytes of parameters that are packed on the stack */

QUIET int cudago_change_begin(cudago_change *c, ExecObject *self, uint64_t node) {
    PyObject *record;
    if (!self->x || cudago_exec_lost(self->x)) return 0;
    const cudago_owned *w = cudago_owned_changeable(self->x, node, &record);
    if (!w) return 0;
    KernelObject *kernel = (KernelObject *)PyTuple_GetItem(record, 0);
    if (kernel->work && !kernel->counted) return 0;
    c->node = node;
    c->kernel = (KernelObject *)NEW_REF(kernel);
    c->k = w->k;
    c->n = 0;
    return 1;
}

QUIET int cudago_change_add(cudago_change *c, Py_ssize_t which, PyObject *given) {
    if (which < 0 || which >= c->k->n || c->n == CUDAGO_MAX_CHANGES) return 0;
    c->which[c->n] = (uint16_t)which;
    c->items[c->n] = NULL;
    c->given[c->n++] = NEW_REF(given);
    return 1;
}

void cudago_change_end(cudago_change *c) {
    for (; c->n; c->n--) {
        Py_DECREF(c->given[c->n - 1]);
        Py_XDECREF(c->items[c->n - 1]);
    }
    Py_DECREF((PyObject *)c->kernel);
}

typedef struct {
    cudago_change *change;
    const cudago_packing *p;
    cudago_gone *gone;
    int left; /* it cannot be made here any more: another thread was here during the wait */
} changing;

/* A struct with memory uses more than one Operand: here there is one for each parameter. */
static QUIET int has_inside(const cudago_change *c, const cudago_packing *p, PyObject *record) {
    int inside = p->inside;
    for (int i = 0; i < c->n; i++) inside |= Py_TYPE(PyTuple_GetItem(record, 2 + c->which[i])) == &PyTuple_Type;
    return inside;
}

static QUIET int is_operand(PyObject *o) { return cudago_is(o, CLS_OPERAND); }
static QUIET int is_apart(const OperandObject *a, const OperandObject *b) {
    return a->address + a->nbytes <= b->address || b->address + b->nbytes <= a->address;
}

/* Of a kernel that counts the elements: does one argument become what Python is to look at (renewed.py)? That is the count
 * itself, memory of another size or element type, or one that lies worse; and inputs that the output overlaps in part, or
 * may, if the output is a number. */
static QUIET int recounts(const cudago_change *c, PyObject *record) {
    if (!c->kernel->counted) return 0;
    int last = c->k->n - 1;
    if (last < 1) return 1;
    PyObject *now[CUDAGO_MAX_PARAMS];
    for (int i = 0; i <= last; i++) now[i] = PyTuple_GetItem(record, 2 + i);
    for (int i = 0; i < c->n; i++) {
        const OperandObject *before = (OperandObject *)now[c->which[i]], *o = (OperandObject *)c->items[i];
        now[c->which[i]] = c->items[i];
        if (c->which[i] == last || is_operand((PyObject *)before) != is_operand((PyObject *)o)) return 1;
        if (!is_operand((PyObject *)o)) continue;
        if (o->nbytes != before->nbytes || o->element != before->element || (o->address & ~before->address & 15)) return 1;
    }
    if (!is_operand(now[last - 1])) return 1; /* an address, as a number */
    const OperandObject *out = (OperandObject *)now[last - 1];
    for (int i = 0; i < last - 1; i++) {
        const OperandObject *in = (OperandObject *)now[i];
        if (!is_operand(now[i]) || is_apart(in, out)) continue;
        if (in->address != out->address || in->nbytes != out->nbytes) return 1;
    }
    return 0;
}

static QUIET void change_now(ExecObject *self, void *at, cudago_refusal *why) {
    changing *a = at;
    const cudago_packing *p = a->p;
    PyObject *record;
    cudago_owned *w = cudago_owned_changeable(self->x, a->change->node, &record);
    if ((a->left = self->in_python || !w || w->k != p->k || has_inside(a->change, p, record) || recounts(a->change, record) ||
                   cudago_owned_lost(w) || cudago_pack_lost(p))) return;
    cudago_ref refs[CUDAGO_MAX_CHANGES];
    int n = cudago_packed_values(p) ? 0 : cudago_refs_of(p, refs);
    if ((a->left = cudago_uses_capture(refs, n))) {
        memcpy(a->gone->few, refs, (size_t)n * sizeof *refs);
        a->gone->n = n;
        return;
    }
    why->code = cudago_owned_change(self, w, record, a->change, p, refs, n, a->gone);
    if (!why->code) return;
    why->operation = "cuGraphExecKernelNodeSetParams";
    why->launch = p;
    why->shape = w->shape;
}

static QUIET const cudago_hierarchy *hierarchy_now(ExecObject *self) { return self->x ? self->x->of : NULL; }

static int with_packed(ExecObject *self, cudago_change *c, cudago_packing *p) {
    if (cudago_condition_fits(p, hierarchy_now(self), 0)) return -1;
    if (!cudago_packed_values(p) && (cudago_pack_operands(p) || cudago_pack_now(p))) return -1;
    for (int i = 0; i < c->n; i++)
        if (!(c->items[i] = cudago_pack_recorded(p, c->which[i]))) return -1;
    GONE(gone);
    changing at = {c, p, &gone, 0};
    int r = cudago_update_gate(self, change_now, &at);
    cudago_gone_drop(&gone);
    return r ? r : !at.left;
}

static int with_values(ExecObject *self, cudago_change *c, uint8_t *values) {
    PyObject *args[CUDAGO_MAX_PARAMS]; /* only what changes is set */
    for (int i = 0; i < c->n; i++) args[c->which[i]] = c->given[i];
    cudago_packing p;
    if (cudago_pack_some(&p, c->kernel, (cudago_kernel *)c->k, args, c->which, c->n, values)) return cudago_tell_parameter(c->kernel);
    int r = with_packed(self, c, &p);
    cudago_pack_free(&p);
    return r < 0 ? cudago_tell_parameter(c->kernel) : r;
}

int cudago_change_make(ExecObject *self, cudago_change *c) {
    uint8_t small[SMALL_VALUES] __attribute__((aligned(16))), *values = small;
    if (c->k->size > sizeof small) values = malloc(c->k->size);
    int r = !c->n ? 0 : values ? with_values(self, c, values)
                               : (PyErr_NoMemory(), -1);
    if (values != small) free(values);
    uint64_t node = c->node;
    cudago_change_end(c);
    if (r <= 0) return r;
    cudago_drain_waiting();
    return CUDAGO_WATCH("updated_node", "(OK)", self, node) ? -1 : 1;
}

/* --- one number ----------------------------------------------------------------------------------------------------------- */

/* A loop gives a node another step, or another rate, before each launch. From the first look on nothing runs. */
QUIET int cudago_change_number(ExecObject *self, uint64_t node, PyObject *name, long place, PyObject *given) {
    PyObject *record;
    if (!self->x || cudago_exec_lost(self->x) || cudago_watcher || !cudago_update_calm(self->x)) return 0;
    cudago_owned *w = cudago_owned_changeable(self->x, node, &record);
    if (!w || cudago_owned_lost(w)) return 0;
    KernelObject *kernel = (KernelObject *)PyTuple_GetItem(record, 0);
    if (name) place = cudago_kernel_named(kernel, w->k, name);
    if (kernel->work && (!kernel->counted || place == w->k->n - 1)) return 0;
    int32_t r = 0;
    int changed = place >= 0 && place < w->k->n && cudago_owned_number(self->x, w, record, (int)place, given, &r);
    if (!r) return changed;
    cudago_shape shape = w->shape; /* raising runs Python, which may end the node */
    return cudago_launch_error("cuGraphExecKernelNodeSetParams", kernel, w->k, &shape, r);
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Changes to one node of an executable, of which no launch may be under way: the other side of the gate in exec.c. */

/* The thread that waits counts as an update. Its signal handlers run on it, and could not launch otherwise. */
static int signalled(ExecObject *self, cudago_exec *x) {
    x->updates--;
    int stopped = PyErr_CheckSignals();
    if (self->x == x) x->updates++; /* otherwise it was closed, and the block may be gone */
    return stopped;
}

static cudago_exec *enter(ExecObject *self) {
    cudago_exec *x = self->x;
    if (cudago_exec_open(self)) return NULL;
    x->updates++;
    int stopped = 0;
    while (self->x == x && !cudago_exec_lost(x) && (x->inside || x->owed || x->of->busy || cudago_stall()) && !stopped) {
        cudago_nap(CUDAGO_NAP_US);
        if (self->x == x) stopped = signalled(self, x);
    }
    if (self->x != x) { /* closed meanwhile: the block may be gone */
        if (!stopped) cudago_raise_closed("graph executable");
        return NULL;
    }
    if (!stopped && !cudago_exec_lost(x)) {
        x->updater = PyThread_get_thread_ident();
        return x;
    }
    x->updates--;
    if (!stopped) cudago_exec_open(self); /* raises the error */
    return NULL;
}

static QUIET void leave(cudago_exec *x) {
    x->updater = 0;
    x->updates--;
    x->phase++;
    x->owed = x->waiting;
}

QUIET int cudago_update_calm(const cudago_exec *x) {
    return !x->updates && !x->inside && !x->owed && !x->waiting && !x->of->busy && !cudago_stall();
}

int cudago_raise_update(const char *operation, int32_t code, int32_t device, const char *detail) {
    cudago_status st = {0};
    cudagoDetailError((char *)operation, code, device, (char *)detail, &st);
    return cudago_raise(&st);
}

void cudago_copy_text(char *to, size_t n, const OperandObject *dst, const OperandObject *src) {
    int len = snprintf(to, n, "%llu bytes", (unsigned long long)(dst ? dst : src)->nbytes);
    if (src) len += snprintf(to + len, n - (size_t)len, " from %#llx", (unsigned long long)src->address);
    if (dst) snprintf(to + len, n - (size_t)len, " to %#llx", (unsigned long long)dst->address);
}

static int raise_refused_call(const cudago_refusal *why, int32_t device) {
    char text[80] = "";
    if (why->launch) return cudago_launch_error(why->operation, why->launch->kernel, why->launch->k, &why->shape, why->code);
    if (why->sides) cudago_copy_text(text, sizeof text, why->sides[0], why->sides[1]);
    return cudago_raise_update(why->operation, why->code, device, text);
}

/* 0 if nothing was refused. */
static int raise_refusal(cudago_refusal *why, int32_t device) {
    if (why->st.kind) return cudago_raise(&why->st);
    if (why->lost) return cudago_operand_now(why->lost);
    if (why->closed) return cudago_semaphore_now(why->closed);
    if (why->no_memory) return PyErr_NoMemory(), -1;
    return why->operation ? raise_refused_call(why, device) : 0;
}

int cudago_update_gate(ExecObject *self, cudago_update_now *now, void *at) {
    cudago_refusal why = {0};
    cudago_exec *x = enter(self);
    if (!x) return -1;
    now(self, at, &why);
    if (self->x == x) leave(x); /* always, but for the test of call_inside */
    return raise_refusal(&why, self->device);
}

static PyObject *done(int r) {
    if (r) return NULL;
    cudago_drain_waiting();
    Py_RETURN_NONE;
}

QUIET void cudago_set_memcpy(uint64_t id, uint64_t node, OperandObject *const *o, cudago_status *st) {
    cudago_ref refs[2];
    int m = 0;
    for (int i = 1; i >= 0; i--) /* src first, as everywhere */
        if (o[i]) cudago_ref_set(&refs[m++], (PyObject *)o[i], o[i]->nbytes, i ? ROLE_SRC : ROLE_DST, REASON_MEMCPY);
    cudagoUpdateMemcpy(id, node, o[0] != NULL, o[0] ? o[0]->address : 0, o[0] ? o[0]->host : 0, o[0] ? o[0]->nbytes : 0,
                       o[1] != NULL, o[1] ? o[1]->address : 0, o[1] ? o[1]->host : 0, o[1] ? o[1]->nbytes : 0, refs, m, st);
}

typedef struct {
    uint64_t node;
    OperandObject *o[2];
    cudago_gone gone;
} memcpy_update;
static QUIET void memcpy_now(ExecObject *self, void *at, cudago_refusal *why) {
    memcpy_update *u = at;
    for (int i = 0; i < 2; i++)
        if (u->o[i] && cudago_operand_lost(u->o[i])) {
            why->lost = u->o[i];
            return;
        }
    cudago_owned *w = cudago_owned_of(self->x, u->node); /* the kinds of update that C makes itself: see owned.c */
    if (!w || !cudago_owned_takes_sides(w, u->o) || (!u->o[0] && !u->o[1])) {
        cudago_set_memcpy(self->x->id, u->node, u->o, &why->st);
        return;
    }
    why->code = cudago_owned_memcpy(self, w, u->o, &u->gone);
    if (!why->code) return;
    why->operation = "cuGraphExecMemcpyNodeSetParams";
    why->sides = u->o;
}

/* dst and src, of which either may be None; -1 with an exception. What was made is in o in any case. */
int cudago_read_sides(int32_t device, PyObject *const *args, OperandObject **o) {
    static const char *const names[] = {"dst", "src"};
    o[0] = o[1] = NULL;
    for (int i = 0; i < 2; i++) {
        if (args[i] == Py_None) continue;
        o[i] = cudago_operand(args[i], i ? 0 : OPERAND_WRITABLE, names[i]);
        if (!o[i] || cudago_node_reaches(device, o[i], names[i])) return -1;
    }
    return 0;
}

int cudago_update_sides(ExecObject *self, uint64_t node, PyObject *const *sides, PyObject *note) {
    if (cudago_exec_open(self)) return -1;
    memcpy_update u;
    u.node = node;
    u.gone.refs = NULL;
    u.gone.n = 0;
    int r = cudago_read_sides(self->device, sides, u.o) || cudago_update_gate(self, memcpy_now, &u) ? -1 : 0;
    if (!r) cudago_slots_note(&self->slots, note, node);
    cudago_gone_drop(&u.gone);
    Py_XDECREF(u.o[0]);
    Py_XDECREF(u.o[1]);
    if (!r) cudago_drain_waiting();
    return r;
}

/* _update_memcpy(node, dst or None, src or None, note) */
PyObject *cudago_update_memcpy(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    PyObject *note;
    if (n != 4 || cudago_read_node(args[0], &node) || cudago_read_note(args[3], &note) || cudago_update_sides(self, node, args + 1, note))
        return NULL;
    Py_RETURN_NONE;
}

typedef struct {
    uint64_t node;
    OperandObject *o;
    uint32_t value, width;
} memset_update;
static QUIET void memset_now(ExecObject *self, void *at, cudago_refusal *why) {
    memset_update *u = at;
    cudago_ref ref;
    if (cudago_operand_lost(u->o)) {
        why->lost = u->o;
        return;
    }
    cudago_ref_set(&ref, (PyObject *)u->o, u->o->nbytes, ROLE_DST, REASON_MEMSET);
    cudagoUpdateMemset(self->x->id, u->node, u->o->address, u->value, u->width, u->o->nbytes / u->width, &ref, &why->st);
}

/* _update_memset(node, dst, value, note) */
PyObject *cudago_update_memset(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    memset_update u;
    PyObject *note;
    if (n != 4 || cudago_exec_open(self) || cudago_read_node(args[0], &u.node) || cudago_fill_value(args[2], &u.value, &u.width) ||
        cudago_read_note(args[3], &note))
        return NULL;
    u.o = cudago_operand(args[1], OPERAND_WRITABLE, "dst");
    int ok = u.o && !cudago_node_reaches(self->device, u.o, "dst") && !cudago_fills(u.o, u.width);
    int r = ok ? cudago_update_gate(self, memset_now, &u) : -1;
    if (!r) cudago_slots_note(&self->slots, note, u.node);
    if (ok && r) cudago_fill_failed(cudago_may_be_lent(u.o->cell), u.o->address, "dst");
    Py_XDECREF(u.o);
    return done(r);
}

typedef struct {
    uint64_t node;
    cudago_memop_given given;
} memop_update;
static QUIET void memop_now(ExecObject *self, void *at, cudago_refusal *why) {
    memop_update *u = at;
    if (cudago_operand_lost(u->given.o)) why->lost = u->given.o;
    else cudago_set_memop(self->x->id, u->node, &u->given, &why->st);
}

/* _update_memop(node, memory, value, condition) */
PyObject *cudago_update_memop(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    memop_update u;
    if (n != 4 || cudago_exec_open(self) || cudago_read_node(args[0], &u.node)) return NULL;
    cudago_memop_given *g = &u.given;
    int fits = !cudago_read_memop(self->device, args + 1, g) && !cudago_memop_fits(g->o, &g->value, &g->m);
    int r = fits ? cudago_update_gate(self, memop_now, &u) : -1;
    Py_XDECREF(g->o);
    return done(r);
}

typedef struct {
    uint64_t node;
    cudago_semaphore_given given;
} semaphore_update;
static QUIET void semaphore_now(ExecObject *self, void *at, cudago_refusal *why) {
    semaphore_update *u = at;
    if (!u->given.is_own && cudago_semaphore_closed(u->given.semaphore)) why->closed = u->given.semaphore;
    else cudago_set_semaphore(self->x->id, u->node, &u->given, &why->st);
}

/* _update_semaphore(node, semaphore, value, waits, is_own) */
PyObject *cudago_update_semaphore(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    semaphore_update u;
    if (n != 5 || cudago_exec_open(self) || cudago_read_node(args[0], &u.node) || cudago_read_semaphore_change(args + 1, &u.given) ||
        cudago_semaphore_usable(self->device, &u.given))
        return NULL;
    return done(cudago_update_gate(self, semaphore_now, &u));
}

typedef struct {
    ExecObject *exec;
    uint64_t node;
    PyObject *note;
    cudago_gone gone;
    const cudago_packing *p;
    ConfigObject *config;
    cudago_ref *refs; /* n of them are to be dropped */
    int n;
    int *left; /* see cudago_update_launch */
} kernel_update;
/* While arguments were converted another thread may have begun an update that reads what the node does and writes it back, or
 * have given the node another kernel, with slots. */
static QUIET int is_left(ExecObject *self, const kernel_update *u) {
    return u->left && (*u->left = self->in_python || (self->slots && !cudago_has_kernel(self, u->node, (const PyObject *)u->p->kernel)));
}
static QUIET void kernel_now(ExecObject *self, void *at, cudago_refusal *why) {
    kernel_update *u = at;
    const cudago_packing *p = u->p;
    if (is_left(self, u) || (why->lost = cudago_pack_lost(p))) return;
    int n = cudago_refs_of(p, u->refs);
    cudago_owned *w = cudago_owned_of(self->x, u->node);
    if (!w || !cudago_owned_takes_kernel(w, u->refs, n, u->config)) {
        cudago_shape shape = cudago_shape_of(u->config);
        cudagoUpdateKernel(self->x->id, u->node, p->k->id, &shape, (void **)p->params, u->refs, n, &why->st);
        return;
    }
    int32_t r = cudago_owned_kernel(self, w, p->k, (void **)p->params, u->refs, n, u->config, &u->gone);
    why->no_memory = r < 0;
    if (r < 0) u->n = n;
    if (r <= 0) return;
    why->operation = "cuGraphExecKernelNodeSetParams";
    why->code = r;
    why->launch = p;
    why->shape = cudago_shape_of(u->config);
}
static QUIET const cudago_hierarchy *hierarchy_of(ExecObject *self) { return self->x ? self->x->of : NULL; }
static int enter_exec(void *at, const cudago_packing *p) {
    ExecObject *exec = ((kernel_update *)at)->exec;
    return cudago_condition_fits(p, hierarchy_of(exec), 0) || cudago_exec_open(exec) ? -1 : 0;
}
static PyObject *update_kernel(void *at, const cudago_packing *p, ConfigObject *c) {
    kernel_update *u = at;
    cudago_ref refs[CUDAGO_MAX_PARAMS + 1];
    u->p = p;
    u->config = c;
    u->refs = refs;
    int r = cudago_update_gate(u->exec, kernel_now, u);
    if (!r) cudago_slots_note(&u->exec->slots, u->note, u->node);
    cudago_refs_drop(refs, u->n);
    return r ? NULL : NEW_REF(Py_None);
}

static QUIET PyObject *record_now(ExecObject *self, uint64_t node) {
    return self->x ? cudago_owned_record(cudago_owned_find(self->x, node)) : NULL;
}

QUIET int cudago_has_kernel(ExecObject *self, uint64_t node, const PyObject *kernel) {
    const cudago_owned *w = self->x ? cudago_owned_find(self->x, node) : NULL;
    return w && w->k && PyTuple_GetItem((PyObject *)w->refs[w->n - 1].object, 0) == kernel;
}

PyObject *cudago_update_launch(ExecObject *self, uint64_t node, PyObject *const *what, PyObject *const *args, Py_ssize_t n, PyObject *note,
                               int *left) {
    static const cudago_kernel_use update = {enter_exec, update_kernel};
    if (cudago_exec_open(self)) return NULL;
    kernel_update at = {.exec = self, .node = node, .note = note, .left = left};
    PyObject *like = record_now(self, node);
    PyObject *r = cudago_with_kernel(&update, &at, self->device, what[0], what[1], args, n, like);
    Py_XDECREF(like);
    cudago_gone_drop(&at.gone);
    if (!r || (left && *left)) return r;
    cudago_drain_waiting();
    if (CUDAGO_WATCH("updated_node", "(OK)", self, node)) Py_CLEAR(r);
    return r;
}

/* _update_kernel(node, config, kernel, args, note) */
PyObject *cudago_update_kernel(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    PyObject *note;
    if (n != 5 || cudago_exec_open(self) || cudago_read_node(args[0], &node) || cudago_read_note(args[4], &note)) return NULL;
    PyObject *items[CUDAGO_MAX_PARAMS];
    Py_ssize_t count = cudago_read_arguments(args[3], items);
    return count < 0 ? NULL : cudago_update_launch(self, node, args + 1, items, count, note, NULL);
}

typedef struct {
    uint64_t node;
    OperandObject *o;
} host_update;
static QUIET void host_now(ExecObject *self, void *at, cudago_refusal *why) {
    host_update *u = at;
    cudago_ref ref;
    cudago_ref_set(&ref, (PyObject *)u->o, 0, ROLE_CALLBACK, REASON_HOST);
    cudagoUpdateHost(self->x->id, u->node, cudago_host_function(), (uintptr_t)u->o->call, &ref, &why->st);
}

/* _update_host(node, callable) */
PyObject *cudago_update_host(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    host_update u;
    if (n != 2 || cudago_exec_open(self) || cudago_read_node(args[0], &u.node)) return NULL;
    u.o = cudago_callable_operand(args[1], self->device);
    int r = u.o ? cudago_update_gate(self, host_now, &u) : -1;
    Py_XDECREF(u.o);
    return done(r);
}

typedef struct {
    GraphObject *graph;
    PyObject *slots, *now; /* of the graph, if it is to have these; and of the executable from now on, then what it had */
    int again, is_other;
} graph_update;
static QUIET void graph_now(ExecObject *self, void *at, cudago_refusal *why) {
    graph_update *u = at;
    if ((u->again = cudago_graph_busy(u->graph)) || (u->is_other = u->graph->slots != u->slots)) return;
    self->held->resets = 0; /* there may be one while this waits */
    cudagoExecUpdate(self->x->id, u->graph->id, &why->st); /* Go finds out if the graph was closed during the wait */
    if (why->st.kind) return;
    PyObject *was = self->slots;
    self->slots = u->now;
    u->now = was;
}

static PyObject *update_graph(ExecObject *self, graph_update *u) {
    do /* each may become busy during the wait for the other */
        if (cudago_graph_ready(u->graph) || cudago_graph_whole(u->graph) || cudago_update_gate(self, graph_now, u)) return NULL;
    while (u->again);
    if (u->is_other) Py_RETURN_FALSE;
    cudago_drain_waiting();
    Py_RETURN_TRUE;
}

static PyObject *or_null(PyObject *given) { return given == Py_None ? NULL : NEW_REF(given); }

/* _update(graph, uses, now): the whole executable, whose slots are then now; False if the graph has come to have others than uses */
PyObject *cudago_update_graph(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 3 || cudago_expect(args[0], CLS_GRAPH, "graph")) return NULL;
    graph_update u = {(GraphObject *)args[0], args[1] == Py_None ? NULL : args[1], or_null(args[2]), 0, 0};
    PyObject *r = update_graph(self, &u);
    Py_XDECREF(u.now);
    if (r == Py_True && CUDAGO_WATCH("updated", "(OO)", self, u.graph)) Py_CLEAR(r);
    return r;
}

static void nothing(void *user_data) { (void)user_data; }
uintptr_t cudago_nothing(void) { return (uintptr_t)nothing; }

typedef struct {
    uint64_t node;
    int enabled, was;
} enabled_update;
static QUIET void enabled_now(ExecObject *self, void *at, cudago_refusal *why) {
    enabled_update *u = at;
    u->was = cudagoExecEnable(self->x->id, u->node, u->enabled, &why->st);
}

/* _set_enabled(node, bool): was it enabled? */
PyObject *cudago_update_enabled(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    enabled_update u;
    if (n != 2 || cudago_exec_open(self) || cudago_read_node(args[0], &u.node)) return NULL;
    u.enabled = cudago_flag(args[1], "enabled");
    if (u.enabled < 0 || cudago_update_gate(self, enabled_now, &u)) return NULL;
    return PyBool_FromLong(u.was);
}

static void call_inside(ExecObject *self, void *at, cudago_refusal *why) {
    (void)self;
    (void)why;
    PyObject *r = PyObject_CallNoArgs(*(PyObject **)at);
    Py_XDECREF(r);
}

/* _call_inside(callable): inside the gate, where no Python may run, for the test that a launch there is an error. */
PyObject *cudago_update_inside(ExecObject *self, PyObject *callable) {
    CUDAGO_ENTER(NULL);
    if (cudago_exec_open(self) || cudago_update_gate(self, call_inside, &callable) || PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Changes to one node of an executable, of which no launch may be under way: the other side of the gate in exec.c. */

/* Passes the gate, after all arguments have been evaluated: on success no call is in the driver with the executable,
 * nothing of it is being instantiated, and no launch begins before cudago_update_leave. NULL with an exception. */
cudago_exec *cudago_update_enter(ExecObject *self) {
    cudago_exec *x = self->x;
    if (cudago_exec_open(self)) return NULL;
    x->updates++;
    int stopped = 0;
    while (self->x == x && !cudago_exec_lost(x) && (x->inside || x->owed || x->of->busy || cudago_stall()) && !stopped) {
        cudago_nap();
        stopped = PyErr_CheckSignals();
    }
    if (self->x != x) { /* closed meanwhile: the block may be gone */
        if (!stopped) cudago_raise_closed("graph executable");
        return NULL;
    }
    if (!stopped && !cudago_exec_lost(x)) return x;
    x->updates--;
    if (!stopped) cudago_exec_open(self); /* raises the error */
    return NULL;
}

QUIET void cudago_update_leave(cudago_exec *x) {
    x->updates--;
    x->phase++;
    x->owed = x->waiting;
}

static PyObject *done(cudago_status *st) {
    if (st->kind) return cudago_raise(st), NULL;
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
/* The kinds of update that C makes itself: see owned.c. */
int cudago_update_refused(const char *operation, int32_t device, int32_t code) {
    cudago_status st = {0};
    cudagoDetailError((char *)operation, code, device, "", &st);
    return cudago_raise(&st);
}

static QUIET int memcpy_now(ExecObject *self, uint64_t node, OperandObject *const *o, cudago_status *st, cudago_gone *gone) {
    cudago_exec *x = self->x;
    for (int i = 0; i < 2; i++)
        if (o[i] && cudago_operand_lost(o[i])) {
            cudago_update_leave(x);
            return cudago_operand_now(o[i]);
        }
    cudago_owned *w = cudago_owned_of(x, node);
    if (w && cudago_owned_takes_sides(w, o) && (o[0] || o[1])) {
        int32_t r = cudago_owned_memcpy(self, w, o, gone);
        cudago_update_leave(x);
        return r ? cudago_update_refused("cuGraphExecMemcpyNodeSetParams", self->device, r) : 0;
    }
    cudago_set_memcpy(x->id, node, o, st);
    cudago_update_leave(x);
    return 0;
}

/* dst and src, of which either may be None; -1 with an exception. What was made is in o in any case. */
int cudago_read_sides(int32_t device, PyObject *const *args, OperandObject **o) {
    static const char *const names[] = {"dst", "src"};
    o[0] = o[1] = NULL;
    for (int i = 0; i < 2; i++) {
        if (args[i] == Py_None) continue;
        o[i] = cudago_operand(args[i], i ? 0 : OPERAND_WRITABLE, names[i]);
        if (!o[i] || cudago_copies(device, o[i], names[i])) return -1;
    }
    return 0;
}

int cudago_update_sides(ExecObject *self, uint64_t node, PyObject *const *sides) {
    if (cudago_exec_open(self)) return -1;
    OperandObject *o[2];
    cudago_status st = {0};
    GONE(gone);
    cudago_exec *x = cudago_read_sides(self->device, sides, o) ? NULL : cudago_update_enter(self);
    if (x && memcpy_now(self, node, o, &st, &gone)) x = NULL;
    cudago_gone_drop(&gone);
    Py_XDECREF(o[0]);
    Py_XDECREF(o[1]);
    if (!x) return -1;
    if (st.kind) return cudago_raise(&st);
    cudago_drain_waiting();
    return 0;
}

/* _update_memcpy(node, dst or None, src or None) */
PyObject *cudago_update_memcpy(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    if (n != 3 || cudago_read_node(args[0], &node) || cudago_update_sides(self, node, args + 1)) return NULL;
    Py_RETURN_NONE;
}

static QUIET int memset_now(cudago_exec *x, uint64_t node, OperandObject *o, uint32_t value, uint32_t width, cudago_status *st) {
    cudago_ref ref;
    if (cudago_operand_lost(o)) {
        cudago_update_leave(x);
        return cudago_operand_now(o);
    }
    cudago_ref_set(&ref, (PyObject *)o, o->nbytes, ROLE_DST, REASON_MEMSET);
    cudagoUpdateMemset(x->id, node, o->address, value, width, o->nbytes / width, &ref, st);
    cudago_update_leave(x);
    return 0;
}

/* _update_memset(node, dst, value) */
PyObject *cudago_update_memset(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    uint32_t value, width;
    if (n != 3 || cudago_exec_open(self) || cudago_read_node(args[0], &node) || cudago_fill_value(args[2], &value, &width)) return NULL;
    OperandObject *o = cudago_operand(args[1], OPERAND_WRITABLE, "dst");
    cudago_status st = {0};
    cudago_exec *x = o && !cudago_fill_fits(width, o->nbytes) ? cudago_update_enter(self) : NULL;
    if (x && memset_now(x, node, o, value, width, &st)) x = NULL;
    Py_XDECREF(o);
    return x ? done(&st) : NULL;
}

static QUIET int memop_now(cudago_exec *x, uint64_t node, cudago_memop_given *g, cudago_status *st) {
    int r = cudago_set_memop(x->id, node, g, st);
    cudago_update_leave(x);
    return r;
}

/* _update_memop(node, memory, value, condition) */
PyObject *cudago_update_memop(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    if (n != 4 || cudago_exec_open(self) || cudago_read_node(args[0], &node)) return NULL;
    cudago_memop_given g;
    cudago_status st = {0};
    cudago_exec *x = cudago_read_memop(self->device, args + 1, &g) ? NULL : cudago_update_enter(self);
    if (x && memop_now(x, node, &g, &st)) x = NULL;
    Py_XDECREF(g.o);
    return x ? done(&st) : NULL;
}

static QUIET int semaphore_now(cudago_exec *x, int32_t device, uint64_t node, const cudago_semaphore_given *g, cudago_status *st) {
    int r = cudago_set_semaphore(device, x->id, node, g, st);
    cudago_update_leave(x);
    return r;
}

/* _update_semaphore(node, semaphore, value, waits) */
PyObject *cudago_update_semaphore(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    cudago_semaphore_given g;
    if (n != 4 || cudago_exec_open(self) || cudago_read_node(args[0], &node) || cudago_read_semaphore(args + 1, &g)) return NULL;
    cudago_status st = {0};
    cudago_exec *x = cudago_update_enter(self);
    if (x && semaphore_now(x, self->device, node, &g, &st)) x = NULL;
    return x ? done(&st) : NULL;
}

typedef struct {
    ExecObject *exec;
    uint64_t node;
    cudago_exec *x; /* the executable whose gate it has passed; NULL outside */
    cudago_gone gone;
} exec_node;
static int enter_exec(void *at) {
    exec_node *e = at;
    return (e->x = cudago_update_enter(e->exec)) ? 0 : -1;
}
static QUIET void leave_exec(void *at) {
    exec_node *e = at;
    if (e->x && e->exec->x == e->x) cudago_update_leave(e->x); /* otherwise raising an exception ran code that closed it */
    e->x = NULL;
}
/* Raising runs Python, which may launch the executable: outside the gate, or it would wait for itself. */
static QUIET PyObject *kernel_now(void *at, cudago_kernel *k, void **params, cudago_ref *refs, int n, ConfigObject *c) {
    exec_node *e = at;
    cudago_owned *w = cudago_owned_of(e->x, e->node);
    if (w && cudago_owned_takes_kernel(w, refs, n, c)) {
        int32_t r = cudago_owned_kernel(e->exec, w, k, params, refs, n, c, &e->gone);
        if (r) leave_exec(e);
        if (r < 0) return cudago_refs_drop(refs, n), PyErr_NoMemory();
        return r ? (cudago_update_refused("cuGraphExecKernelNodeSetParams", e->exec->device, r), NULL) : NEW_REF(Py_None);
    }
    cudago_status st = {0};
    cudago_shape shape = cudago_shape_of(c);
    cudagoUpdateKernel(e->x->id, e->node, k->id, &shape, params, refs, n, &st);
    leave_exec(e);
    return st.kind ? (cudago_raise(&st), NULL) : NEW_REF(Py_None);
}

static QUIET PyObject *record_now(ExecObject *self, uint64_t node) {
    return self->x ? cudago_owned_record(cudago_owned_find(self->x, node)) : NULL;
}

/* With the Operands of before where they will do. */
PyObject *cudago_update_launch(ExecObject *self, uint64_t node, PyObject *config, PyObject *kernel, PyObject *const *args, Py_ssize_t n) {
    static const cudago_kernel_use update = {enter_exec, kernel_now, leave_exec};
    if (cudago_exec_open(self)) return NULL;
    exec_node at = {.exec = self, .node = node, .x = NULL};
    PyObject *like = record_now(self, node);
    PyObject *r = cudago_with_kernel(&update, &at, self->device, config, kernel, args, n, like);
    Py_XDECREF(like);
    cudago_gone_drop(&at.gone);
    if (r) cudago_drain_waiting();
    if (r && CUDAGO_WATCH("updated_node", "(OK)", self, node)) Py_CLEAR(r);
    return r;
}

/* _update_kernel(node, config, kernel, args) */
PyObject *cudago_update_kernel(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    if (n != 4 || cudago_exec_open(self) || cudago_read_node(args[0], &node)) return NULL;
    PyObject *items[CUDAGO_MAX_PARAMS];
    Py_ssize_t count = cudago_read_arguments(args[3], items);
    return count < 0 ? NULL : cudago_update_launch(self, node, args[1], args[2], items, count);
}

static QUIET int host_now(cudago_exec *x, uint64_t node, OperandObject *o, cudago_status *st) {
    cudago_ref ref;
    cudago_ref_set(&ref, (PyObject *)o, 0, ROLE_CALLBACK, REASON_HOST);
    cudagoUpdateHost(x->id, node, cudago_host_function(), (uintptr_t)o->call, &ref, st);
    cudago_update_leave(x);
    return 0;
}

/* _update_host(node, callable) */
PyObject *cudago_update_host(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    if (n != 2 || cudago_exec_open(self) || cudago_read_node(args[0], &node)) return NULL;
    OperandObject *o = cudago_callable_operand(args[1], self->device);
    cudago_status st = {0};
    cudago_exec *x = o ? cudago_update_enter(self) : NULL;
    if (x) host_now(x, node, o, &st);
    Py_XDECREF(o);
    return x ? done(&st) : NULL;
}

static QUIET void graph_now(cudago_exec *x, GraphObject *g, cudago_status *st) {
    cudagoExecUpdate(x->id, g->id, st); /* Go finds out if the graph was closed during the wait */
    cudago_update_leave(x);
}

/* _update(graph): the whole executable */
PyObject *cudago_update_graph(ExecObject *self, PyObject *graph) {
    CUDAGO_ENTER(NULL);
    if (cudago_expect(graph, CLS_GRAPH, "graph")) return NULL;
    GraphObject *g = (GraphObject *)graph;
    cudago_status st = {0};
    cudago_exec *x;
    for (;;) { /* each may become busy during the wait for the other */
        if (cudago_graph_ready(g) || !(x = cudago_update_enter(self))) return NULL;
        if (!cudago_graph_busy(g)) break;
        cudago_update_leave(x);
    }
    graph_now(x, g, &st);
    PyObject *r = done(&st);
    if (r && CUDAGO_WATCH("updated", "(OO)", self, graph)) Py_CLEAR(r);
    return r;
}

static void nothing(void *user_data) { (void)user_data; }
uintptr_t cudago_nothing(void) { return (uintptr_t)nothing; }

/* _set_enabled(node, bool): was it enabled? */
PyObject *cudago_update_enabled(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    uint64_t node;
    if (n != 2 || cudago_exec_open(self) || cudago_read_node(args[0], &node)) return NULL;
    int enabled = PyObject_IsTrue(args[1]);
    cudago_status st = {0};
    cudago_exec *x = enabled < 0 ? NULL : cudago_update_enter(self);
    if (!x) return NULL;
    int was = cudagoExecEnable(x->id, node, enabled, &st);
    cudago_update_leave(x);
    return st.kind ? (cudago_raise(&st), NULL) : PyBool_FromLong(was);
}

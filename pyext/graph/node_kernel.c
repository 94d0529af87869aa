/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* Kernel nodes: the only kind that is added often enough for its price to matter. */

enum { SMALL_VALUES = 256 }; /* bytes of parameters that are packed on the stack */

static PyObject *with_packed(cudago_packing *p, ConfigObject *config, const cudago_kernel_use *use, void *at) {
    if (cudago_pack_own(p, (PyObject *)config) || use->enter(at, p) || cudago_pack_now(p)) return NULL;
    return use->now(at, p, config);
}

/* For both adding a kernel node and updating one. */
PyObject *cudago_with_kernel(const cudago_kernel_use *use, void *at, int32_t device, PyObject *config, PyObject *kernel,
                             PyObject *const *args, Py_ssize_t n, PyObject *like) {
    if (cudago_expect(config, CLS_CONFIG, "config") || cudago_expect(kernel, CLS_KERNEL, "kernel")) return NULL;
    KernelObject *ko = (KernelObject *)kernel;
    cudago_kernel *k = cudago_kernel_on(ko, device);
    if (!k || cudago_refuse_events((ConfigObject *)config, "a kernel node") || cudago_check_config((ConfigObject *)config, k)) return NULL;
    uint8_t small[SMALL_VALUES] __attribute__((aligned(16))), *values = small;
    if (k->size > sizeof small && !(values = malloc(k->size))) return PyErr_NoMemory();
    cudago_packing p;
    PyObject *r = NULL;
    if (!cudago_pack(&p, ko, k, args, n, values)) {
        p.like = like;
        r = with_packed(&p, (ConfigObject *)config, use, at);
        cudago_pack_free(&p);
    }
    if (values != small) free(values);
    if (!r) cudago_tell_parameter(ko);
    return r;
}

Py_ssize_t cudago_read_arguments(PyObject *tuple, PyObject **items) {
    Py_ssize_t n = PyTuple_Size(tuple);
    if (n > CUDAGO_MAX_PARAMS) return PyErr_SetString(PyExc_TypeError, "too many arguments"), -1;
    for (Py_ssize_t i = 0; i < n; i++) items[i] = PyTuple_GetItem(tuple, i);
    return n;
}

PyObject *cudago_with_kernel_of(const cudago_kernel_use *use, void *at, int32_t device, PyObject *const *what) {
    PyObject *items[CUDAGO_MAX_PARAMS];
    Py_ssize_t n = cudago_read_arguments(what[2], items);
    return n < 0 ? NULL : cudago_with_kernel(use, at, device, what[0], what[1], items, n, NULL);
}

typedef struct {
    GraphObject *graph;
    cudago_place *p;
    NodeObject *node; /* is given the number */
} kernel_place;
static int enter_graph(void *at, const cudago_packing *p) {
    GraphObject *graph = ((kernel_place *)at)->graph;
    return cudago_condition_fits(p, cudago_graph_hierarchy(graph), 1) || cudago_graph_ready(graph) ? -1 : 0;
}
static QUIET PyObject *kernel_now(void *at, const cudago_packing *p, ConfigObject *c) {
    kernel_place *kp = at;
    if (cudago_graph_open(kp->graph)) return NULL;
    cudago_ref refs[CUDAGO_MAX_PARAMS + 1];
    int n = cudago_refs_of(p, refs);
    if (cudago_can_add(kp->graph, kp->p, refs, n, c)) return cudago_add_kernel(kp->node, kp->p, p, refs, n, c);
    cudago_status st = {0};
    uintptr_t pushed; /* here this is one comparison, in Go three crossings of the border */
    cudago_shape shape = cudago_shape_of(c);
    cudago_ctx_enter(kp->graph->ctx, &pushed);
    uint64_t number = cudagoGraphKernel(kp->graph->id, kp->p->v, (int)kp->p->n, (char *)kp->p->name, (int)kp->p->name_len,
                                        p->k->id, &shape, (void **)p->params, refs, n, &st);
    cudago_ctx_leave(pushed);
    if (st.kind) return cudago_raise(&st), NULL;
    cudago_node_number(kp->node, number);
    cudago_slots_note(&kp->graph->slots, kp->p->note, number);
    return NEW_REF(kp->node);
}

static const cudago_kernel_use add = {enter_graph, kernel_now};

static PyObject *add_kernel(GraphObject *graph, cudago_place *p, PyObject *const *what, PyObject *const *args, Py_ssize_t n) {
    kernel_place at = {graph, p, cudago_node_new(graph)};
    if (!at.node) return NULL;
    PyObject *like = cudago_last_record(graph);
    PyObject *r = cudago_with_kernel(&add, &at, graph->device, what[0], what[1], args, n, like);
    Py_XDECREF(like);
    if (r && CUDAGO_WATCH("added", "(OK)", graph, at.node->number)) Py_CLEAR(r);
    Py_DECREF(at.node);
    return r;
}

/* _add_kernel(deps, config, kernel, args, name, note) */
PyObject *cudago_graph_kernel(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    PLACE(p);
    if (n != 6 || cudago_graph_open(self) || cudago_read_place(args[0], args[4], &p) || cudago_read_note(args[5], &p.note)) return NULL;
    kernel_place at = {self, &p, cudago_node_new(self)};
    if (!at.node) return NULL;
    PyObject *node = cudago_with_kernel_of(&add, &at, self->device, args + 1);
    if (node && CUDAGO_WATCH("added", "(OK)", self, at.node->number)) Py_CLEAR(node);
    PyObject *number = node ? PyLong_FromUnsignedLongLong(at.node->number) : NULL;
    Py_XDECREF(node);
    Py_DECREF(at.node);
    return number;
}

/* --- launch, as users call it --------------------------------------------------------------------------------------- */

static int has_slot(PyObject *const *args, Py_ssize_t n) {
    for (Py_ssize_t i = 0; i < n; i++)
        if (cudago_is_slot(args[i])) return 1;
    return 0;
}

/* The arguments of launch(config, kernel, *args, name=None, **named). */
typedef struct {
    PyObject *what[2]; /* config, kernel */
    PyObject *name;
    PyObject *const *args;
    Py_ssize_t n;
    Py_ssize_t n_named; /* keyword arguments that are the kernel's */
} launch_arguments;
static cudago_keyword known[] = {{"config", NULL}, {"kernel", NULL}, {"name", NULL}};
static int read_names(launch_arguments *l, PyObject *const *named, PyObject *names) {
    for (Py_ssize_t i = 0, n = names ? PyTuple_Size(names) : 0; i < n; i++) {
        int which = cudago_which(known, 3, PyTuple_GetItem(names, i));
        if (which < 2 && l->what[which])
            return PyErr_Format(PyExc_TypeError, "launch() got multiple values for argument '%s'", known[which].text), -1;
        if (which == 3) l->n_named++;
        else *(which < 2 ? &l->what[which] : &l->name) = named[i];
    }
    if (l->what[0] && l->what[1]) return 0;
    return PyErr_Format(PyExc_TypeError, "launch() missing a required argument: '%s'. It adds a kernel to the graph; to run the graph, "
                                         "launch what its instantiate() returns",
                        known[l->what[0] != NULL].text),
           -1;
}
static int read_launch(launch_arguments *l, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    *l = (launch_arguments){{n > 0 ? args[0] : NULL, n > 1 ? args[1] : NULL}, Py_None, args + 2, n > 2 ? n - 2 : 0, 0};
    return !names && n > 1 ? 0 : read_names(l, args + n, names);
}

/* A tuple of the kernel's arguments in order, of which some have names; NULL with an exception. */
static PyObject *in_order(const launch_arguments *l, PyObject *const *named, PyObject *names) {
    if (cudago_expect(l->what[0], CLS_CONFIG, "config") || cudago_expect(l->what[1], CLS_KERNEL, "kernel")) return NULL;
    PyObject *all = PyTuple_New(l->n + l->n_named), *theirs = PyTuple_New(l->n_named), *r = NULL;
    int bad = !all || !theirs;
    for (Py_ssize_t i = 0; !bad && i < l->n; i++) bad = PyTuple_SetItem(all, i, NEW_REF(l->args[i]));
    for (Py_ssize_t i = 0, at = 0; !bad && at < l->n_named; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        if (cudago_which(known, 3, name) < 3) continue;
        bad = PyTuple_SetItem(all, l->n + at, NEW_REF(named[i])) || PyTuple_SetItem(theirs, at, NEW_REF(name));
        at++;
    }
    if (!bad) r = cudago_arranged((KernelObject *)l->what[1], all, theirs);
    Py_XDECREF(theirs);
    Py_XDECREF(all);
    return r;
}

/* Slots are Python's affair. */
static PyObject *launch_slots(PyObject *self, const launch_arguments *l) {
    PyObject *args = PyTuple_New(l->n), *r = NULL;
    for (Py_ssize_t i = 0; args && i < l->n; i++)
        if (PyTuple_SetItem(args, i, NEW_REF(l->args[i]))) Py_CLEAR(args);
    if (args) r = PyObject_CallMethod(self, "_launch_slots", "OOOO", l->what[0], l->what[1], args, l->name);
    Py_XDECREF(args);
    return r;
}

static PyObject *launch_read(PyObject *self, GraphObject *graph, const uint64_t *after, const launch_arguments *l) {
    if (has_slot(l->args, l->n)) return launch_slots(self, l);
    PLACE(p);
    p.n = after != NULL;
    if (after) p.v[0] = *after;
    if (cudago_graph_open(graph) || cudago_read_name(l->name, &p)) return NULL;
    return add_kernel(graph, &p, (PyObject *const *)l->what, l->args, l->n);
}

static PyObject *launch_named(PyObject *self, GraphObject *graph, const uint64_t *after, launch_arguments *l, PyObject *const *named,
                              PyObject *names) {
    PyObject *all = in_order(l, named, names), *items[CUDAGO_MAX_PARAMS], *r = NULL;
    if (!all) return NULL;
    l->args = items;
    if ((l->n = cudago_read_arguments(all, items)) >= 0) r = launch_read(self, graph, after, l);
    Py_DECREF(all);
    return r;
}

/* Of a graph, or of the node `after`. */
PyObject *cudago_launch_node(PyObject *self, GraphObject *graph, const uint64_t *after, PyObject *const *args, Py_ssize_t n,
                             PyObject *names) {
    launch_arguments l;
    if (read_launch(&l, args, n, names)) return NULL;
    return l.n_named ? launch_named(self, graph, after, &l, args + n, names) : launch_read(self, graph, after, &l);
}

PyObject *cudago_graph_launch(GraphObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    return cudago_launch_node((PyObject *)self, self, NULL, args, n, names);
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"
#include "memory.h"

/* A Graph is built through Go: nodes are not hot. The Python face makes Node objects over the numbers returned here. */

static QUIET int is_given_up(GraphObject *self) {
    return self->owner ? !((GraphObject *)self->owner)->id : !self->id && !self->capturing;
}

static QUIET int is_closed(GraphObject *self) { return is_given_up(self) || cudago_lost(self->device, self->generation); }

QUIET int cudago_graph_open(GraphObject *self) {
    if (is_given_up(self)) return cudago_raise_closed("graph");
    if (is_closed(self)) return cudago_raise_lost("graph", self->device);
    if (!self->capturing) return 0;
    return PyErr_SetString(PyExc_ValueError, "the graph is still being captured: it can be used after the with block"), -1;
}


static QUIET cudago_hierarchy *hierarchy_now(GraphObject *self) { return cudago_graph_open(self) ? NULL : self->of; }

static QUIET int is_busy(GraphObject *self) { return !is_closed(self) && self->of->busy; }

int cudago_graph_ready(GraphObject *self) {
    do { /* each wait gives the GIL away */
        cudago_hierarchy *h = hierarchy_now(self);
        if (!h || cudago_hierarchy_wait(h) || cudago_stall_wait()) return -1;
    } while (is_busy(self));
    return 0;
}

static QUIET uint64_t number_now(GraphObject *self) { return cudago_graph_open(self) ? 0 : self->id; }
uint64_t cudago_graph_number(GraphObject *self) { return cudago_graph_ready(self) ? 0 : number_now(self); }

GraphObject *cudago_graph_alloc_object(int32_t device, uint32_t generation, cudago_hierarchy *of) {
    GraphObject *self = cudago_alloc(CLS_GRAPH);
    if (!self) return NULL;
    self->device = device;
    self->generation = generation;
    self->ctx = cudago_context_of(device);
    cudago_hierarchy *own = of ? cudago_hierarchy_retain(of) : cudago_hierarchy_new();
    self->of = own;
    if (!own) Py_CLEAR(self);
    return self;
}

PyObject *cudago_graph_new(PyObject *module, PyObject *device) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (cudago_expect(device, CLS_DEVICE, "device")) return NULL;
    uint32_t generation;
    int32_t ordinal = ((DeviceObject *)device)->ordinal;
    if (cudago_device_ready(ordinal, &generation)) return NULL;
    GraphObject *self = cudago_graph_alloc_object(ordinal, generation, NULL);
    if (!self) return NULL;
    cudago_status st = {0};
    self->id = cudagoGraphNew(self->device, &self->held, &st);
    if (st.kind) {
        cudago_raise(&st);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

int cudago_read_place(PyObject *deps, PyObject *name, cudago_place *p) {
    p->n = PyTuple_Size(deps);
    if (p->n < 0) return -1;
    if (p->n > CUDAGO_MAX_DEPS) return PyErr_Format(PyExc_ValueError, "a node can wait for at most %d nodes", CUDAGO_MAX_DEPS), -1;
    for (Py_ssize_t i = 0; i < p->n; i++) {
        p->v[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(deps, i));
        if (p->v[i] == (uint64_t)-1 && PyErr_Occurred()) return -1;
    }
    p->name = "";
    p->name_len = 0;
    if (name == Py_None) return 0;
    if (!PyUnicode_Check(name)) return PyErr_Format(PyExc_TypeError, "name must be a str, not %R", (PyObject *)Py_TYPE(name)), -1;
    p->name = PyUnicode_AsUTF8AndSize(name, &p->name_len);
    return p->name ? 0 : -1;
}

PyObject *cudago_node_added(uint64_t node, cudago_status *st) {
    if (st->kind) return cudago_raise(st), NULL;
    return PyLong_FromUnsignedLongLong(node);
}

static int same_device(GraphObject *self, OperandObject *o, const char *what) {
    if (o->device < 0 || o->device == self->device) return 0;
    PyErr_Format(PyExc_ValueError, "%s is on device %d, the graph on device %d", what, o->device, self->device);
    return -1;
}

/* A copy may be with another device's memory, if the graph's device has access to it. */
int cudago_copies(int32_t device, OperandObject *o, const char *what) {
    int can = cudago_reachable(o->cell, o->device, device);
    if (can) return can < 0 ? -1 : 0;
    PyErr_Format(PyExc_ValueError,
                 "%s is on device %d, the graph on device %d, which has no access to that memory: see peer_accessible_by of "
                 "DeviceMemoryResource",
                 what, o->device, device);
    return -1;
}

static QUIET PyObject *memcpy_now(GraphObject *self, cudago_place *p, OperandObject *dst, OperandObject *src) {
    if (cudago_graph_open(self) || cudago_operand_now(dst) || cudago_operand_now(src)) return NULL;
    if (dst->nbytes != src->nbytes)
        return PyErr_Format(PyExc_ValueError, "dst has %llu bytes, src %llu: a copy needs the same size on both sides",
                            (unsigned long long)dst->nbytes, (unsigned long long)src->nbytes);
    cudago_ref refs[2];
    cudago_status st = {0};
    cudago_ref_set(&refs[0], (PyObject *)src, src->nbytes, ROLE_SRC, REASON_MEMCPY);
    cudago_ref_set(&refs[1], (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMCPY);
    uint64_t node = cudagoGraphMemcpy(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, dst->address, src->address,
                                      dst->host, src->host, dst->nbytes, refs, &st);
    return cudago_node_added(node, &st);
}

/* _add_memcpy(deps, dst, src, name) */
static PyObject *graph_memcpy(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    if (n != 4 || cudago_graph_open(self) || cudago_read_place(args[0], args[3], &p)) return NULL;
    OperandObject *dst = cudago_operand(args[1], OPERAND_WRITABLE, "dst"), *src = NULL;
    PyObject *r = NULL;
    if (dst && (src = cudago_operand(args[2], 0, "src")) && !cudago_copies(self->device, dst, "dst") &&
        !cudago_copies(self->device, src, "src") && !cudago_graph_ready(self))
        r = memcpy_now(self, &p, dst, src);
    Py_XDECREF(dst);
    Py_XDECREF(src);
    return r;
}

static QUIET PyObject *memset_now(GraphObject *self, cudago_place *p, OperandObject *dst, uint32_t value, uint32_t width) {
    if (cudago_graph_open(self) || cudago_operand_now(dst)) return NULL;
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMSET);
    uint64_t node = cudagoGraphMemset(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, dst->address, value, width,
                                      dst->nbytes / width, &ref, &st);
    return cudago_node_added(node, &st);
}

/* _add_memset(deps, dst, value, name) */
static PyObject *graph_memset(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    uint32_t value, width;
    if (n != 4 || cudago_graph_open(self) || cudago_read_place(args[0], args[3], &p)) return NULL;
    OperandObject *dst = cudago_operand(args[1], OPERAND_WRITABLE, "dst");
    PyObject *r = NULL;
    if (dst && !same_device(self, dst, "dst") && !cudago_fill_value(args[2], &value, &width) &&
        !cudago_fill_fits(width, dst->nbytes) && !cudago_graph_ready(self))
        r = memset_now(self, &p, dst, value, width);
    Py_XDECREF(dst);
    return r;
}

static PyObject *with_packed(cudago_packing *p, ConfigObject *config, cudago_kernel_call then, void *at) {
    cudago_ref refs[CUDAGO_MAX_PARAMS + 1];
    if (cudago_pack_own(p) || cudago_pack_now(p)) return NULL;
    int n = cudago_refs_of(p, refs);
    return then(at, p->k, p->params, refs, n, config);
}

/* Used to add a kernel node and to update one. */
PyObject *cudago_with_kernel(int32_t device, PyObject *config, PyObject *kernel, PyObject *args, cudago_kernel_call then, void *at) {
    if (cudago_expect(config, CLS_CONFIG, "config") || cudago_expect(kernel, CLS_KERNEL, "kernel")) return NULL;
    KernelObject *ko = (KernelObject *)kernel;
    cudago_kernel *k = cudago_kernel_on(ko, device);
    if (!k || cudago_check_config((ConfigObject *)config, k)) return NULL;
    Py_ssize_t n = PyTuple_Size(args);
    if (n < 0) return NULL;
    if (n > CUDAGO_MAX_PARAMS) return PyErr_SetString(PyExc_TypeError, "too many arguments"), NULL;
    PyObject *items[CUDAGO_MAX_PARAMS], *r = NULL;
    for (Py_ssize_t i = 0; i < n; i++) items[i] = PyTuple_GetItem(args, i);
    uint8_t *values = malloc(k->size + 1);
    if (!values) return PyErr_NoMemory();
    cudago_packing p;
    if (!cudago_pack(&p, ko, k, items, n, values)) {
        r = with_packed(&p, (ConfigObject *)config, then, at);
        cudago_pack_free(&p);
    }
    free(values);
    return r;
}

typedef struct {
    GraphObject *graph;
    cudago_place *p;
} kernel_place;
static PyObject *add_kernel(void *at, cudago_kernel *k, void **params, cudago_ref *refs, int n, ConfigObject *c) {
    kernel_place *kp = at;
    cudago_status st = {0};
    uint64_t graph = cudago_graph_number(kp->graph);
    if (!graph) return cudago_refs_drop(refs, n), NULL;
    int pushed; /* here it is a comparison, in Go three crossings */
    cudago_ctx_enter(kp->graph->ctx, &pushed);
    uint64_t node = cudagoGraphKernel(graph, kp->p->v, (int)kp->p->n, (char *)kp->p->name, (int)kp->p->name_len, k->id,
                                      c->grid, c->block, c->shared_memory, params, refs, n, &st);
    cudago_ctx_leave(pushed);
    return cudago_node_added(node, &st);
}

/* _add_kernel(deps, config, kernel, args, name) */
static PyObject *graph_kernel(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    if (n != 5 || cudago_graph_open(self) || cudago_read_place(args[0], args[4], &p)) return NULL;
    kernel_place at = {self, &p};
    return cudago_with_kernel(self->device, args[1], args[2], args[3], add_kernel, &at);
}

/* _add_host(deps, callable, name) */
static PyObject *graph_host(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    if (n != 3 || cudago_graph_open(self) || cudago_read_place(args[0], args[2], &p)) return NULL;
    OperandObject *o = cudago_callable_operand(args[1], self->device);
    uint64_t graph = o ? cudago_graph_number(self) : 0;
    if (!graph) return Py_XDECREF(o), NULL;
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)o, 0, ROLE_CALLBACK, REASON_HOST);
    uint64_t node = cudagoGraphHost(graph, p.v, (int)p.n, (char *)p.name, (int)p.name_len, cudago_host_function(),
                                    (uintptr_t)o->call, &ref, &st);
    Py_DECREF(o);
    return cudago_node_added(node, &st);
}

/* _add_empty(deps, name) */
static PyObject *graph_empty(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    if (n != 2 || cudago_read_place(args[0], args[1], &p)) return NULL;
    uint64_t graph = cudago_graph_number(self);
    if (!graph) return NULL;
    cudago_status st = {0};
    uint64_t node = cudagoGraphEmpty(graph, p.v, (int)p.n, (char *)p.name, (int)p.name_len, &st);
    return cudago_node_added(node, &st);
}

static QUIET PyObject *child_now(GraphObject *self, cudago_place *p, GraphObject *child) {
    if (cudago_graph_open(self) || cudago_graph_open(child)) return NULL;
    cudago_status st = {0};
    uint64_t node = cudagoGraphChild(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, child->id, &st);
    return cudago_node_added(node, &st);
}

/* _add_child(deps, graph, name) */
static PyObject *graph_child(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    if (n != 3 || cudago_graph_open(self) || cudago_read_place(args[0], args[2], &p) || cudago_expect(args[1], CLS_GRAPH, "graph")) return NULL;
    GraphObject *child = (GraphObject *)args[1];
    do /* each may become busy while the other is waited for */
        if (cudago_graph_ready(self) || cudago_graph_ready(child)) return NULL;
    while (is_busy(self));
    return child_now(self, &p, child);
}

static QUIET PyObject *event_now(GraphObject *self, cudago_place *p, EventObject *e, int record) {
    if (cudago_graph_open(self)) return NULL;
    if (cudago_event_now(e)) return NULL;
    if (e->device != self->device)
        return PyErr_Format(PyExc_ValueError, "event is on device %d, the graph on device %d", e->device, self->device), NULL;
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)e, 0, ROLE_EVENT, REASON_EVENT);
    uint64_t node = cudagoGraphEvent(self->id, p->v, (int)p->n, (char *)p->name, (int)p->name_len, e->id, record, &ref, &st);
    return cudago_node_added(node, &st);
}

/* _add_event(deps, event, record, name): a node that records the event, or waits for it */
static PyObject *graph_event(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    if (n != 4 || cudago_graph_open(self) || cudago_read_place(args[0], args[3], &p) || cudago_expect(args[1], CLS_EVENT, "event"))
        return NULL;
    int record = PyObject_IsTrue(args[2]);
    if (record < 0 || cudago_graph_ready(self)) return NULL;
    return event_now(self, &p, (EventObject *)args[1], record);
}

/* _text(what): "nodes", "edges", "retained" or "dot", for the Python face to read. */
static PyObject *graph_text(GraphObject *self, PyObject *what) {
    CUDAGO_ENTER(NULL);
    const char *w = PyUnicode_AsUTF8AndSize(what, NULL);
    uint64_t graph = w ? cudago_graph_number(self) : 0;
    if (!graph) return NULL;
    cudago_status st = {0};
    char *text = cudagoGraphText(graph, (char *)w, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *r = PyUnicode_FromString(text);
    free(text);
    return r;
}

/* _held(address): the object at an address that _text("retained") named. */
static QUIET PyObject *held_now(GraphObject *self, uint64_t address) {
    return cudago_held_at(self->owner ? ((GraphObject *)self->owner)->held : self->held, address);
}
static PyObject *graph_held(GraphObject *self, PyObject *address) {
    CUDAGO_ENTER(NULL);
    unsigned long long a = PyLong_AsUnsignedLongLong(address);
    return a == (unsigned long long)-1 && PyErr_Occurred() ? NULL : held_now(self, a);
}

/* _clone() */
static PyObject *graph_clone(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    GraphObject *clone = cudago_graph_alloc_object(self->device, self->generation, NULL);
    if (!clone) return NULL;
    uint64_t graph = cudago_graph_number(self);
    if (!graph) return Py_DECREF(clone), NULL;
    cudago_status st = {0};
    clone->id = cudagoGraphClone(graph, &clone->held, &st);
    if (st.kind) {
        cudago_raise(&st);
        Py_DECREF(clone);
        return NULL;
    }
    return (PyObject *)clone;
}

static int instantiate_away(uint64_t graph, uint32_t generation, cudago_hierarchy *of, ExecObject *e, unsigned long long flags) {
    cudago_status st = {0};
    uint64_t id;
    cudago_hierarchy_retain(of)->busy++;
    cudago_exclusive++;
    Py_BEGIN_ALLOW_THREADS
    id = cudagoGraphInstantiate(graph, flags, &st);
    Py_END_ALLOW_THREADS
    of->busy--;
    cudago_exclusive--;
    cudago_exec *x = st.kind ? NULL : cudagoExecAdopt(id, &e->held);
    if (!x) { /* refused, or the interpreter has begun to end */
        cudago_hierarchy_release(of);
        return st.kind ? cudago_raise(&st) : cudago_raise_unusable();
    }
    e->id = id;
    e->x = x;
    x->of = of;
    x->generation = generation;
    return cudago_made("graph executable", e->device, generation);
}
static QUIET int instantiate_now(GraphObject *self, ExecObject *e, unsigned long long flags) {
    if (cudago_graph_open(self)) return -1;
    return instantiate_away(self->id, self->generation, self->of, e, flags);
}

/* _instantiate(flags): cuGraphInstantiate can wait for another thread's full launch queue, so the GIL goes. */
static PyObject *graph_instantiate(GraphObject *self, PyObject *flags) {
    CUDAGO_ENTER(NULL);
    if (cudago_graph_open(self)) return NULL;
    unsigned long long f = PyLong_AsUnsignedLongLong(flags);
    if (f == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    ExecObject *e = cudago_alloc(CLS_EXEC);
    if (!e) return NULL;
    e->device = self->device;
    if (cudago_graph_ready(self) || instantiate_now(self, e, f)) return Py_DECREF(e), NULL;
    return (PyObject *)e;
}

static void give_up(GraphObject *self) {
    if (self->capturing && !cudago_unusable) cudago_capture_abandon(self);
    uint64_t id = self->id;
    PyObject *owner = self->owner;
    cudago_hierarchy *of = self->of;
    self->id = 0;
    self->held = NULL; /* first: Go frees it, and dropping what it held may run the collector */
    self->owner = NULL;
    self->of = NULL;
    if (id && !owner && !cudago_unusable) cudagoGraphClose(id); /* a body goes with its graph */
    cudago_hierarchy_release(of);
    Py_XDECREF(owner);
}
static QUIET int may_close(GraphObject *self) {
    if (self->capturing) return PyErr_SetString(PyExc_ValueError, "the graph is still being captured"), -1;
    if (!self->owner) return 0;
    return PyErr_SetString(PyExc_ValueError, "a body of a conditional node cannot be closed: close the graph that the node is in"), -1;
}
static PyObject *graph_close(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (may_close(self)) return NULL;
    give_up(self);
    cudago_drain();
    Py_RETURN_NONE;
}
static PyObject *graph_exit(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return graph_close(self, NULL);
}
static QUIET PyObject *graph_is_closed(GraphObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(is_closed(self));
}
/* What makes two wrappers of one body equal; 0 for other graphs, which have one wrapper. */
static QUIET PyObject *graph_body_id(GraphObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->owner ? self->id : 0);
}
static PyObject *graph_ordinal(GraphObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->device);
}

static int graph_traverse(GraphObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->owner);
    return cudago_held_traverse(self->held, visit, arg);
}
static int graph_clear(GraphObject *self) {
    give_up(self);
    return 0;
}
static void graph_dealloc(GraphObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    give_up(self);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"_add_memcpy", METHOD(graph_memcpy), METH_FASTCALL, NULL},
    {"_add_memset", METHOD(graph_memset), METH_FASTCALL, NULL},
    {"_add_kernel", METHOD(graph_kernel), METH_FASTCALL, NULL},
    {"_add_host", METHOD(graph_host), METH_FASTCALL, NULL},
    {"_add_empty", METHOD(graph_empty), METH_FASTCALL, NULL},
    {"_add_child", METHOD(graph_child), METH_FASTCALL, NULL},
    {"_add_event", METHOD(graph_event), METH_FASTCALL, NULL},
    {"_add_alloc", METHOD(cudago_graph_alloc), METH_FASTCALL, NULL},
    {"_add_free", METHOD(cudago_graph_free), METH_FASTCALL, NULL},
    {"_add_conditional", METHOD(cudago_graph_conditional), METH_FASTCALL, NULL},
    {"_condition", METHOD(cudago_graph_condition), METH_O, NULL},
    {"_body", METHOD(cudago_graph_body), METH_FASTCALL, NULL},
    {"_buffer", METHOD(cudago_graph_buffer), METH_O, NULL},
    {"_text", METHOD(graph_text), METH_O, NULL},
    {"_held", METHOD(graph_held), METH_O, NULL},
    {"_clone", METHOD(graph_clone), METH_NOARGS, NULL},
    {"_instantiate", METHOD(graph_instantiate), METH_O, NULL},
    {"close", METHOD(graph_close), METH_NOARGS, DOC_GRAPH_CLOSE},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(graph_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"is_closed", (getter)graph_is_closed, NULL, DOC_GRAPH_IS_CLOSED, NULL},
    {"_ordinal", (getter)graph_ordinal, NULL, NULL, NULL},
    {"_body_id", (getter)graph_body_id, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(GraphObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, graph_dealloc}, {Py_tp_traverse, graph_traverse}, {Py_tp_clear, graph_clear}, {Py_tp_methods, methods},
    {Py_tp_getset, getset},         {Py_tp_members, members},         {0, NULL},
};
PyType_Spec cudago_graph_spec = {
    "cudago._core.Graph", sizeof(GraphObject), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots,
};

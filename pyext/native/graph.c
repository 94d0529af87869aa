/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"
#include "memory.h"

/* A Graph is built through Go: nodes are not hot. The Python face makes Node objects over the numbers returned here. */

static int is_closed(GraphObject *self) {
    return self->owner ? !((GraphObject *)self->owner)->id : !self->id && !self->capturing;
}

int cudago_graph_open(GraphObject *self) {
    if (is_closed(self)) return cudago_raise_closed("graph");
    if (!self->capturing) return 0;
    PyErr_SetString(PyExc_ValueError, "the graph is still being captured: it can be used after the with block");
    return -1;
}

PyObject *cudago_graph_new(PyObject *module, PyObject *device) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (cudago_expect(device, CLS_DEVICE, "device")) return NULL;
    GraphObject *self = cudago_alloc(CLS_GRAPH);
    if (!self) return NULL;
    self->device = ((DeviceObject *)device)->ordinal;
    self->ctx = ((DeviceObject *)device)->ctx;
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

/* _add_memcpy(deps, dst, src, name) */
static PyObject *graph_memcpy(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    if (n != 4 || cudago_graph_open(self) || cudago_read_place(args[0], args[3], &p)) return NULL;
    OperandObject *dst = cudago_operand(args[1], OPERAND_WRITABLE, "dst"), *src = NULL;
    PyObject *r = NULL;
    if (dst && (src = cudago_operand(args[2], 0, "src")) && !cudago_copies(self->device, dst, "dst") &&
        !cudago_copies(self->device, src, "src")) {
        if (dst->nbytes != src->nbytes) {
            PyErr_Format(PyExc_ValueError, "dst has %llu bytes, src %llu: a copy needs the same size on both sides",
                         (unsigned long long)dst->nbytes, (unsigned long long)src->nbytes);
        } else {
            cudago_ref refs[2];
            cudago_status st = {0};
            cudago_ref_set(&refs[0], (PyObject *)src, src->nbytes, ROLE_SRC, REASON_MEMCPY);
            cudago_ref_set(&refs[1], (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMCPY);
            uint64_t node = cudagoGraphMemcpy(self->id, p.v, (int)p.n, (char *)p.name, (int)p.name_len, dst->address, src->address,
                                              dst->host, src->host, dst->nbytes, refs, &st);
            r = cudago_node_added(node, &st);
        }
    }
    Py_XDECREF(dst);
    Py_XDECREF(src);
    return r;
}

/* _add_memset(deps, dst, value, name) */
static PyObject *graph_memset(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    if (n != 4 || cudago_graph_open(self) || cudago_read_place(args[0], args[3], &p)) return NULL;
    OperandObject *dst = cudago_operand(args[1], OPERAND_WRITABLE, "dst");
    PyObject *r = NULL;
    uint32_t value, width;
    if (dst && !same_device(self, dst, "dst") && !cudago_fill_value(args[2], dst->nbytes, &value, &width)) {
        cudago_ref ref;
        cudago_status st = {0};
        cudago_ref_set(&ref, (PyObject *)dst, dst->nbytes, ROLE_DST, REASON_MEMSET);
        uint64_t node = cudagoGraphMemset(self->id, p.v, (int)p.n, (char *)p.name, (int)p.name_len, dst->address, value, width,
                                          dst->nbytes / width, &ref, &st);
        r = cudago_node_added(node, &st);
    }
    Py_XDECREF(dst);
    return r;
}

/* Checks and packs the arguments of a kernel node, and calls then with them. Used to add a node and to update one. */
PyObject *cudago_with_kernel(int32_t device, PyObject *config, PyObject *kernel, PyObject *args, cudago_kernel_call then, void *at) {
    if (cudago_expect(config, CLS_CONFIG, "config") || cudago_expect(kernel, CLS_KERNEL, "kernel")) return NULL;
    KernelObject *ko = (KernelObject *)kernel;
    cudago_kernel *k = cudago_kernel_on(ko, device);
    if (!k || cudago_check_config((ConfigObject *)config, k)) return NULL;
    Py_ssize_t n = PyTuple_Size(args);
    if (n < 0) return NULL;
    if (n > CUDAGO_MAX_PARAMS) return PyErr_SetString(PyExc_TypeError, "too many arguments"), NULL;
    PyObject *items[CUDAGO_MAX_PARAMS], *kept, *r = NULL;
    for (Py_ssize_t i = 0; i < n; i++) items[i] = PyTuple_GetItem(args, i);
    uint8_t *values = malloc(k->size + 1);
    void *params[CUDAGO_MAX_PARAMS];
    if (!values) return PyErr_NoMemory();
    if (!cudago_pack(ko, k, NULL, items, n, 1, values, params, &kept)) {
        cudago_ref refs[CUDAGO_MAX_PARAMS + 1];
        cudago_status st = {0};
        Py_ssize_t m = cudago_refs_from_list(kept, refs);
        cudago_ref_set(&refs[m++], kernel, 0, ROLE_KERNEL, REASON_KERNEL);
        uint64_t node = then(at, k, params, refs, (int)m, (ConfigObject *)config, &st);
        r = cudago_node_added(node, &st);
        Py_XDECREF(kept);
    }
    free(values);
    return r;
}

typedef struct {
    GraphObject *graph;
    cudago_place *p;
} kernel_place;
static uint64_t add_kernel(void *at, cudago_kernel *k, void **params, cudago_ref *refs, int n, ConfigObject *c,
                           cudago_status *st) {
    kernel_place *kp = at;
    int pushed; /* here it is a comparison, in Go three crossings */
    cudago_ctx_enter(kp->graph->ctx, &pushed);
    uint64_t node = cudagoGraphKernel(kp->graph->id, kp->p->v, (int)kp->p->n, (char *)kp->p->name, (int)kp->p->name_len, k->id,
                                      c->grid, c->block, c->shared_memory, params, refs, n, st);
    cudago_ctx_leave(pushed);
    return node;
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
    OperandObject *o = cudago_callable_operand(args[1]);
    if (!o) return NULL;
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)o, 0, ROLE_CALLBACK, REASON_HOST);
    uint64_t node = cudagoGraphHost(self->id, p.v, (int)p.n, (char *)p.name, (int)p.name_len, cudago_host_function(),
                                    (uintptr_t)o->call, &ref, &st);
    Py_DECREF(o);
    return cudago_node_added(node, &st);
}

/* _add_empty(deps, name) */
static PyObject *graph_empty(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    if (n != 2 || cudago_graph_open(self) || cudago_read_place(args[0], args[1], &p)) return NULL;
    cudago_status st = {0};
    uint64_t node = cudagoGraphEmpty(self->id, p.v, (int)p.n, (char *)p.name, (int)p.name_len, &st);
    return cudago_node_added(node, &st);
}

/* _add_child(deps, graph, name) */
static PyObject *graph_child(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    if (n != 3 || cudago_graph_open(self) || cudago_read_place(args[0], args[2], &p) || cudago_expect(args[1], CLS_GRAPH, "graph")) return NULL;
    GraphObject *child = (GraphObject *)args[1];
    if (cudago_graph_open(child)) return NULL;
    cudago_status st = {0};
    uint64_t node = cudagoGraphChild(self->id, p.v, (int)p.n, (char *)p.name, (int)p.name_len, child->id, &st);
    return cudago_node_added(node, &st);
}

/* _add_event(deps, event, record, name): a node that records the event, or waits for it */
static PyObject *graph_event(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    cudago_place p;
    if (n != 4 || cudago_graph_open(self) || cudago_read_place(args[0], args[3], &p) || cudago_expect(args[1], CLS_EVENT, "event"))
        return NULL;
    EventObject *e = (EventObject *)args[1];
    if (!e->h) return cudago_raise_closed("event"), NULL;
    if (e->device != self->device)
        return PyErr_Format(PyExc_ValueError, "event is on device %d, the graph on device %d", e->device, self->device), NULL;
    cudago_ref ref;
    cudago_status st = {0};
    cudago_ref_set(&ref, (PyObject *)e, 0, ROLE_EVENT, REASON_EVENT);
    uint64_t node = cudagoGraphEvent(self->id, p.v, (int)p.n, (char *)p.name, (int)p.name_len, e->id, PyObject_IsTrue(args[2]), &ref, &st);
    return cudago_node_added(node, &st);
}

/* _text(what): "nodes", "edges", "retained" or "dot", for the Python face to read. */
static PyObject *graph_text(GraphObject *self, PyObject *what) {
    CUDAGO_ENTER(NULL);
    const char *w = PyUnicode_AsUTF8AndSize(what, NULL);
    if (!w || cudago_graph_open(self)) return NULL;
    cudago_status st = {0};
    char *text = cudagoGraphText(self->id, (char *)w, &st);
    if (st.kind) return cudago_raise(&st), NULL;
    PyObject *r = PyUnicode_FromString(text);
    free(text);
    return r;
}

/* _held(address): the object at an address that _text("retained") named. */
PyObject *cudago_held_at(cudago_held *h, PyObject *address) {
    unsigned long long a = PyLong_AsUnsignedLongLong(address);
    if (a == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    for (size_t i = 0; h && i < h->n; i++)
        if ((uintptr_t)h->v[i] == a) return NEW_REF(h->v[i]);
    Py_RETURN_NONE;
}
static PyObject *graph_held(GraphObject *self, PyObject *address) {
    return cudago_held_at(self->owner ? ((GraphObject *)self->owner)->held : self->held, address);
}

/* _clone() */
static PyObject *graph_clone(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (cudago_graph_open(self)) return NULL;
    GraphObject *clone = cudago_alloc(CLS_GRAPH);
    if (!clone) return NULL;
    clone->device = self->device;
    clone->ctx = self->ctx;
    cudago_status st = {0};
    clone->id = cudagoGraphClone(self->id, &clone->held, &st);
    if (st.kind) {
        cudago_raise(&st);
        Py_DECREF(clone);
        return NULL;
    }
    return (PyObject *)clone;
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
    cudago_status st = {0};
    uint64_t graph = self->id, id;
    Py_BEGIN_ALLOW_THREADS
    id = cudagoGraphInstantiate(graph, f, &st);
    Py_END_ALLOW_THREADS
    if (!st.kind) e->id = id, e->x = cudagoExecAdopt(id, &e->held);
    if (st.kind) {
        cudago_raise(&st);
        Py_DECREF(e);
        return NULL;
    }
    return (PyObject *)e;
}

static void give_up(GraphObject *self) {
    uint64_t id = self->id;
    PyObject *owner = self->owner;
    self->id = 0;
    self->held = NULL; /* first: Go frees it, and dropping what it held may run the collector */
    self->owner = NULL;
    if (id && !owner && !cudago_unusable) cudagoGraphClose(id); /* a body goes with its graph */
    Py_XDECREF(owner);
}
static PyObject *graph_close(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    if (self->capturing) return PyErr_SetString(PyExc_ValueError, "the graph is still being captured"), NULL;
    if (self->owner)
        return PyErr_SetString(PyExc_ValueError, "a body of a conditional node cannot be closed: close the graph that the node is in"), NULL;
    give_up(self);
    cudago_drain();
    Py_RETURN_NONE;
}
static PyObject *graph_exit(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return graph_close(self, NULL);
}
static PyObject *graph_is_closed(GraphObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(is_closed(self));
}
/* What makes two wrappers of one body equal; 0 for other graphs, which have one wrapper. */
static PyObject *graph_body_id(GraphObject *self, void *unused) {
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

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

#include "_cgo_export.h"

/* A Graph is built through Go. */

static QUIET int is_given_up(GraphObject *self) {
    return self->owner ? !((GraphObject *)self->owner)->id : !self->id && !self->capturing;
}

static QUIET int is_closed(GraphObject *self) { return is_given_up(self) || cudago_lost(self->device, self->generation); }

QUIET int cudago_graph_open(GraphObject *self) {
    if (self->moved) return cudago_raise_closed_as("graph is closed: it was moved into another one, where Node.params has a view of it");
    if (is_given_up(self)) return cudago_raise_closed("graph");
    if (is_closed(self)) return cudago_raise_lost("graph", self->device);
    if (!self->capturing) return 0;
    return PyErr_SetString(PyExc_ValueError, "the graph is still being captured: it can be used after the with block"), -1;
}

static QUIET cudago_hierarchy *hierarchy_now(GraphObject *self) { return cudago_graph_open(self) ? NULL : self->of; }

QUIET int cudago_graph_busy(GraphObject *self) { return !is_closed(self) && self->of->busy; }

int cudago_graph_ready(GraphObject *self) {
    do { /* each wait releases the GIL */
        cudago_hierarchy *h = hierarchy_now(self);
        if (!h || cudago_hierarchy_wait(h) || cudago_stall_wait()) return -1;
    } while (cudago_graph_busy(self));
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
    self->id = cudagoGraphNew(self->device, &self->held, &self->nodes, &st);
    if (st.kind) {
        cudago_raise(&st);
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

/* _clone() */
static PyObject *graph_clone(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    GraphObject *clone = cudago_graph_alloc_object(self->device, self->generation, NULL);
    if (!clone) return NULL;
    uint64_t graph = cudago_graph_number(self);
    if (!graph || cudago_graph_whole(self)) return Py_DECREF(clone), NULL;
    cudago_status st = {0};
    clone->id = cudagoGraphClone(graph, &clone->held, &st);
    if (st.kind) {
        cudago_raise(&st);
        Py_DECREF(clone);
        return NULL;
    }
    if (CUDAGO_WATCH("copied", "(OO)", self, clone)) Py_CLEAR(clone);
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
    if (!x) { /* the driver refused, or the interpreter has begun to end */
        cudago_hierarchy_release(of);
        return st.kind ? cudago_raise(&st) : cudago_raise_unusable();
    }
    e->id = id;
    e->x = x;
    x->of = of;
    x->generation = generation;
    return cudago_made("graph executable", e->device, generation) || cudago_exec_whole(e) ? -1 : 0; /* resets, meanwhile */
}
static QUIET int instantiate_now(GraphObject *self, ExecObject *e, unsigned long long flags) {
    if (cudago_graph_open(self)) return -1;
    if (self->nodes && self->nodes->n_added) cudagoGraphSettle(self->id); /* needs the GIL */
    e->slots = self->slots ? NEW_REF(self->slots) : NULL; /* they are not changed, but replaced: those of this moment */
    return instantiate_away(self->id, self->generation, self->of, e, flags);
}

/* _instantiate(flags): releases the GIL, because cuGraphInstantiate can wait for another thread's full launch queue. */
static PyObject *graph_instantiate(GraphObject *self, PyObject *flags) {
    CUDAGO_ENTER(NULL);
    if (cudago_graph_open(self)) return NULL;
    unsigned long long f = PyLong_AsUnsignedLongLong(flags);
    if (f == (unsigned long long)-1 && PyErr_Occurred()) return NULL;
    ExecObject *e = cudago_alloc(CLS_EXEC);
    if (!e) return NULL;
    e->device = self->device;
    e->flags = f;
    if (!cudago_graph_ready(self) && !cudago_graph_whole(self) && !instantiate_now(self, e, f) && !CUDAGO_WATCH("instantiated", "(OO)", self, e)) return (PyObject *)e;
    cudago_explain_memory(0);
    Py_DECREF(e);
    return NULL;
}

/* Where the slots are used, for slot.py: a dict without anything in it that the collector tracks, or None. */
static PyObject *graph_uses(GraphObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->slots ? self->slots : Py_None);
}
static PyObject *graph_replace_uses(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    return cudago_slots_replace(&self->slots, args, n);
}

/* dropped: nobody has asked for it, the last reference is gone */
static void graph_release(GraphObject *self, int dropped) {
    if (self->capturing && !cudago_unusable) cudago_capture_abandon(self);
    uint64_t id = self->id;
    PyObject *owner = self->owner, *origin = self->origin;
    cudago_hierarchy *of = self->of;
    self->id = 0;
    self->origin = NULL;
    self->nodes = NULL;
    self->held = NULL; /* first: Go frees it, and dropping what it held may run the collector */
    self->owner = NULL;
    self->of = NULL;
    int stays = owner || (dropped && self->exported); /* a body goes with its graph */
    if (id && !stays && !cudago_unusable) cudagoGraphClose(id);
    cudago_hierarchy_release(of);
    Py_XDECREF(owner);
    Py_XDECREF(origin);
}
void cudago_graph_moved(GraphObject *self) {
    self->moved = 1;
    graph_release(self, 0);
}
static QUIET int may_close(GraphObject *self) {
    if (self->capturing) return PyErr_SetString(PyExc_ValueError, "the graph is still being captured"), -1;
    if (!self->owner) return 0;
    return PyErr_SetString(PyExc_ValueError, "a body of a conditional node cannot be closed: close the graph that the node is in"), -1;
}
static PyObject *graph_close(GraphObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER_CLOSE();
    if (may_close(self)) return NULL;
    graph_release(self, 0);
    cudago_drain();
    Py_RETURN_NONE;
}
static PyObject *graph_exit(GraphObject *self, PyObject *const *args, Py_ssize_t n) {
    (void)args;
    (void)n;
    return graph_close(self, NULL);
}
/* Of what was inside a removed node Go knows it: see graph.py. */
static QUIET PyObject *graph_is_closed(GraphObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(is_closed(self));
}
/* Makes two wrappers of one body equal; 0 for other graphs, which have only one wrapper. */
static QUIET PyObject *graph_body_id(GraphObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->owner ? self->id : 0);
}
/* The graph that a body is in, or an embedded graph; or the graph itself. */
static QUIET PyObject *graph_outermost(GraphObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->owner ? self->owner : (PyObject *)self);
}
/* The stream whose work is being recorded in the graph, or None. */
static QUIET PyObject *graph_captured_stream(GraphObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->capturing && self->origin ? self->origin : Py_None);
}
static PyObject *graph_ordinal(GraphObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLong(self->device);
}

static int graph_traverse(GraphObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->owner);
    Py_VISIT(self->origin);
    if (self->exported) return 0;
    int r = cudago_nodes_traverse(self->nodes, visit, arg);
    return r ? r : cudago_held_traverse(self->held, visit, arg);
}
static int graph_clear(GraphObject *self) {
    graph_release(self, 1);
    return 0;
}
static void graph_dealloc(GraphObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    graph_release(self, 1);
    Py_XDECREF(self->slots);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"_add_memcpy", METHOD(cudago_graph_memcpy), METH_FASTCALL, NULL},
    {"_memcpy", METHOD(cudago_graph_copy), METH_FASTCALL, NULL},
    {"_add_box", METHOD(cudago_graph_box), METH_FASTCALL, NULL},
    {"_add_memset", METHOD(cudago_graph_memset), METH_FASTCALL, NULL},
    {"_add_semaphore", METHOD(cudago_graph_semaphore), METH_FASTCALL, NULL},
    {"_add_memop", METHOD(cudago_graph_memop), METH_FASTCALL, NULL},
    {"_add_kernel", METHOD(cudago_graph_kernel), METH_FASTCALL, NULL},
    {"_add_host", METHOD(cudago_graph_host), METH_FASTCALL, NULL},
    {"_add_empty", METHOD(cudago_graph_empty), METH_FASTCALL, NULL},
    {"_add_child", METHOD(cudago_graph_child), METH_FASTCALL, NULL},
    {"_add_child_of", METHOD(cudago_graph_child_of), METH_FASTCALL, NULL},
    {"_add_event", METHOD(cudago_graph_event), METH_FASTCALL, NULL},
    {"_add_alloc", METHOD(cudago_graph_alloc), METH_FASTCALL, NULL},
    {"_add_free", METHOD(cudago_graph_free), METH_FASTCALL, NULL},
    {"_add_conditional", METHOD(cudago_graph_conditional), METH_FASTCALL, NULL},
    {"_condition", METHOD(cudago_graph_condition), METH_O, NULL},
    {"_body", METHOD(cudago_graph_body), METH_FASTCALL, NULL},
    {"_buffer", METHOD(cudago_graph_buffer), METH_O, NULL},
    {"_update_memcpy", METHOD(cudago_graph_set_memcpy), METH_FASTCALL, NULL},
    {"_update_box", METHOD(cudago_graph_set_box), METH_FASTCALL, NULL},
    {"_update_memset", METHOD(cudago_graph_set_memset), METH_FASTCALL, NULL},
    {"_update_semaphore", METHOD(cudago_graph_set_semaphore), METH_FASTCALL, NULL},
    {"_update_memop", METHOD(cudago_graph_set_memop), METH_FASTCALL, NULL},
    {"_update_kernel", METHOD(cudago_graph_set_kernel), METH_FASTCALL, NULL},
    {"_update_host", METHOD(cudago_graph_set_host), METH_FASTCALL, NULL},
    {"_update_event", METHOD(cudago_graph_set_event), METH_FASTCALL, NULL},
    {"_update_child", METHOD(cudago_graph_set_child), METH_FASTCALL, NULL},
    {"_remove", METHOD(cudago_graph_remove), METH_FASTCALL, NULL},
    {"_take_back", METHOD(cudago_graph_take_back), METH_FASTCALL, NULL},
    {"_edge", METHOD(cudago_graph_edge), METH_FASTCALL, NULL},
    {"_neighbors", METHOD(cudago_graph_neighbors), METH_FASTCALL, NULL},
    {"_check", METHOD(cudago_graph_check), METH_O, NULL},
    {"_nodes", METHOD(cudago_graph_nodes), METH_NOARGS, NULL},
    {"launch", METHOD(cudago_graph_launch), METH_FASTCALL | METH_KEYWORDS, DOC_GRAPH_LAUNCH},
    {"_node", METHOD(cudago_graph_node_at), METH_O, NULL},
    {"_node_of", METHOD(cudago_graph_node_of), METH_O, NULL},
    {"_made_at", METHOD(cudago_graph_made_at), METH_O, NULL},
    {"_set_made_at", METHOD(cudago_graph_set_made_at), METH_FASTCALL, NULL},
    {"_node_row", METHOD(cudago_graph_node), METH_O, NULL},
    {"_find", METHOD(cudago_graph_find), METH_O, NULL},
    {"_count", METHOD(cudago_graph_count), METH_NOARGS, NULL},
    {"_edges", METHOD(cudago_graph_edges), METH_NOARGS, NULL},
    {"_edge_data", METHOD(cudago_graph_edge_data), METH_NOARGS, NULL},
    {"_dependencies", METHOD(cudago_graph_dependencies), METH_O, NULL},
    {"_has_memory", METHOD(cudago_graph_has_memory), METH_NOARGS, NULL},
    {"_has_edge", METHOD(cudago_graph_has_edge), METH_FASTCALL, NULL},
    {"_dependents", METHOD(cudago_graph_dependents), METH_O, NULL},
    {"_retained", METHOD(cudago_graph_retained), METH_O, NULL},
    {"_params", METHOD(cudago_graph_params), METH_O, NULL},
    {"_record", METHOD(cudago_graph_record), METH_O, NULL},
    {"_dot", METHOD(cudago_graph_dot), METH_NOARGS, NULL},
    {"_origin", METHOD(cudago_capture_origin), METH_O, NULL},
    {"_export", METHOD(cudago_graph_export), METH_NOARGS, NULL},
    {"_retain", METHOD(cudago_graph_retain), METH_FASTCALL, NULL},
    {"_capture_into", METHOD(cudago_graph_capture), METH_O, NULL},
    {"_clone", METHOD(graph_clone), METH_NOARGS, NULL},
    {"_instantiate", METHOD(graph_instantiate), METH_O, NULL},
    {"_replace_uses", METHOD(graph_replace_uses), METH_FASTCALL, NULL},
    {"close", METHOD(graph_close), METH_NOARGS, DOC_GRAPH_CLOSE},
    {"__enter__", cudago_context_enter, METH_NOARGS, NULL},
    {"__exit__", METHOD(graph_exit), METH_FASTCALL, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"_is_closed", (getter)graph_is_closed, NULL, NULL, NULL},
    {"_ordinal", (getter)graph_ordinal, NULL, NULL, NULL},
    {"_uses", (getter)graph_uses, NULL, NULL, NULL},
    {"_body_id", (getter)graph_body_id, NULL, NULL, NULL},
    {"_outermost", (getter)graph_outermost, NULL, NULL, NULL},
    {"_captured_stream", (getter)graph_captured_stream, NULL, NULL, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(GraphObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, graph_dealloc},
    {Py_tp_traverse, graph_traverse},
    {Py_tp_clear, graph_clear},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_graph_spec = {
    "cudago._core.Graph",
    sizeof(GraphObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

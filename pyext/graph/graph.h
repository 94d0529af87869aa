/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* graph.h: graphs, executables, and what they hold. */
#pragma once
#include "kernel/kernel.h"

/* What one lock of package graph guards: a graph with everything in it, and its executables. An instantiation holds
 * that lock across a driver call that can block. So whoever changes one of these waits, without the GIL, until nothing
 * of it is being instantiated. Guarded by the GIL. */
typedef struct {
    uint32_t refs;
    uint32_t busy; /* instantiations under way */
    int32_t removals; /* a node was removed */
} cudago_hierarchy;
cudago_hierarchy *cudago_hierarchy_new(void); /* NULL with MemoryError */
QUIET cudago_hierarchy *cudago_hierarchy_retain(cudago_hierarchy *h);
QUIET void cudago_hierarchy_release(cudago_hierarchy *h);
int cudago_hierarchy_wait(cudago_hierarchy *h); /* -1 with an exception of a signal */

/* An executable. C memory that Go made; guarded by the GIL.
 *
 * Launches and updates of one executable must not meet in the driver, and a launch that released the GIL may be waiting
 * for a callback that needs it. So updates pass a gate (exec.c): new launches wait, those under way end, the update
 * goes, and the launches that waited go before the next update. */
typedef struct {
    uint64_t id;       /* Go's handle */
    uintptr_t h;
    uintptr_t ctx;
    uint64_t launches; /* begun */
    uint64_t failed;   /* of these; they may have begun on the device too */
    int32_t device;
    uint32_t generation;
    int32_t calls_python;
    int32_t n_frees;
    uint64_t *frees; /* memory of other graphs that each launch frees: n_frees addresses, which no update changes */
    cudago_hierarchy *of;
    cudago_uses uses;  /* launches and uploads */
    uint32_t inside;   /* calls in the driver that released the GIL */
    int32_t closing;   /* its GraphExec is gone; the last call inside ends it */
    uint32_t updates;  /* updates that wait or run: launches that come now wait */
    uint32_t waiting;  /* launches and uploads that wait */
    uint32_t owed;     /* launches that the last update kept waiting and that go before the next */
    uint64_t phase;    /* updates that have run */
    unsigned long updater; /* the thread whose update is past the gate; 0: none is */
    int n_owned;
    struct cudago_owned *owned; /* CUDAGO_MAX_OWNED of them, or NULL */
} cudago_exec;

/* -1 with ValueError if a graph on the device may not copy it. */
int cudago_node_reaches(int32_t device, OperandObject *o, const char *what);

/* What a graph or an executable holds, as Python's collector sees it: one counted reference for each object. Guarded by
 * the GIL; held.go keeps it in step with Go's bundles. */
typedef struct {
    size_t n, cap;
    PyObject **v;
    /* Those of v whose memory may be given back before they go. Set changed whenever v changes. */
    int32_t changed;
    size_t near; /* where one was taken out last */
    size_t n_stored;
    OperandObject **stored; /* borrowed */
    uint64_t resets; /* cudago_resets when all was there; 0: look again after any reset */
} cudago_held;
int cudago_held_traverse(cudago_held *h, visitproc visit, void *arg);
QUIET void cudago_held_hide(cudago_held *h, uintptr_t object); /* takes it out once */
/* Is something gone that the executable uses: memory that PyTorch has given back, or what a reset has taken, perhaps of another
 * device? A launch asks: two loads, unless a storage of PyTorch's is held anywhere, or a device was reset. */
QUIET int cudago_held_find_gone(cudago_held *h, uint64_t exec);
static inline QUIET int cudago_held_gone(cudago_held *h, uint64_t exec) {
    return (cudago_operands_stored || cudago_resets) && h ? cudago_held_find_gone(h, exec) : 0;
}

/* A reference on its way to Go, which takes it over even if the call fails. */
typedef struct {
    uintptr_t object; /* Operand, or any object that must stay alive */
    uint64_t nbytes;
    uint64_t memory; /* Go's number of what a capture allocates, or 0 */
    int32_t role;   /* enum cudago_role, or ROLE_PARAMETER + index */
    int32_t reason; /* enum cudago_reason */
} cudago_ref;
/* Their names are in held.go. */
enum cudago_role { ROLE_SRC,
                   ROLE_DST,
                   ROLE_CALLBACK,
                   ROLE_KERNEL,
                   ROLE_EVENT,
                   ROLE_MEMORY,
                   ROLE_SEMAPHORE,
                   ROLE_OWNER,
                   ROLE_OBJECT,
                   ROLE_PARAMETER };
enum cudago_reason { REASON_MEMCPY,
                     REASON_MEMSET,
                     REASON_KERNEL,
                     REASON_HOST,
                     REASON_EVENT,
                     REASON_FREE,
                     REASON_MEMOP,
                     REASON_SEMAPHORE,
                     REASON_HANDLE,
                     REASON_RETAIN };

/* A node that C has added to the driver's graph, and that Go does not know yet. This is small, because memory that is
 * new to a process costs more than all else that is done for a node. What it uses are, of a kernel, the Operands of its
 * parameters, and last its record; of a copy the Operands of its source and its destination. */
typedef struct {
    const ConfigObject *config; /* the record's; NULL: it is a copy */
    const cudago_kernel *k;     /* of the record's kernel */
    int32_t after;              /* index of the node that it waits for; -1: none */
    int32_t n_uses;             /* they follow those of the node before it */
    uint32_t site;              /* the line that made it: cudago_site */
    int32_t unified;            /* a copy: the driver has unified addresses of it, though one be a host's */
} cudago_added;

/* What C needs of a graph to add nodes to it, and what it has added: the last of the nodes. Go makes it, and reads the nodes
 * before it does anything else with the graph (added.go): until then this holds what they use. Guarded by the GIL. */
typedef struct {
    uint64_t id;         /* the upper half of the nodes' numbers */
    uintptr_t h;         /* CUgraph */
    int32_t through_go;  /* nothing may be added here any more */
    size_t n, cap;
    uintptr_t *handles;  /* of all nodes, by index; 0: removed */
    size_t n_added, cap_added;
    cudago_added *added;
    size_t n_uses, cap_uses;
    PyObject **uses; /* counted */
    size_t n_shown;  /* so many of them are in the graph's cudago_held already */
} cudago_nodes;
/* Room for one more node, which uses n_uses; -1: out of memory. */
QUIET int cudago_nodes_reserve(cudago_nodes *nodes, size_t n_uses);
/* Writes a node down, for which there is room, and returns its number. after, config: see cudago_added. */
QUIET uint64_t cudago_nodes_note(cudago_nodes *nodes, CUgraphNode node, int32_t after, const cudago_kernel *k, const ConfigObject *config,
                                 const cudago_ref *refs, int n);
QUIET void cudago_nodes_show(cudago_nodes *nodes, cudago_held *held); /* enters what nodes use; nodes may be NULL */
int cudago_nodes_traverse(cudago_nodes *nodes, visitproc visit, void *arg); /* what is not entered yet */
/* For Go. */
cudago_nodes *cudago_nodes_new(void);
cudago_nodes *cudago_nodes_move(cudago_nodes *from); /* from has none then; NULL: out of memory */
void cudago_nodes_free(cudago_nodes *nodes);
QUIET void cudago_nodes_taken(cudago_nodes *nodes, cudago_held *held); /* Go has read what was added */

/* Whose turn it is to use an open capture. */
enum { RECORDED_NOBODY,
       RECORDED_GO, /* which holds the capture's lock. After the capture's end it stays so */
       RECORDED_C };

/* What C has recorded in an open capture: recorded.c. Without the GIL, so whoever uses it takes the
 * turn. C, which has the GIL, does not wait for Go, which need not. */
typedef struct {
    _Atomic int32_t turn;
    _Atomic(PyObject *) last; /* the latest record that is in nodes, or NULL; for who has the GIL */
    cudago_nodes nodes;       /* a handle is 0 if it is not known */
} cudago_recorded;
/* May C record what has n refs in the capture that was begun in s? Then it must, at once: it is C's turn. */
QUIET int cudago_records_here(const cudago_stream *s, const cudago_ref *refs, int n);
/* These take over refs, of a copy those of its source and its destination. -1 with an exception. */
QUIET int cudago_record_memcpy(cudago_stream *s, uint64_t dst, uint64_t src, uint64_t size, cudago_ref *refs);
QUIET int cudago_record_launch(cudago_stream *s, CUlaunchConfig *config, ConfigObject *c, const cudago_packing *p, cudago_ref *refs, int n);
QUIET PyObject *cudago_recorded_last(cudago_stream *s); /* see cudago_recorder */
/* For Go. */
cudago_recorded *cudago_recorded_new(void);
QUIET void cudago_recorded_free(cudago_recorded *r);
int cudago_recorded_stop(cudago_recorded *r); /* 0: a launch is being recorded, try again */
void cudago_recorded_resume(cudago_recorded *r);

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;       /* Go's handle; 0 while capturing and once closed */
    cudago_nodes *nodes; /* NULL once closed, and where all nodes are added through Go */
    cudago_held *held; /* NULL once closed */
    uintptr_t ctx;
    int32_t device;
    uint32_t generation;
    cudago_stream *capturing; /* the stream that it is being captured on, retained; NULL otherwise */
    int32_t ending;           /* a thread is ending the capture, without the GIL */
    uint64_t capture;         /* Go's number of that capture */
    cudago_recorded *recorded; /* in that capture, or NULL */
    int32_t thread;           /* the thread that began the capture and must end it: the kernel's number */
    int32_t mode;             /* of the capture */
    PyObject *origin;         /* the Stream of the capture, while it is open */
    PyObject *owner;          /* for a body of a conditional node the Graph it is in, which holds for it; else NULL */
    /* Other code has the handle, and may use what the graph holds in ways that nobody here knows: so only close() ends it, and
     * the collector sees nothing of what it holds. */
    int32_t exported;
    int32_t moved;            /* into another graph, and so closed */
    cudago_hierarchy *of;
    PyObject *slots;          /* or NULL */
} GraphObject;
/* Is it being captured, and only another thread can end that? */
static inline QUIET int cudago_is_anothers(const GraphObject *g) {
    return g->capturing && g->mode != CU_STREAM_CAPTURE_MODE_RELAXED && g->thread != cudago_thread();
}

/* Where a node goes: the numbers of the nodes that it waits for, and its name. Most nodes wait for one. */
typedef struct {
    uint64_t few[8], *many; /* v is one of them */
    uint64_t *v;
    Py_ssize_t n;
    const char *name;
    Py_ssize_t name_len;
    PyObject *note; /* the slots that it is to have: cudago_slots_note */
} cudago_place;
static inline void cudago_place_end(cudago_place *p) { free(p->many); }
/* Declares one, which is freed where its scope ends. */
#define PLACE(p) __attribute__((cleanup(cudago_place_end))) cudago_place p = {.many = NULL, .v = p.few}
int cudago_read_place(PyObject *deps, PyObject *name, cudago_place *p); /* deps: tuple of node numbers */
int cudago_read_name(PyObject *name, cudago_place *p);                  /* name: str or None, which must live as long as p */
PyObject *cudago_node_added(uint64_t node, cudago_status *st);          /* the node's number, or an exception */
QUIET int cudago_graph_open(GraphObject *self);                         /* -1 with an exception if it is not */
/* Ready to be changed: open, and nothing of it is being instantiated. May release the GIL, so it comes before the final
 * check. */
int cudago_graph_ready(GraphObject *self);
void cudago_graph_moved(GraphObject *self); /* it has become part of another */
QUIET int cudago_graph_busy(GraphObject *self); /* is something of it being instantiated? */
uint64_t cudago_graph_number(GraphObject *self); /* Go's handle of a graph that is ready; 0 with an exception */
/* Retains `of`; NULL: makes a new one. */
GraphObject *cudago_graph_alloc_object(int32_t device, uint32_t generation, cudago_hierarchy *of);

void cudago_captures_end_orphans(void); /* part of a drain: ends this thread's captures whose graph is gone */
void cudago_capture_abandon(GraphObject *self); /* capture.c: ends the capture of a graph that goes */

/* node_object.c, node_kernel.c: the Node of Python */
typedef struct NodeObject {
    PyObject_HEAD
    PyObject *weak;
    PyObject *graph;
    PyObject *known; /* its row in _nodes(), or NULL */
    uint64_t number;
    struct NodeObject *next; /* of those with the same hash: see node_object.c */
} NodeObject;
QUIET void cudago_node_number(NodeObject *node, uint64_t number); /* from now on it is found by that */
NodeObject *cudago_node_new(GraphObject *graph); /* without its number */
PyObject *cudago_graph_node_at(GraphObject *self, PyObject *number);
PyObject *cudago_graph_node_of(GraphObject *self, PyObject *row);
PyObject *cudago_graph_launch(GraphObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
PyObject *cudago_launch_node(PyObject *self, GraphObject *graph, const uint64_t *after, PyObject *const *args, Py_ssize_t n,
                             PyObject *names);

/* added.c: adding a node without Go. May that be done? Then there is room for it. c: of a kernel, else NULL. */
QUIET int cudago_can_add(const GraphObject *g, const cudago_place *p, const cudago_ref *refs, int n, const ConfigObject *c);
QUIET int cudago_has_attributes(const ConfigObject *c);
QUIET int cudago_uses_capture(const cudago_ref *refs, int n);
QUIET CUDA_KERNEL_NODE_PARAMS cudago_node_params(const cudago_kernel *k, void **params, const ConfigObject *c);
QUIET PyObject *cudago_last_record(const GraphObject *g); /* of the node that was added last, a new reference; NULL: Go has it, or it has none */
QUIET void cudago_held_show(cudago_held *h, const cudago_ref *refs, int n);
/* Takes over the refs, and drops them if it fails. */
QUIET PyObject *cudago_add_kernel(NodeObject *self, const cudago_place *p, const cudago_packing *l, cudago_ref *refs,
                                  int n, const ConfigObject *c);
/* The node's number, or 0 with an exception. refs: src, dst. */
QUIET uint64_t cudago_add_memcpy(GraphObject *g, const cudago_place *p, const OperandObject *dst, const OperandObject *src,
                                 cudago_ref *refs);

/* node.c, node_kernel.c, alloc.c and conditional.c: methods of Graph */
PyObject *cudago_graph_memcpy(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_copy(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_copy_node(GraphObject *graph, const uint64_t *after, PyObject *const *args, Py_ssize_t n); /* after: as for cudago_launch_node */
PyObject *cudago_graph_box(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_memset(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_memop(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_kernel(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_host(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_empty(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_child(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_child_of(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_semaphore(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_event(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_alloc(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_free(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_buffer(GraphObject *self, PyObject *node);
PyObject *cudago_graph_condition(GraphObject *self, PyObject *first);
PyObject *cudago_graph_conditional(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_body(GraphObject *self, PyObject *const *args, Py_ssize_t n);

/* captured.c */
QUIET cudago_cell *cudago_capture_allocate(ResourceObject *self, uint64_t size, cudago_stream *s, int32_t *others); /* see cudago_captured_allocate */
/* foreign.c */
QUIET int cudago_capture_hold(cudago_cell *cell, cudago_stream *s); /* see cudago_captured_hold */
uintptr_t cudago_kept_new(uint64_t id);                      /* for Go: what a foreign graph's user object has; 0: no memory */
uintptr_t cudago_kept_end(void);                             /* for Go: the C function that ends it */
void cudago_kept_sweep(void);                                /* with the GIL: releases what foreign graphs kept */
QUIET void cudago_graph_cell(cudago_go_cell *c, uint64_t id, int32_t device, uint64_t ptr, uint64_t size, int visible); /* fills in what a graph's memory is; visible: see cudagoHostVisible */

int cudago_fills(OperandObject *o, uint32_t width); /* can a node fill it? -1 with ValueError */

/* foreign.c */
PyObject *cudago_graph_from_handle(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_export(GraphObject *self, PyObject *unused);
PyObject *cudago_graph_retain(PyObject *graph, PyObject *const *args, Py_ssize_t n);

/* embed.c: methods of Graph and of GraphExec */
PyObject *cudago_graph_capture(GraphObject *self, PyObject *stream);

/* edit.c: methods of Graph */
PyObject *cudago_graph_remove(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_take_back(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_edge(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_neighbors(GraphObject *self, PyObject *const *args, Py_ssize_t n);

/* set.c: methods of Graph */
PyObject *cudago_graph_set_memcpy(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_set_box(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_set_memset(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_set_memop(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_set_semaphore(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_set_kernel(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_set_host(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_set_event(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_set_child(GraphObject *self, PyObject *const *args, Py_ssize_t n);

/* What a memory operation is given, once it has been evaluated; -1 with an exception. o is set in any case. */
typedef struct {
    cudago_memop_value value;
    cudago_memop m;
    OperandObject *o;
} cudago_memop_given;
int cudago_read_memop(int32_t device, PyObject *const *args, cudago_memop_given *g); /* memory, value, condition */
QUIET void cudago_set_memop(uint64_t id, uint64_t node, const cudago_memop_given *g, cudago_status *st); /* that fits */

/* event_node.c: a node of a graph or an executable whose event or semaphore another gets. What a node has may be closed. */
typedef struct {
    PyObject *of; /* borrowed; NULL: there is none */
    uint64_t node;
} cudago_from;
int cudago_read_from(PyObject *const *args, Py_ssize_t n, cudago_from *f); /* none, or graph or executable, and number */
int cudago_from_ready(const cudago_from *f); /* waits as cudago_graph_ready does */
/* Go's number, or 0; -1 with an exception if it was closed, CUDAGO_AGAIN while something of it is being instantiated. */
QUIET int cudago_from_id(const cudago_from *f, uint64_t *id);

/* semaphore_node.c: what a semaphore node is given, once it has been evaluated; -1 with an exception. */
typedef struct {
    SemaphoreObject *semaphore; /* borrowed */
    uint64_t value;
    int32_t waits;
    int is_own; /* the node has it already, and goes on with it even if it was closed */
} cudago_semaphore_given;
int cudago_read_semaphore(PyObject *const *args, cudago_semaphore_given *g); /* semaphore, value, waits */
int cudago_read_semaphore_change(PyObject *const *args, cudago_semaphore_given *g); /* and is_own */
QUIET int cudago_semaphore_usable(int32_t device, const cudago_semaphore_given *g); /* -1 with an exception */
QUIET void cudago_set_semaphore(uint64_t id, uint64_t node, const cudago_semaphore_given *g, cudago_status *st); /* that is usable */

/* made_at.c: methods of Graph */
PyObject *cudago_graph_made_at(GraphObject *self, PyObject *number);
PyObject *cudago_graph_set_made_at(GraphObject *self, PyObject *const *args, Py_ssize_t n);

/* ask.c: methods of Graph */
PyObject *cudago_graph_check(GraphObject *self, PyObject *number);
PyObject *cudago_graph_nodes(GraphObject *self, PyObject *unused);
PyObject *cudago_graph_node(GraphObject *self, PyObject *number);
PyObject *cudago_graph_find(GraphObject *self, PyObject *name);
PyObject *cudago_graph_count(GraphObject *self, PyObject *unused);
PyObject *cudago_graph_edges(GraphObject *self, PyObject *unused);
PyObject *cudago_graph_edge_data(GraphObject *self, PyObject *unused);
PyObject *cudago_graph_dependencies(GraphObject *self, PyObject *number);
PyObject *cudago_graph_dependents(GraphObject *self, PyObject *number);
PyObject *cudago_graph_has_memory(GraphObject *self, PyObject *unused);
PyObject *cudago_graph_has_edge(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_retained(GraphObject *self, PyObject *number);
PyObject *cudago_graph_params(GraphObject *self, PyObject *number);
PyObject *cudago_graph_record(GraphObject *self, PyObject *number);
PyObject *cudago_graph_dot(GraphObject *self, PyObject *unused);

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;
    cudago_exec *x;    /* NULL once closed */
    uint64_t flags;    /* it was instantiated with */
    cudago_held *held;
    int32_t device;
    PyObject *slots;     /* or NULL */
    int in_python;       /* how many updates Python makes now, which read what a node does and write it back: then it makes all */
    PyObject *found;     /* dict: rows of _nodes() by name, of nodes that were looked up; they never change. Or NULL */
} ExecObject;

static inline QUIET int cudago_exec_lost(const cudago_exec *x) { return cudago_lost(x->device, x->generation); }
QUIET int cudago_exec_open(ExecObject *self); /* -1 with an exception if it is not */
/* held.c: -1 with ClosedError, which names the node, if something that it uses is gone. Of a graph that is ready. */
int cudago_exec_whole(ExecObject *self);
int cudago_graph_whole(GraphObject *self);
int cudago_read_node(PyObject *number, uint64_t *node);

/* A copy of size bytes, as the driver is told. */
static inline QUIET CUDA_MEMCPY3D cudago_memcpy_params(uint64_t dst, int32_t dst_host, uint64_t src, int32_t src_host, uint64_t size) {
    return (CUDA_MEMCPY3D){.SrcMemoryType = src_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED,
                           .SrcHost = src_host ? (uintptr_t)src : 0,
                           .SrcDevice = src_host ? 0 : src,
                           .SrcPitch = size,
                           .SrcHeight = 1,
                           .DstMemoryType = dst_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED,
                           .DstHost = dst_host ? (uintptr_t)dst : 0,
                           .DstDevice = dst_host ? 0 : dst,
                           .DstPitch = size,
                           .DstHeight = 1,
                           .WidthInBytes = size,
                           .Height = 1,
                           .Depth = 1};
}

PyObject *cudago_exec_capture(ExecObject *self, PyObject *stream); /* embed.c */
/* owned.c: a node of an executable that C updates. */
enum { CUDAGO_MAX_OWNED = 16 };
typedef struct cudago_owned {
    uint64_t node;  /* its number in the graph */
    uintptr_t def;  /* CUgraphNode of the graph's node */
    int32_t is_kernel;
    int32_t dst_host, src_host; /* of a copy */
    uint64_t dst, src, size;
    uint64_t kernel; /* Go's handle; 0: what it was when Go left the node to C */
    cudago_shape shape;
    int32_t n;
    cudago_ref *refs; /* what later launches use, counted; of a kernel that C has told the driver of, the record last */
    /* What C has told the driver of a kernel; NULL: C has not yet. k is that of the record's kernel, which keeps it. */
    const cudago_kernel *k;
    void **params; /* and behind these what they point to */
} cudago_owned;
enum { CUDAGO_MAX_CHANGES = 8 };
/* Refs to be dropped once anything may run: in an array that is freed then, or in few. */
typedef struct {
    cudago_ref *refs;
    int n;
    cudago_ref few[CUDAGO_MAX_CHANGES];
} cudago_gone;
/* Declares one that is empty, without clearing few. */
#define GONE(g) \
    cudago_gone g; \
    g.refs = NULL; \
    g.n = 0
void cudago_gone_drop(cudago_gone *gone);
QUIET cudago_owned *cudago_owned_find(cudago_exec *x, uint64_t node);
QUIET cudago_owned *cudago_owned_of(cudago_exec *x, uint64_t node);
QUIET int cudago_owned_takes_sides(const cudago_owned *w, OperandObject *const *o);
QUIET int32_t cudago_owned_memcpy(ExecObject *self, cudago_owned *w, OperandObject *const *o, cudago_gone *gone);
QUIET int cudago_owned_takes_kernel(const cudago_owned *w, const cudago_ref *refs, int n, const ConfigObject *c);
QUIET int32_t cudago_owned_kernel(ExecObject *self, cudago_owned *w, const cudago_kernel *k, void **params, const cudago_ref *refs,
                                  int n, const ConfigObject *c, cudago_gone *gone);
QUIET PyObject *cudago_owned_record(const cudago_owned *w); /* of a kernel node: a new reference, or NULL */

/* change.c: other arguments for some of a kernel node's parameters. */
typedef struct {
    uint64_t node;
    KernelObject *kernel; /* counted */
    const cudago_kernel *k; /* what it is on the executable's device */
    int n;
    uint16_t which[CUDAGO_MAX_CHANGES]; /* each parameter once */
    PyObject *given[CUDAGO_MAX_CHANGES]; /* counted */
    PyObject *items[CUDAGO_MAX_CHANGES]; /* what the record is to have of them, counted */
} cudago_change;
/* 0: the arguments of that node cannot be changed here, and there is nothing to end. */
QUIET int cudago_change_begin(cudago_change *c, ExecObject *self, uint64_t node);
QUIET int cudago_change_add(cudago_change *c, Py_ssize_t which, PyObject *given); /* 0: there is no such parameter, or no room */
/* 1: it is made; 0: it cannot be made here, and nothing has happened; -1 with an exception. Ends the change. */
int cudago_change_make(ExecObject *self, cudago_change *c);
void cudago_change_end(cudago_change *c);
/* Another number for one parameter, by its name or, without one, its place. 1: it is changed; 0: it is not that simple, and
 * nothing has happened; -1 with an exception. */
QUIET int cudago_change_number(ExecObject *self, uint64_t node, PyObject *name, long place, PyObject *given);
/* The same, but 0 whenever nothing has happened; *r is the CUresult. */
QUIET int cudago_owned_number(const cudago_exec *x, cudago_owned *w, PyObject *record, int which, PyObject *given, int32_t *r);
/* Of a copy: "8 bytes from 0x10 to 0x20". Either side may be NULL. */
void cudago_copy_text(char *to, size_t n, const OperandObject *dst, const OperandObject *src);
int cudago_raise_update(const char *operation, int32_t code, int32_t device, const char *detail); /* of the driver; returns -1 */
QUIET int cudago_has_kernel(ExecObject *self, uint64_t node, const PyObject *kernel); /* as far as C knows the node */
QUIET int cudago_update_calm(const cudago_exec *x); /* update.c: an update would not wait, and keeps nobody waiting */
QUIET cudago_owned *cudago_owned_changeable(cudago_exec *x, uint64_t node, PyObject **record); /* NULL: it is not */
QUIET int cudago_owned_lost(const cudago_owned *w); /* memory that it uses */
QUIET int32_t cudago_owned_change(ExecObject *self, cudago_owned *w, PyObject *record, cudago_change *c, const cudago_packing *p,
                                  const cudago_ref *refs, int n, cudago_gone *gone);

QUIET int cudago_exec_is_calm(ExecObject *self, StreamObject *stream);
QUIET int cudago_exec_launch_calm(ExecObject *self, StreamObject *stream); /* if it is; -1 with an exception */

/* watch.c: an event that who watches is told of, with the arguments of Py_BuildValue for a tuple. 0, or -1 with an
 * exception of the watcher's. It runs Python, so it comes before the last look at what the call uses, or after the call. */
extern PyObject *cudago_watcher;
int cudago_watch_call(const char *event, const char *format, ...);
#define CUDAGO_WATCH(...) (__builtin_expect(cudago_watcher != NULL, 0) ? cudago_watch_call(__VA_ARGS__) : 0)
PyObject *cudago_set_watcher(PyObject *module, PyObject *watcher);
PyObject *cudago_get_watcher(PyObject *module, PyObject *unused);

/* bound.c. cudago_exec_launch_uncaptured is a launch, but if the stream is capturing nothing has been done. */
PyObject *cudago_exec_launch(ExecObject *self, PyObject *stream);
int cudago_exec_launch_uncaptured(ExecObject *self, PyObject *stream, int *captured);
PyObject *cudago_read_stream(PyObject *const *args, Py_ssize_t n, PyObject *names); /* borrowed */
PyObject *cudago_exec_call(ExecObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
int cudago_bound_type_init(PyObject *module);

/* replay.c */
PyObject *cudago_replay_new(PyObject *module, PyObject *args);
PyObject *cudago_tick(PyObject *module, PyObject *unused);
int cudago_replay_type_init(PyObject *module);

PyObject *cudago_exec_made_at(ExecObject *self, PyObject *number); /* made_at.c */
/* ask.c: methods of GraphExec */
PyObject *cudago_exec_nodes(ExecObject *self, PyObject *unused);
PyObject *cudago_exec_find(ExecObject *self, PyObject *name);
PyObject *cudago_exec_edges(ExecObject *self, PyObject *unused);
PyObject *cudago_exec_edge_data(ExecObject *self, PyObject *unused);
PyObject *cudago_exec_count(ExecObject *self, PyObject *unused);
PyObject *cudago_exec_retained(ExecObject *self, PyObject *unused);
PyObject *cudago_exec_enabled(ExecObject *self, PyObject *node);
PyObject *cudago_exec_params(ExecObject *self, PyObject *number);
PyObject *cudago_exec_record(ExecObject *self, PyObject *number);

/* exec_node.c: the ExecNode of Python */
PyObject *cudago_exec_node_new(ExecObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_exec_item(ExecObject *self, PyObject *name); /* executable[name] */
extern PyType_Spec cudago_exec_node_spec;

PyObject *cudago_exec_bind(ExecObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names); /* bind.c */
PyObject *cudago_slots_replace(PyObject **slots, PyObject *const *args, Py_ssize_t n);
/* Notes which slots a node has from now on. It comes right behind the driver's call that adds or changes the node, and cannot fail:
 * a signal is heard before both or after both. note: what `noted` in slot.py made, or NULL. */
QUIET void cudago_slots_note(PyObject **slots, PyObject *note, uint64_t node);
int cudago_read_note(PyObject *given, PyObject **note); /* given may be None; -1 with an exception */
PyObject *cudago_exec_in_python(ExecObject *self, PyObject *more);
PyObject *cudago_exec_change_all(ExecObject *self, PyObject *const *args, Py_ssize_t n);

/* update.c: the gate of updates. Inside, nothing may be raised: that runs Python now and then, a finalizer or a collection,
 * and if it launched the executable it would wait for itself. So what is done inside says why it was refused, and the
 * exception is made outside. */
typedef struct {
    cudago_status st;      /* Go's reason; of kind 0: none */
    const char *operation; /* what the driver refused, with code; NULL: nothing */
    int32_t code;
    int32_t no_memory;
    const OperandObject *lost;      /* its memory is gone; borrowed from the caller, or NULL */
    const SemaphoreObject *closed;  /* the same of a semaphore */
    const cudago_packing *launch;   /* what operation was about; borrowed, or NULL */
    cudago_shape shape;             /* of the launch */
    OperandObject *const *sides;    /* the same: dst and src of a copy, of which one may be NULL */
} cudago_refusal;
typedef void cudago_update_now(ExecObject *self, void *at, cudago_refusal *why); /* QUIET, and raises nothing */
/* Does it inside the gate: after all arguments have been evaluated no call is in the driver with the executable, nothing of
 * it is being instantiated, and no launch begins before the end. -1 with an exception. */
int cudago_update_gate(ExecObject *self, cudago_update_now *now, void *at);
int cudago_update_sides(ExecObject *self, uint64_t node, PyObject *const *sides, PyObject *note); /* dst and src, of which either may be None */
PyObject *cudago_update_memcpy(ExecObject *self, PyObject *const *args, Py_ssize_t n);
int cudago_read_sides(int32_t device, PyObject *const *args, OperandObject **o);
static inline QUIET OperandObject *cudago_operand_at(uintptr_t object) { return (OperandObject *)object; } /* for Go */
QUIET void cudago_set_memcpy(uint64_t id, uint64_t node, OperandObject *const *o, cudago_status *st);
PyObject *cudago_update_memset(ExecObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_update_semaphore(ExecObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_update_memop(ExecObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_update_kernel(ExecObject *self, PyObject *const *args, Py_ssize_t n);
/* what: config, kernel. With the Operands of before where they will do. left: set if it has become Python's affair, and nothing is
 * done; NULL: Python does it. */
PyObject *cudago_update_launch(ExecObject *self, uint64_t node, PyObject *const *what, PyObject *const *args, Py_ssize_t n, PyObject *note,
                               int *left);
PyObject *cudago_update_host(ExecObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_update_event(ExecObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_update_child(ExecObject *self, PyObject *const *args, Py_ssize_t n);

/* event_node.c */
QUIET int cudago_event_usable(int32_t device, const EventObject *e);
PyObject *cudago_update_graph(ExecObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_update_enabled(ExecObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_update_inside(ExecObject *self, PyObject *callable);
uintptr_t cudago_nothing(void); /* a host function that does nothing */

/* Sets r to a new reference; the memory of an Operand counts as a graph's from now on. */
QUIET void cudago_ref_set(cudago_ref *r, PyObject *object, uint64_t nbytes, int role, int reason);
OperandObject *cudago_callable_operand(PyObject *callable, int32_t device); /* node.c */

/* What is done with a kernel, its configuration and its arguments once all have been evaluated: adding a node, or
 * updating one. enter may release the GIL. now is QUIET, or passes a gate. */
typedef struct {
    int (*enter)(void *at, const cudago_packing *p); /* -1 with an exception */
    PyObject *(*now)(void *at, const cudago_packing *p, ConfigObject *c);
} cudago_kernel_use;
/* May kernels of that hierarchy be given the condition that is packed, if one is? -1 with ValueError. That of a closed graph may
 * be of an executable that is open, but of no graph. */
QUIET const cudago_hierarchy *cudago_graph_hierarchy(GraphObject *graph); /* to be compared only; NULL: it is closed */
int cudago_condition_fits(const cudago_packing *p, const cudago_hierarchy *of, int in_graph);
PyObject *cudago_with_kernel(const cudago_kernel_use *use, void *at, int32_t device, PyObject *config, PyObject *kernel,
                             PyObject *const *args, Py_ssize_t n, PyObject *like); /* like: see cudago_packing */
Py_ssize_t cudago_read_arguments(PyObject *tuple, PyObject **items); /* borrowed, at most CUDAGO_MAX_PARAMS; -1 with an exception */
PyObject *cudago_with_kernel_of(const cudago_kernel_use *use, void *at, int32_t device, PyObject *const *what); /* config, kernel, tuple */
/* New references to the Operands of a packed launch, named "parameter 0" and so on, and to the kernel; returns how
 * many. */
QUIET int cudago_refs_of(const cudago_packing *p, cudago_ref *refs);
void cudago_refs_drop(cudago_ref *refs, int n);

/* For Go. */
cudago_held *cudago_held_new(void);
void cudago_held_free(cudago_held *h);
QUIET int cudago_held_grow(cudago_held *h);
void cudago_held_count(const uintptr_t *objects, size_t n); /* another reference to each */

/* Go functions for later rooms. */
void cudagoCloseGraphs(void); /* at exit */

/* --- what room.c adds to the module, and types -------------------------------------------------------------------- */

extern const cudago_recorder cudago_recording; /* capture.c */
extern PyMethodDef cudago_stream_callbacks[];  /* a method of Stream: host.c */
extern PyMethodDef cudago_buffer_frees[];      /* a method of Buffer: alloc.c */
PyObject *cudago_graph_new(PyObject *module, PyObject *device);
PyObject *cudago_capture_begin(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_capture_new(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_capture_end(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_capture_origin(GraphObject *self, PyObject *stream); /* a method of Graph */
PyObject *cudago_invalidated(PyObject *module, PyObject *cause);
PyObject *cudago_captures_are_open(PyObject *module, PyObject *unused);
int cudago_capture_type_init(void);
extern PyType_Spec cudago_graph_spec, cudago_exec_spec, cudago_node_spec;
int cudago_graph_room(PyObject *module); /* -1 with an exception */

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* graph.h: graphs, executables, and what they hold. */
#pragma once
#include "native.h"

int cudago_copies(int32_t device, OperandObject *o, const char *what); /* -1 with ValueError if a graph there may not */

/* What a graph or an executable holds, as Python's collector sees it: one counted reference each. Guarded by the GIL;
 * kept in step with Go's bundles by held.go. */
typedef struct {
    size_t n, cap;
    PyObject **v;
} cudago_held;
int cudago_held_traverse(cudago_held *h, visitproc visit, void *arg);

/* A reference on its way to Go, which takes it over whatever happens. */
typedef struct {
    uintptr_t object; /* Operand, or any object that must stay alive */
    uint64_t nbytes;
    int32_t role;   /* enum cudago_role, or ROLE_ARGUMENT + index */
    int32_t reason; /* enum cudago_reason */
} cudago_ref;
/* held.go has the names. */
enum cudago_role { ROLE_SRC, ROLE_DST, ROLE_CALLBACK, ROLE_KERNEL, ROLE_EVENT, ROLE_MEMORY, ROLE_ARGUMENT };
enum cudago_reason { REASON_MEMCPY, REASON_MEMSET, REASON_KERNEL, REASON_HOST, REASON_EVENT, REASON_FREE };

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;       /* Go's handle; 0 while capturing and once closed */
    cudago_held *held; /* NULL once closed */
    uintptr_t ctx;
    int32_t device;
    cudago_stream *capturing; /* the stream that it is captured on, retained; NULL otherwise */
    PyObject *owner;          /* of a body of a conditional node: the Graph that it is in, which holds; NULL otherwise */
} GraphObject;

/* Where a node goes: the numbers of what it waits for, and its name. */
enum { CUDAGO_MAX_DEPS = 1024 };
typedef struct {
    uint64_t v[CUDAGO_MAX_DEPS];
    Py_ssize_t n;
    const char *name;
    Py_ssize_t name_len;
} cudago_place;
int cudago_read_place(PyObject *deps, PyObject *name, cudago_place *p); /* deps: tuple of node numbers */
PyObject *cudago_node_added(uint64_t node, cudago_status *st);          /* the node's number, or an exception */
int cudago_graph_open(GraphObject *self);                               /* -1 with an exception if it is not */

/* graph_inner.c: methods of Graph */
PyObject *cudago_graph_alloc(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_free(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_buffer(GraphObject *self, PyObject *node);
PyObject *cudago_graph_condition(GraphObject *self, PyObject *first);
PyObject *cudago_graph_conditional(GraphObject *self, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_body(GraphObject *self, PyObject *const *args, Py_ssize_t n);

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;
    cudago_exec *x;    /* NULL once closed */
    cudago_held *held;
    int32_t device;
} ExecObject;

/* Fills refs with new references to the Operands of a list, named "parameter 0", ...; returns how many. */
Py_ssize_t cudago_refs_from_list(PyObject *list, cudago_ref *refs);
void cudago_ref_set(cudago_ref *r, PyObject *object, uint64_t nbytes, int role, int reason);
OperandObject *cudago_callable_operand(PyObject *callable); /* callback.c */
uintptr_t cudago_host_function(void);

/* Checks and packs the arguments of a kernel node, and calls then with them: to add a node, or to update one. */
typedef uint64_t (*cudago_kernel_call)(void *at, cudago_kernel *k, void **params, cudago_ref *refs, int n, ConfigObject *c,
                                       cudago_status *st);
PyObject *cudago_with_kernel(int32_t device, PyObject *config, PyObject *kernel, PyObject *args, cudago_kernel_call then,
                             void *at);
PyObject *cudago_held_at(cudago_held *h, PyObject *address); /* the held object at an address, or None */

/* For Go. */
cudago_held *cudago_held_new(void);
void cudago_held_free(cudago_held *h);
typedef struct {
    uintptr_t object;
    int32_t add;  /* or remove */
    int32_t own;  /* added: the count is Go's own, not one more; removed: the count stays */
} cudago_change;
void cudago_held_apply(cudago_held *h, cudago_change *changes, size_t n);
uint32_t cudago_exec_busy(cudago_exec *x);
uint64_t cudago_exec_launches(cudago_exec *x);

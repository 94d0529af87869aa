/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* An ExecNode of Python: its executable, and its number there. */

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    ExecObject *exec;
    PyObject *name, *kind;
    uint64_t number;
    enum { IS_OTHER,
           IS_KERNEL,
           IS_COPY } what;
} ExecNodeObject;

/* _node(number, name, kind): the ExecNode of a row of _nodes() */
PyObject *cudago_exec_node_new(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    static cudago_keyword kinds[] = {{"kernel", NULL}, {"memcpy", NULL}};
    uint64_t number;
    if (n != 3 || !PyUnicode_Check(args[1]) || !PyUnicode_Check(args[2]))
        return PyErr_SetString(PyExc_TypeError, "_node(number, name, kind)"), NULL;
    if (cudago_read_node(args[0], &number)) return NULL;
    ExecNodeObject *node = cudago_alloc(CLS_EXEC_NODE);
    if (!node) return NULL;
    int kind = cudago_which(kinds, 2, args[2]);
    node->exec = (ExecObject *)NEW_REF(self);
    node->name = NEW_REF(args[1]);
    node->kind = NEW_REF(args[2]);
    node->number = number;
    node->what = kind == 0 ? IS_KERNEL : kind == 1 ? IS_COPY
                                                   : IS_OTHER;
    return (PyObject *)node;
}

PyObject *cudago_exec_item(ExecObject *self, PyObject *name) {
    CUDAGO_ENTER(NULL);
    PyObject *row = NULL, *node = NULL;
    if (cudago_exec_open(self)) return NULL;
    if (self->found && PyUnicode_CheckExact(name) && !(row = PyDict_GetItemWithError(self->found, name)) && PyErr_Occurred()) return NULL;
    if (!row) return PyObject_CallMethod((PyObject *)self, "_named", "(O)", name);
    PyObject *args[] = {PyTuple_GetItem(row, 0), PyTuple_GetItem(row, 1), PyTuple_GetItem(row, 2)};
    Py_IncRef(row);
    node = cudago_exec_node_new(self, args, 3);
    Py_DECREF(row);
    return node;
}

/* --- update: 1 if it is done here, 0 if it is Python's affair, -1 with an exception --------------------------------------- */

/* update(dst=, src=) */
static int update_copy(ExecNodeObject *self, PyObject *const *given, PyObject *names) {
    static cudago_keyword known[] = {{"dst", NULL}, {"src", NULL}};
    PyObject *sides[2] = {Py_None, Py_None};
    Py_ssize_t n = PyTuple_Size(names);
    for (Py_ssize_t i = 0; i < n; i++) {
        int which = cudago_which(known, 2, PyTuple_GetItem(names, i));
        if (which == 2 || given[i] == Py_None) return 0;
        sides[which] = given[i];
    }
    return cudago_update_sides(self->exec, self->number, sides, NULL) ? -1 : 1;
}

static int end_change(ExecNodeObject *self, cudago_change *c, int simple) {
    if (simple) return cudago_change_make(self->exec, c);
    cudago_change_end(c);
    return 0;
}

/* update(name=argument, ...) */
static int update_named(ExecNodeObject *self, PyObject *const *given, PyObject *names) {
    Py_ssize_t n = PyTuple_Size(names);
    int number = n == 1 ? cudago_change_number(self->exec, self->number, PyTuple_GetItem(names, 0), 0, given[0]) : 0;
    if (number) return number;
    cudago_change c;
    if (!cudago_change_begin(&c, self->exec, self->number)) return 0;
    int simple = 1;
    for (Py_ssize_t i = 0; simple && i < n; i++)
        simple = cudago_change_add(&c, cudago_kernel_named(c.kernel, c.k, PyTuple_GetItem(names, i)), given[i]);
    return end_change(self, &c, simple);
}

/* -1: it is none. */
static long place_of(PyObject *place) {
    int overflow;
    if (!PyLong_CheckExact(place)) return -1;
    long which = PyLong_AsLongAndOverflow(place, &overflow);
    return overflow ? -1 : which;
}

/* update({position: argument, ...}) */
static int update_placed(ExecNodeObject *self, PyObject *places) {
    Py_ssize_t at = 0, n = PyDict_Size(places);
    PyObject *place, *given;
    int one = n == 1 && PyDict_Next(places, &at, &place, &given);
    int number = one ? cudago_change_number(self->exec, self->number, NULL, place_of(place), given) : 0;
    if (number) return number;
    cudago_change c;
    if (!cudago_change_begin(&c, self->exec, self->number)) return 0;
    int simple = 1;
    for (at = 0; simple && PyDict_Next(places, &at, &place, &given);) simple = cudago_change_add(&c, place_of(place), given);
    return end_change(self, &c, simple);
}

/* update(config, kernel, *args). Where slots are used Python notes which the arguments of another kernel leave. */
static int update_launch(ExecNodeObject *self, PyObject *const *args, Py_ssize_t n) {
    if (!cudago_is(args[0], CLS_CONFIG) || !cudago_is(args[1], CLS_KERNEL)) return 0;
    if (((KernelObject *)args[1])->work) return 0;
    if (self->exec->slots && !cudago_has_kernel(self->exec, self->number, args[1])) return 0;
    int left = 0;
    PyObject *r = cudago_update_launch(self->exec, self->number, args, args + 2, n - 2, NULL, &left);
    Py_XDECREF(r);
    return r ? !left : -1;
}

/* Slots among what is given are Python's affair. */
static int has_slot(PyObject *const *given, Py_ssize_t n) {
    Py_ssize_t at = 0;
    PyObject *place, *value;
    if (n && PyDict_CheckExact(given[0]))
        while (PyDict_Next(given[0], &at, &place, &value))
            if (cudago_is_slot(value)) return 1;
    for (Py_ssize_t i = 0; i < n; i++)
        if (cudago_is_slot(given[i])) return 1;
    return 0;
}

static int update(ExecNodeObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    if (self->exec->in_python || has_slot(args, n + (names ? PyTuple_Size(names) : 0))) return 0;
    if (self->what == IS_KERNEL && n == 1 && !names && PyDict_CheckExact(args[0])) return update_placed(self, args[0]);
    if (self->what == IS_KERNEL && n > 1 && !names) return update_launch(self, args, n);
    if (n || !names || self->what == IS_OTHER) return 0;
    return self->what == IS_COPY ? update_copy(self, args, names) : update_named(self, args, names);
}

static PyObject *node_update(ExecNodeObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    int done = update(self, args, n, names);
    if (done < 0) return NULL;
    return done ? NEW_REF(Py_None) : cudago_call_python((PyObject *)self, "_update", args, n, names);
}

/* --- the type ------------------------------------------------------------------------------------------------------------- */

static PyObject *node_number(ExecNodeObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->number);
}
static PyObject *node_exec(ExecNodeObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->exec);
}
static PyObject *node_name(ExecNodeObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->name);
}
static PyObject *node_kind(ExecNodeObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->kind);
}

/* No tp_clear: the tp_clear of the executable breaks the cycles that a node can be in. */
static int node_traverse(ExecNodeObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT((PyObject *)self->exec);
    return 0;
}
static void node_dealloc(ExecNodeObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    Py_XDECREF(self->exec);
    Py_XDECREF(self->name);
    Py_XDECREF(self->kind);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"update", METHOD(node_update), METH_FASTCALL | METH_KEYWORDS, DOC_EXECNODE_UPDATE},
    {0},
};
static PyGetSetDef getset[] = {
    {"_id", (getter)node_number, NULL, NULL, NULL},
    {"exec", (getter)node_exec, NULL, DOC_EXECNODE_EXEC, NULL},
    {"name", (getter)node_name, NULL, DOC_EXECNODE_NAME, NULL},
    {"kind", (getter)node_kind, NULL, DOC_EXECNODE_KIND, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(ExecNodeObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, node_dealloc},
    {Py_tp_traverse, node_traverse},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_exec_node_spec = {
    "cudago._core.ExecNode",
    sizeof(ExecNodeObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

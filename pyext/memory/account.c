/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

/* What a TrackingMemoryResource has allocated. Here, because in Python a signal handler may raise between any two steps,
 * and also before the first of a __del__: something would be counted and never given back, or the reverse. */

typedef struct holding holding;
typedef struct {
    PyObject_HEAD
    /* Guarded by the GIL, as all below. */
    int64_t used, used_high, count, count_high, total, total_count;
    holding *first, *last; /* not counted: a holding that dies leaves the list */
} AccountObject;
struct holding {
    PyObject_HEAD
    AccountObject *account;
    PyObject *what;
    int64_t size;
    holding *before, *after;
};

static PyTypeObject *account_type, *holding_type;

static void *made(PyTypeObject *type) { return ((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0); }
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* add(what, size): returns what is to live as long as the memory. */
static PyObject *account_add(AccountObject *self, PyObject *args) {
    CUDAGO_ENTER(NULL);
    PyObject *what;
    long long size;
    if (!PyArg_ParseTuple(args, "OL", &what, &size)) return NULL;
    holding *h = made(holding_type);
    if (!h) return NULL;
    h->account = (AccountObject *)NEW_REF((PyObject *)self);
    h->what = NEW_REF(what);
    h->size = size;
    h->before = self->last;
    *(self->last ? &self->last->after : &self->first) = h;
    self->last = h;
    self->used += size;
    self->total += size;
    self->count++;
    self->total_count++;
    self->used_high = larger(self->used, self->used_high);
    self->count_high = larger(self->count, self->count_high);
    return (PyObject *)h;
}

static void holding_dealloc(holding *h) {
    AccountObject *a = h->account;
    if (a) {
        *(h->before ? &h->before->after : &a->first) = h->after;
        *(h->after ? &h->after->before : &a->last) = h->before;
        a->used -= h->size;
        a->count--;
    }
    Py_XDECREF(h->what);
    Py_XDECREF((PyObject *)a);
    cudago_free((PyObject *)h);
}

/* (used, used_high, count, count_high, total, total_count) */
static PyObject *account_numbers(AccountObject *self, PyObject *unused) {
    (void)unused;
    return Py_BuildValue("(LLLLLL)", (long long)self->used, (long long)self->used_high, (long long)self->count,
                         (long long)self->count_high, (long long)self->total, (long long)self->total_count);
}

/* reset(): the maxima and totals begin anew. */
static PyObject *account_reset(AccountObject *self, PyObject *unused) {
    (void)unused;
    self->used_high = self->used;
    self->count_high = self->count;
    self->total = self->total_count = 0;
    Py_RETURN_NONE;
}

/* held(): what is held, oldest first. Making the tuple can run the collector, and that what allocates or frees. */
static PyObject *account_held(AccountObject *self, PyObject *unused) {
    (void)unused;
    for (;;) {
        int64_t n = self->count;
        PyObject *all = PyTuple_New((Py_ssize_t)n);
        if (!all || self->count == n) {
            Py_ssize_t i = 0;
            for (holding *h = all ? self->first : NULL; h; h = h->after) PyTuple_SetItem(all, i++, NEW_REF(h->what));
            return all;
        }
        Py_DECREF(all);
    }
}

static void account_dealloc(AccountObject *self) { cudago_free((PyObject *)self); }

/* _account() */
PyObject *cudago_account_new(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    CUDAGO_ENTER(NULL);
    return made(account_type);
}

static PyMethodDef methods[] = {
    {"add", METHOD(account_add), METH_VARARGS, NULL},
    {"numbers", METHOD(account_numbers), METH_NOARGS, NULL},
    {"reset", METHOD(account_reset), METH_NOARGS, NULL},
    {"held", METHOD(account_held), METH_NOARGS, NULL},
    {0},
};
static PyType_Slot account_slots[] = {{Py_tp_dealloc, account_dealloc}, {Py_tp_methods, methods}, {0, NULL}};
static PyType_Slot holding_slots[] = {{Py_tp_dealloc, holding_dealloc}, {0, NULL}};
enum { FLAGS = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION };
static PyType_Spec account_spec = {"cudago._core.Account", sizeof(AccountObject), 0, FLAGS, account_slots};
static PyType_Spec holding_spec = {"cudago._core.Holding", sizeof(holding), 0, FLAGS, holding_slots};

int cudago_account_types_init(PyObject *module) {
    if (!(account_type = (PyTypeObject *)PyType_FromSpec(&account_spec))) return -1;
    if (!(holding_type = (PyTypeObject *)PyType_FromSpec(&holding_spec))) return -1;
    return PyModule_AddObject(module, "Account", NEW_REF(account_type));
}

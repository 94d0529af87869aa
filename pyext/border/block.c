/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

/* Changes that are undone. They are native because the handler of a signal may raise after any call that Python code makes, and
 * where its functions begin: between a change and the note of what is to be undone, or before it is undone. A row is a
 * tuple of a function and its arguments. */

enum { MOST_INTERRUPTS = 3 }; /* of one undoing that waits: then it is given up */

int cudago_row_call(PyObject *row, PyObject **result) {
    PyObject *args = PyTuple_GetSlice(row, 1, PyTuple_Size(row));
    PyObject *r = args ? PyObject_CallObject(PyTuple_GetItem(row, 0), args) : NULL;
    Py_XDECREF(args);
    if (result) *result = r;
    else Py_XDECREF(r);
    return r ? 0 : -1;
}

typedef struct {
    PyObject *type, *value, *trace;
} raised;

static raised fetch(void) {
    raised e;
    PyErr_Fetch(&e.type, &e.value, &e.trace);
    if (e.type) PyErr_NormalizeException(&e.type, &e.value, &e.trace);
    return e;
}

static void drop(raised e) {
    Py_XDECREF(e.type);
    Py_XDECREF(e.value);
    Py_XDECREF(e.trace);
}

static void note(PyObject *first, PyObject *second) {
    PyObject *text = PyUnicode_FromFormat("What was changed could not be changed back: %S", second);
    PyObject *r = text ? PyObject_CallMethod(first, "add_note", "O", text) : NULL;
    if (!r) PyErr_Clear();
    Py_XDECREF(text);
    Py_XDECREF(r);
}

/* The exception to raise of two. Ctrl-C is never lost. */
static raised of_both(raised first, raised second) {
    int ends = first.type && !PyErr_GivenExceptionMatches(first.type, PyExc_Exception);
    if (!first.type) return second;
    if (PyErr_GivenExceptionMatches(second.type, PyExc_Exception)) note(first.value, second.value);
    else if (!ends) {
        PyException_SetContext(second.value, NEW_REF(first.value));
        drop(first);
        return second;
    }
    drop(second);
    return first;
}

void cudago_undo(PyObject *row) {
    raised kept = fetch();
    for (int i = 0; i < MOST_INTERRUPTS && cudago_row_call(row, NULL); i++) {
        int is_closed = cudago_is_closed_error(), is_error = PyErr_ExceptionMatches(PyExc_Exception);
        if (is_closed) PyErr_Clear(); /* nothing is left of it that could be changed back */
        else kept = of_both(kept, fetch());
        if (is_error) break;
    }
    PyErr_Restore(kept.type, kept.value, kept.trace);
}

/* _locked(lock, function, *args): calls the function with the lock taken. A with statement of Python may leave a lock taken: CPython
 * 3.14 runs signals' handlers after __enter__ and before the block is protected. */
PyObject *cudago_call_locked(PyObject *module, PyObject *args) {
    (void)module;
    if (PyTuple_Size(args) < 2) return PyErr_SetString(PyExc_TypeError, "_locked(lock, function, *args)"), NULL;
    PyObject *lock = PyTuple_GetItem(args, 0), *row = PyTuple_GetSlice(args, 1, PyTuple_Size(args)), *result = NULL;
    PyObject *release = row ? PyObject_GetAttrString(lock, "release") : NULL;
    PyObject *undo = release ? PyTuple_Pack(1, release) : NULL; /* first: nothing may fail between taking and the call */
    PyObject *taken = undo ? PyObject_CallMethod(lock, "acquire", NULL) : NULL;
    if (taken) {
        cudago_row_call(row, &result);
        cudago_undo(undo);
        if (PyErr_Occurred()) Py_CLEAR(result);
    }
    Py_XDECREF(taken);
    Py_XDECREF(undo);
    Py_XDECREF(release);
    Py_XDECREF(row);
    return result;
}

/* --- a with block that changes something for its time ---------------------------------------------------------------------- */

typedef struct block {
    PyObject_HEAD
    PyObject *weak;
    struct block *earlier, *later; /* of those whose change holds, in the order in which they made it */
    PyObject *todo, *undo; /* rows, or NULL; an undo that was not given is todo with what that returned as its last argument */
    PyObject *result; /* of __enter__; NULL: the object itself */
    int is_given, is_on;
    int is_entering;
    int is_switched; /* changed by its construction, and no with block has begun */
    int is_listed;
} BlockObject;

static BlockObject *latest;

static QUIET void list(BlockObject *self) {
    self->earlier = latest, self->later = NULL, self->is_listed = 1;
    if (latest) latest->later = self;
    latest = self;
}

static QUIET void unlist(BlockObject *self) {
    if (!self->is_listed) return;
    *(self->later ? &self->later->earlier : &latest) = self->earlier;
    if (self->earlier) self->earlier->later = self->later;
    self->is_listed = 0;
}

static void set(PyObject **to, PyObject *given) {
    PyObject *was = *to;
    *to = given ? NEW_REF(given) : NULL;
    Py_XDECREF(was);
}

/* _plan(todo, undo or None, result): of __enter__, __exit__; without a result that returns the object */
static PyObject *block_plan(BlockObject *self, PyObject *const *args, Py_ssize_t n) {
    if (n < 2 || n > 3 || !PyTuple_Check(args[0]) || !(args[1] == Py_None || PyTuple_Check(args[1])))
        return PyErr_SetString(PyExc_TypeError, "_plan(todo, undo, result)"), NULL;
    self->is_given = args[1] != Py_None;
    set(&self->todo, args[0]);
    set(&self->undo, self->is_given ? args[1] : NULL);
    set(&self->result, n > 2 ? args[2] : NULL);
    Py_RETURN_NONE;
}

/* Does what is to be done, and notes how to undo it. Python code that was interrupted may have done it. */
static int change(BlockObject *self, PyObject *todo) {
    Py_ssize_t n = PyTuple_Size(todo);
    PyObject *was, *undo = self->is_given ? NEW_REF(self->undo) : PyTuple_New(n);
    if (!undo) return -1;
    for (Py_ssize_t i = 0; !self->is_given && i < n - 1; i++) PyTuple_SetItem(undo, i, NEW_REF(PyTuple_GetItem(todo, i)));
    int failed = cudago_row_call(todo, &was);
    if (failed && self->is_given && !PyErr_ExceptionMatches(PyExc_Exception)) cudago_undo(undo);
    if (!failed && !self->is_given) {
        PyTuple_SetItem(undo, n - 1, NEW_REF(was));
        set(&self->undo, undo);
        list(self);
    }
    Py_DECREF(undo);
    Py_XDECREF(was);
    return failed;
}

/* Whether two rows that change back what their blocks found change the same back. */
static int is_same(PyObject *a, PyObject *b) {
    Py_ssize_t n = PyTuple_Size(a), equal = 1;
    if (PyTuple_Size(b) != n) return 0;
    for (Py_ssize_t i = 0; equal == 1 && i < n - 1; i++) equal = PyObject_RichCompareBool(PyTuple_GetItem(a, i), PyTuple_GetItem(b, i), Py_EQ);
    return equal == 1;
}

/* The block, or the next one that is not about to go: a new reference, or NULL. What goes may run Python before it is gone. */
static QUIET BlockObject *held(BlockObject *at) {
    while (at && !Py_REFCNT((PyObject *)at)) at = at->later;
    return at ? (BlockObject *)NEW_REF(at) : NULL;
}

/* The next block that has changed the same, and has not ended: a new reference, or NULL. Comparing may run Python, which ends
 * and drops blocks: so each is held meanwhile, and one that has left the list leads to no other. */
static BlockObject *later_alike(BlockObject *self) {
    BlockObject *at = held(self->later);
    while (at) {
        PyObject *undo = at->is_on && !at->is_given ? NEW_REF(at->undo) : NULL;
        int is_alike = undo && is_same(self->undo, undo);
        Py_XDECREF(undo);
        if (is_alike && at->is_on) break;
        BlockObject *next = held(at->is_listed ? at->later : self->later);
        Py_DECREF(at);
        at = next;
    }
    return at;
}

/* Blocks of threads, tasks and generators do not always end in the reverse order. The next one that has changed the same, and
 * has not ended, then keeps what it has made, and changes back at its end what this one found. */
static int leave_to_later(BlockObject *self) {
    if (self->is_given) return 0;
    BlockObject *next = later_alike(self);
    if (!next) return 0;
    Py_ssize_t n = PyTuple_Size(self->undo);
    PyObject *undo = PyTuple_New(n);
    for (Py_ssize_t i = 0; undo && i < n; i++) PyTuple_SetItem(undo, i, NEW_REF(PyTuple_GetItem(self->undo, i)));
    int is_left = undo && next->is_on; /* the collector may have run */
    if (is_left) set(&next->undo, undo);
    Py_XDECREF(undo);
    Py_DECREF(next);
    return is_left;
}

static void change_back(BlockObject *self) {
    if (!self->is_on) return;
    raised kept = fetch();
    self->is_on = 0;
    int is_left = leave_to_later(self);
    PyErr_Restore(kept.type, kept.value, kept.trace);
    unlist(self);
    PyObject *undo = NEW_REF(self->undo);
    if (!self->todo) set(&self->undo, NULL); /* of a switch, which is switched once */
    if (!is_left) cudago_undo(undo);
    Py_DECREF(undo);
}

static PyObject *block_enter(BlockObject *self, PyObject *unused) {
    (void)unused;
    int in_use = self->is_on || self->is_entering;
    if (in_use || !(self->todo || self->undo))
        return PyErr_Format(PyExc_RuntimeError, "%R %s: make another one for another with block", self,
                            in_use ? "is in use" : "has been switched back"),
               NULL;
    self->is_entering = 1; /* first: what the change runs, and other threads, must not enter it too */
    int failed = self->todo && change(self, self->todo);
    self->is_entering = 0;
    if (failed) return NULL;
    self->is_on = 1, self->is_switched = 0;
    PyObject *r = PyObject_CallMethod((PyObject *)self, "_entered", NULL);
    if (!r) return change_back(self), NULL;
    Py_DECREF(r);
    return NEW_REF(self->result ? self->result : (PyObject *)self);
}

static void call_left(BlockObject *self) {
    raised kept = fetch();
    PyObject *r = PyObject_CallMethod((PyObject *)self, "_left", NULL);
    Py_XDECREF(r);
    if (!r) kept = of_both(kept, fetch());
    PyErr_Restore(kept.type, kept.value, kept.trace);
}

/* False, so that Python raises what the block raised again; or NULL with what has come since, which is more urgent. */
static PyObject *raise_one(PyObject *again) {
    raised first = {NEW_REF(Py_TYPE(again)), NEW_REF(again), NULL};
    raised kept = of_both(first, fetch());
    if (kept.value == again) return drop(kept), NEW_REF(Py_False);
    PyErr_Restore(kept.type, kept.value, kept.trace);
    return NULL;
}

static PyObject *block_exit(BlockObject *self, PyObject *args) {
    if (PyTuple_Size(args) != 3) return PyErr_SetString(PyExc_TypeError, "__exit__(type, value, traceback)"), NULL;
    if (!self->is_on) Py_RETURN_FALSE;
    PyObject *again = PyTuple_GetItem(args, 1); /* what the block raised, or None */
    if (cudago_is_over()) return change_back(self), PyErr_Clear(), NEW_REF(Py_False); /* nothing is left that could be told */
    PyObject *r = PyObject_CallMethod((PyObject *)self, "_leaving", "O", again);
    Py_XDECREF(r);
    change_back(self);
    call_left(self);
    if (!PyErr_Occurred()) Py_RETURN_FALSE;
    return again == Py_None ? NULL : raise_one(again);
}

/* What subclasses replace: _entered(), after the change; _leaving(exception or None), before it is undone; _left(), after. */
static PyObject *block_nothing(BlockObject *self, PyObject *args) {
    (void)self;
    (void)args;
    Py_RETURN_NONE;
}

static int block_traverse(BlockObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->todo);
    Py_VISIT(self->undo);
    Py_VISIT(self->result);
    return 0;
}

static int block_clear(BlockObject *self) {
    self->is_on |= self->is_switched && PyErr_Occurred() != NULL;
    raised kept = fetch();
    change_back(self); /* a block that is left without __exit__, as when a generator is never resumed */
    if (PyErr_Occurred()) PyErr_WriteUnraisable(NULL);
    PyErr_Restore(kept.type, kept.value, kept.trace);
    unlist(self);
    set(&self->todo, NULL);
    set(&self->undo, NULL);
    set(&self->result, NULL);
    return 0;
}

static void block_dealloc(BlockObject *self) {
    PyObject_GC_UnTrack(self);
    block_clear(self); /* first: callbacks of weak references may end blocks that began before this one */
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"_plan", METHOD(block_plan), METH_FASTCALL, NULL},
    {"_entered", METHOD(block_nothing), METH_NOARGS, NULL},
    {"_leaving", METHOD(block_nothing), METH_O, NULL},
    {"_left", METHOD(block_nothing), METH_NOARGS, NULL},
    {"__enter__", METHOD(block_enter), METH_NOARGS, NULL},
    {"__exit__", METHOD(block_exit), METH_VARARGS, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(BlockObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, block_dealloc},
    {Py_tp_traverse, block_traverse},
    {Py_tp_clear, block_clear},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {0, NULL},
};
static PyType_Spec spec = {
    "cudago._core.Block",
    sizeof(BlockObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    slots,
};

/* --- a switch that is also such a block ------------------------------------------------------------------------------------ */

/* Switch(*args): changes what the row says that _row(*args) returns; for good, unless it is the object of a with block. Ctrl-C
 * that comes before that block has begun drops the object while it is raised: this then undoes the change. So no Python code
 * may run in between, whose frame would keep the object in the traceback. */
static int switch_init(BlockObject *self, PyObject *args, PyObject *names) {
    if (self->undo || self->is_entering) return PyErr_Format(PyExc_RuntimeError, "%R is switched: make another one", self), -1;
    self->is_entering = 1; /* as in block_enter */
    PyObject *function = PyObject_GetAttrString((PyObject *)self, "_row");
    PyObject *row = function ? PyObject_Call(function, args, names) : NULL;
    int failed = !row || change(self, row);
    self->is_entering = 0;
    Py_XDECREF(function);
    Py_XDECREF(row);
    if (failed) return -1;
    self->is_switched = 1;
    set(&self->result, Py_None);
    return 0;
}

static PyType_Slot switch_slots[] = {{Py_tp_init, switch_init}, {0, NULL}};
static PyType_Spec switch_spec = {"cudago._core.Switch", sizeof(BlockObject), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, switch_slots};

int cudago_block_type_init(PyObject *module) {
    PyObject *block = PyType_FromSpec(&spec);
    PyObject *type = block ? PyType_FromSpecWithBases(&switch_spec, block) : NULL;
    if (!type || PyModule_AddObject(module, "Block", block)) return -1;
    return PyModule_AddObject(module, "Switch", type);
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* bind: exchanging what slots hold. Slots that are used in one node are exchanged here. What several nodes, and fills, change is
 * Python's affair (slot.py), which has it done here: between bytecodes a signal's handler could raise, when some are done. */

/* What slots hold in one node from now on. */
typedef struct {
    uint64_t node;
    int uses, begun;
    PyObject *sides[2]; /* of a copy, borrowed; NULL: not this one */
    cudago_change change; /* of a kernel, if it has begun */
} binding;

/* The place in its node: dst or src of a copy is 0 or 1; 2: it is neither. */
static int side_of(PyObject *kind, PyObject *place) {
    static cudago_keyword sides[] = {{"dst", NULL}, {"src", NULL}}, copies[] = {{"memcpy", NULL}};
    return PyUnicode_Check(kind) && PyUnicode_Check(place) && !cudago_which(copies, 1, kind) ? cudago_which(sides, 2, place) : 2;
}

/* 0: it is not that simple. */
static int add_use(ExecObject *self, binding *b, PyObject *use, PyObject *given) {
    if (!PyTuple_Check(use) || PyTuple_Size(use) != 3) return 0;
    PyObject *place = PyTuple_GetItem(use, 2);
    uint64_t node = PyLong_AsUnsignedLongLong(PyTuple_GetItem(use, 0));
    if (node == (uint64_t)-1 && PyErr_Occurred()) return PyErr_Clear(), 0;
    if (!b->uses++) b->node = node;
    if (b->node != node) return 0;
    if (!PyLong_CheckExact(place)) {
        int side = given == Py_None ? 2 : side_of(PyTuple_GetItem(use, 1), place);
        if (side < 2) b->sides[side] = given;
        return side < 2;
    }
    if (!b->begun && !(b->begun = cudago_change_begin(&b->change, self, node))) return 0;
    return cudago_change_add(&b->change, PyLong_AsSsize_t(place), given);
}

/* Looking a name up may run Python, if it is of a subclass of str: the caller holds the dict, which is never changed. */
static int add_slot(PyObject *slots, ExecObject *self, binding *b, PyObject *name, PyObject *given) {
    PyObject *uses = PyDict_GetItemWithError(slots, name);
    if (!uses) return PyErr_Occurred() ? -1 : 0;
    int simple = PyTuple_Check(uses) && !cudago_is_slot(given);
    for (Py_ssize_t i = 0; simple && i < PyTuple_Size(uses); i++) simple = add_use(self, b, PyTuple_GetItem(uses, i), given);
    return simple;
}

static int bind_in(PyObject *slots, ExecObject *self, PyObject *const *given, PyObject *names) {
    binding b;
    b.uses = b.begun = 0;
    b.sides[0] = b.sides[1] = NULL;
    int simple = !self->in_python && PyDict_Check(slots);
    for (Py_ssize_t i = 0; simple > 0 && i < PyTuple_Size(names); i++) simple = add_slot(slots, self, &b, PyTuple_GetItem(names, i), given[i]);
    if (simple > 0 && b.begun) return cudago_change_make(self, &b.change);
    if (b.begun) cudago_change_end(&b.change);
    if (simple <= 0 || !b.uses) return simple < 0 ? -1 : 0;
    PyObject *sides[2] = {b.sides[0] ? b.sides[0] : Py_None, b.sides[1] ? b.sides[1] : Py_None};
    return cudago_update_sides(self, b.node, sides, NULL) ? -1 : 1;
}

/* 1: done; 0: it is Python's affair; -1 with an exception. */
static int bind(ExecObject *self, PyObject *const *given, PyObject *names) {
    PyObject *slots = self->slots;
    if (!slots) return 0;
    Py_INCREF(slots);
    int r = bind_in(slots, self, given, names);
    Py_DECREF(slots);
    return r;
}

PyObject *cudago_exec_bind(ExecObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    int done = !n && names ? bind(self, args, names) : 0;
    if (done < 0) return NULL;
    return done ? NEW_REF(Py_None) : cudago_call_python((PyObject *)self, "_bind", args, n, names);
}

/* _replace_uses(before, now) -> whether it was done: not if another thread, or what the collector has run, was faster. */
PyObject *cudago_slots_replace(PyObject **slots, PyObject *const *args, Py_ssize_t n) {
    if (n != 2) return PyErr_SetString(PyExc_TypeError, "_replace_uses(before, now)"), NULL;
    PyObject *before = *slots;
    if ((before ? before : Py_None) != args[0]) Py_RETURN_FALSE;
    *slots = args[1] == Py_None ? NULL : NEW_REF(args[1]);
    Py_XDECREF(before);
    Py_RETURN_TRUE;
}

enum { NOTE_BEFORE,
       NOTE_NODE,
       NOTE_KIND,
       NOTE_SLOTS,
       NOTE_SIZE = 7 };

int cudago_read_note(PyObject *given, PyObject **note) {
    *note = NULL;
    if (given == Py_None) return 0;
    int is_note = PyList_Check(given) && PyList_Size(given) == NOTE_SIZE && PyByteArray_Check(PyList_GetItem(given, NOTE_NODE)) &&
                  PyByteArray_Size(PyList_GetItem(given, NOTE_NODE)) == sizeof(uint64_t) && PyDict_Check(PyList_GetItem(given, NOTE_SLOTS));
    if (!is_note) return PyErr_SetString(PyExc_TypeError, "slots are noted by what noted() returns"), -1;
    *note = given;
    return 0;
}

QUIET void cudago_slots_note(PyObject **slots, PyObject *note, uint64_t node) {
    if (!note || (!*slots && !PyDict_Size(PyList_GetItem(note, NOTE_SLOTS)))) return;
    memcpy(PyByteArray_AsString(PyList_GetItem(note, NOTE_NODE)), &node, sizeof node);
    PyList_SetItem(note, NOTE_BEFORE, *slots ? *slots : NEW_REF(Py_None));
    *slots = NEW_REF(note);
}

/* _in_python(more): an update that Python makes begins, with 1, or ends, with -1 */
PyObject *cudago_exec_in_python(ExecObject *self, PyObject *more) {
    long by = PyLong_AsLong(more);
    if (by == -1 && PyErr_Occurred()) return NULL;
    self->in_python += (int)by;
    Py_RETURN_NONE;
}

/* --- several nodes -------------------------------------------------------------------------------------------------------- */

/* _change_all(changes, before): tuples of (method, *args), of which all or none take effect. The one that fails may have
 * taken effect too, when who watches it has raised. */
PyObject *cudago_exec_change_all(ExecObject *self, PyObject *const *args, Py_ssize_t n) {
    CUDAGO_ENTER(NULL);
    if (n != 2 || !PyTuple_Check(args[0]) || !PyTuple_Check(args[1]) || PyTuple_Size(args[0]) != PyTuple_Size(args[1]))
        return PyErr_SetString(PyExc_TypeError, "_change_all(changes, before)"), NULL;
    if (cudago_exec_open(self)) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(args[0]); i++)
        if (cudago_row_call(PyTuple_GetItem(args[0], i), NULL)) {
            for (; i >= 0; i--) cudago_undo(PyTuple_GetItem(args[1], i));
            return NULL;
        }
    Py_RETURN_NONE;
}

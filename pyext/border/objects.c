/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

/* Which objects of some classes the process has. gc.get_objects() lists what other threads are about to make too, such as
 * the tuple of a tuple(generator), and has a reference to each: a thread that then resizes its tuple gets a SystemError,
 * because somebody else seems to know it. So nothing of Python runs between the making of that list and its end, which
 * would let other threads run. */

typedef struct {
    PyObject *kinds;     /* a tuple of classes */
    PyTypeObject *inner; /* a class of objects that the collector does not know, or NULL */
    PyObject *found;     /* a list */
    int depth;           /* of tuples and dicts that the collector does not know either */
} search;

enum { MOST_DEPTH = 64 };

static int is_wanted(const search *s, PyObject *o) {
    for (Py_ssize_t i = 0, n = PyTuple_Size(s->kinds); i < n; i++)
        if (PyType_IsSubtype(Py_TYPE(o), (PyTypeObject *)PyTuple_GetItem(s->kinds, i))) return 1;
    return 0;
}

/* A tuple or dict of nothing but what the collector does not know is unknown to it too. */
static int visit(PyObject *held, void *with) {
    search *s = with;
    if (Py_TYPE(held) == s->inner) return PyList_Append(s->found, held);
    if ((!PyTuple_CheckExact(held) && !PyDict_CheckExact(held)) || PyObject_GC_IsTracked(held) || s->depth >= MOST_DEPTH) return 0;
    s->depth++;
    int r = ((traverseproc)PyType_GetSlot(Py_TYPE(held), Py_tp_traverse))(held, visit, s);
    s->depth--;
    return r;
}

static int look_at(search *s, PyObject *o) {
    if (o == s->found) return 0;
    if (is_wanted(s, o) && PyList_Append(s->found, o)) return -1;
    traverseproc traverse = s->inner ? (traverseproc)PyType_GetSlot(Py_TYPE(o), Py_tp_traverse) : NULL;
    return traverse ? traverse(o, visit, s) : 0;
}

static int look_at_all(search *s, PyObject *get_objects) {
    PyObject *all = PyObject_CallObject(get_objects, NULL);
    Py_ssize_t n = all && PyList_Check(all) ? PyList_Size(all) : -1;
    int bad = n < 0;
    for (Py_ssize_t i = 0; !bad && i < n; i++) bad = look_at(s, PyList_GetItem(all, i)) != 0;
    Py_XDECREF(all); /* whatever dies with it runs code only now */
    return bad ? -1 : 0;
}

/* _objects_of(kinds, inner): a list of the objects that the collector knows and whose class is one of kinds or a subclass,
 * and of those of the very class inner, unless that is None, that any such object refers to, if need be by way of tuples
 * and dicts that the collector does not know: these once for each. */
PyObject *cudago_objects_of(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *kinds, *inner;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &kinds, &inner)) return NULL;
    for (Py_ssize_t i = 0; i < PyTuple_Size(kinds); i++)
        if (!PyType_Check(PyTuple_GetItem(kinds, i))) return PyErr_SetString(PyExc_TypeError, "kinds must be classes"), NULL;
    search s = {.kinds = kinds, .inner = PyType_Check(inner) ? (PyTypeObject *)inner : NULL};
    PyObject *gc = PyImport_ImportModule("gc"), *get_objects = gc ? PyObject_GetAttrString(gc, "get_objects") : NULL;
    s.found = get_objects ? PyList_New(0) : NULL;
    if (s.found && look_at_all(&s, get_objects)) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "gc.get_objects() must return a list");
        Py_CLEAR(s.found);
    }
    Py_XDECREF(get_objects);
    Py_XDECREF(gc);
    return s.found;
}

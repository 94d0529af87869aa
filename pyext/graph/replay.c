/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* The last call of a function that is a graph. If it is made again, with the very same objects, its executable is launched
 * here: what Python does for it costs several times what the launch does. Looking at the objects and launching are one
 * hold of the GIL, so no other thread's capture or update comes between. Whatever is not that simple is left to Python. */

typedef struct {
    PyObject *object; /* itself, if it cannot change; else a weak reference */
    uint64_t size;    /* of a Buffer: virtual memory grows */
    enum { IS_VALUE,
           IS_BUFFER,
           IS_TENSOR } kind;
} known;
typedef struct {
    PyObject_HEAD
    PyObject *step; /* a weak reference, or NULL: it is not to be launched any more */
    Py_ssize_t place, n; /* place: of the stream, among n other arguments */
    known *objects;
    uint64_t launches, used;
} ReplayObject;

static PyTypeObject *replay_type;
static uint64_t ticks;   /* guarded by the GIL */

/* Borrowed; None if it has died. */
static QUIET PyObject *object_of(const known *k) { return k->kind == IS_VALUE ? k->object : PyWeakref_GetObject(k->object); }

static QUIET int is_same(const known *k, PyObject *now) {
    if (object_of(k) != now) return 0;
    if (k->kind == IS_TENSOR) return !cudago_cell_closed(((TensorObject *)now)->cell);
    if (k->kind == IS_VALUE) return 1;
    BufferObject *b = (BufferObject *)now;
    return !cudago_cell_closed(b->cell) && b->size == k->size;
}

static QUIET int are_same(const ReplayObject *self, PyObject *args) {
    if (PyTuple_Size(args) != self->n + 1) return 0;
    for (Py_ssize_t i = 0; i < self->n; i++)
        if (!is_same(&self->objects[i], PyTuple_GetItem(args, i + (i >= self->place)))) return 0;
    return 1;
}

/* True if it was launched, False if that is Python's affair. */
static QUIET PyObject *launch_now(ReplayObject *self, PyObject *args) {
    PyObject *step = self->step ? PyWeakref_GetObject(self->step) : Py_None;
    if (step == Py_None || !are_same(self, args)) return NEW_REF(Py_False);
    PyObject *stream = PyTuple_GetItem(args, self->place);
    if (!cudago_is(stream, CLS_STREAM) || !cudago_exec_is_calm((ExecObject *)step, (StreamObject *)stream)) return NEW_REF(Py_False);
    self->launches++;
    self->used = ++ticks;
    return cudago_exec_launch_calm((ExecObject *)step, (StreamObject *)stream) ? NULL : NEW_REF(Py_True);
}

/* launch(arguments) */
static PyObject *replay_launch(ReplayObject *self, PyObject *args) {
    CUDAGO_ENTER(NULL);
    if (!PyTuple_Check(args)) return PyErr_SetString(PyExc_TypeError, "launch takes a tuple"), NULL;
    return launch_now(self, args);
}

/* clear(): the executable is about to change */
static PyObject *replay_clear(ReplayObject *self, PyObject *unused) {
    (void)unused;
    PyObject *step = self->step;
    self->step = NULL;
    Py_XDECREF(step);
    Py_RETURN_NONE;
}

/* --- making one --------------------------------------------------------------------------------------------------------- */

/* 0: it is none of those that can be compared here. -1 with an exception. */
static int remember(known *k, PyObject *thing, int is_value) {
    int is_buffer = Py_TYPE(thing) == cudago_cls[CLS_BUFFER];
    if (!is_value && !is_buffer && !cudago_is_tensor(thing)) return 0;
    k->kind = is_value ? IS_VALUE : is_buffer ? IS_BUFFER
                                              : IS_TENSOR;
    k->size = k->kind == IS_BUFFER ? ((BufferObject *)thing)->size : 0;
    k->object = is_value ? NEW_REF(thing) : PyWeakref_NewRef(thing, NULL);
    return k->object ? 1 : -1;
}

static int remember_all(ReplayObject *self, PyObject *given, PyObject *values) {
    Py_ssize_t n = PyTuple_Size(given);
    if (!(self->objects = calloc((size_t)n + 1, sizeof *self->objects))) return PyErr_NoMemory(), -1;
    for (; self->n < n; self->n++) {
        PyObject *thing = PyTuple_GetItem(given, self->n);
        int is_value = PySequence_Contains(values, (PyObject *)Py_TYPE(thing));
        int known = is_value < 0 ? -1 : remember(&self->objects[self->n], thing, is_value);
        if (known <= 0) return known;
    }
    return 1;
}

/* _replay(executable, place, given, values): remembers a call with a stream at that place among the arguments that are
 * given; values are the classes of what cannot change. None if the call cannot be recognized here. */
PyObject *cudago_replay_new(PyObject *module, PyObject *args) {
    (void)module;
    CUDAGO_ENTER(NULL);
    PyObject *step, *given, *values;
    Py_ssize_t place;
    if (!PyArg_ParseTuple(args, "OnO!O", &step, &place, &PyTuple_Type, &given, &values) || cudago_expect(step, CLS_EXEC, "executable"))
        return NULL;
    if (place < 0 || place > PyTuple_Size(given)) return PyErr_SetString(PyExc_ValueError, "place is not that of an argument"), NULL;
    ReplayObject *self = (ReplayObject *)((allocfunc)PyType_GetSlot(replay_type, Py_tp_alloc))(replay_type, 0);
    if (!self) return NULL;
    self->place = place;
    int known = (self->step = PyWeakref_NewRef(step, NULL)) ? remember_all(self, given, values) : -1;
    if (known > 0) return (PyObject *)self;
    Py_DECREF(self);
    return known < 0 ? NULL : NEW_REF(Py_None);
}

/* _tick(): a number that grows, with which uses are compared */
PyObject *cudago_tick(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    CUDAGO_ENTER(NULL);
    return PyLong_FromUnsignedLongLong(++ticks);
}

static PyObject *replay_launches(ReplayObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->launches);
}
static PyObject *replay_used(ReplayObject *self, void *unused) {
    (void)unused;
    return PyLong_FromUnsignedLongLong(self->used);
}

static void replay_dealloc(ReplayObject *self) {
    Py_XDECREF(self->step);
    for (Py_ssize_t i = 0; i < self->n; i++) Py_XDECREF(self->objects[i].object);
    free(self->objects);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"launch", METHOD(replay_launch), METH_O, NULL},
    {"clear", METHOD(replay_clear), METH_NOARGS, NULL},
    {0},
};
static PyGetSetDef getset[] = {
    {"launches", (getter)replay_launches, NULL, NULL, NULL},
    {"used", (getter)replay_used, NULL, NULL, NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, replay_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {0, NULL},
};
static PyType_Spec spec = {
    "cudago._core.Replay",
    sizeof(ReplayObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

int cudago_replay_type_init(PyObject *module) {
    replay_type = (PyTypeObject *)PyType_FromSpec(&spec);
    return replay_type ? PyModule_AddObject(module, "Replay", NEW_REF(replay_type)) : -1;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "finalizer.h"

#include "_cgo_export.h"

/* weakref.finalize's contract. What is to be called is stored in the object. It is called at most once, which the GIL
 * guarantees: whoever takes it calls it. Go's registry has the order for the exit. So only making a finalizer, calling
 * one and the exit enter Go, and in a forked child nothing does.
 *
 * A finalizer that is alive owns itself, which stands for the entry in weakref.finalize's registry. */

typedef struct {
    PyObject *reference; /* weakref to the object, whose callback is the finalizer */
    PyObject *function, *args, *kwargs;
    cudago_stream *stream; /* NULL, or the stream whose work must end first once the object has died */
    PyObject *owner;       /* what keeps another library's stream alive, or NULL */
} todo;

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id; /* Go's handle */
    int atexit;
    todo todo; /* all NULL once dead */
} FinalizerObject;

/* Releasing the stream after exit would release it twice: Go has closed it. */
static void release_stream(cudago_stream *s) {
    if (s && !cudago_unusable) cudago_stream_release(s);
}

/* Marks the finalizer as dead; the caller takes over what it held. That includes the weak reference, whose callback
 * goes with it. */
static todo take(FinalizerObject *self) {
    todo t = self->todo;
    memset(&self->todo, 0, sizeof self->todo);
    if (!cudago_unusable) cudagoFinalizerTake(self->id);
    return t;
}

/* Also releases the finalizer, which may be its end. */
static void drop(todo *t, FinalizerObject *self) {
    Py_XDECREF(t->reference);
    Py_XDECREF(t->function);
    Py_XDECREF(t->args);
    Py_XDECREF(t->kwargs);
    release_stream(t->stream);
    Py_XDECREF(t->owner);
    Py_DECREF(self);
}

/* After exit no finalizer is called, as with weakref.finalize: what it would use may be gone. */
static PyObject *finish(FinalizerObject *self) {
    if (!self->todo.function) Py_RETURN_NONE;
    todo t = take(self);
    PyObject *r = cudago_unusable ? NEW_REF(Py_None) : PyObject_Call(t.function, t.args, t.kwargs);
    drop(&t, self);
    return r;
}

/* Asks Go to wait, once, for what is queued on the stream so far and then to queue the finalizer. Releases the GIL: a
 * record can wait for a full launch queue. */
static void begin_wait(FinalizerObject *self) {
    uint64_t id = self->id, stream = self->todo.stream->id;
    uintptr_t queued = (uintptr_t)NEW_REF(self);
    int begun;
    Py_BEGIN_ALLOW_THREADS
    begun = cudagoFinalizerWait(id, stream, queued);
    Py_END_ALLOW_THREADS
    if (!begun) Py_DECREF(self);
}

/* Called from Go's queue, with the GIL and no exception pending: the stream's work has ended. The finalizer may have
 * been initialised anew meanwhile, and then waits for something else. */
void cudago_finalizer_due(uintptr_t finalizer, uint64_t id) {
    FinalizerObject *self = (FinalizerObject *)finalizer;
    PyObject *r = self->id == id ? finish(self) : NEW_REF(Py_None);
    if (r) Py_DECREF(r);
    else PyErr_WriteUnraisable((PyObject *)self);
    Py_DECREF(self);
}

/* --- at exit -------------------------------------------------------------------------------------------------------- */

/* Exceptions go to sys.excepthook, as those of weakref.finalize's finalizers do. Returns 1 with an exception that ends
 * the exit's run: one that `except Exception` does not catch, or one that the hook raises. */
static int report(void) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return 1;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (trace) PyException_SetTraceback(value, trace);
    PyObject *hook = PySys_GetObject("excepthook"); /* borrowed */
    Py_XINCREF(hook);
    PyObject *r = hook ? PyObject_CallFunctionObjArgs(hook, type, value, trace ? trace : Py_None, NULL)
                       : (PyErr_SetString(PyExc_RuntimeError, "lost sys.excepthook"), NULL);
    Py_XDECREF(hook);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    Py_XDECREF(r);
    return !r;
}

/* Called by Go's registry, with the GIL, when it is the finalizer's turn. 1 with an exception: no other finalizer gets
 * a turn. */
int cudago_finalizer_exit(uintptr_t finalizer) {
    FinalizerObject *self = (FinalizerObject *)NEW_REF(finalizer);
    PyObject *r = NULL;
    int over = 1;
    uint64_t id = self->id;
    if (self->todo.stream) {
        uint64_t stream = self->todo.stream->id;
        begin_wait(self);
        Py_BEGIN_ALLOW_THREADS
        over = cudagoFinalizerOver(id, stream);
        Py_END_ALLOW_THREADS
    }
    if (self->id != id) r = NEW_REF(Py_None); /* another thread initialised it anew: its turn will come */
    else if (over) r = PyObject_CallNoArgs((PyObject *)self); /* not finish(): a subclass may have its own __call__ */
    else
        PyErr_Format(PyExc_TimeoutError, "%R was not called: the work queued on its stream did not end in time", self);
    int stop = r ? 0 : report();
    Py_XDECREF(r);
    Py_DECREF(self);
    return stop;
}

/* Runs with the collector disabled, as weakref.finalize's exit does: only the finalizers that were alive, and those
 * that they add, run. -1 with an exception. */
int cudago_finalize_all(long limit_ms) {
    int collects = PyGC_Disable();
    cudagoFinalizeAll(limit_ms);
    if (collects) PyGC_Enable();
    return PyErr_Occurred() ? -1 : 0;
}

/* --- the type ------------------------------------------------------------------------------------------------------ */

static int stream_of(PyObject *given, todo *t) {
    if (given == Py_None) return 0;
    if (cudago_unusable) return cudago_raise_unusable();
    PyObject *keep = NULL;
    StreamObject *stream = cudago_stream_arg(given, &keep);
    cudago_stream *s = stream ? cudago_stream_now(stream) : NULL;
    if (!s) return Py_XDECREF(keep), -1;
    cudago_stream_retain(t->stream = s);
    t->owner = NEW_REF(stream->owner);
    Py_XDECREF(keep);
    return 0;
}

/* __init__(object, function, args, kwargs, stream). A second call starts over, as weakref.finalize's does. */
static int finalizer_init(FinalizerObject *self, PyObject *arguments, PyObject *unused) {
    (void)unused;
    PyObject *object, *stream;
    todo t = {0};
    if (cudago_forked) return cudago_raise_unusable();
    if (!PyArg_ParseTuple(arguments, "OOO!O!O", &object, &t.function, &PyTuple_Type, &t.args, &PyDict_Type, &t.kwargs, &stream))
        return -1;
    if (!PyCallable_Check(t.function)) {
        PyErr_Format(PyExc_TypeError, "the function to call must be callable, not %R", (PyObject *)Py_TYPE(t.function));
        return -1;
    }
    if (stream_of(stream, &t)) return -1;
    t.reference = PyWeakref_NewRef(object, (PyObject *)self);
    if (!t.reference) {
        release_stream(t.stream);
        Py_XDECREF(t.owner);
        return -1;
    }
    Py_INCREF(t.function);
    Py_INCREF(t.args);
    Py_INCREF(t.kwargs);
    todo before = {0};
    int again = self->todo.function != NULL;
    if (again) before = take(self);
    self->atexit = 1;
    self->todo = t;
    Py_INCREF(self);
    if (!cudago_unusable) self->id = cudagoFinalizerNew((uintptr_t)self);
    if (again) drop(&before, self);
    return 0;
}

/* Called by the user or, as the weak reference's callback, with that reference: then the object has died. For the same
 * reason weakref.finalize takes, and ignores, one argument. */
static PyObject *finalizer_call(FinalizerObject *self, PyObject *args, PyObject *kwargs) {
    Py_ssize_t n = PyTuple_Size(args);
    if (n > 1 || (kwargs && PyDict_Size(kwargs)))
        return PyErr_SetString(PyExc_TypeError, "a finalizer is called without arguments"), NULL;
    int died = n && self->todo.reference && PyTuple_GetItem(args, 0) == self->todo.reference;
    if (cudago_forked && died) Py_RETURN_NONE; /* the parent's object, and the parent's to finalize */
    if (cudago_forked || (!cudago_unusable && !died)) CUDAGO_ENTER(NULL);
    if (!died || !self->todo.stream || cudago_unusable) return finish(self);
    begin_wait(self);
    Py_RETURN_NONE;
}

/* (obj, func, args, kwargs), or None. Making the tuple may collect garbage and so end this very finalizer. */
static PyObject *tell(FinalizerObject *self) {
    if (!self->todo.function) Py_RETURN_NONE;
    PyObject *object = PyObject_CallNoArgs(self->todo.reference);
    if (!object || object == Py_None) return object;
    PyObject *function = NEW_REF(self->todo.function), *args = NEW_REF(self->todo.args), *kwargs = NEW_REF(self->todo.kwargs);
    PyObject *r = PyTuple_Pack(4, object, function, args, kwargs);
    Py_DECREF(object);
    Py_DECREF(function);
    Py_DECREF(args);
    Py_DECREF(kwargs);
    return r;
}

static PyObject *finalizer_detach(FinalizerObject *self, PyObject *unused) {
    (void)unused;
    if (cudago_forked || !cudago_unusable) CUDAGO_ENTER(NULL);
    PyObject *r = tell(self);
    if (!r || r == Py_None) return r;
    if (!self->todo.function) {
        Py_DECREF(r);
        Py_RETURN_NONE;
    }
    todo t = take(self);
    drop(&t, self);
    return r;
}
static PyObject *finalizer_peek(FinalizerObject *self, PyObject *unused) {
    (void)unused;
    return tell(self);
}
static PyObject *finalizer_alive(FinalizerObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->todo.function != NULL);
}
static PyObject *finalizer_atexit(FinalizerObject *self, void *unused) {
    (void)unused;
    return PyBool_FromLong(self->todo.function && self->atexit);
}
static int finalizer_set_atexit(FinalizerObject *self, PyObject *value, void *unused) {
    (void)unused;
    if (cudago_forked) return cudago_raise_unusable();
    if (!value) return PyErr_SetString(PyExc_AttributeError, "cannot delete atexit"), -1;
    int on = PyObject_IsTrue(value);
    if (on < 0) return -1;
    self->atexit = on;
    if (self->todo.function && !cudago_unusable) cudagoFinalizerAtExit(self->id, on);
    return 0;
}

/* No tp_clear: the collector sees what a finalizer holds, but one that holds anything owns itself and so is never
 * garbage. */
static int finalizer_traverse(FinalizerObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE((PyObject *)self));
    Py_VISIT(self->todo.reference);
    Py_VISIT(self->todo.function);
    Py_VISIT(self->todo.args);
    Py_VISIT(self->todo.kwargs);
    Py_VISIT(self->todo.owner);
    return 0;
}
static void finalizer_dealloc(FinalizerObject *self) {
    PyObject_GC_UnTrack(self);
    if (self->weak) PyObject_ClearWeakRefs((PyObject *)self);
    cudago_free((PyObject *)self);
}

static PyMethodDef methods[] = {
    {"detach", METHOD(finalizer_detach), METH_NOARGS, DOC_FINALIZER_DETACH},
    {"peek", METHOD(finalizer_peek), METH_NOARGS, DOC_FINALIZER_PEEK},
    {0},
};
static PyGetSetDef getset[] = {
    {"alive", (getter)finalizer_alive, NULL, DOC_FINALIZER_ALIVE, NULL},
    {"atexit", (getter)finalizer_atexit, (setter)finalizer_set_atexit, DOC_FINALIZER_ATEXIT, NULL},
    {0},
};
static PyMemberDef members[] = {CUDAGO_WEAK_MEMBER(FinalizerObject), {0}};
static PyType_Slot slots[] = {
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_init, finalizer_init},
    {Py_tp_dealloc, finalizer_dealloc},
    {Py_tp_call, finalizer_call},
    {Py_tp_traverse, finalizer_traverse},
    {Py_tp_methods, methods},
    {Py_tp_getset, getset},
    {Py_tp_members, members},
    {0, NULL},
};
PyType_Spec cudago_finalizer_spec = {
    "cudago._core.Finalizer",
    sizeof(FinalizerObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    slots,
};

int cudago_finalizer_room(PyObject *module) { return cudago_add_type(module, CLS_FINALIZER, &cudago_finalizer_spec); }

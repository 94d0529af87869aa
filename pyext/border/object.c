/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

#include <stdarg.h>

/* The object model: types and their public classes, and how all methods read their arguments. */

PyTypeObject *cudago_base[CLS_COUNT], *cudago_cls[CLS_COUNT];

/* What is in the tp_alloc slot of all of these types. */
void *cudago_alloc(enum cudago_class k) { return PyType_GenericAlloc(cudago_cls[k], 0); }

/* What PyType_GenericAlloc does for them, without clearing what is set anyway. */
void *cudago_alloc_native(PyTypeObject *type, size_t size) {
    PyObject *o = PyObject_Malloc(size);
    return o ? PyObject_Init(o, type) : PyErr_NoMemory();
}

void cudago_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF((PyObject *)type);
}

void cudago_free_native(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

PyObject *cudago_call_python(PyObject *self, const char *method, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    Py_ssize_t named = names ? PyTuple_Size(names) : 0;
    PyObject *all = PyTuple_New(n), *dict = PyDict_New(), *python = PyObject_GetAttrString(self, method), *r = NULL;
    int bad = !all || !dict || !python;
    for (Py_ssize_t i = 0; !bad && i < n; i++) bad = PyTuple_SetItem(all, i, NEW_REF(args[i]));
    for (Py_ssize_t i = 0; !bad && i < named; i++) bad = PyDict_SetItem(dict, PyTuple_GetItem(names, i), args[n + i]);
    if (!bad) r = PyObject_Call(python, all, dict);
    Py_XDECREF(all);
    Py_XDECREF(dict);
    Py_XDECREF(python);
    return r;
}

PyObject *cudago_context_enter(PyObject *self, PyObject *unused) {
    (void)unused;
    if (cudago_is_over()) return NEW_REF(self);
    PyObject *closed = PyObject_GetAttrString(self, "is_closed");
    int is = closed ? PyObject_IsTrue(closed) : -1;
    Py_XDECREF(closed);
    if (is <= 0) return is ? NULL : NEW_REF(self);
    PyObject *name = PyType_GetName(Py_TYPE(self));
    if (name) cudago_raise_closed_as("%U is closed: a with block cannot begin with it", name);
    Py_XDECREF(name);
    return NULL;
}

int cudago_forgive(void) {
    if (!PyErr_Occurred()) return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) return -1;
    PyErr_Clear();
    return 0;
}

int cudago_has(PyObject *o, const char *name) {
    PyObject *found = PyObject_GetAttrString(o, name);
    if (!found && !PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
    PyErr_Clear(); /* PyObject_HasAttrString would clear any exception */
    Py_XDECREF(found);
    return found != NULL;
}

int cudago_which(cudago_keyword *known, int n, PyObject *name) {
    for (int i = 0; i < n; i++)
        if (known[i].interned == name) return i;
    for (int i = 0; i < n; i++) {
        if (PyUnicode_CompareWithASCIIString(name, known[i].text)) continue;
        if (!known[i].interned && !(known[i].interned = PyUnicode_InternFromString(known[i].text))) PyErr_Clear();
        return i;
    }
    return n;
}

static cudago_names *seen_at(cudago_names *seen, const PyObject *names) { return &seen[(uintptr_t)names / 16 % CUDAGO_CALLERS]; }

static void remember(cudago_names *at, const cudago_names *read) {
    PyObject *old = at->names;
    *at = *read;
    Py_INCREF(at->names);
    Py_XDECREF(old);
}

PyObject *cudago_read_names(cudago_names *seen, cudago_keyword *known, int n_known, PyObject *names, PyObject *const *values,
                            PyObject **const *slots) {
    cudago_names *at = seen_at(seen, names), read = {.names = names};
    if (!names) return NULL;
    if (at->names == names) {
        for (int i = 0; i < at->n; i++) *slots[at->which[i]] = values[i];
        return NULL;
    }
    int interned = 1;
    for (Py_ssize_t i = 0, n = PyTuple_Size(names); i < n; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int k = cudago_which(known, n_known, name);
        if (k == n_known) return name;
        *slots[k] = values[i];
        interned &= known[k].interned == name && read.n < CUDAGO_MOST_NAMES;
        if (interned) read.which[read.n++] = (int8_t)k;
    }
    if (interned) remember(at, &read);
    return NULL;
}

int cudago_names_stream(PyObject *names) {
    static cudago_keyword stream = {"stream", NULL};
    static cudago_names seen[CUDAGO_CALLERS];
    if (!names) return 0;
    cudago_names *at = seen_at(seen, names);
    if (at->names == names) return 1;
    if (PyTuple_Size(names) != 1) return 0;
    PyObject *name = PyTuple_GetItem(names, 0);
    if (cudago_which(&stream, 1, name)) return 0;
    if (stream.interned == name) remember(at, &(cudago_names){.names = names, .n = 1});
    return 1;
}

int cudago_raise_expected(PyObject *o, enum cudago_class k, const char *name) {
    PyObject *want = PyObject_GetAttrString((PyObject *)cudago_cls[k], "__name__");
    Py_UCS4 first = want ? PyUnicode_ReadChar(want, 0) : 'N';
    PyErr_Format(PyExc_TypeError, "%s must be a%s %S, not %R", name, first == 'E' || first == 'O' ? "n" : "", want ? want : Py_None,
                 (PyObject *)Py_TYPE(o));
    Py_XDECREF(want);
    return -1;
}

PyObject *cudago_number_text(PyObject *number) {
    PyObject *text = PyObject_Str(number);
    if (text || cudago_forgive()) return text;
    return PyUnicode_FromString("a number of thousands of digits");
}

int cudago_raise_number(PyObject *type, PyObject *number, const char *format, ...) {
    PyErr_Clear();
    va_list values;
    va_start(values, format);
    PyObject *wanted = PyUnicode_FromFormatV(format, values);
    va_end(values);
    PyObject *text = wanted ? cudago_number_text(number) : NULL;
    if (text) PyErr_Format(type, "%U, got %U", wanted, text);
    Py_XDECREF(text);
    Py_XDECREF(wanted);
    return -1;
}

int cudago_flag(PyObject *o, const char *name) {
    if (PyBool_Check(o)) return o == Py_True;
    int of_numpy = cudago_has((PyObject *)Py_TYPE(o), "item");
    PyObject *value = of_numpy > 0 ? PyObject_CallMethod(o, "item", NULL) : NULL;
    if (of_numpy < 0 || (of_numpy && !value)) return -1;
    int flag = value && PyBool_Check(value) ? value == Py_True : -1;
    Py_XDECREF(value);
    if (flag < 0) PyErr_Format(PyExc_TypeError, "%s must be a bool, not %R", name, (PyObject *)Py_TYPE(o));
    return flag;
}

PyObject *cudago_index(PyObject *o, const char *name) {
    PyObject *number = PyNumber_Index(o);
    if (!number && PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s must be an int, not %R", name, (PyObject *)Py_TYPE(o));
    return number;
}

int cudago_int32(PyObject *o, const char *name, int32_t least, int32_t *out) {
    PyObject *number = cudago_index(o, name);
    if (!number) return -1;
    int overflow;
    long v = PyLong_AsLongAndOverflow(number, &overflow);
    Py_DECREF(number);
    if (overflow || v < least || v > INT32_MAX)
        return cudago_raise_number(PyExc_ValueError, o, "%s must be %d to %d", name, least, INT32_MAX);
    *out = (int32_t)v;
    return 0;
}

int cudago_uint64(PyObject *o, const char *name, const char *wanted, uint64_t *out) {
    PyObject *number = cudago_index(o, name);
    if (!number) return -1;
    *out = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (*out != (uint64_t)-1 || !PyErr_Occurred()) return 0;
    return cudago_raise_number(PyExc_OverflowError, o, "%s must be %s", name, wanted);
}

/* The interpreter calls a method the short way only if it is of the object's very class (CALL's specializations compare its
 * d_type), and otherwise walks the class's bases at each call. So a public class gets its own copy of each method that it
 * inherits from the native type. */
static int adopt(PyTypeObject *cls, enum cudago_class k, PyMethodDef *m) {
    PyObject *theirs = PyObject_GetAttrString((PyObject *)cls, m->ml_name), *ours = PyObject_GetAttrString((PyObject *)cudago_base[k], m->ml_name);
    PyObject *copy = theirs && theirs == ours ? PyDescr_NewMethod(cls, m) : NULL; /* another: it is overridden */
    int r = PyErr_Occurred() || (copy && PyObject_SetAttrString((PyObject *)cls, m->ml_name, copy)) ? -1 : 0;
    Py_XDECREF(copy);
    Py_XDECREF(theirs);
    Py_XDECREF(ours);
    return r;
}

/* The methods that later rooms have added, each a list that ends with NULL. */
enum { MOST_ADDED = 4 };
static PyMethodDef *added[CLS_COUNT][MOST_ADDED + 1];

static int adopt_all(PyTypeObject *cls, enum cudago_class k) {
    PyMethodDef *own = PyType_GetSlot(cudago_base[k], Py_tp_methods);
    if (cls == cudago_base[k]) return 0;
    for (PyMethodDef *m = own; m && m->ml_name; m++)
        if (adopt(cls, k, m)) return -1;
    for (PyMethodDef **list = added[k]; *list; list++)
        for (PyMethodDef *m = *list; m->ml_name; m++)
            if (adopt(cls, k, m)) return -1;
    return 0;
}

/* _set_class(name, cls): sets the public class of a native type, which the Python face makes. */
PyObject *cudago_set_class(PyObject *module, PyObject *args) {
    const char *name;
    PyObject *cls;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!", &name, &PyType_Type, &cls)) return NULL;
    static const char *const names[] = {"Device", "Stream", "Event", "MemoryResource", "Buffer",
                                        "Pointer", "Handle", "Kernel", "LaunchConfig", "Operand",
                                        "Graph", "GraphExec", "Node", "ExecNode", "Finalizer", "GreenContext", "Descriptor",
                                        "ExternalSemaphore", "ExternalMemory", "OpaqueArray", "MipmappedArray"};
    _Static_assert(sizeof names / sizeof *names == CLS_COUNT, "enum cudago_class has other members");
    for (int k = 0; k < CLS_COUNT; k++) {
        if (strcmp(name, names[k])) continue;
        if (!PyType_IsSubtype((PyTypeObject *)cls, cudago_base[k])) break;
        if (adopt_all((PyTypeObject *)cls, (enum cudago_class)k)) return NULL;
        cudago_cls[k] = (PyTypeObject *)NEW_REF(cls);
        Py_RETURN_NONE;
    }
    return PyErr_Format(PyExc_ValueError, "no native type %s with that subclass", name);
}

int cudago_add_type(PyObject *module, enum cudago_class k, PyType_Spec *spec) {
    PyObject *type = PyType_FromSpec(spec);
    if (!type) return -1;
    cudago_base[k] = cudago_cls[k] = (PyTypeObject *)type;
    const char *name = strrchr(spec->name, '.') + 1;
    return PyModule_AddObject(module, name, NEW_REF(type));
}

static int add_to_type(enum cudago_class k, const char *name, PyObject *descriptor) {
    int r = descriptor ? PyObject_SetAttrString((PyObject *)cudago_base[k], name, descriptor) : -1;
    Py_XDECREF(descriptor);
    return r;
}

int cudago_add_methods(enum cudago_class k, PyMethodDef *m) {
    PyMethodDef **list = added[k];
    while (*list) list++;
    if (list == &added[k][MOST_ADDED]) return PyErr_SetString(PyExc_SystemError, "too many lists of methods"), -1;
    *list = m;
    for (; m->ml_name; m++)
        if (add_to_type(k, m->ml_name, PyDescr_NewMethod(cudago_base[k], m))) return -1;
    return 0;
}

int cudago_add_attributes(enum cudago_class k, PyGetSetDef *a) {
    for (; a->name; a++)
        if (add_to_type(k, a->name, PyDescr_NewGetSet(cudago_base[k], a))) return -1;
    return 0;
}

void cudago_incref(uintptr_t object) { Py_IncRef((PyObject *)object); }

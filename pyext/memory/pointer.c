/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

/* A Pointer is a Buffer and an offset into it: arithmetic is checked against the buffer, which the pointer keeps alive.
 * As in C, one past the end is a valid pointer. Immutable. */

PyObject *cudago_pointer_new(PyObject *buffer, int64_t offset) {
    PointerObject *self = cudago_alloc_native(cudago_base[CLS_POINTER], sizeof *self);
    if (!self) return NULL;
    self->buffer = NEW_REF(buffer);
    self->offset = offset;
    return (PyObject *)self;
}

static QUIET BufferObject *base(PointerObject *self) { return (BufferObject *)self->buffer; }
static QUIET int base_now(PointerObject *self) { return cudago_cell_now(base(self)->cell, "buffer"); }
static QUIET uint64_t address(PointerObject *self) { return base(self)->ptr + (uint64_t)self->offset; }

static PyObject *moved(PointerObject *self, PyObject *by, int sign) {
    CUDAGO_ENTER(NULL);
    int overflow = 0;
    PyObject *number = PyLong_CheckExact(by) ? by : PyNumber_Index(by);
    long long d = number ? PyLong_AsLongLongAndOverflow(number, &overflow) : -1;
    if (number != by) Py_XDECREF(number);
    if ((d == -1 && PyErr_Occurred()) || base_now(self)) return NULL;
    int64_t to;
    if (overflow || __builtin_mul_overflow((int64_t)d, (int64_t)sign, &to) ||
        __builtin_add_overflow(self->offset, to, &to) || to < 0 || (uint64_t)to > base(self)->size) {
        PyObject *text = cudago_number_text(by);
        if (text)
            PyErr_Format(PyExc_IndexError, "pointer at byte %lld of a buffer of %llu bytes cannot move by %s%U bytes",
                         (long long)self->offset, (unsigned long long)base(self)->size, sign < 0 ? "-" : "", text);
        Py_XDECREF(text);
        return NULL;
    }
    return cudago_pointer_new(self->buffer, to);
}

static PyObject *pointer_add(PyObject *a, PyObject *b) {
    if (PyLong_CheckExact(b)) return moved((PointerObject *)a, b, 1); /* then a is the Pointer */
    if (cudago_is(b, CLS_POINTER)) {
        PyObject *t = a;
        a = b;
        b = t;
    }
    if (!cudago_is(a, CLS_POINTER) || cudago_is(b, CLS_POINTER) || !PyIndex_Check(b)) Py_RETURN_NOTIMPLEMENTED;
    return moved((PointerObject *)a, b, 1);
}

static QUIET PyObject *pointer_subtract(PyObject *a, PyObject *b) {
    if (!cudago_is(a, CLS_POINTER)) Py_RETURN_NOTIMPLEMENTED;
    if (!cudago_is(b, CLS_POINTER)) {
        if (!PyIndex_Check(b)) Py_RETURN_NOTIMPLEMENTED;
        return moved((PointerObject *)a, b, -1);
    }
    if (base_now((PointerObject *)a) || base_now((PointerObject *)b)) return NULL;
    if (base((PointerObject *)a)->cell != base((PointerObject *)b)->cell) {
        PyErr_SetString(PyExc_ValueError, "pointers into different allocations have no difference");
        return NULL;
    }
    return PyLong_FromLongLong((int64_t)(address((PointerObject *)a) - address((PointerObject *)b)));
}

static PyObject *pointer_compare(PyObject *a, PyObject *b, int op) {
    if (!cudago_is(b, CLS_POINTER)) Py_RETURN_NOTIMPLEMENTED;
    uint64_t x = address((PointerObject *)a), y = address((PointerObject *)b);
    int r = op == Py_EQ ? x == y : op == Py_NE ? x != y
                               : op == Py_LT   ? x < y
                               : op == Py_LE   ? x <= y
                               : op == Py_GT   ? x > y
                                               : x >= y;
    return PyBool_FromLong(r);
}
static Py_hash_t pointer_hash(PointerObject *self) {
    uint64_t h = address(self) * 0x9E3779B97F4A7C15u;
    return (Py_hash_t)(h == (uint64_t)-1 ? 1 : h);
}

static QUIET PyObject *pointer_int(PointerObject *self) {
    if (cudago_cell_now(base(self)->cell, "buffer")) return NULL;
    return PyLong_FromUnsignedLongLong(address(self));
}
static PyObject *pointer_buffer(PointerObject *self, void *unused) {
    (void)unused;
    return NEW_REF(self->buffer);
}
static PyObject *pointer_offset(PointerObject *self, void *unused) {
    (void)unused;
    return PyLong_FromLongLong(self->offset);
}
static int pointer_true(PointerObject *self) { return address(self) != 0; }
static QUIET PyObject *pointer_repr(PointerObject *self) {
    if (cudago_cell_closed(base(self)->cell)) return PyUnicode_FromString("<cudago.Pointer of a closed buffer>");
    char hex[24];
    snprintf(hex, sizeof hex, "0x%llx", (unsigned long long)address(self));
    return PyUnicode_FromFormat("<cudago.Pointer %s: byte %lld of %llu>", hex, (long long)self->offset,
                                (unsigned long long)base(self)->size);
}

static void pointer_dealloc(PointerObject *self) {
    Py_DECREF(self->buffer);
    cudago_free_native((PyObject *)self);
}

static PyGetSetDef getset[] = {
    {"buffer", (getter)pointer_buffer, NULL, DOC_POINTER_BUFFER, NULL},
    {"offset", (getter)pointer_offset, NULL, DOC_POINTER_OFFSET, NULL},
    {0},
};
static PyType_Slot slots[] = {
    {Py_tp_dealloc, pointer_dealloc},
    {Py_tp_getset, getset},
    {Py_tp_repr, pointer_repr},
    {Py_tp_hash, pointer_hash},
    {Py_tp_richcompare, pointer_compare},
    {Py_nb_add, pointer_add},
    {Py_nb_subtract, pointer_subtract},
    {Py_nb_int, pointer_int},
    {Py_nb_index, pointer_int},
    {Py_nb_bool, pointer_true},
    {Py_tp_doc, DOC_POINTER},
    {0, NULL},
};
PyType_Spec cudago_pointer_spec = {
    "cudago._core.Pointer",
    sizeof(PointerObject),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    slots,
};

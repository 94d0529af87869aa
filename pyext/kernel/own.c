/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

/* What a graph keeps of the arguments that cudago_pack has packed: an Operand for each object of ours, and a record of all. */

typedef cudago_packing packing;

/* The Operand that a record has of the same buffer in the same place, borrowed: nodes that are added in a row often use the
 * same memory, and an Operand costs as much as the rest of a node. NULL: there is none, or the buffer is no longer the same. */
static QUIET OperandObject *operand_again(const packing *pk, int index) {
    PyObject *arg = pk->args[index];
    if (Py_TYPE(arg) != cudago_cls[CLS_BUFFER]) return NULL;
    OperandObject *o = (OperandObject *)PyTuple_GetItem(pk->like, 2 + index);
    const BufferObject *b = (const BufferObject *)arg;
    if (Py_TYPE((PyObject *)o) != cudago_cls[CLS_OPERAND] || o->object != arg || o->index != index) return NULL;
    int same = o->cell == b->cell && o->address == b->ptr && o->nbytes == b->size && o->readonly == cudago_buffer_readonly(b);
    return same ? o : NULL;
}

QUIET const OperandObject *cudago_pack_lost(const packing *pk) {
    for (Py_ssize_t i = 0, n = pk->keep ? PyList_Size(pk->keep) : 0; i < n; i++) {
        const OperandObject *o = (const OperandObject *)PyList_GetItem(pk->keep, i);
        if (cudago_operand_lost(o)) return o;
    }
    for (int i = 0; pk->own && i < pk->natives; i++)
        if (cudago_operand_lost(pk->own[i])) return pk->own[i];
    return NULL;
}

static int make_own(packing *pk) {
    if (!pk->natives) return 0;
    pk->own = pk->natives <= CUDAGO_FEW_OWN ? pk->few_own : calloc((size_t)pk->natives, sizeof *pk->own);
    if (!pk->own) return PyErr_NoMemory(), -1;
    memset(pk->own, 0, (size_t)pk->natives * sizeof *pk->own);
    Py_ssize_t again_below = pk->like ? PyTuple_Size(pk->like) - 2 : 0; /* how many arguments it has */
    for (int i = 0; i < pk->natives; i++) {
        int index = pk->native[i];
        OperandObject *again = index < again_below ? operand_again(pk, index) : NULL;
        if (again) {
            pk->own[i] = (OperandObject *)NEW_REF(again);
            continue;
        }
        if (!(pk->own[i] = cudago_operand(pk->args[index], OPERAND_KERNEL, cudago_parameter_name(index)))) return -1;
        pk->own[i]->index = index;
    }
    return 0;
}

/* A new reference to the Operand of an argument that is none of our own objects, or to what is kept of a struct; NULL if there is
 * none, or with an exception. */
static PyObject *kept_at(packing *pk, int index) {
    for (Py_ssize_t i = 0, n = pk->keep ? PyList_Size(pk->keep) : 0; i < n; i++) {
        OperandObject *o = (OperandObject *)PyList_GetItem(pk->keep, i);
        if (o->index == index) return o->at < 0 ? NEW_REF(o) : cudago_struct_recorded(pk, index);
    }
    return NULL;
}

/* What a value was converted to: another library's scalar may keep memory. The sign is that of the parameter's type in C++, if
 * that is known, so that it can be packed again. */
static PyObject *converted(const cudago_param *p, const uint8_t *at) {
    int64_t bits = 0;
    double d = 0;
    float f = 0;
    switch (p->type) {
    case PARAM_FLOAT:
        if (p->size == 8) memcpy(&d, at, 8);
        else memcpy(&f, at, 4);
        return PyFloat_FromDouble(p->size == 8 ? d : f);
    case PARAM_INT:
    case PARAM_UINT:
        memcpy(&bits, at, p->size);
        if (p->range ? p->range != RANGE_SIGNED : p->type == PARAM_UINT) return PyLong_FromUnsignedLongLong((uint64_t)bits);
        return PyLong_FromLongLong((int64_t)((uint64_t)bits << (64 - 8 * p->size)) >> (64 - 8 * p->size));
    }
    return PyBytes_FromStringAndSize((const char *)at, (Py_ssize_t)p->size);
}

static PyObject *recorded(packing *pk, int index) {
    PyObject *arg = pk->args[index], *operand = pk->keep ? kept_at(pk, index) : NULL;
    if (operand || PyErr_Occurred()) return operand;
    if (cudago_is_condition(arg)) return PyObject_GetAttrString(arg, "handle"); /* which says that it is one */
    if (arg == Py_None || PyLong_CheckExact(arg) || PyFloat_CheckExact(arg) || PyBytes_CheckExact(arg)) return NEW_REF(arg);
    return converted(&pk->k->params[index], pk->values + pk->k->params[index].offset);
}

PyObject *cudago_pack_recorded(packing *pk, int index) {
    for (int i = 0; i < pk->natives; i++)
        if (pk->native[i] == index) return NEW_REF(pk->own[i]);
    return recorded(pk, index);
}

int cudago_pack_operands(packing *pk) { return cudago_lent_own(pk) || make_own(pk) ? -1 : 0; }

/* Is it what the record is of that may be used again? A loop often launches the same again and again. */
static QUIET int is_again(const packing *pk, const PyObject *config) {
    if (!pk->like || PyTuple_Size(pk->like) != 2 + pk->k->n) return 0;
    if (PyTuple_GetItem(pk->like, 0) != (PyObject *)pk->kernel || PyTuple_GetItem(pk->like, 1) != config) return 0;
    for (int i = 0, own = 0; i < pk->k->n; i++) {
        int is_own = own < pk->natives && pk->native[own] == i;
        if (PyTuple_GetItem(pk->like, 2 + i) != (is_own ? (PyObject *)pk->own[own] : pk->args[i])) return 0;
        own += is_own;
    }
    return 1;
}

int cudago_pack_own(packing *pk, PyObject *config) {
    if (pk->record) return 0;
    if (cudago_pack_operands(pk)) return -1;
    if (is_again(pk, config)) return pk->record = NEW_REF(pk->like), 0;
    PyObject *record = PyTuple_New(2 + pk->k->n);
    if (!record || PyTuple_SetItem(record, 0, NEW_REF(pk->kernel)) || PyTuple_SetItem(record, 1, NEW_REF(config))) {
        Py_XDECREF(record);
        return -1;
    }
    for (int i = 0, own = 0; i < pk->k->n; i++) {
        int is_own = own < pk->natives && pk->native[own] == i;
        PyObject *item = is_own ? NEW_REF(pk->own[own]) : recorded(pk, i);
        own += is_own;
        if (item && !PyTuple_SetItem(record, 2 + i, item)) continue;
        Py_DECREF(record);
        return -1;
    }
    pk->record = record;
    return 0;
}

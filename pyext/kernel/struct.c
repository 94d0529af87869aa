/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

/* A struct by value. Its bytes are copied as they are, so they must mean on the device what they mean here. An address in them
 * says nothing of who owns the memory: so Python, which makes the bytes of a dataclass, tells what its fields were, and each is
 * kept as an argument would be. */

typedef cudago_packing packing;

static int check_format(const char *format, int index, PyObject *kernel) {
    const char *name = NULL;
    int length = 0;
    const char *found = cudago_format_find(format, ">!O", &name, &length);
    if (!found) return 0;
    const char *what = *found == 'O' ? "a Python object, which devices lack" : "big-endian, and devices are little-endian";
    PyObject *field = name ? PyUnicode_DecodeUTF8(name, length, "replace") : NULL;
    if (name && !field) return -1;
    if (field) PyErr_Format(PyExc_TypeError, "parameter %d of kernel %U is a struct, and field %R of it is %s", index, kernel, field, what);
    else PyErr_Format(PyExc_TypeError, "parameter %d of kernel %U is a struct, and what was given is %s", index, kernel, what);
    Py_XDECREF(field);
    return -1;
}

/* Of the error that is set: NumPy's is a ValueError. */
static int wrong_bytes(int index, PyObject *kernel) {
    if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError)) return -1;
    PyErr_Clear();
    PyErr_Format(PyExc_BufferError,
                 "parameter %d of kernel %U is a struct, and what was given has gaps between its elements or is not in row-major order: "
                 "pass a copy, np.ascontiguousarray(x)",
                 index, kernel);
    return -1;
}

/* The bytes, to be released; their format has been checked. */
static int get_bytes(PyObject *arg, Py_buffer *view, int index, PyObject *kernel) {
    if (PyObject_GetBuffer(arg, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT)) {
        int no_format = PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_BufferError) ||
                        PyErr_ExceptionMatches(PyExc_TypeError); /* NumPy's, of a scalar */
        if (!no_format) return -1;
        PyErr_Clear();
        return PyObject_GetBuffer(arg, view, PyBUF_C_CONTIGUOUS) ? wrong_bytes(index, kernel) : 0;
    }
    if (!check_format(view->format, index, kernel)) return 0;
    PyBuffer_Release(view);
    return -1;
}

/* bytes, or a NumPy structured scalar or any other buffer of the right length. */
static int pack_bytes(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    if (!PyObject_CheckBuffer(arg)) return cudago_wrong_argument(pk, p, arg);
    Py_buffer view;
    if (cudago_refuse_masked(arg, cudago_parameter_name(pk->index))) return -1;
    if (get_bytes(arg, &view, pk->index, pk->kernel->name)) return -1;
    Py_ssize_t n = view.len;
    if (n == (Py_ssize_t)p->size) memcpy(to, view.buf, p->size);
    PyBuffer_Release(&view);
    if (n == (Py_ssize_t)p->size) return 0;
    PyErr_Format(PyExc_ValueError, "parameter %d of kernel %U is a struct of %u bytes, got %zd", pk->index, pk->kernel->name,
                 p->size, n);
    return -1;
}

/* --- pointers in it ------------------------------------------------------------------------------------------------- */

/* Everything that has room for what arguments use has it for one thing of each parameter. */
static int make_room(packing *pk) {
    if (++pk->inside + pk->k->n <= CUDAGO_MAX_PARAMS) return 0;
    PyErr_Format(PyExc_ValueError, "the structs that kernel %U was given have more than %d pointers to memory", pk->kernel->name,
                 CUDAGO_MAX_PARAMS - pk->k->n);
    return -1;
}

static int keep_inside(packing *pk, OperandObject *o) { return make_room(pk) ? -1 : cudago_pack_keep(pk, o); }

/* Of a tensor or an array with gaps: says which field has it, as cudago_wrong_layout says of arguments. */
static int wrong_field(const char *what, PyObject *object) {
    if (!cudago_is_tensor(object)) return cudago_wrong_host_layout(object, what, NULL);
    if (!PyErr_ExceptionMatches(PyExc_BufferError)) return -1;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_Format(type, "%s: %S: pass a copy, x.contiguous(stream=s)", what, value ? value : Py_None);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return -1;
}

/* A field: (bytes from the start, what was given, what messages call it). */
static int pack_field(packing *pk, const cudago_param *p, PyObject *field, uint8_t *to) {
    int at;
    PyObject *object;
    const char *what;
    if (!PyTuple_Check(field)) return PyErr_SetString(PyExc_TypeError, "a field of a struct must be a tuple"), -1;
    if (!PyArg_ParseTuple(field, "iOs", &at, &object, &what)) return -1;
    if (at < 0 || (uint32_t)at + 8 > p->size) return PyErr_SetString(PyExc_ValueError, "a field is not in its struct"), -1;
    OperandObject *o = cudago_operand(object, OPERAND_KERNEL, what);
    if (!o) return wrong_field(what, object);
    o->at = at;
    memcpy(to + at, &o->address, 8);
    int r = keep_inside(pk, o);
    Py_DECREF(o);
    return r;
}

/* What Python makes of a dataclass's instance: its bytes and its fields with memory. */
static int pack_made(packing *pk, const cudago_param *p, PyObject *made, uint8_t *to) {
    PyObject *bytes, *fields;
    if (!PyTuple_Check(made)) return PyErr_SetString(PyExc_TypeError, "_packed must return a tuple"), -1;
    if (!PyArg_ParseTuple(made, "SO!", &bytes, &PyTuple_Type, &fields)) return -1;
    if (pack_bytes(pk, p, bytes, to)) return -1;
    for (Py_ssize_t i = 0; i < PyTuple_Size(fields); i++)
        if (pack_field(pk, p, PyTuple_GetItem(fields, i), to)) return -1;
    return 0;
}

static int pack_dataclass(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    PyObject *structs = PyImport_ImportModule("cudago._kernel.structs");
    PyObject *made = structs ? PyObject_CallMethod(structs, "_packed", "O", arg) : NULL;
    Py_XDECREF(structs);
    int r = made ? pack_made(pk, p, made, to) : -1;
    Py_XDECREF(made);
    return r;
}

/* --- what a record has of it ------------------------------------------------------------------------------------------- */

static QUIET OperandObject *inside_at(const packing *pk, Py_ssize_t i, int index) {
    OperandObject *o = (OperandObject *)PyList_GetItem(pk->keep, i);
    return o->index == index && o->at >= 0 ? o : NULL;
}

PyObject *cudago_struct_recorded(const packing *pk, int index) {
    const cudago_param *p = &pk->k->params[index];
    Py_ssize_t kept = PyList_Size(pk->keep), n = 0;
    for (Py_ssize_t i = 0; i < kept; i++) n += inside_at(pk, i, index) != NULL;
    PyObject *made = PyTuple_New(1 + n);
    PyObject *bytes = made ? PyBytes_FromStringAndSize((const char *)pk->values + p->offset, (Py_ssize_t)p->size) : NULL;
    if (!bytes) return Py_XDECREF(made), NULL;
    PyTuple_SetItem(made, 0, bytes);
    for (Py_ssize_t i = 0, to = 1; i < kept; i++)
        if (inside_at(pk, i, index)) PyTuple_SetItem(made, to++, NEW_REF(inside_at(pk, i, index)));
    return made;
}

/* Is it a tuple as above, whose bytes have the addresses of its Operands? */
static int is_recorded(const cudago_param *p, PyObject *arg) {
    Py_ssize_t n = PyTuple_Check(arg) ? PyTuple_Size(arg) : 0;
    if (n < 2 || !PyBytes_CheckExact(PyTuple_GetItem(arg, 0))) return 0;
    char *bytes;
    Py_ssize_t size;
    PyBytes_AsStringAndSize(PyTuple_GetItem(arg, 0), &bytes, &size);
    for (Py_ssize_t i = 1; i < n; i++) {
        const OperandObject *o = (OperandObject *)PyTuple_GetItem(arg, i);
        if (Py_TYPE((PyObject *)o) != cudago_cls[CLS_OPERAND] || o->at < 0 || o->at + 8 > size) return 0;
        if (memcmp(bytes + o->at, &o->address, 8)) return 0;
    }
    return size == (Py_ssize_t)p->size;
}

/* Another Operand of the same memory, because an Operand tells of one parameter alone. Its object may be closed by now. */
static OperandObject *copy_of(const OperandObject *o) {
    OperandObject *made = cudago_alloc(CLS_OPERAND);
    if (!made) return NULL;
    made->object = NEW_REF(o->object);
    if ((made->cell = o->cell)) cudago_cell_retain(o->cell);
    if ((made->theirs = o->theirs)) cudago_cell_retain(o->theirs);
    if ((made->storage = o->storage).data) cudago_operands_stored++;
    made->weak_array = o->weak_array ? NEW_REF(o->weak_array) : NULL;
    made->export = o->export ? NEW_REF(o->export) : NULL;
    made->address = o->address, made->nbytes = o->nbytes;
    made->host = o->host, made->pageable = o->pageable;
    made->device = o->device, made->readonly = o->readonly, made->array = o->array;
    made->index = o->index, made->at = o->at;
    made->interface = o->interface, made->at_rest = o->at_rest;
    made->element = o->element;
    made->stream = o->stream;
    if ((made->described = o->described)) ((DescriptorObject *)o->object)->users++;
    if ((made->of = o->of)) o->of->taken++;
    return made;
}

static int pack_recorded(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    if (pack_bytes(pk, p, PyTuple_GetItem(arg, 0), to)) return -1;
    for (Py_ssize_t i = 1, failed = 0; i < PyTuple_Size(arg); i++) {
        OperandObject *o = copy_of((OperandObject *)PyTuple_GetItem(arg, i));
        failed = !o || keep_inside(pk, o);
        Py_XDECREF(o);
        if (failed) return -1;
    }
    return 0;
}

int cudago_pack_struct(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    int number = PyComplex_Check(arg) || PyFloat_Check(arg) || PyLong_Check(arg), small = cudago_is_small(p);
    if (number && (small || !PyObject_CheckBuffer(arg))) return cudago_pack_small(pk, p, arg, to); /* those of NumPy have bytes */
    if (small && cudago_wrong_small(pk, p, arg)) return -1;
    if (is_recorded(p, arg)) return pack_recorded(pk, p, arg, to);
    int fields = PyObject_CheckBuffer(arg) || PyType_Check(arg) ? 0 : cudago_has((PyObject *)Py_TYPE(arg), "__dataclass_fields__");
    if (fields < 0) return -1;
    return fields ? pack_dataclass(pk, p, arg, to) : pack_bytes(pk, p, arg, to);
}

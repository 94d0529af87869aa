/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include <math.h>

#include "tensor.h"

/* One path to a kernel: each argument is checked against the kernel's real parameter and written to its place. Nothing
 * has happened when this fails. */

typedef struct {
    KernelObject *kernel;
    cudago_kernel *k;
    cudago_stream *stream; /* NULL for a graph node */
    int32_t pageable;      /* the device reads pageable memory */
    int all;               /* keep every operand, not only those of host memory */
    int index;
    PyObject *keep;        /* list of Operands, or NULL */
} packing;

static const char *type_name(const cudago_param *p, char *out, size_t n) {
    static const char *const words[] = {"", "integer s", "integer u", "float f", "struct of ", "value b"};
    if (p->type == PARAM_BYTES) snprintf(out, n, "a struct of %u bytes", p->size);
    else if (p->type == PARAM_UINT && p->size == 8) snprintf(out, n, "a pointer or an integer u64");
    else snprintf(out, n, "%s %s%u", p->type == PARAM_FLOAT ? "a" : "an", words[p->type], p->size * 8);
    return out;
}

static int wrong_type(packing *pk, const cudago_param *p, PyObject *arg) {
    char want[64];
    PyErr_Format(PyExc_TypeError, "parameter %d of kernel %U must be %s, got %R (%R)", pk->index, pk->kernel->name,
                 type_name(p, want, sizeof want), arg, (PyObject *)Py_TYPE(arg));
    return -1;
}

static int out_of_range(packing *pk, const cudago_param *p, PyObject *arg) {
    PyErr_Clear();
    PyErr_Format(PyExc_OverflowError, "parameter %d of kernel %U is an integer of %u bits, %S does not fit", pk->index,
                 pk->kernel->name, p->size * 8, arg);
    return -1;
}

/* PTX does not tell signed from unsigned (NVRTC says .u32 for int), so both ranges are taken. */
static int pack_int(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(arg, &overflow);
    if (v == -1 && !overflow && PyErr_Occurred()) return -1;
    if (overflow < 0) return out_of_range(pk, p, arg);
    uint64_t bits = (uint64_t)v;
    if (overflow > 0) {
        if (p->size < 8) return out_of_range(pk, p, arg);
        bits = PyLong_AsUnsignedLongLong(arg);
        if (bits == (uint64_t)-1 && PyErr_Occurred()) return out_of_range(pk, p, arg);
    } else if (p->size < 8) {
        int64_t span = INT64_C(1) << (8 * p->size);
        if (v >= span || v < -(span >> 1)) return out_of_range(pk, p, arg);
    }
    memcpy(to, &bits, p->size); /* little-endian, as CUDA's hosts are */
    return 0;
}

static int pack_float(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    double d = PyFloat_AsDouble(arg);
    if (d == -1.0 && PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
        PyErr_Clear();
        return wrong_type(pk, p, arg);
    }
    if (p->size == 8) return memcpy(to, &d, 8), 0;
    float f = (float)d;
    if (isinf(f) && !isinf(d)) {
        PyErr_Format(PyExc_OverflowError, "parameter %d of kernel %U is a float of 32 bits, %S does not fit", pk->index,
                     pk->kernel->name, arg);
        return -1;
    }
    memcpy(to, &f, 4);
    return 0;
}

/* bytes, or a NumPy structured scalar or any other buffer of the right length. */
static int pack_bytes(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    if (!PyObject_CheckBuffer(arg)) return wrong_type(pk, p, arg);
    Py_buffer view;
    if (PyObject_GetBuffer(arg, &view, PyBUF_C_CONTIGUOUS)) return -1;
    Py_ssize_t n = view.len;
    if (n == (Py_ssize_t)p->size) memcpy(to, view.buf, p->size);
    PyBuffer_Release(&view);
    if (n == (Py_ssize_t)p->size) return 0;
    PyErr_Format(PyExc_ValueError, "parameter %d of kernel %U is a struct of %u bytes, got %zd", pk->index, pk->kernel->name,
                 p->size, n);
    return -1;
}

static int keep(packing *pk, OperandObject *o) {
    if (!pk->keep && !(pk->keep = PyList_New(0))) return -1;
    return PyList_Append(pk->keep, (PyObject *)o);
}

/* Formatted once: an operand needs its name in an error only, and formatting costs as much as the operand. */
static const char *parameter_name(int index) {
    static char names[CUDAGO_MAX_PARAMS][16];
    if (!names[index][0]) snprintf(names[index], sizeof names[index], "parameter %d", index);
    return names[index];
}

static int keep_object(packing *pk, PyObject *arg) {
    OperandObject *o = cudago_operand(arg, OPERAND_KERNEL, parameter_name(pk->index));
    if (o) o->index = pk->index;
    int r = o ? keep(pk, o) : -1;
    Py_XDECREF(o);
    return r;
}

/* Memory of another device is fine where the kernel's has access to it. */
static int check_device(packing *pk, const cudago_cell *cell, int32_t device) {
    if (device < 0 || device == pk->k->device) return 0;
    int can = cudago_reachable(cell, device, pk->k->device);
    if (can) return can < 0 ? -1 : 0;
    PyErr_Format(PyExc_ValueError,
                 "parameter %d of kernel %U is on device %d, the kernel on device %d, which has no access to that memory: see "
                 "peer_accessible_by of DeviceMemoryResource",
                 pk->index, pk->kernel->name, device, pk->k->device);
    return -1;
}

static int pack_buffer(packing *pk, BufferObject *b, uint64_t offset, PyObject *arg, uint8_t *to) {
    if (!b->cell) return cudago_raise_closed("buffer");
    if (check_device(pk, b->cell, b->device)) return -1;
    uint64_t address = b->ptr + offset;
    memcpy(to, &address, 8);
    if (pk->stream) cudago_cell_used(b->cell, pk->stream);
    return pk->all ? keep_object(pk, arg) : 0;
}

/* Everything else that has memory. */
static int pack_memory(packing *pk, PyObject *arg, uint8_t *to) {
    OperandObject *o = cudago_operand(arg, OPERAND_KERNEL, parameter_name(pk->index));
    if (!o) return -1;
    int r = check_device(pk, o->cell, o->device);
    if (!r && o->pageable && !pk->pageable && !cudago_host_known(o->address)) {
        PyErr_Format(PyExc_TypeError,
                     "parameter %d of kernel %U is ordinary host memory (%R), which kernels on device %d cannot read: copy it "
                     "to the device, or pin it (PinnedMemoryResource)",
                     pk->index, pk->kernel->name, (PyObject *)Py_TYPE(arg), pk->k->device);
        r = -1;
    }
    if (!r && pk->stream && !o->host) r = cudago_order_after(arg, pk->stream);
    if (!r) {
        memcpy(to, &o->address, 8);
        if (o->pageable) cudago_operand_allow(o);
        o->index = pk->index;
        r = keep(pk, o);
    }
    Py_DECREF(o);
    return r;
}

static int is_numpy_scalar(PyObject *arg) {
    PyTypeObject *t = Py_TYPE(arg);
    return PyObject_HasAttrString((PyObject *)t, "dtype") && PyObject_HasAttrString((PyObject *)t, "item") &&
           !PyObject_HasAttrString((PyObject *)t, "__dlpack__");
}

static int pack_object(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    if (p->type == PARAM_BYTES || p->type == PARAM_BITS) return pack_bytes(pk, p, arg, to);
    if (is_numpy_scalar(arg)) {
        PyObject *item = PyObject_CallMethod(arg, "item", NULL);
        if (!item) return -1;
        int r = p->type == PARAM_FLOAT          ? pack_float(pk, p, item, to)
                : PyLong_Check(item)            ? pack_int(pk, p, item, to)
                                                : wrong_type(pk, p, arg);
        Py_DECREF(item);
        return r;
    }
    if (p->type == PARAM_FLOAT)
        return PyObject_HasAttrString((PyObject *)Py_TYPE(arg), "__dlpack__") ? wrong_type(pk, p, arg) : pack_float(pk, p, arg, to);
    if (p->size == 8) {
        if (arg == Py_None) return memset(to, 0, 8), 0;
        if (PyObject_CheckBuffer(arg) || PyObject_HasAttrString((PyObject *)Py_TYPE(arg), "__dlpack__") ||
            PyObject_HasAttrString(arg, "__cuda_array_interface__"))
            return pack_memory(pk, arg, to);
    }
    if (PyIndex_Check(arg) && !PyObject_HasAttrString((PyObject *)Py_TYPE(arg), "__dlpack__")) {
        PyObject *v = PyNumber_Index(arg);
        int r = v ? pack_int(pk, p, v, to) : -1;
        Py_XDECREF(v);
        return r;
    }
    return wrong_type(pk, p, arg);
}

static int pack_one(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    PyTypeObject *t = Py_TYPE(arg);
    int pointer = p->size == 8 && (p->type == PARAM_UINT || p->type == PARAM_INT || p->type == PARAM_BITS);
    if (t == cudago_cls[CLS_BUFFER]) return pointer ? pack_buffer(pk, (BufferObject *)arg, 0, arg, to) : wrong_type(pk, p, arg);
    if (PyLong_Check(arg)) {
        if (p->type == PARAM_FLOAT) return pack_float(pk, p, arg, to);
        return p->type == PARAM_BYTES ? wrong_type(pk, p, arg) : pack_int(pk, p, arg, to);
    }
    if (PyFloat_CheckExact(arg)) return p->type == PARAM_FLOAT ? pack_float(pk, p, arg, to) : wrong_type(pk, p, arg);
    if (t == cudago_cls[CLS_POINTER]) {
        PointerObject *q = (PointerObject *)arg;
        return pointer ? pack_buffer(pk, (BufferObject *)q->buffer, (uint64_t)q->offset, arg, to) : wrong_type(pk, p, arg);
    }
    if (cudago_is_tensor(arg)) {
        uint64_t address;
        cudago_cell *cell;
        if (!pointer) return wrong_type(pk, p, arg);
        if (cudago_tensor_argument(arg, &address, &cell)) return -1;
        if (cudago_cell_is_host(cell) && cell->kind != CUDAGO_CELL_PINNED && cell->kind != CUDAGO_CELL_POOL)
            return pack_memory(pk, arg, to);
        if (check_device(pk, cell, ((TensorObject *)arg)->device)) return -1;
        memcpy(to, &address, 8);
        if (pk->stream) cudago_cell_used(cell, pk->stream);
        /* Another library frees in the order of its own streams: its memory is kept until the launch has ended. */
        return pk->all || cell->kind == CUDAGO_CELL_FOREIGN ? keep_object(pk, arg) : 0;
    }
    if (cudago_is(arg, CLS_BUFFER)) return pointer ? pack_buffer(pk, (BufferObject *)arg, 0, arg, to) : wrong_type(pk, p, arg);
    return pack_object(pk, p, arg, to);
}

int cudago_pack(KernelObject *kernel, cudago_kernel *k, cudago_stream *stream, PyObject *const *args, Py_ssize_t n, int all,
                uint8_t *values, void **params, PyObject **kept) {
    *kept = NULL;
    if (n != k->n) {
        PyErr_Format(PyExc_TypeError, "kernel %U takes %d argument(s), got %zd", kernel->name, k->n, n);
        return -1;
    }
    packing pk = {.kernel = kernel, .k = k, .stream = stream, .all = all, .pageable = k->pageable};
    for (pk.index = 0; pk.index < k->n; pk.index++) {
        const cudago_param *p = &k->params[pk.index];
        params[pk.index] = values + p->offset;
        if (pack_one(&pk, p, args[pk.index], values + p->offset)) {
            Py_XDECREF(pk.keep);
            return -1;
        }
    }
    *kept = pk.keep;
    return 0;
}

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include "_cgo_export.h"

/* Memory operations of a stream: it writes a value, or waits until memory has one. */

int cudago_memop_value_of(PyObject *value, cudago_memop_value *out) {
    if (cudago_is(value, CLS_POINTER)) /* an int by itself, it would keep no memory */
        return PyErr_SetString(PyExc_TypeError, "value must be an int, got a Pointer: a number in memory keeps no other memory alive; int(p) is the bare address"), -1;
    PyObject *number = cudago_index(value, "value");
    if (!number) return -1;
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(number, &overflow);
    *out = (cudago_memop_value){(uint64_t)v, v < 0};
    if (overflow > 0) {
        *out = (cudago_memop_value){PyLong_AsUnsignedLongLong(number), 0};
        if (out->bits == (uint64_t)-1 && PyErr_Occurred()) PyErr_Clear();
        else overflow = 0;
    }
    if (overflow) cudago_raise_number(PyExc_OverflowError, number, "value must fit in 8 bytes");
    Py_DECREF(number);
    return overflow ? -1 : 0;
}

static QUIET int is_managed(const OperandObject *o) {
    return o->cell && (o->cell->kind == CUDAGO_CELL_MANAGED || o->cell->device_type == kDLCUDAManaged ||
                       o->cell->flags & CUDAGO_CELL_MANAGED_VARIABLE);
}

/* What NVIDIA's driver 580 does with memory of a pool was seen on an H200: a stream refuses it (INVALID_VALUE); a graph takes
 * it, refuses to be launched, and the process may crash later. Whether another library's memory is from a pool is not known. */
static QUIET const char *unfit(const OperandObject *o) {
    if (o->pageable) return "pageable host memory";
    if (is_managed(o)) return "managed memory";
    /* Of pools of host memory that is a guess; of those of device memory it was seen. */
    if (o->cell->flags & CUDAGO_CELL_POOLED || cudago_cell_of_their_pool(o->cell)) return "a memory pool";
    switch (o->cell->kind) {
    case CUDAGO_CELL_DEVICE:
    case CUDAGO_CELL_PINNED:
    case CUDAGO_CELL_VARIABLE: return NULL;
    case CUDAGO_CELL_POOL:
    case CUDAGO_CELL_GRAPH: return "a memory pool";
    }
    return "another library's memory, which may be from a pool";
}

/* Only our own objects: the order behind another library's work on its memory is that of our streams. */
OperandObject *cudago_memop_operand(PyObject *object, int waits) {
    const char *name = waits ? "src" : "dst";
    int ours = Py_TYPE(object) == cudago_cls[CLS_OPERAND] || cudago_is(object, CLS_BUFFER) || cudago_is(object, CLS_POINTER) || cudago_is_tensor(object);
    OperandObject *o = ours ? cudago_operand(object, waits ? 0 : OPERAND_WRITABLE, name) : NULL;
    if (ours && !o) return NULL;
    if (!o || !o->cell) {
        Py_XDECREF(o);
        return PyErr_Format(PyExc_TypeError, "%s must be a Buffer, Pointer or Tensor, not %R", name, (PyObject *)Py_TYPE(object)), NULL;
    }
    const char *bad = unfit(o);
    if (!bad) return o;
    Py_DECREF(o);
    return PyErr_Format(PyExc_ValueError, "%s is in %s: a stream writes values, and waits for them, in pinned memory, in that of VirtualMemoryResource, and in variables", name, bad), NULL;
}

QUIET int cudago_memop_fits(const OperandObject *o, const cudago_memop_value *value, cudago_memop *m) {
    const char *name = m->waits ? "src" : "dst";
    if (cudago_operand_now(o)) return -1;
    if (o->nbytes != 4 && o->nbytes != 8)
        return PyErr_Format(PyExc_ValueError, "%s must have 4 or 8 bytes, the width of the value, got %llu: take a part of it, as memory[:8]", name, (unsigned long long)o->nbytes), -1;
    if (o->address % o->nbytes)
        return PyErr_Format(PyExc_ValueError, "%s must be aligned to its %llu bytes, got address %p", name, (unsigned long long)o->nbytes, (void *)(uintptr_t)o->address), -1;
    m->width = (uint32_t)o->nbytes;
    m->value = value->bits;
    if (m->width == 8) return 0;
    if (value->negative ? (int64_t)value->bits < INT32_MIN : value->bits > UINT32_MAX)
        return PyErr_Format(PyExc_OverflowError, value->negative ? "value must fit in the 4 bytes of %s, got %lld" : "value must fit in the 4 bytes of %s, got %llu", name, (unsigned long long)value->bits), -1;
    m->value = (uint32_t)value->bits;
    return 0;
}

/* With the GIL released, because the call goes through Go: the cell is held for the call. */
static int memop_away(cudago_stream *s, OperandObject *o, const cudago_memop *m) {
    cudago_status st = {0};
    cudago_cell *cell = o->cell;
    cudago_cell_retain(cell);
    uint64_t address = o->address;
    cudago_leave l = cudago_gil_leave(s);
    cudagoMemOp(s->id, address, m->value, m->width, m->waits, m->condition, &st);
    cudago_cell_note(cell, s, cudago_gil_back(&l, st.kind));
    cudago_cell_release(cell);
    int r = st.kind ? cudago_raise(&st) : 0;
    cudago_leave_end(&l);
    return r;
}

static QUIET int memop_now(StreamObject *stream, OperandObject *o, const cudago_memop_value *value, cudago_memop *m) {
    cudago_stream *s = cudago_stream_now(stream);
    if (!s || cudago_memop_fits(o, value, m)) return -1;
    int capturing = cudago_capturing(s);
    if (capturing < 0) return -1;
    if (capturing) return cudago_record.memop(s, o, m);
    if (cudago_cell_reserve(o->cell, s)) return -1;
    return memop_away(s, o, m);
}

/* _memop(stream, object, value, condition): a write if condition is -1, otherwise a wait */
PyObject *cudago_stream_memop(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    cudago_memop_value value;
    int32_t condition;
    if (n != 4) return PyErr_SetString(PyExc_TypeError, "_memop(stream, object, value, condition)"), NULL;
    if (cudago_expect(args[0], CLS_STREAM, "stream") || cudago_int32(args[3], "condition", -1, &condition) || cudago_memop_value_of(args[2], &value))
        return NULL;
    StreamObject *stream = (StreamObject *)args[0];
    cudago_memop m = {.waits = condition >= 0, .condition = condition < 0 ? 0 : condition};
    OperandObject *o = cudago_memop_operand(args[1], m.waits);
    if (!o) return NULL;
    cudago_note_site();
    int r = cudago_stream_accesses(o->cell, o->address, o->device, stream->device, m.waits ? "src" : "dst");
    if (!r) r = memop_now(stream, o, &value, &m);
    Py_DECREF(o);
    if (r) return NULL;
    Py_RETURN_NONE;
}

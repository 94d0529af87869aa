/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "kernel.h"

#include <math.h>

/* Arguments that are numbers, by themselves or in memory of their own. */

typedef cudago_packing packing;

static int does_not_fit(packing *pk, const cudago_param *p, const char *kind, PyObject *arg) {
    PyErr_Clear();
    PyObject *text = cudago_number_text(arg);
    if (!text) return -1;
    PyErr_Format(PyExc_OverflowError, "parameter %d of kernel %U is %s of %u bits, %U does not fit", pk->index, pk->kernel->name, kind,
                 p->size * 8, text);
    Py_DECREF(text);
    return -1;
}
static int out_of_range(packing *pk, const cudago_param *p, PyObject *arg) {
    static const char *const words[] = {"an integer", "a signed integer", "an unsigned integer", "a bool", "an address"};
    return does_not_fit(pk, p, words[p->range], arg);
}
static int too_large(packing *pk, const cudago_param *p, PyObject *arg) { return does_not_fit(pk, p, "a float", arg); }

/* Of a number that has the parameter's size. */
static inline QUIET int in_range(const cudago_param *p, int64_t v) {
    if (p->range == RANGE_SIGNED) return p->size == 8 || v < (int64_t)1 << (8 * p->size - 1);
    return v >= 0 && (p->range != RANGE_BOOL || v <= 1) && !((uint64_t)v & p->mask);
}

/* Where the range is not known, that of both signs is accepted. No address is True. */
int cudago_pack_int(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    if (p->range == RANGE_ADDRESS && PyBool_Check(arg)) return cudago_wrong_argument(pk, p, arg);
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(arg, &overflow);
    if (v == -1 && !overflow && PyErr_Occurred()) return -1;
    if (overflow < 0) return out_of_range(pk, p, arg);
    uint64_t bits = (uint64_t)v;
    if (overflow > 0) {
        if (p->size < 8 || p->range == RANGE_SIGNED || p->range == RANGE_BOOL) return out_of_range(pk, p, arg);
        bits = PyLong_AsUnsignedLongLong(arg);
        if (bits == (uint64_t)-1 && PyErr_Occurred()) return out_of_range(pk, p, arg);
    } else if (p->size < 8) {
        int64_t span = INT64_C(1) << (8 * p->size);
        if (v >= span || v < -(span >> 1)) return out_of_range(pk, p, arg);
    }
    if (bits & p->mask && (v >= 0 || overflow > 0)) return cudago_wrong_place(pk, p, arg, bits, 0);
    if (p->range && !overflow && !in_range(p, v)) return out_of_range(pk, p, arg);
    if (p->size == 4) return memcpy(to, &bits, 4), 0;
    memcpy(to, &bits, p->size); /* little-endian, as CUDA's hosts are */
    return 0;
}

/* 0 if it does not fit. */
static inline QUIET int put_double(const cudago_param *p, double d, uint8_t *to) {
    if (p->size == 8) return memcpy(to, &d, 8), 1;
    float f = (float)d;
    if (isinf(f) && !isinf(d)) return 0;
    return memcpy(to, &f, 4), 1;
}

int cudago_pack_float(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    double d = PyFloat_AsDouble(arg);
    if (d == -1.0 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) return too_large(pk, p, arg);
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) return -1;
        PyErr_Clear();
        return cudago_wrong_argument(pk, p, arg);
    }
    return put_double(p, d, to) ? 0 : too_large(pk, p, arg);
}

/* For an int or a float itself that the parameter takes, as nearly all scalars are. 0: it is none, or is refused; nothing is
 * raised and nothing has run. */
QUIET int cudago_pack_number(const cudago_param *p, PyObject *arg, uint8_t *to) {
    int is_float = p->type == PARAM_FLOAT, overflow = 0;
    if (PyLong_CheckExact(arg) && (is_float || p->type == PARAM_INT || p->type == PARAM_UINT)) {
        int64_t v = PyLong_AsLongLongAndOverflow(arg, &overflow), span = (int64_t)1 << (8 * p->size & 63);
        if (overflow) return 0;
        if (is_float) return put_double(p, (double)v, to);
        if (p->size < 8 && (v >= span || v < -(span >> 1))) return 0;
        if (p->range && !in_range(p, v)) return 0;
        return memcpy(to, &v, p->size), 1;
    }
    return is_float && PyFloat_CheckExact(arg) && put_double(p, PyFloat_AsDouble(arg), to);
}

/* --- numbers that are structs --------------------------------------------------------------------------------------- */

/* A type of two bytes: the bits of its fraction, and the exponent of the smallest number that is not subnormal. */
typedef struct {
    const char *name, *other;
    int fraction, least;
} small_type;
static QUIET small_type small_of(const cudago_param *p) {
    if (p->element >> 4 == kDLBfloat) return (small_type){"bfloat16", "float16", 7, -126};
    return (small_type){"float16", "bfloat16", 10, -14};
}

/* To the nearest, of two the even one, in one step: by way of a float it would be rounded twice. 0 if it does not fit. */
static int put_small(small_type t, double d, uint8_t *to) {
    uint32_t infinite = ((1u << (15 - t.fraction)) - 1) << t.fraction, bits = 0;
    if (isnan(d)) bits = infinite | 1u << (t.fraction - 1);
    else if (isinf(d)) bits = infinite;
    else if (d != 0) {
        int exponent;
        frexp(d, &exponent);
        int unit = (exponent - 1 > t.least ? exponent - 1 : t.least) - t.fraction;
        int64_t above = ((int64_t)(unit + t.fraction - t.least) << t.fraction) + (int64_t)nearbyint(ldexp(fabs(d), -unit));
        if (above >= infinite) return 0;
        bits = (uint32_t)above;
    }
    uint16_t made = (uint16_t)(bits | (signbit(d) ? 0x8000u : 0));
    return memcpy(to, &made, sizeof made), 1;
}

/* Two floats or doubles. */
static int pack_complex(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    double parts[2] = {PyComplex_RealAsDouble(arg), PyComplex_ImagAsDouble(arg)};
    if (PyErr_Occurred()) return -1;
    cudago_param part = {.size = p->size / 2};
    for (int i = 0; i < 2; i++)
        if (!put_double(&part, parts[i], to + (size_t)i * part.size)) return does_not_fit(pk, p, "a complex number", arg);
    return 0;
}

int cudago_pack_small(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    if (PyComplex_Check(arg) && (p->size == 8 || p->size == 16)) return pack_complex(pk, p, arg, to);
    if (!cudago_is_small(p) || PyComplex_Check(arg)) return cudago_wrong_argument(pk, p, arg);
    double d = PyFloat_AsDouble(arg);
    if (d == -1.0 && PyErr_Occurred()) return PyErr_ExceptionMatches(PyExc_OverflowError) ? too_large(pk, p, arg) : -1;
    return put_small(small_of(p), d, to) ? 0 : too_large(pk, p, arg);
}

/* The bits of one of the two types are another number in the other. */
int cudago_wrong_small(packing *pk, const cudago_param *p, PyObject *arg) {
    small_type t = small_of(p);
    PyObject *dtype = PyObject_GetAttrString(arg, "dtype"), *text = dtype ? PyObject_Str(dtype) : NULL;
    Py_XDECREF(dtype);
    if (!text) return cudago_forgive();
    int is_other = !PyUnicode_CompareWithASCIIString(text, t.other);
    if (is_other)
        PyErr_Format(PyExc_TypeError, "parameter %d of kernel %U is a %s by the kernel's source, got %R of type %U: convert it", pk->index,
                     pk->kernel->name, t.name, arg, text);
    Py_DECREF(text);
    return is_other ? -1 : 0;
}

/* --- numbers in memory of their own ------------------------------------------------------------------------------------ */

/* A number in memory of its own is a value, not memory: an array without dimensions, a ctypes scalar. A ctypes structure
 * has no dimensions either, and is memory. */
int cudago_is_number(PyObject *arg) {
    Py_buffer view;
    if (PyObject_GetBuffer(arg, &view, PyBUF_FORMAT | PyBUF_STRIDES)) { /* of an element type without a format */
        if (!PyErr_ExceptionMatches(PyExc_ValueError) && !PyErr_ExceptionMatches(PyExc_BufferError)) return -1;
        return PyErr_Clear(), 0;
    }
    int number = !view.ndim && (!view.format || view.format[0] != 'T');
    PyBuffer_Release(&view);
    return number;
}

/* The number in a NumPy scalar or array, by item(), or in a ctypes scalar. A ctypes pointer has none. */
static PyObject *number_in(packing *pk, const cudago_param *p, PyObject *arg) {
    int item = cudago_has((PyObject *)Py_TYPE(arg), "item"), value = item ? 0 : cudago_has((PyObject *)Py_TYPE(arg), "value");
    if (item < 0 || value < 0) return NULL;
    if (item) return PyObject_CallMethod(arg, "item", NULL);
    if (!value) return cudago_wrong_argument(pk, p, arg), NULL;
    PyObject *v = PyObject_GetAttrString(arg, "value");
    if (v != Py_None || p->size != 8 || p->type == PARAM_FLOAT) return v;
    Py_DECREF(v);
    return PyLong_FromLong(0); /* ctypes.c_void_p() */
}

int cudago_pack_scalar(packing *pk, const cudago_param *p, PyObject *arg, uint8_t *to) {
    PyObject *item = number_in(pk, p, arg);
    if (!item) return -1;
    int r;
    if (p->type == PARAM_FLOAT) r = cudago_pack_float(pk, p, item, to);
    else if (PyLong_Check(item)) r = cudago_pack_int(pk, p, item, to);
    else r = cudago_wrong_argument(pk, p, arg);
    Py_DECREF(item);
    return r;
}

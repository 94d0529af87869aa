/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "border.h"

/* Turns Go's answers into Python objects. Nothing here looks at our own objects: the rows say what was true when Go
 * wrote them. */

static QUIET PyObject *object_of(const cudago_answer *a, uint64_t row) {
    return (PyObject *)(uintptr_t)a->numbers[row * (uint64_t)a->n_numbers];
}

QUIET void cudago_answer_hold(cudago_answer *a) {
    a->held = 1;
    for (uint64_t row = 0; row < a->rows; row++) Py_IncRef(object_of(a, row));
}

static PyObject *number(const cudago_answer *a, uint64_t row, int32_t i) {
    if (i == 0 && a->held) return NEW_REF(object_of(a, row));
    return PyLong_FromUnsignedLongLong(a->numbers[row * (uint64_t)a->n_numbers + (uint64_t)i]);
}

typedef struct {
    const char *at;
    uint64_t n;
} span;
static QUIET span span_of(const cudago_answer *a, uint64_t row, int32_t i) {
    uint64_t k = row * (uint64_t)a->n_texts + (uint64_t)i, begin = k ? a->ends[k - 1] : 0;
    return (span){a->texts + begin, a->ends[k] - begin};
}

/* Kinds and reasons repeat often, so consecutive rows share their strings. above: the row before, or NULL. */
static PyObject *text(const cudago_answer *a, uint64_t row, int32_t i, PyObject *above) {
    span s = span_of(a, row, i), before = above ? span_of(a, row - 1, i) : (span){0};
    if (above && s.n == before.n && !memcmp(s.at, before.at, s.n))
        return NEW_REF(PyTuple_GetItem(above, a->n_numbers + i));
    return PyUnicode_FromStringAndSize(s.at, (Py_ssize_t)s.n);
}

static PyObject *row_of(const cudago_answer *a, uint64_t row, PyObject *above) {
    int32_t n = a->n_numbers + a->n_texts;
    PyObject *tuple = PyTuple_New(n);
    for (int32_t i = 0; tuple && i < n; i++) {
        PyObject *item = i < a->n_numbers ? number(a, row, i) : text(a, row, i - a->n_numbers, above);
        if (!item || PyTuple_SetItem(tuple, i, item)) Py_CLEAR(tuple);
    }
    return tuple;
}

static void end(cudago_answer *a) {
    for (uint64_t row = 0; a->held && row < a->rows; row++) Py_DECREF(object_of(a, row));
    free(a->numbers);
}

PyObject *cudago_answer_rows(cudago_answer *a) {
    PyObject *rows = PyTuple_New((Py_ssize_t)a->rows);
    for (uint64_t i = 0; rows && i < a->rows; i++) {
        PyObject *row = row_of(a, i, i ? PyTuple_GetItem(rows, (Py_ssize_t)i - 1) : NULL);
        if (!row || PyTuple_SetItem(rows, (Py_ssize_t)i, row)) Py_CLEAR(rows);
    }
    end(a);
    return rows;
}

PyObject *cudago_answer_row(cudago_answer *a) {
    PyObject *row = a->rows ? row_of(a, 0, NULL) : NEW_REF(Py_None);
    end(a);
    return row;
}

PyObject *cudago_answer_text(cudago_answer *a) {
    PyObject *r = text(a, 0, 0, NULL);
    end(a);
    return r;
}

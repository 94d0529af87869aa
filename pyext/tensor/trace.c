// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

/* --- where the program is ------------------------------------------------------------------------------------------------- */

static char package[512]; /* the folder of cudago, whose own lines nobody looks for; guarded by the GIL */

/* Appends "file:line" and a 0, if there is room for all of it. */
static void add_line(cudago_lines *p, const char *file, long line) {
    size_t room = sizeof p->text - p->n;
    int n = snprintf(p->text + p->n, room, "%s:%ld", file, line);
    if (n > 0 && (size_t)n < room) p->n += (size_t)n + 1;
}

static void look_at(cudago_lines *p, PyObject *frame) {
    PyObject *code = PyObject_GetAttrString(frame, "f_code"), *line = PyObject_GetAttrString(frame, "f_lineno");
    PyObject *file = code ? PyObject_GetAttrString(code, "co_filename") : NULL;
    const char *name = file && PyUnicode_Check(file) ? PyUnicode_AsUTF8AndSize(file, NULL) : NULL;
    long number = line && PyLong_Check(line) ? PyLong_AsLong(line) : -1; /* None: a line that only the compiler knows */
    if (name && strncmp(name, package, strlen(package))) add_line(p, name, number);
    PyErr_Clear();
    Py_XDECREF(code);
    Py_XDECREF(line);
    Py_XDECREF(file);
}

/* The frames are the thread's own, and their attributes those of built-in types: no code of anybody runs, but objects are
 * made. */
void cudago_lines_find(cudago_lines *p) {
    enum { DEEPEST = 32 };
    PyObject *frame = Py_XNewRef(PyEval_GetFrame());
    p->n = 0;
    for (int i = 0; frame && frame != Py_None && i < DEEPEST; i++) {
        look_at(p, frame);
        PyObject *back = PyObject_GetAttrString(frame, "f_back");
        Py_DECREF(frame);
        frame = back;
    }
    PyErr_Clear();
    Py_XDECREF(frame);
}

/* --- notes ---------------------------------------------------------------------------------------------------------------- */

void cudago_trace_export(DLManagedTensorVersioned *m, enum cudago_exchange_way way, int32_t ordinal) {
    cudago_lines p;
    cudago_lines_find(&p);
    cudago_note_export(m, &(cudago_exchange_facts){.way = way, .ordinal = ordinal, .where = p.text, .n_where = p.n});
}

void cudago_trace_export_legacy(DLManagedTensor *m, int32_t ordinal) {
    cudago_lines p;
    cudago_lines_find(&p);
    cudago_note_export_legacy(
        m, &(cudago_exchange_facts){.way = CUDAGO_WAY_LEGACY, .ordinal = ordinal, .where = p.text, .n_where = p.n});
}

QUIET void cudago_trace_cell(cudago_cell *theirs, const DLTensor *d, const cudago_peer *peer, int32_t ordinal, const cudago_lines *p) {
    cudago_note_import(theirs, d, &(cudago_exchange_facts){.of = peer, .ordinal = ordinal, .where = p->text, .n_where = p->n});
}

static QUIET void note_now(const TensorObject *t, const cudago_peer *peer, const cudago_lines *p) {
    cudago_cell *theirs = t->theirs ? t->theirs : t->cell;
    DLTensor d;
    if (!theirs || theirs->kind != CUDAGO_CELL_FOREIGN) return;
    cudago_tensor_describe(t, &d);
    cudago_trace_cell(theirs, &d, peer, t->device, p);
}

void cudago_trace_import(PyObject *tensor, const cudago_peer *peer) {
    cudago_lines p;
    cudago_lines_find(&p);
    note_now((TensorObject *)tensor, peer, &p);
}

/* --- for Python ------------------------------------------------------------------------------------------------------------- */

/* _dlpack_trace(by, package): so many more trace; the number of the newest note. */
static PyObject *trace(PyObject *module, PyObject *args) {
    (void)module;
    int by;
    const char *folder;
    if (!PyArg_ParseTuple(args, "is", &by, &folder)) return NULL;
    snprintf(package, sizeof package, "%s", folder);
    cudago_tracing += by;
    return PyLong_FromUnsignedLongLong(cudago_note_last());
}

/* None or the peer; way; shape; type; ordinal; lines, each with a 0 at its end. */
static PyObject *told(const cudago_note *n) {
    const char *dtype = cudago_dtype_name(n->dtype);
    return Py_BuildValue("(ziNziy#)", n->of ? n->of->name : NULL, (int)n->way, cudago_tuple_of(n->ndim, n->shape, 1), dtype,
                         (int)n->ordinal, n->where, (Py_ssize_t)n->n_where);
}

static int append(PyObject *list, PyObject *item) {
    int r = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return r;
}

/* _dlpack_notes(after, until): the notes with numbers in between whose exchanges are live, the newest first. */
static PyObject *notes(PyObject *module, PyObject *args) {
    (void)module;
    unsigned long long after, until;
    if (!PyArg_ParseTuple(args, "KK", &after, &until)) return NULL;
    PyObject *list = PyList_New(0);
    if (!list) return NULL;
    int r = 0;
    for (const cudago_note *n = cudago_notes_walk(); n && n->number > after && !r; n = n->next)
        if (n->number <= until && !atomic_load(&n->ended)) r = append(list, told(n));
    cudago_notes_walked();
    if (!r) return list;
    Py_DECREF(list);
    return NULL;
}

static PyObject *counts_of(const cudago_peer *p) {
    int64_t counts[2 * CUDAGO_WAYS];
    for (int way = 0; way < CUDAGO_WAYS; way++) {
        counts[2 * way] = p->ways[way].taken;
        counts[2 * way + 1] = p->ways[way].released;
    }
    return Py_BuildValue("(sN)", p->name, cudago_tuple_of(2 * CUDAGO_WAYS, counts, 1));
}

/* _dlpack_stats(): exports made and released, by way; of each peer its name, and imports taken and released by way; live
 * cells by kind. */
static PyObject *stats(PyObject *module, PyObject *unused) {
    (void)module;
    (void)unused;
    cudago_exchange_stats s = cudago_exchange_read_stats();
    int64_t live[CUDAGO_CELL_KINDS], exports[2 * CUDAGO_WAYS];
    for (uint32_t k = 0; k < CUDAGO_CELL_KINDS; k++) live[k] = cudago_cells_live(k);
    for (int way = 0; way < CUDAGO_WAYS; way++) {
        exports[2 * way] = s.exports[way].made;
        exports[2 * way + 1] = s.exports[way].released;
    }
    PyObject *peers = PyList_New(0);
    if (!peers) return NULL;
    for (const cudago_peer *p = cudago_peers(); p; p = p->next)
        if (append(peers, counts_of(p))) return Py_DECREF(peers), NULL;
    return Py_BuildValue("(NNN)", cudago_tuple_of(2 * CUDAGO_WAYS, exports, 1), peers, cudago_tuple_of(CUDAGO_CELL_KINDS, live, 1));
}

PyMethodDef cudago_trace_functions[] = {
    {"_dlpack_trace", trace, METH_VARARGS, NULL},
    {"_dlpack_notes", notes, METH_VARARGS, NULL},
    {"_dlpack_stats", stats, METH_NOARGS, NULL},
    {0},
};

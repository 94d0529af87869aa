/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "graph.h"

/* Called by held.go with the GIL. -1: out of memory. */
QUIET int cudago_held_grow(cudago_held *h) {
    size_t cap = h->cap ? 2 * h->cap : 8;
    PyObject **v = realloc(h->v, cap * sizeof *v);
    if (!v) return -1;
    h->v = v;
    h->cap = cap;
    return 0;
}

/* If memory runs out, nothing is found until the list changes again. */
static QUIET void find_stored(cudago_held *h) {
    h->changed = 0;
    h->n_stored = 0;
    size_t n = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = n = 0; i < h->n; i++) {
            OperandObject *o = (OperandObject *)h->v[i];
            if (Py_TYPE((PyObject *)o) != cudago_cls[CLS_OPERAND] || !o->storage.data) continue;
            if (pass) h->stored[n] = o;
            n++;
        }
        if (pass || !n) continue;
        OperandObject **stored = realloc(h->stored, n * sizeof(OperandObject *));
        if (!stored) return;
        h->stored = stored;
    }
    h->n_stored = n;
}

QUIET OperandObject *cudago_held_find_moved(cudago_held *h) {
    if (h->changed) find_stored(h);
    for (size_t i = 0; i < h->n_stored; i++)
        if (cudago_operand_moved(h->stored[i])) return h->stored[i];
    return NULL;
}

int cudago_refuse_moved(PyObject *self, OperandObject *o) {
    Py_INCREF(o); /* naming it may end the hold */
    PyObject *names = PyImport_ImportModule("cudago._graph.retained");
    PyObject *name = names ? PyObject_CallMethod(names, "_name_of", "OO", self, (PyObject *)o) : NULL;
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (text) cudago_raise_moved(text);
    Py_XDECREF(name);
    Py_XDECREF(names);
    Py_DECREF(o);
    return -1;
}
void cudago_held_count(const uintptr_t *objects, size_t n) {
    for (size_t i = 0; i < n; i++) Py_IncRef((PyObject *)objects[i]);
}

cudago_held *cudago_held_new(void) { return calloc(1, sizeof(cudago_held)); }
void cudago_held_free(cudago_held *h) {
    if (h) free(h->v), free(h->stored);
    free(h);
}

int cudago_held_traverse(cudago_held *h, visitproc visit, void *arg) {
    for (size_t i = 0; h && !cudago_unusable && i < h->n; i++) Py_VISIT(h->v[i]); /* at exit Go has freed the lists */
    return 0;
}

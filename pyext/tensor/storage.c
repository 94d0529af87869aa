/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "tensor.h"

/* Is the memory of one of PyTorch's storages still where it was? resize_ gives a storage other memory and frees the first,
 * whoever keeps the storage, and tells nobody. A graph looks at each launch, so looking must cost next to nothing: asking
 * PyTorch costs as much as an argument of a launch. So we read the two words in which the storage says where its memory is,
 * and how much. Where these are is found out with a storage of our own, which is resized; if they are not found, nothing is
 * watched. */

enum layout { UNKNOWN,
              KNOWN,
              NOT_FOUND };
/* A c10::StorageImpl is longer: a table of functions, counts, the pointer with its deleter and device, the size, the
 * allocator (c10/core/StorageImpl.h, PyTorch 2.15). */
enum { WORDS = 9 };
static enum layout layout;      /* guarded by the GIL */
static size_t data_at, size_at; /* in words, if it is known */

/* The number that a storage has as an attribute, or gives; 0, without an exception unless that ends the program. */
static uint64_t told(PyObject *storage, const char *name, int call) {
    PyObject *v = call ? PyObject_CallMethod(storage, name, NULL) : PyObject_GetAttrString(storage, name);
    unsigned long long n = v && PyLong_Check(v) ? PyLong_AsUnsignedLongLong(v) : 0;
    Py_XDECREF(v);
    return cudago_forgive() ? 0 : n;
}

static const uint64_t *words_of(PyObject *storage) { return (const uint64_t *)(uintptr_t)told(storage, "_cdata", 0); }
static int has(const uint64_t *words, uint64_t data, uint64_t size) { return words[data_at] == data && words[size_at] == size; }

/* Resizes our storage, and looks whether the two words follow. */
static int follows(PyObject *storage, const uint64_t *words, uint64_t size) {
    PyObject *r = PyObject_CallMethod(storage, "resize_", "K", (unsigned long long)size);
    Py_XDECREF(r);
    if (!r) return 0;
    return told(storage, "nbytes", 1) == size && has(words, told(storage, "data_ptr", 1), size);
}

static int find_words(PyObject *storage) {
    const uint64_t *words = words_of(storage);
    uint64_t data = words ? told(storage, "data_ptr", 1) : 0, size = data ? told(storage, "nbytes", 1) : 0;
    if (!size || (uintptr_t)words % sizeof *words) return 0;
    for (data_at = 0; data_at < WORDS && words[data_at] != data; data_at++) continue;
    for (size_at = 0; size_at < WORDS && words[size_at] != size; size_at++) continue;
    if (data_at == WORDS || size_at == WORDS) return 0;
    return follows(storage, words, 2 * size) && follows(storage, words, 0) && follows(storage, words, size);
}

/* -1 with an exception that ends the program. */
static int learn(PyObject *storage) {
    layout = NOT_FOUND; /* what is called here may come here */
    PyObject *own = PyObject_CallFunction((PyObject *)Py_TYPE(storage), "i", 4168);
    if (own && find_words(own)) layout = KNOWN;
    Py_XDECREF(own);
    return cudago_forgive();
}

static PyTypeObject *storage_type; /* PyTorch's; it stays loaded. NULL: not seen yet */

static int is_named(PyObject *type, const char *attribute, const char *name) {
    PyObject *v = PyObject_GetAttrString(type, attribute);
    int same = v && PyUnicode_Check(v) && PyUnicode_CompareWithASCIIString(v, name) == 0;
    Py_XDECREF(v);
    return cudago_forgive() ? 0 : same;
}

/* Other libraries' storages may have anything under these names. */
static int is_torchs(PyObject *storage) {
    PyTypeObject *type = Py_TYPE(storage);
    if (storage_type) return type == storage_type;
    int r = is_named((PyObject *)type, "__module__", "torch.storage") && is_named((PyObject *)type, "__name__", "UntypedStorage");
    if (r) storage_type = (PyTypeObject *)NEW_REF((PyObject *)type);
    return r;
}

int cudago_storage_watch(const cudago_cell *c, cudago_storage_words *w) {
    *w = (cudago_storage_words){NULL, NULL, 0};
    PyObject *storage = c->kind == CUDAGO_CELL_FOREIGN && c->size ? cudago_foreign_memory(c) : NULL;
    if (!storage || !is_torchs(storage)) return PyErr_Occurred() ? -1 : 0;
    if (layout == UNKNOWN && learn(storage)) return -1;
    const uint64_t *words = layout == KNOWN ? words_of(storage) : NULL;
    if (!words) return PyErr_Occurred() ? -1 : 0;
    *w = (cudago_storage_words){&words[data_at], &words[size_at], words[data_at]};
    return 0;
}

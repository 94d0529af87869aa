/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#define _GNU_SOURCE
#include "memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* File descriptors that Python objects own, in a capsule that closes them with itself: a __del__ in Python may be interrupted by
 * Ctrl-C, and what it was to close stay open. A forked child leaves them alone: it may have closed them, and opened others. */

enum { MOST_FILES = 2 };

typedef struct files files;
struct files {
    pid_t owner;
    int fd[MOST_FILES]; /* -1: none */
    files *next, **link; /* in the list of all */
};

static const char NAME[] = "cudago.files";
static files *all; /* guarded by the GIL */

/* Who owns a descriptor in this process, and as which of its files; NULL if nobody. */
static files *owner_of(int fd, int *which) {
    for (files *f = all; f && fd >= 0; f = f->next)
        for (int i = 0; f->owner == getpid() && i < MOST_FILES; i++)
            if (f->fd[i] == fd) return *which = i, f;
    return NULL;
}

static void close_files(files *f) {
    for (int i = 0; i < MOST_FILES; i++) {
        int fd = f->fd[i];
        f->fd[i] = -1;
        if (fd >= 0 && f->owner == getpid()) close(fd); /* a failure: somebody else has closed it */
    }
}

static void end(PyObject *capsule) {
    files *f = PyCapsule_GetPointer(capsule, NAME);
    if (!f) return;
    close_files(f);
    if ((*f->link = f->next)) f->next->link = f->link;
    free(f);
}

/* New descriptors: somebody else must have closed what a number was before, which its owner would close once more. */
PyObject *cudago_files_own(int first, int second) {
    files *f = malloc(sizeof *f), own = {.owner = getpid(), .fd = {first, second}}, *old;
    PyObject *capsule = f ? PyCapsule_New(f, NAME, end) : PyErr_NoMemory();
    if (!capsule) {
        close_files(&own);
        free(f);
        return NULL;
    }
    for (int i = 0, at; i < MOST_FILES; i++)
        while ((old = owner_of(own.fd[i], &at))) old->fd[at] = -1;
    *f = own;
    f->next = all;
    f->link = &all;
    if (all) all->link = &f->next;
    all = f;
    return capsule;
}

/* _files_own(first, second): they are the capsule's from now on; -1 is none. Nobody may own them yet: they would be closed twice,
 * and between the two times be somebody else's. */
PyObject *cudago_files_take(PyObject *module, PyObject *args) {
    (void)module;
    int first, second, at;
    if (!PyArg_ParseTuple(args, "ii", &first, &second)) return NULL;
    if (first >= 0 && first == second)
        return PyErr_Format(PyExc_ValueError, "file descriptor %d is given twice, and would be closed twice", first);
    if (!owner_of(first, &at) && !owner_of(second, &at)) return cudago_files_own(first, second);
    int owned = owner_of(first, &at) ? first : second;
    return PyErr_Format(PyExc_ValueError, "file descriptor %d is another handle's, which closes it: give a duplicate, of os.dup", owned);
}

/* _files_in_memory(name, size): owns a new file in memory, of so many bytes for good */
PyObject *cudago_files_in_memory(PyObject *module, PyObject *args) {
    (void)module;
    const char *name;
    long long size;
    if (!PyArg_ParseTuple(args, "sL", &name, &size)) return NULL;
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return PyErr_SetFromErrno(PyExc_OSError);
    /* Others could make it smaller otherwise, under what is mapped here. */
    if (!ftruncate(fd, size) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)) return cudago_files_own(fd, -1);
    PyErr_SetFromErrno(PyExc_OSError);
    close(fd);
    return NULL;
}

/* _files(capsule) -> (first, second): -1 where there is none, or it is closed */
PyObject *cudago_files_numbers(PyObject *module, PyObject *capsule) {
    (void)module;
    const files *f = PyCapsule_GetPointer(capsule, NAME);
    return f ? Py_BuildValue("ii", f->fd[0], f->fd[1]) : NULL;
}

/* _files_copy(capsule): owns other descriptors of the same files, which nobody else closes. Of a closed one -1 stays -1. */
PyObject *cudago_files_copy(PyObject *module, PyObject *capsule) {
    (void)module;
    const files *f = PyCapsule_GetPointer(capsule, NAME);
    if (!f) return NULL;
    files own = {getpid(), {-1, -1}};
    for (int i = 0; i < MOST_FILES; i++) {
        if (f->fd[i] < 0 || (own.fd[i] = fcntl(f->fd[i], F_DUPFD_CLOEXEC, 0)) >= 0) continue;
        PyErr_SetFromErrno(PyExc_OSError);
        close_files(&own);
        return NULL;
    }
    return cudago_files_own(own.fd[0], own.fd[1]);
}

/* _files_join(one, other): one owns the first descriptor of the other as its second */
PyObject *cudago_files_join(PyObject *module, PyObject *args) {
    (void)module;
    PyObject *one, *other;
    if (!PyArg_ParseTuple(args, "OO", &one, &other)) return NULL;
    files *f = PyCapsule_GetPointer(one, NAME), *from = f ? PyCapsule_GetPointer(other, NAME) : NULL;
    if (!from) return NULL;
    f->fd[1] = from->fd[0];
    from->fd[0] = -1;
    return Py_NewRef(one);
}

/* _files_close(capsule): twice is fine */
PyObject *cudago_files_close(PyObject *module, PyObject *capsule) {
    (void)module;
    files *f = PyCapsule_GetPointer(capsule, NAME);
    if (!f) return NULL;
    close_files(f);
    Py_RETURN_NONE;
}

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

typedef struct {
    pid_t owner;
    int fd[MOST_FILES]; /* -1: none */
} files;

static const char NAME[] = "cudago.files";

static void close_files(files *f) {
    for (int i = 0; i < MOST_FILES; i++) {
        int fd = f->fd[i];
        f->fd[i] = -1;
        if (fd >= 0 && f->owner == getpid()) close(fd); /* a failure: somebody else has closed it */
    }
}

static void end(PyObject *capsule) {
    files *f = PyCapsule_GetPointer(capsule, NAME);
    if (f) close_files(f);
    free(f);
}

PyObject *cudago_files_own(int first, int second) {
    files *f = malloc(sizeof *f), own = {getpid(), {first, second}};
    PyObject *capsule = f ? PyCapsule_New(f, NAME, end) : PyErr_NoMemory();
    if (capsule) {
        *f = own;
        return capsule;
    }
    close_files(&own);
    free(f);
    return NULL;
}

/* _files_own(first, second): they are the capsule's from now on; -1 is none */
PyObject *cudago_files_take(PyObject *module, PyObject *args) {
    (void)module;
    int first, second;
    return PyArg_ParseTuple(args, "ii", &first, &second) ? cudago_files_own(first, second) : NULL;
}

/* _files_in_memory(name, size): owns a new file in memory, of so many bytes */
PyObject *cudago_files_in_memory(PyObject *module, PyObject *args) {
    (void)module;
    const char *name;
    long long size;
    if (!PyArg_ParseTuple(args, "sL", &name, &size)) return NULL;
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0) return PyErr_SetFromErrno(PyExc_OSError);
    if (!ftruncate(fd, size)) return cudago_files_own(fd, -1);
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

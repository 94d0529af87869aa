/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"

/* Host memory of a Python object, page-locked in place. Go holds the only reference to the buffer export, and gives it
 * to the drop queue once the driver has released the memory, which may be long after the cell is gone. The collector
 * does not see that reference: an object that holds a pinned buffer over itself lives until the buffer is closed. */

static void release_pin(cudago_cell *cell) {
    cudago_go_cell *c = (cudago_go_cell *)cell;
    cudago_tally_add(TALLY_REGISTERED, -1, -(int64_t)cell->size);
    cudago_host_allocations[c->device]--;
    cudago_go_cell_release(c, cudagoPinReleaseAfter);
}

/* The export of the object to pin, and its range. */
static PyObject *export_of(PyObject *object, int read_only, uint64_t *address, uint64_t *size) {
    cudago_exported_bytes e;
    if (!PyObject_CheckBuffer(object)) {
        PyErr_Format(PyExc_TypeError, "obj must have the buffer protocol, as a NumPy array or a bytearray has, not be a %R",
                     (PyObject *)Py_TYPE(object));
        return NULL;
    }
    PyObject *export = cudago_export_of(object, 0, "obj", &e);
    if (!export) return NULL;
    *address = e.address;
    *size = e.nbytes;
    int refused = e.readonly && !read_only;
    if (!refused && *size) return export;
    Py_DECREF(export);
    if (refused) PyErr_SetString(PyExc_BufferError, "obj is read-only: pass read_only=True");
    else PyErr_SetString(PyExc_ValueError, "obj must have at least 1 byte to be pinned, got 0");
    return NULL;
}

/* The export, and what keeps an array's memory where it is. The export is taken over. */
static PyObject *with_array(PyObject *export, PyObject *object) {
    PyObject *weak = NULL, *both = NULL;
    if (!export || (!cudago_forbid_resize(object, &weak) && !weak)) return export;
    if (weak) both = PyTuple_Pack(2, export, weak);
    Py_XDECREF(weak);
    Py_DECREF(export);
    return both;
}

/* _pin(object, read_only) */
PyObject *cudago_pin(PyObject *module, PyObject *const *args, Py_ssize_t n) {
    (void)module;
    CUDAGO_ENTER(NULL);
    if (n != 2) return PyErr_SetString(PyExc_TypeError, "_pin(object, read_only)"), NULL;
    int read_only = PyObject_IsTrue(args[1]), visible;
    if (read_only < 0 || cudago_open()) return NULL;
    uint64_t address, size, id;
    uint32_t generation;
    if (cudago_making(0, &generation)) return NULL;
    PyObject *export = with_array(export_of(args[0], read_only, &address, &size), args[0]);
    if (!export) return NULL;
    cudago_go_cell *c = calloc(1, sizeof *c);
    if (!c) {
        Py_DECREF(export);
        return PyErr_NoMemory();
    }
    cudago_status st = {0};
    cudago_note_site();
    Py_BEGIN_ALLOW_THREADS
    visible = cudagoHostVisible(0);
    id = cudagoPin(address, size, read_only, (uintptr_t)export, &st);
    Py_END_ALLOW_THREADS
    cudago_forget_site();
    if (st.kind) {
        free(c);
        Py_DECREF(export);
        return cudago_raise(&st), NULL;
    }
    if (cudago_made("buffer", 0, generation)) {
        free(c);
        cudagoPinRelease(id);
        return NULL;
    }
    cudago_host_allocations[0]++; /* it is pinned in the first device's context */
    cudago_cell_init(&c->cell, CUDAGO_CELL_PINNED, release_pin);
    c->id = id;
    c->cell.device_type = visible ? kDLCPU : kDLCUDAHost;
    c->cell.ptr = c->cell.host = address;
    c->cell.size = size;
    cudago_tally_add(TALLY_REGISTERED, 1, (int64_t)size);
    c->cell.class = cudago_exports_class(0);
    if (read_only) c->cell.flags |= CUDAGO_CELL_READONLY;
    return cudago_buffer_new(&c->cell, address, size, -1);
}

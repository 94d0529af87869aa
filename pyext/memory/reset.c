/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
//go:build pyext

#include "memory.h"

#include "_cgo_export.h"
#include <unistd.h>

/* The reset of a device. A device has a *generation*, and everything made on it remembers the one it was made in. So a
 * reset loses all of it at once: each object finds out at its next use, and no list has to be walked. We never pass a
 * lost handle to the driver again, where it may by now mean something else or nothing. A graph of another device finds out
 * at its first launch after a reset (pyext/graph/held.c). */

int64_t cudago_host_allocations[CUDAGO_MAX_DEVICES];
static uint64_t cells_before[CUDAGO_MAX_DEVICES]; /* the last cell made before the latest reset */

/* --- what is lost ------------------------------------------------------------------------------------------------- */

int cudago_raise_no_cell(const cudago_cell *cell, const char *what) {
    if (!cell) return cudago_raise_closed(what);
    if (cudago_captured_is(cell, CAPTURED_GONE))
        return cudago_raise_closed_as("the memory is gone: the capture that it was allocated in became no graph");
    return cudago_raise_lost(what, cudago_cell_has_stream(cell)        ? ((const cudago_pool_cell *)cell)->stream->device
                                   : cell->kind == CUDAGO_CELL_FOREIGN ? cell->device_id
                                                                       : ((const cudago_go_cell *)cell)->device);
}

/* Memory that belongs to no stream: a graph's, or another library's. */
QUIET int cudago_old_cell(const cudago_cell *cell, int32_t device) {
    if (device < 0 || device >= CUDAGO_MAX_DEVICES) return 0; /* not a device of ours */
    return cudago_resetting(device) || cell->id <= cells_before[device];
}

/* --- the reset ----------------------------------------------------------------------------------------------------- */

enum { SLICE_MS = 20 };

/* Refuses if a reset would destroy what others may be using. */
static QUIET int may_reset(int32_t device) {
    int captures = atomic_load(&cudago_captures_open);
    long long host = (long long)cudago_host_allocations[device], exports = (long long)cudago_exports_open(cudago_exports_class(device));
    if (cudago_resetting(device)) return PyErr_Format(PyExc_ValueError, "device %d is being reset by another thread", device), -1;
    if (captures)
        return PyErr_Format(PyExc_ValueError, "device %d cannot be reset: %d stream capture(s) are open; end them first", device,
                            captures),
               -1;
    if (host)
        return PyErr_Format(PyExc_ValueError,
                            "device %d cannot be reset: %lld allocation(s) of pinned or managed memory are open, and the host "
                            "may be using them; close them first",
                            device, host),
               -1;
    if (exports)
        return PyErr_Format(PyExc_ValueError,
                            "device %d cannot be reset: other libraries hold %lld tensor(s) over its memory; delete those first",
                            device, exports),
               -1;
    return 0;
}

/* Is a call that released the GIL in the driver with a stream of the device? Go does not know of these calls. */
static QUIET int is_inside(int32_t device) {
    for (cudago_stream *s = cudago_streams; s; s = s->next)
        if (s->device == device && (s->inside || s->polled)) return 1;
    return 0;
}

/* The driver would also wait for a running host callback, but without hearing Ctrl-C. */
static int wait_outside(int32_t device) {
    while (is_inside(device) || cudago_callbacks_running(device)) {
        Py_BEGIN_ALLOW_THREADS
        cudagoCancelKernelsOf(device); /* such a call may be waiting for a kernel that never ends */
        usleep(200);
        Py_END_ALLOW_THREADS
        if (!PyErr_CheckSignals()) continue;
        cudagoKeepKernelsOf(device);
        return -1;
    }
    return 0;
}

/* The driver's part. *lost: the reset happened, whatever the error says. Ctrl-C gives the reset up unless the driver
 * has begun: then the exception comes when it is done. */
static int call_driver(int32_t device, int *lost) {
    cudago_status st = {0};
    int again = 1, stopped = 0;
    uint64_t id = cudagoResetBegin(device);
    while (again) {
        cudago_exclusive++; /* not while a signal handler runs: it runs on this thread */
        Py_BEGIN_ALLOW_THREADS
        again = cudagoResetSlice(id, SLICE_MS, lost, &st);
        Py_END_ALLOW_THREADS
        cudago_exclusive--;
        if (!again || stopped || !PyErr_CheckSignals()) continue;
        stopped = 1;
        cudagoResetStop(id);
    }
    if (!stopped) return st.kind ? cudago_raise(&st) : 0;
    free(st.message); /* the signal's exception says more */
    free(st.detail);
    return -1;
}

static QUIET int is_lost(const cudago_cell *cell) { return cudago_cell_lost(cell); }

/* Everything on the device is lost; what was kept for it is made anew when needed. */
static QUIET void begin_anew(DeviceObject *self, PyObject **resource) {
    int32_t device = self->ordinal;
    cells_before[device] = cudago_cell_last_id();
    cudago_generation_move(device, 1);
    cudago_exported_forget_gone(is_lost);
    cudago_device_forget(device);
    cudagoDefaultStreamsForget(device);
    ResourceObject *r = (ResourceObject *)self->resource;
    if (!r || !cudago_resource_lost(r)) return;
    *resource = self->resource;
    self->resource = NULL;
}

enum { MOST_UPSTREAM = 100 }; /* one after the other: they might be a circle */

/* One written in Python loses nothing of its own, but allocates no more if it passes on what a lost one has. -1 with an
 * exception that ends the program. */
static int is_over_lost(PyObject *resource) {
    PyObject *of = NEW_REF(resource);
    for (int i = 0; i < MOST_UPSTREAM && of && cudago_is(of, CLS_RESOURCE) && ((ResourceObject *)of)->kind == RESOURCE_PYTHON; i++) {
        PyObject *upstream = PyObject_GetAttrString(of, "upstream");
        Py_DECREF(of);
        of = upstream;
    }
    if (!of && cudago_forgive()) return -1; /* mostly it has none */
    int lost = of && cudago_is(of, CLS_RESOURCE) && cudago_resource_lost((ResourceObject *)of);
    Py_XDECREF(of);
    return lost;
}
static int replace(DeviceObject *self) {
    PyObject *resource = self->resource ? NEW_REF(self->resource) : NULL;
    int lost = resource ? is_over_lost(resource) : 0;
    if (lost > 0 && self->resource == resource) {
        self->resource = NULL;
        Py_DECREF(resource);
    }
    Py_XDECREF(resource);
    return lost < 0 ? -1 : 0;
}

/* _reset() */
PyObject *cudago_device_reset(DeviceObject *self, PyObject *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    int32_t device = self->ordinal;
    int lost = 0;
    if (cudago_on_callback_thread()) {
        cudago_status st = {0};
        cudagoResetRefused(device, &st);
        return cudago_raise(&st), NULL;
    }
    cudago_late_give(device); /* nobody holds it */
    if (may_reset(device)) return NULL;
    cudago_generation_move(device, 1); /* from here on nothing begins */
    int r = wait_outside(device) || cudago_wait_for_far_uses(device) ? -1 : 0;
    if (!r) r = call_driver(device, &lost);
    PyObject *type, *value, *trace, *resource = NULL;
    PyErr_Fetch(&type, &value, &trace);
    if (lost) begin_anew(self, &resource);
    else cudago_generation_move(device, -1);
    if (lost && cudago_streams) cudago_prove_all(); /* what the lost work kept may be released */
    Py_XDECREF(resource);
    cudago_drain();
    PyErr_Restore(type, value, trace);
    if (r || cudago_print_flush() || (lost && replace(self))) return NULL;
    Py_RETURN_NONE;
}

// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

static const char versioned_name[] = "dltensor_versioned";
static const char legacy_name[] = "dltensor";

/* What a consumer asks for. */
typedef struct {
    PyObject *stream, *max_version, *dl_device, *copy; /* borrowed; NULL or None: not given */
} wish;

static int given(PyObject *o) { return o && o != Py_None; }

static int read_wish(PyObject *const *args, Py_ssize_t n, PyObject *names, wish *w) {
    static cudago_keyword known[] = {{"stream", NULL}, {"max_version", NULL}, {"dl_device", NULL}, {"copy", NULL}};
    static cudago_names seen[CUDAGO_CALLERS];
    PyObject **slots[] = {&w->stream, &w->max_version, &w->dl_device, &w->copy};
    if (n) return PyErr_SetString(PyExc_TypeError, "__dlpack__() takes keyword arguments only"), -1;
    PyObject *unknown = cudago_read_names(seen, known, 4, names, args, slots);
    if (!unknown) return 0;
    return PyErr_Format(PyExc_TypeError, "__dlpack__() got an unexpected argument %R", unknown), -1;
}

/* Two small integers from a tuple. */
static int read_pair(PyObject *o, const char *name, long *a, long *b) {
    if (PyTuple_Check(o) && PyTuple_Size(o) == 2) {
        *a = PyLong_AsLong(PyTuple_GetItem(o, 0));
        *b = PyLong_AsLong(PyTuple_GetItem(o, 1));
        if (!PyErr_Occurred()) return 0;
        if (cudago_forgive()) return -1;
    }
    return cudago_raise_number(PyExc_TypeError, o, "%s must be a tuple of two ints", name);
}

/* Does the consumer know of versioned capsules? It asks with a constant of its code, so the tuple is remembered: if it has
 * two ints and nothing else, it says the same again. */
static int read_version(PyObject *o, int *versioned) {
    static PyObject *seen; /* held */
    static int seen_versioned;
    long version[2];
    if (o == seen) return *versioned = seen_versioned, 0;
    if (read_pair(o, "max_version", &version[0], &version[1])) return -1;
    *versioned = version[0] >= 1;
    if (!PyTuple_CheckExact(o) || !PyLong_CheckExact(PyTuple_GetItem(o, 0)) || !PyLong_CheckExact(PyTuple_GetItem(o, 1))) return 0;
    PyObject *old = seen;
    seen = NEW_REF(o);
    seen_versioned = *versioned;
    Py_XDECREF(old);
    return 0;
}

/* --- what is exported, and as what ------------------------------------------------------------------------------------ */

int cudago_tensor_exportable(TensorObject *t, const DLTensor *as) {
    if (cudago_tensor_addressable(t)) return -1;
    for (int i = 0; i < as->ndim; i++) {
        if (t->strides[i] >= 0 || t->shape[i] < 2) continue;
        /* PyTorch aborts the process when it meets one (pytorch/pytorch#188023). */
        PyErr_Format(PyExc_BufferError, "dimension %d has a negative stride, which not every consumer can read: export "
                                        "with copy=True",
                     i);
        return -1;
    }
    return 0;
}

/* Labels d as memory of the requested device. Returns 1 if that needs a copy. */
static int relabel(const TensorObject *t, const cudago_cell *cell, const long *device, DLTensor *d) {
    long type = device[0], id = device[1];
    if (type == d->device.device_type && id == d->device.device_id) return 0;
    if (type == kDLCPU && id == 0) {
        if (!cell->host && t->size) return 1;
        d->data = cell->host ? (void *)(uintptr_t)(t->ptr - cell->ptr + cell->host) : NULL;
        d->device = (DLDevice){kDLCPU, 0};
        return 0;
    }
    int mapped = d->device.device_type == kDLCUDAHost || d->device.device_type == kDLCUDAManaged;
    if (type == kDLCUDA && id >= 0 && id < CUDAGO_MAX_DEVICES && mapped) {
        d->data = (void *)(uintptr_t)t->ptr;
        d->device = (DLDevice){kDLCUDA, (int32_t)id};
        return 0;
    }
    PyErr_Format(PyExc_BufferError, "memory of DLPack device (%d, %d) cannot be exported to device (%ld, %ld)",
                 d->device.device_type, d->device.device_id, type, id);
    return -1;
}

int cudago_tensor_settle(cudago_cell *cell, const DLTensor *as) {
    return as->device.device_type == kDLCPU ? cudago_cell_order(cell, CUDAGO_ANYWHERE, 0) : 0;
}

/* The device that what is exported says its consumer works on. */
static int32_t device_of(const DLTensor *d) { return d->device.device_type == kDLCUDA ? d->device.device_id : CUDAGO_ANYWHERE; }

/* Orders our pending work before the consumer's. */
static int order(cudago_cell *cell, const DLTensor *d, const long long *stream) {
    int on_host = d->device.device_type == kDLCPU;
    if (!stream) /* the host reads pinned and managed memory without naming a stream, as NumPy does */
        return cudago_cell_order(cell, device_of(d), d->device.device_type == kDLCUDA ? 1 : 0);
    if (*stream == -1) return 0; /* the consumer does it itself */
    if (!on_host) return cudago_cell_order(cell, device_of(d), (intptr_t)*stream);
    return PyErr_SetString(PyExc_ValueError, "stream must be None for memory that is exported to the host"), -1;
}

/* --- capsules ----------------------------------------------------------------------------------------------------------- */

/* What a capsule still owns. A consumer renames the capsule and then owns the tensor. One that nobody took has the very
 * name that it was given, which spares a comparison of the text. */
static void *owned(PyObject *capsule, const char *name) {
    const char *now = PyCapsule_GetName(capsule);
    return now == name || PyCapsule_IsValid(capsule, name) ? PyCapsule_GetPointer(capsule, now) : NULL;
}
/* No error is saved here: nothing below can set one. */
static void capsule_versioned_gone(PyObject *capsule) { cudago_dl_delete(owned(capsule, versioned_name)); }
static void capsule_legacy_gone(PyObject *capsule) { cudago_dl_delete_legacy(owned(capsule, legacy_name)); }

/* These take over the caller's count of cell, also when they fail. */
static PyObject *capsule_versioned(const DLTensor *d, cudago_cell *cell, uint64_t flags) {
    DLManagedTensorVersioned *m = cudago_export_held(d, cell, flags, CUDAGO_WAY_CAPSULE);
    if (!m) return cudago_cell_let_go(cell), PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(m, versioned_name, capsule_versioned_gone);
    if (!capsule) cudago_dl_delete(m);
    else if (cudago_tracing) cudago_trace_export(m, CUDAGO_WAY_CAPSULE, cell->ordinal);
    return capsule;
}

static PyObject *capsule_legacy(const DLTensor *d, cudago_cell *cell) {
    DLManagedTensor *m = cudago_export_legacy_held(d, cell);
    if (!m) return cudago_cell_let_go(cell), PyErr_NoMemory();
    PyObject *capsule = PyCapsule_New(m, legacy_name, capsule_legacy_gone);
    if (!capsule) cudago_dl_delete_legacy(m);
    else if (cudago_tracing) cudago_trace_export_legacy(m, cell->ordinal);
    return capsule;
}

static PyObject *export(const TensorObject *t, cudago_cell *cell, const DLTensor *d, int versioned, uint64_t flags) {
    if (t->flags & TENSOR_READONLY && !(flags & DLPACK_FLAG_BITMASK_IS_COPIED)) {
        /* JAX's arrays came without the mark, and may go so: to JAX, which asks for nothing newer. */
        if (!versioned && t->origin != ORIGIN_LEGACY) {
            cudago_cell_let_go(cell);
            PyErr_SetString(PyExc_BufferError, "a read-only tensor needs a consumer that asks for max_version=(1, 0) or "
                                               "newer: older capsules cannot say read-only");
            return NULL;
        }
        flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
    }
    return versioned ? capsule_versioned(d, cell, flags) : capsule_legacy(d, cell);
}

/* A row-major copy, finished when this returns. Memory that the host cannot read is copied on the device, or from it to
 * the host; the Python face does that, because it has allocations and streams at hand. Memory of no bytes has no address
 * on either side. cell is t's, held by the caller. */
static PyObject *copy_of(TensorObject *t, cudago_cell *cell, int to_host) {
    if (cudago_cell_order(cell, CUDAGO_ANYWHERE, 0)) return NULL;
    int at_home = !cudago_cell_on_device(cell) && (cell->device_type == kDLCPU || cell->device_type == kDLCUDAHost);
    int apart = !cudago_itemsize(t->dtype) && !(t->flags & TENSOR_COMPACT); /* of packed elements, which the face takes apart */
    if ((cell->host || !t->size) && (at_home || (to_host && !apart))) return cudago_tensor_host_copy(t, cell);
    PyObject *face = PyImport_ImportModule("cudago._tensor.operand");
    PyObject *copy = face ? PyObject_CallMethod(face, "device_copy", "Oi", t, to_host) : NULL;
    Py_XDECREF(face);
    if (!copy || cudago_is_tensor(copy)) return copy;
    Py_DECREF(copy);
    return PyErr_SetString(PyExc_SystemError, "BUG: the copy is no Tensor"), NULL;
}

PyObject *cudago_tensor_copy(TensorObject *t, int to_host) {
    DLTensor d;
    cudago_cell *cell = cudago_tensor_hold(t, &d);
    PyObject *copy = cell ? copy_of(t, cell, to_host) : NULL;
    if (cell) cudago_cell_let_go(cell);
    return copy;
}

static PyObject *export_copy(TensorObject *t, cudago_cell *cell, int to_host, int versioned) {
    TensorObject *copy = (TensorObject *)copy_of(t, cell, to_host);
    DLTensor d;
    cudago_cell *made = copy ? cudago_tensor_hold(copy, &d) : NULL;
    PyObject *capsule = made ? export(copy, made, &d, versioned, DLPACK_FLAG_BITMASK_IS_COPIED) : NULL;
    Py_XDECREF(copy);
    return capsule;
}

static int evaluate(const wish *w, cudago_dlpack_request *r) {
    *r = (cudago_dlpack_request){.copy = -1, .on_device = given(w->dl_device), .has_stream = given(w->stream)};
    if (given(w->max_version) && read_version(w->max_version, &r->versioned)) return -1;
    if (given(w->copy)) {
        if (!PyBool_Check(w->copy)) return PyErr_Format(PyExc_TypeError, "copy must be True, False or None, got %R", w->copy), -1;
        r->copy = w->copy == Py_True;
    }
    if (r->on_device && read_pair(w->dl_device, "dl_device", &r->device[0], &r->device[1])) return -1;
    if (!r->has_stream) return 0;
    r->stream = PyLong_AsLongLong(w->stream);
    if (r->stream == -1 && PyErr_Occurred())
        return PyErr_ExceptionMatches(PyExc_OverflowError)
                   ? cudago_raise_number(PyExc_OverflowError, w->stream, "stream must be -1, 1, 2 or a handle")
                   : -1;
    if (r->stream > 0 || r->stream == -1) return 0;
    if (r->stream) return PyErr_Format(PyExc_ValueError, "stream must be -1, 1, 2 or a handle, got %lld", r->stream), -1;
    return PyErr_SetString(PyExc_ValueError, "stream 0 is ambiguous: 1 is the legacy default stream, 2 the per-thread one"), -1;
}

/* 1: as it is; 0: as a copy, of which *to_host says where; -1 with an exception. */
static int settled(TensorObject *t, cudago_cell *cell, DLTensor *d, const cudago_dlpack_request *r, int *to_host) {
    int needed = r->on_device ? relabel(t, cell, r->device, d) : 0;
    if (needed < 0) return -1;
    if (needed && !r->copy) {
        PyErr_SetString(PyExc_BufferError, "device memory cannot be exported to the host without a copy");
        return -1;
    }
    *to_host = d->device.device_type == kDLCPU || needed;
    if (needed || r->copy == 1) return 0;
    return cudago_tensor_exportable(t, d) || order(cell, d, r->has_stream ? &r->stream : NULL) ? -1 : 1;
}

int cudago_dlpack_read(PyObject *const *args, Py_ssize_t n, PyObject *names, cudago_dlpack_request *r) {
    wish w = {NULL};
    return read_wish(args, n, names, &w) || evaluate(&w, r) ? -1 : 0;
}

PyObject *cudago_dlpack_as(TensorObject *t, const cudago_dlpack_request *r) {
    DLTensor d;
    int to_host = 0;
    cudago_cell *cell = cudago_tensor_hold(t, &d);
    if (!cell) return NULL;
    int as_it_is = settled(t, cell, &d, r, &to_host);
    if (as_it_is > 0) return export(t, cell, &d, r->versioned, 0);
    PyObject *capsule = as_it_is < 0 ? NULL : export_copy(t, cell, to_host, r->versioned);
    cudago_cell_let_go(cell);
    return capsule;
}

PyObject *cudago_tensor_dlpack(TensorObject *t, PyObject *const *args, Py_ssize_t n, PyObject *names) {
    CUDAGO_ENTER(NULL);
    cudago_dlpack_request r;
    if (cudago_tensor_open(t) || cudago_dlpack_read(args, n, names, &r)) return NULL;
    return cudago_dlpack_as(t, &r);
}

QUIET PyObject *cudago_tensor_dlpack_device(TensorObject *t, PyObject *unused) {
    (void)unused;
    if (cudago_tensor_open(t)) return NULL;
    return Py_BuildValue("(ii)", t->cell->device_type, t->cell->device_id);
}

/* --- to PyTorch ----------------------------------------------------------------------------------------------------------- */

/* PyTorch's exchange table, or NULL without an exception if PyTorch is too old to have one. */
static const DLPackExchangeAPI *torch_table(PyObject *torch) {
    PyObject *type = PyObject_GetAttrString(torch, "Tensor");
    const DLPackExchangeAPI *api = type ? cudago_producer_of((PyTypeObject *)type).api : NULL;
    Py_XDECREF(type);
    return api;
}

/* PyTorch recognises neither pinned nor managed memory of others (pytorch/pytorch#96318): it gets pinned memory as the
 * host's and managed memory as the device's. */
static void for_torch(const TensorObject *t, DLTensor *d) {
    if (d->device.device_type == kDLCUDAHost) d->device = (DLDevice){kDLCPU, 0};
    if (d->device.device_type == kDLCUDAManaged) {
        d->device.device_type = kDLCUDA;
        d->data = (void *)(uintptr_t)t->ptr;
    }
}

/* What is pending on the memory comes before PyTorch's work. */
static int order_for_torch(cudago_cell *cell, const DLTensor *d, const DLPackExchangeAPI *api) {
    void *stream = NULL;
    if (d->device.device_type == kDLCPU) return cudago_cell_order(cell, CUDAGO_ANYWHERE, 0);
    if (api->current_work_stream(d->device.device_type, d->device.device_id, &stream)) return -1;
    return cudago_cell_order(cell, device_of(d), stream ? (intptr_t)stream : 1);
}

static PyObject *through_table(TensorObject *t, const DLPackExchangeAPI *api) {
    DLTensor d;
    void *made = NULL;
    cudago_cell *cell = cudago_tensor_hold(t, &d);
    if (!cell) return NULL;
    for_torch(t, &d);
    if (cudago_tensor_exportable(t, &d) || order_for_torch(cell, &d, api)) return cudago_cell_let_go(cell), NULL;
    uint64_t flags = t->flags & TENSOR_READONLY ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
    DLManagedTensorVersioned *m = cudago_export_held(&d, cell, flags, CUDAGO_WAY_TABLE);
    if (!m) return cudago_cell_let_go(cell), PyErr_NoMemory();
    if (cudago_tracing) cudago_trace_export(m, CUDAGO_WAY_TABLE, cell->ordinal);
    if (!api->managed_tensor_to_py_object_no_sync(m, &made)) return made;
    cudago_dl_delete(m); /* PyTorch takes it over only on success */
    return NULL;
}

PyObject *cudago_to_torch(PyObject *module, PyObject *tensor) {
    (void)module;
    static const DLPackExchangeAPI *api; /* valid for good: PyTorch, once imported, stays loaded */
    CUDAGO_ENTER(NULL);
    if (!cudago_is_tensor(tensor)) {
        PyErr_Format(PyExc_TypeError, "to_torch() takes a Tensor, got %R", (PyObject *)Py_TYPE(tensor));
        return NULL;
    }
    if (cudago_tensor_open((TensorObject *)tensor)) return NULL;
    if (api) return through_table((TensorObject *)tensor, api);
    PyObject *torch = PyImport_ImportModule("torch");
    if (!torch) return NULL;
    PyObject *r;
    api = torch_table(torch);
    if (api) r = through_table((TensorObject *)tensor, api);
    else r = PyErr_Occurred() ? NULL : PyObject_CallMethod(torch, "from_dlpack", "O", tensor);
    Py_DECREF(torch);
    return r;
}

// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

static const char capsule_name[] = "dlpack_exchange_api";
static const char *const attributes[] = {
    "__dlpack_c_exchange_api__",
    "__c_dlpack_exchange_api__", /* the name before DLPack 1.3 */
};

/* --- ours ----------------------------------------------------------------------------------------------------------------- */

/* Other libraries call these functions with the GIL and without entering any of our API. So they do not drain: such a
 * caller does not expect what a drain runs inside a conversion. */
static TensorObject *usable(void *o) {
    if (cudago_unusable) return cudago_raise_unusable(), NULL;
    if (!cudago_is_tensor(o)) {
        PyErr_Format(PyExc_TypeError, "cudago's exchange table takes a cudago Tensor, got %R", (PyObject *)Py_TYPE((PyObject *)o));
        return NULL;
    }
    return cudago_tensor_open(o) ? NULL : o;
}

static int from_py(void *o, DLManagedTensorVersioned **out) {
    *out = NULL;
    TensorObject *t = usable(o);
    DLTensor d;
    cudago_cell *cell = t ? cudago_tensor_hold(t, &d) : NULL;
    if (!cell) return -1;
    /* The table need not synchronise, but a consumer of host memory has no stream to name and reads at once. */
    int r = cudago_tensor_exportable(t, &d) || cudago_tensor_settle(cell, &d) ? -1 : 0;
    if (!r && !(*out = cudago_export(&d, cell, t->flags & TENSOR_READONLY ? DLPACK_FLAG_BITMASK_READ_ONLY : 0, CUDAGO_WAY_TABLE)))
        r = (PyErr_NoMemory(), -1);
    if (cudago_tracing && !r) cudago_trace_export(*out, CUDAGO_WAY_TABLE, cell->ordinal);
    cudago_cell_let_go(cell);
    return r;
}

static int borrow(void *o, DLTensor *out) {
    TensorObject *t = usable(o);
    cudago_cell *cell = t ? cudago_tensor_hold(t, out) : NULL;
    if (!cell) return -1;
    if (!t->size) out->data = NULL;
    int r = cudago_tensor_exportable(t, out) || cudago_tensor_settle(cell, out) ? -1 : 0;
    cudago_cell_let_go(cell);
    return r || cudago_tensor_open(t) ? -1 : 0; /* the borrowed tensor must still be open */
}

static int to_py(DLManagedTensorVersioned *m, void **out) {
    *out = NULL;
    if (cudago_unusable) return cudago_raise_unusable();
    cudago_peer *peer = cudago_peer_named(NULL); /* the caller does not say who it is */
    *out = cudago_tensor_import(m, peer);
    if (cudago_tracing && *out) cudago_trace_import(*out, peer);
    return *out ? 0 : -1;
}

/* We have no stream of our own for other libraries' work; the legacy default stream is common to all. */
static int current_stream(int32_t device_type, int32_t device_id, void **out) {
    (void)device_type;
    (void)device_id;
    *out = NULL;
    return 0;
}

/* A host tensor; may be called without the GIL, so it uses nothing of Python's. */
static int allocate(DLTensor *like, DLManagedTensorVersioned **out, void *context,
                    void (*fail)(void *, const char *, const char *)) {
    *out = NULL;
    DLTensor d = *like;
    int64_t strides[CUDAGO_MAX_NDIM];
    cudago_extent e = {0};
    d.data = &d; /* never read: any address passes */
    d.strides = NULL;
    d.byte_offset = 0;
    const char *wrong = cudago_tensor_check(&d, 0, &e);
    if (wrong) return fail(context, "ValueError", wrong), -1;
    if (d.device.device_type != kDLCPU) {
        fail(context, "NotImplementedError", "cudago's DLPack allocator makes host tensors only: allocate device memory "
                                             "with cudago.empty()");
        return -1;
    }
    cudago_c_strides(d.ndim, d.shape, strides);
    d.strides = strides;
    cudago_cell *c = cudago_host_cell(e.high);
    if (!c) return fail(context, "MemoryError", "no memory for a tensor"), -1;
    d.data = (void *)(uintptr_t)c->host;
    *out = cudago_export(&d, c, 0, CUDAGO_WAY_TABLE);
    cudago_cell_release(c); /* the export holds its own count */
    return *out ? 0 : (fail(context, "MemoryError", "no memory for a tensor"), -1);
}

static DLPackExchangeAPI table = {
    .header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}},
    .managed_tensor_allocator = allocate,
    .managed_tensor_from_py_object_no_sync = from_py,
    .managed_tensor_to_py_object_no_sync = to_py,
    .dltensor_from_py_object_no_sync = borrow,
    .current_work_stream = current_stream,
};

int cudago_exchange_init(PyObject *type) {
    PyObject *capsule = PyCapsule_New(&table, capsule_name, NULL);
    int r = capsule ? 0 : -1;
    for (size_t i = 0; !r && i < sizeof attributes / sizeof *attributes; i++)
        r = PyObject_SetAttrString(type, attributes[i], capsule);
    Py_XDECREF(capsule);
    return r;
}

/* --- those of other types ------------------------------------------------------------------------------------------------- */

cudago_seen_type cudago_seen_types[CUDAGO_SEEN_TYPES];

static const DLPackExchangeAPI *ask(PyTypeObject *type) {
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
        PyObject *capsule = PyObject_GetAttrString((PyObject *)type, attributes[i]);
        PyErr_Clear();
        const DLPackExchangeAPIHeader *h =
            capsule && PyCapsule_IsValid(capsule, capsule_name) ? PyCapsule_GetPointer(capsule, capsule_name) : NULL;
        Py_XDECREF(capsule);
        while (h && h->version.major != DLPACK_MAJOR_VERSION) h = h->prev_api;
        if (h) return (const DLPackExchangeAPI *)h;
    }
    return NULL;
}

static int text_is(PyObject *o, const char *name, const char *text) {
    PyObject *found = PyObject_GetAttrString(o, name);
    int r = found && PyUnicode_Check(found) && !PyUnicode_CompareWithASCIIString(found, text);
    PyErr_Clear();
    Py_XDECREF(found);
    return r;
}

/* What the table lends is good until control returns. Of PyTorch's own types it is good as long as the tensor and its
 * storage: what the table gives for good holds the same tensor (DLConvertor.cpp, toDLPackImpl), and less. */
static int is_torch(PyTypeObject *type) {
    PyObject *t = (PyObject *)type;
    if (text_is(t, "__module__", "torch")) return text_is(t, "__name__", "Tensor");
    return text_is(t, "__module__", "torch.nn.parameter") && text_is(t, "__name__", "Parameter");
}

static cudago_peer *peer_of(PyTypeObject *type) {
    PyObject *module = PyObject_GetAttrString((PyObject *)type, "__module__");
    const char *name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8AndSize(module, NULL) : NULL;
    cudago_peer *peer = cudago_peer_named(name);
    PyErr_Clear();
    Py_XDECREF(module);
    return peer;
}

cudago_producer cudago_producer_look(PyTypeObject *type) {
    cudago_producer p = {.api = ask(type), .peer = peer_of(type), .storage = cudago_storage_way(type)};
    if (p.storage == STORAGE_NATIVE && !is_torch(type)) p.storage = STORAGE_METHOD; /* a subclass may have its own */
    p.lasts = p.api && p.api->dltensor_from_py_object_no_sync && is_torch(type);
    cudago_seen_type *at = &cudago_seen_types[cudago_seen_at(type) - cudago_seen_types];
    PyTypeObject *old = at->type;
    Py_INCREF(type);
    *at = (cudago_seen_type){type, p};
    Py_XDECREF(old); /* last: it may run foreign code */
    return p;
}

QUIET int cudago_lends(PyTypeObject *type) {
    const cudago_seen_type *at = cudago_seen_at(type);
    return at->type == type && at->producer.lasts;
}

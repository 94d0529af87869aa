// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

//go:build pyext

#include "tensor.h"

/* --- the buffer protocol: only memory that is the host's on a GPU too --------------------------------------------- */

static QUIET int refuse(Py_buffer *view, const char *why) {
    view->obj = NULL;
    PyErr_SetString(PyExc_BufferError, why);
    return -1;
}

/* Is the tensor contiguous in the way that flags asks for? */
static QUIET int fits(const TensorObject *t, int flags) {
    int64_t shape[CUDAGO_MAX_NDIM], strides[CUDAGO_MAX_NDIM];
    int c = (t->flags & TENSOR_COMPACT) != 0;
    if ((flags & PyBUF_STRIDES) != PyBUF_STRIDES || (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS) return c;
    if ((flags & PyBUF_F_CONTIGUOUS) != PyBUF_F_CONTIGUOUS && (flags & PyBUF_ANY_CONTIGUOUS) != PyBUF_ANY_CONTIGUOUS)
        return 1;
    if (c && (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS) return 1;
    for (int i = 0; i < t->ndim; i++) {
        shape[i] = t->shape[t->ndim - 1 - i];
        strides[i] = t->strides[t->ndim - 1 - i];
    }
    return cudago_is_compact(t->ndim, shape, strides);
}

static QUIET int may_view(const TensorObject *t, Py_buffer *view, int flags) {
    if (cudago_tensor_open(t)) return -1;
    if (!cudago_cell_for_host(t->cell) || t->cell->device_type == kDLCUDA || (t->size && !t->cell->host))
        return refuse(view, "device memory has no Python buffer: use t.numpy(stream=), or share it over DLPack");
    if (!cudago_dtype_format(t->dtype))
        return refuse(view, "the buffer protocol has no format for this element type: share it over DLPack");
    if (flags & PyBUF_WRITABLE && t->flags & TENSOR_READONLY) return refuse(view, "the tensor is read-only");
    return fits(t, flags) ? 0 : refuse(view, "the tensor is not contiguous in the order asked for");
}

/* From here on the tensor cannot be closed. */
static QUIET int view_now(TensorObject *t, Py_buffer *view, int flags) {
    DLTensor d;
    int64_t itemsize = cudago_itemsize(t->dtype);
    if (may_view(t, view, flags)) return -1;
    Py_ssize_t *strides = malloc(sizeof *strides * (size_t)(t->ndim ? t->ndim : 1));
    if (!strides) return PyErr_NoMemory(), -1;
    for (int i = 0; i < t->ndim; i++) strides[i] = (Py_ssize_t)(t->strides[i] * itemsize);
    cudago_tensor_describe(t, &d);
    *view = (Py_buffer){
        .buf = t->size ? d.data : strides, /* not null: some consumers take null for a failure */
        .obj = NEW_REF(t),
        .len = (Py_ssize_t)(t->size * itemsize),
        .itemsize = (Py_ssize_t)itemsize,
        .readonly = (t->flags & TENSOR_READONLY) != 0,
        .ndim = flags & PyBUF_ND ? t->ndim : 1,
        .format = flags & PyBUF_FORMAT ? (char *)cudago_dtype_format(t->dtype) : NULL,
        .shape = flags & PyBUF_ND ? (Py_ssize_t *)t->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? strides : NULL,
        .internal = strides,
    };
    cudago_exported_note(t->cell);
    t->exports++;
    return 0;
}

int cudago_tensor_get_buffer(TensorObject *t, Py_buffer *view, int flags) {
    view->obj = NULL;
    CUDAGO_ENTER(-1);
    DLTensor d;
    if (may_view(t, view, flags)) return -1;
    cudago_cell *cell = cudago_tensor_hold(t, &d);
    if (!cell) return -1;
    cudago_cell_viewed(cell);
    cudago_cell_let_go(cell);
    return view_now(t, view, flags);
}

void cudago_tensor_release_buffer(TensorObject *t, Py_buffer *view) {
    free(view->internal);
    t->exports--;
}

/* --- __cuda_array_interface__ ------------------------------------------------------------------------------------------ */

/* Raises AttributeError rather than another exception, so that hasattr() tells the truth. */
static PyObject *interface(TensorObject *t, cudago_cell *cell) {
    const char *typestr = cudago_dtype_typestr(t->dtype);
    if (cell->device_type == kDLCPU || !typestr) {
        PyErr_SetString(PyExc_AttributeError,
                        typestr ? "__cuda_array_interface__ is for memory of NVIDIA's driver: this is host or simulated memory"
                                : "__cuda_array_interface__ has no name for this element type");
        return NULL;
    }
    /* A consumer that synchronises with the stream named below must thereby wait for all of our work. */
    if (cudago_cell_order(cell, CUDAGO_ANYWHERE, 1)) return NULL;
    PyObject *shape = cudago_tuple_of(t->ndim, t->shape, 1);
    PyObject *strides = t->flags & TENSOR_COMPACT ? NEW_REF(Py_None)
                                                  : cudago_tuple_of(t->ndim, t->strides, cudago_itemsize(t->dtype));
    PyObject *readonly = PyBool_FromLong(t->flags & TENSOR_READONLY);
    PyObject *r = shape && strides ? Py_BuildValue("{sOsOsss(KO)sisi}", "shape", shape, "strides", strides, "typestr",
                                                   typestr, "data", (unsigned long long)(t->size ? t->ptr : 0), readonly,
                                                   "version", 3, "stream", 1)
                                   : NULL;
    Py_XDECREF(shape);
    Py_XDECREF(strides);
    Py_DECREF(readonly);
    return r;
}

PyObject *cudago_tensor_cai(TensorObject *t, void *unused) {
    (void)unused;
    CUDAGO_ENTER(NULL);
    DLTensor d;
    cudago_cell *cell = cudago_tensor_hold(t, &d);
    if (!cell) return NULL;
    PyObject *r = interface(t, cell);
    if (r) cudago_exchange_count_interface();
    cudago_cell_let_go(cell);
    return r;
}

/* --- host memory of our own ------------------------------------------------------------------------------------------------ */

typedef struct {
    cudago_cell cell;
    void *memory;
} host_cell;

static void host_release(cudago_cell *c) {
    if (!cudago_forked) cudago_uses_free(&c->uses);
    free(((host_cell *)c)->memory);
    free(c);
}

cudago_cell *cudago_host_cell(int64_t size) {
    if (size > INT64_MAX - 255) return NULL;
    size_t room = size ? ((size_t)size + 255) / 256 * 256 : 256;
    host_cell *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    if (!(c->memory = aligned_alloc(256, room))) return free(c), NULL;
    cudago_cell_init(&c->cell, CUDAGO_CELL_HOST, host_release);
    c->cell.device_type = kDLCPU;
    c->cell.ptr = c->cell.host = (uint64_t)(uintptr_t)c->memory;
    c->cell.size = (uint64_t)size;
    return &c->cell;
}

/* Copies the elements from dimension i on, in order, and returns where the next one goes. */
static char *gather(const TensorObject *t, int i, const char *from, size_t itemsize, char *to) {
    if (i == t->ndim) return memcpy(to, from, itemsize), to + itemsize;
    if (i == t->ndim - 1 && t->strides[i] == 1) {
        size_t n = itemsize * (size_t)t->shape[i];
        return memcpy(to, from, n), to + n;
    }
    for (int64_t k = 0; k < t->shape[i]; k++)
        to = gather(t, i + 1, from + k * t->strides[i] * (int64_t)itemsize, itemsize, to);
    return to;
}

PyObject *cudago_tensor_host_copy(TensorObject *t, const cudago_cell *cell) {
    uint64_t nbytes;
    size_t itemsize = (size_t)cudago_itemsize(t->dtype);
    int compact = (t->flags & TENSOR_COMPACT) != 0;
    if (!itemsize && !compact) {
        PyErr_SetString(PyExc_BufferError, "packed elements of less than a byte are copied for an export only when they are contiguous and begin at a byte: "
                                           "export t.contiguous(stream=s)");
        return NULL;
    }
    nbytes = itemsize ? (uint64_t)t->size * itemsize : ((uint64_t)t->size * t->dtype.bits * t->dtype.lanes + 7) / 8;
    TensorObject *copy = cudago_tensor_alloc(t->ndim);
    cudago_cell *c = copy ? cudago_host_cell((int64_t)nbytes) : NULL;
    if (!c) {
        Py_XDECREF(copy);
        return PyErr_NoMemory();
    }
    const char *from = (const char *)(uintptr_t)(t->ptr - cell->ptr + cell->host);
    if (compact && nbytes) memcpy((void *)(uintptr_t)c->host, from, nbytes);
    else if (nbytes) gather(t, 0, from, itemsize, (char *)(uintptr_t)c->host);
    cudago_tensor_set(copy, c, c->ptr, t->dtype, t->shape, NULL);
    return (PyObject *)copy;
}

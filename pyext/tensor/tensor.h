// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

/* tensor.h: typed, shaped views of memory, and their exchange with other libraries. All functions need the GIL.
 *
 *   tensor.c   the type, its life and its attributes
 *   dtype.c    element types between Python and DLPack
 *   index.c    t[...], T, transpose, reshape
 *   host.c     the buffer protocol, __cuda_array_interface__, copies on the host
 *   buffer.c   from Buffer to Tensor and back
 *   export.c   __dlpack__, __dlpack_device__, to_torch
 *   import.c   from_dlpack, foreign kernel arguments
 *   lent.c     what PyTorch lends, and its storages
 *   table.c    DLPack's C exchange table: ours, and those of other types
 *   trace.c    counts of exchanges, and notes of where they were made */
#pragma once
#include "memory/memory.h"

#include "../../dlpack/dtype.h"
#include "../../dlpack/note.h"

enum { CUDAGO_SMALL_NDIM = 4 }; /* shapes up to this need no second allocation */

/* A view of a cell's memory. Only cell, theirs, exports and weak ever change. */
typedef struct {
    PyObject_HEAD
    PyObject *weak;
    cudago_cell *cell; /* one count; NULL once closed */
    cudago_cell *theirs; /* our memory as another library handed it back: its tensor, with one count; else NULL */
    uint64_t ptr;      /* first element, as an address of the cell (cell->ptr) */
    int64_t size;      /* elements */
    DLDataType dtype;
    int32_t ndim;
    int32_t exports; /* open Py_buffers */
    int32_t device;  /* ordinal of the device that the memory is on, or -1 */
    uint32_t flags;  /* enum cudago_tensor_flags */
    uint32_t origin; /* enum cudago_tensor_origin */
    uint32_t bit;    /* of the byte at ptr, where the first element begins: not 0 only in views of packed elements */
    int64_t *shape, *strides; /* in small, or one malloc; strides in elements */
    int64_t small[2 * CUDAGO_SMALL_NDIM];
} TensorObject;

enum cudago_tensor_flags {
    TENSOR_READONLY = 1,
    TENSOR_COMPACT = 2, /* row-major without gaps, from a whole byte on */
    TENSOR_PART = 4,    /* its first or last byte has elements of the tensor that it is a view of, too */
};

/* The way that led to the memory; tensor.c has the names. */
enum cudago_tensor_origin {
    ORIGIN_CUDAGO,
    ORIGIN_TABLE,
    ORIGIN_CAPSULE,
    ORIGIN_LEGACY,
    ORIGIN_INTERFACE,
};

extern PyTypeObject *cudago_tensor_type;

/* Subclasses have no instances. */
static inline QUIET int cudago_is_tensor(PyObject *o) { return Py_TYPE(o) == cudago_tensor_type; }

/* Adds the type, the functions and the exchange table to _core. */
int cudago_tensor_room(PyObject *module);

/* --- for later rooms ---------------------------------------------------------------------------------- */

/* Methods of Buffer: view(dtype, shape=None, strides=None) and those that export its bytes. */
extern PyMethodDef cudago_buffer_exchange[];
extern PyGetSetDef cudago_buffer_exchange_attributes[];

/* -1 with ClosedError if t is closed. */
static inline QUIET int cudago_tensor_open(const TensorObject *t) { return cudago_cell_now(t->cell, "tensor"); }
/* -1 with BufferError if t begins within a byte, and so has no address. */
QUIET int cudago_tensor_addressable(const TensorObject *t);
/* The address of a Tensor's first element and its cell, borrowed; -1 with ClosedError. */
static inline QUIET int cudago_tensor_argument(PyObject *tensor, uint64_t *ptr, cudago_cell **cell) {
    TensorObject *t = (TensorObject *)tensor;
    if (cudago_tensor_open(t) || (t->bit && cudago_tensor_addressable(t))) return -1;
    *ptr = t->ptr;
    *cell = t->cell;
    return 0;
}

/* The number of bytes of a tensor without gaps; -1 if it has gaps, with BufferError for a Tensor and without for a
 * DLTensor. */
QUIET int cudago_tensor_contiguous(PyObject *tensor, uint64_t *nbytes);
QUIET int cudago_dltensor_contiguous(const DLTensor *t, uint64_t *nbytes);

/* The memory of any object that has the C exchange table or __dlpack__. out describes it, with arrays that live as long
 * as *theirs, a new count for the caller. If it is memory of ours that came back, *own is its cell with a count for the
 * caller and *ptr its address there; else *own is NULL. Does not wait for work that the producer has pending: see
 * cudago_foreign_stream. On failure -1 with an exception, and *theirs is NULL. */
int cudago_foreign_argument(PyObject *o, DLTensor *out, cudago_cell **theirs, cudago_cell **own, uint64_t *ptr);

/* Does the library of this type lend its tensors for as long as they live? Known once one was taken. */
QUIET int cudago_lends(PyTypeObject *type);
/* What such an object lends, with nothing run; 0 and no exception if it does not lend it so: the tensor has gaps, or only
 * other ways refuse it rightly. *own as for cudago_foreign_argument. */
int cudago_lent_argument(PyObject *o, DLTensor *out, cudago_cell **own, uint64_t *ptr);

/* A new reference to what the memory of such an object is in, or NULL if it has no such thing. May run other code, so it
 * comes before cudago_lent_argument. -1 with an exception. */
int cudago_lent_storage(PyObject *o, PyObject **storage);

/* The stream that o's library is working on now, as a CUstream number. Libraries that do not say get 1, the legacy
 * default stream. -1 with an exception. */
int cudago_foreign_stream(PyObject *o, DLDevice device, intptr_t *stream);

/* Is it host memory, pageable or pinned? Simulated device memory is not, though it has a host address. */
static inline QUIET int cudago_cell_is_host(const cudago_cell *c) {
    switch (c->kind) {
    case CUDAGO_CELL_PINNED:
    case CUDAGO_CELL_HOST:
    case CUDAGO_CELL_PYTHON: return 1;
    case CUDAGO_CELL_FOREIGN: return c->device_type == kDLCPU || c->device_type == kDLCUDAHost;
    default: return 0;
    }
}

/* --- between the tensor_*.c files ------------------------------------------------------------------------------------ */

/* A Tensor without a cell and with room for ndim dimensions; NULL with MemoryError. */
QUIET TensorObject *cudago_tensor_alloc(int ndim);
/* Fills it in; takes over the caller's count of cell. strides NULL: row-major. Cannot fail. */
QUIET void cudago_tensor_set(TensorObject *t, cudago_cell *cell, uint64_t ptr, DLDataType dtype, const int64_t *shape,
                             const int64_t *strides);
/* A Tensor over t's cell, with a count of its own; ClosedError if t is closed. */
QUIET PyObject *cudago_tensor_derive(const TensorObject *t, uint64_t ptr, DLDataType dtype, int ndim, const int64_t *shape,
                                     const int64_t *strides);
/* The lowest and the highest element of a tensor that has any, counted from its first. */
QUIET void cudago_tensor_reach(const TensorObject *t, int64_t *low, int64_t *high);
/* t as DLPack describes it: device and address are those of the cell; the arrays are t's own. */
QUIET void cudago_tensor_describe(const TensorObject *t, DLTensor *out);
/* The cell of an open tensor with a count for the caller, who may then release the GIL, and its description; NULL with
 * ClosedError. */
QUIET cudago_cell *cudago_tensor_hold(const TensorObject *t, DLTensor *out);
/* Gives back a count in a place that must preserve a pending exception, such as tp_dealloc. */
void cudago_cell_let_go(cudago_cell *cell);

int cudago_dtype_from_python(PyObject *o, DLDataType *out); /* -1 with TypeError */
/* Shape, element type and device of a tensor that may be wrong in any way, for an error. */
void cudago_tensor_text(const DLTensor *d, char *out, size_t n);
PyObject *cudago_dtype_to_python(DLDataType d);             /* NumPy's dtype, or the name where it has none */

PyObject *cudago_tensor_subscript(TensorObject *t, PyObject *key);
PyObject *cudago_tensor_item(TensorObject *t, Py_ssize_t i);
PyObject *cudago_tensor_get_T(TensorObject *t, void *unused);
PyObject *cudago_tensor_get_mT(TensorObject *t, void *unused);
PyObject *cudago_tensor_transpose(TensorObject *t, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_tensor_reshape(TensorObject *t, PyObject *const *args, Py_ssize_t n);
/* Reads a shape: an int or a sequence of ints. Returns the number of dimensions, or -1. */
int cudago_dims_from_python(PyObject *o, const char *name, int64_t *dims); /* runs Python; no check of the sizes */
/* Checks a shape and, if size is not negative, computes its single -1 from it. -1 with an exception. */
QUIET int cudago_shape_now(int64_t size, int n, int64_t *shape);
PyObject *cudago_tuple_of(int n, const int64_t *values, int64_t scale);

int cudago_tensor_get_buffer(TensorObject *t, Py_buffer *view, int flags);
void cudago_tensor_release_buffer(TensorObject *t, Py_buffer *view);
PyObject *cudago_tensor_cai(TensorObject *t, void *unused);
/* A row-major copy in host memory of its own. The memory must have a host address, and nobody may be writing to it;
 * cell is t's, held by the caller. */
PyObject *cudago_tensor_host_copy(TensorObject *t, const cudago_cell *cell);
/* An owner cell over new host memory, aligned as DLPack requires; NULL if there is no memory. Needs no GIL. */
cudago_cell *cudago_host_cell(int64_t size);

PyObject *cudago_tensor_buffer(TensorObject *t, void *unused);
PyObject *cudago_tensor_span(TensorObject *t, void *unused);
/* A tensor whose first element is at ptr and that stays within the nbytes from base on; ValueError otherwise. */
QUIET PyObject *cudago_tensor_place(cudago_cell *cell, uint64_t base, uint64_t nbytes, uint64_t ptr, DLDataType dtype, int ndim,
                                    const int64_t *shape, const int64_t *strides);

/* What a consumer asks for, evaluated. */
typedef struct {
    int versioned, on_device, copy, has_stream; /* copy: 1 True, 0 False, -1 not given */
    long device[2];
    long long stream;
} cudago_dlpack_request;
int cudago_dlpack_read(PyObject *const *args, Py_ssize_t n, PyObject *names, cudago_dlpack_request *r); /* -1 with an exception */
PyObject *cudago_dlpack_as(TensorObject *t, const cudago_dlpack_request *r); /* a capsule; NULL with an exception */
PyObject *cudago_tensor_dlpack(TensorObject *t, PyObject *const *args, Py_ssize_t n, PyObject *names);
QUIET PyObject *cudago_tensor_dlpack_device(TensorObject *t, PyObject *unused);
PyObject *cudago_tensor_copy(TensorObject *t, int to_host);
PyObject *cudago_to_torch(PyObject *module, PyObject *tensor);
/* If the consumer is the host, waits for the work pending on the memory, which the caller holds. */
int cudago_tensor_settle(cudago_cell *cell, const DLTensor *as);
/* -1 with BufferError if t must not be exported as it is. */
int cudago_tensor_exportable(TensorObject *t, const DLTensor *as);

/* Puts c, the cell of what d describes, into t; takes over the caller's count. If it is memory of ours, t becomes a
 * tensor over that. */
void cudago_tensor_adopt(TensorObject *t, cudago_cell *c, const DLTensor *d, const cudago_extent *e);
int cudago_never_changes(PyObject *o); /* its library has read-only tensors and does not say so in its capsules */
PyObject *cudago_from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names);
/* A Tensor that owns m, a tensor of peer's. On failure m still belongs to the caller. */
PyObject *cudago_tensor_import(DLManagedTensorVersioned *m, cudago_peer *peer);
PyObject *cudago_tensor_through(PyObject *module, PyObject *args); /* interface.c */
void cudago_let_object_go(void *object); /* drops a reference; what that runs meets no exception that is on its way */
/* Moves the tensor of a new `__dlpack__` capsule of peer's into a new cell: describes it in out and computes the extent
 * that it reaches. */
cudago_cell *cudago_capsule_take(PyObject *capsule, DLTensor *out, cudago_extent *e, cudago_peer *peer);

/* What is known of the objects of a type, and kept. */
enum cudago_storage_way { STORAGE_NONE,   /* their memory is theirs, or of an owner that the protocol keeps */
                          STORAGE_METHOD, /* they have a method untyped_storage */
                          STORAGE_NATIVE  /* which is PyTorch's own */
};
typedef struct {
    const DLPackExchangeAPI *api; /* the type's exchange table; NULL: it has none */
    cudago_peer *peer;            /* the library that the type is of */
    int lasts;                    /* what the table lends lasts as long as the object and its storage */
    int storage;                  /* enum cudago_storage_way */
} cudago_producer;
/* What is known about types, by their addresses; a strong reference keeps each address from being reused. A type
 * without a table is remembered too: if it gets one later, the way through __dlpack__ is slower but still right.
 * Guarded by the GIL. */
enum { CUDAGO_SEEN_TYPES = 64 };
typedef struct {
    PyTypeObject *type;
    cudago_producer producer;
} cudago_seen_type;
extern cudago_seen_type cudago_seen_types[CUDAGO_SEEN_TYPES];
static inline QUIET const cudago_seen_type *cudago_seen_at(PyTypeObject *type) {
    return &cudago_seen_types[((uintptr_t)type >> 4) % CUDAGO_SEEN_TYPES];
}
cudago_producer cudago_producer_look(PyTypeObject *type); /* runs Python */
/* Cannot fail; runs Python the first time. */
static inline cudago_producer cudago_producer_of(PyTypeObject *type) {
    const cudago_seen_type *at = cudago_seen_at(type);
    return at->type == type ? at->producer : cudago_producer_look(type);
}
int cudago_exchange_init(PyObject *type);

/* import.c, for lent.c */
int cudago_import_refuse(const char *why, const DLTensor *d); /* BufferError; returns -1 */
int cudago_import_refused(PyObject *o); /* after a failure of its table: the exception as BufferError; returns -1 */
/* Makes the consumer's stream, of which -1 is none, wait for what the producer has queued. 1 if it had to, which may have
 * released the GIL; 0 if there was nothing to do; -1 with an exception. */
int cudago_import_order(const DLPackExchangeAPI *api, DLDevice device, intptr_t stream);

/* lent.c */
QUIET int cudago_may_be_negated(const DLTensor *d, const cudago_extent *e);
/* 1: *cell is of what o lends, and keeps o and its storage; d describes it, e is its extent, and the consumer's stream is
 * ordered. 0: use __dlpack__. -1 with an exception. Nothing may run between this and the use of d, since it might change
 * the tensor. */
int cudago_take_lent(const cudago_producer *p, PyObject *o, intptr_t stream, DLTensor *d, cudago_extent *e, cudago_cell **cell);
int cudago_storage_take(const cudago_producer *p, PyObject *o, PyObject **storage);
int cudago_storage_way(PyTypeObject *type); /* runs Python */
/* Has the cell, just taken from o in another way, keep o's storage too, if that is what the memory is in. -1 with an
 * exception that ends the program. */
int cudago_storage_keep(cudago_cell *c, const cudago_producer *p, PyObject *o);

/* storage.c: where one of PyTorch's storages says where its memory is, and how much. Valid as long as the cell. */
typedef struct {
    const volatile uint64_t *data, *size; /* NULL: it is no such storage's memory, or not known */
    uint64_t begin;                       /* what data said when the memory was taken */
} cudago_storage_words;
int cudago_storage_watch(const cudago_cell *c, cudago_storage_words *w); /* runs Python; -1 with an exception that ends the program */
/* Has the storage given the memory back? */
static inline QUIET int cudago_storage_moved(const cudago_storage_words *w, const cudago_cell *c) {
    return w->data && (*w->data != w->begin || c->ptr < w->begin || c->ptr - w->begin + c->size > *w->size);
}

extern PyObject *cudago_name_dlpack, *cudago_name_dlpack_device;

/* While cudago_tracing: note an exchange that is complete; cannot fail. They look at the thread's frames, which may run a
 * garbage collection. */
void cudago_trace_export(DLManagedTensorVersioned *m, enum cudago_exchange_way way, int32_t ordinal);
void cudago_trace_export_legacy(DLManagedTensor *m, int32_t ordinal);
void cudago_trace_import(PyObject *tensor, const cudago_peer *peer);

/* The lines of the program that the thread is in, outside of this package. */
typedef struct {
    size_t n; /* bytes in text; 0: not looked for */
    char text[1024];
} cudago_lines;
void cudago_lines_find(cudago_lines *p);
/* Notes an import of which the caller has a count, at a place that was found before: nothing runs here. */
QUIET void cudago_trace_cell(cudago_cell *theirs, const DLTensor *d, const cudago_peer *peer, int32_t ordinal, const cudago_lines *p);

extern PyMethodDef cudago_trace_functions[];

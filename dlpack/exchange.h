// SPDX-FileCopyrightText: The cudago authors
// SPDX-License-Identifier: Apache-2.0

/* exchange.h: DLPack in C: the ABI, export, import, and who frees what.
 *
 * The structs and numbers are DLPack's (dlpack.h, version 1.3), in its own spelling, written down here again because
 * no header is copied; layout.c holds them to DLPack's sizes and offsets at compile time.
 *
 * An export is one malloc that holds the managed struct, the shape and the strides, and one count of an owner cell. Its
 * deleter frees the block and gives the count back: no Go, no Python, no CUDA call, so a consumer may run it wherever
 * it likes. An import is an owner cell that holds the producer's managed struct; its deleter runs with the GIL, because
 * NumPy's before 1.24 needs it (numpy/numpy#22507). */
#pragma once
#include "cell.h"
#include "peer.h"

#include <stddef.h>

/* --- DLPack 1.3 ------------------------------------------------------------------------------------------------- */

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

typedef struct {
    uint32_t major, minor;
} DLPackVersion;

enum { kDLCPU = 1,
       kDLCUDA = 2,
       kDLCUDAHost = 3,
       kDLROCMHost = 11,
       kDLCUDAManaged = 13 };

typedef struct {
    int32_t device_type, device_id;
} DLDevice;

enum {
    kDLInt = 0,
    kDLUInt = 1,
    kDLFloat = 2,
    kDLOpaqueHandle = 3,
    kDLBfloat = 4,
    kDLComplex = 5,
    kDLBool = 6,
    kDLFloat8_e3m4 = 7,
    kDLFloat8_e5m2fnuz = 13,
    kDLFloat8_e8m0fnu = 14,
    kDLFloat6_e2m3fn = 15,
    kDLFloat6_e3m2fn = 16,
    kDLFloat4_e2m1fn = 17
};

typedef struct {
    uint8_t code, bits;
    uint16_t lanes;
} DLDataType;

typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL means C order, from producers before 1.2 */
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

#define DLPACK_FLAG_BITMASK_READ_ONLY (UINT64_C(1) << 0)
#define DLPACK_FLAG_BITMASK_IS_COPIED (UINT64_C(1) << 1)
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (UINT64_C(1) << 2)

typedef struct DLManagedTensorVersioned {
    DLPackVersion version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

typedef struct DLPackExchangeAPIHeader {
    DLPackVersion version;
    struct DLPackExchangeAPIHeader *prev_api;
} DLPackExchangeAPIHeader;

/* Lives on a type as the capsule `__dlpack_c_exchange_api__`. All functions return 0 or -1 and synchronise nothing;
 * all but the allocator set a Python error. Objects are PyObject. */
typedef struct DLPackExchangeAPI {
    DLPackExchangeAPIHeader header;
    int (*managed_tensor_allocator)(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_ctx,
                                    void (*SetError)(void *error_ctx, const char *kind, const char *message));
    int (*managed_tensor_from_py_object_no_sync)(void *py_object, DLManagedTensorVersioned **out);
    int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned *tensor, void **out_py_object);
    int (*dltensor_from_py_object_no_sync)(void *py_object, DLTensor *out); /* may be NULL */
    int (*current_work_stream)(int32_t device_type, int32_t device_id, void **out_current_stream);
} DLPackExchangeAPI;

/* --- layout ------------------------------------------------------------------------------------------------------ */

/* More than any framework makes (NumPy stops at 64), few enough for the stack. */
#define CUDAGO_MAX_NDIM 64

/* Bytes of one element, lanes included and rounded up; 0 if cudago cannot address elements of that type singly (FP4
 * and FP6 when packed). */
int64_t cudago_itemsize(DLDataType dtype);

/* The product of sizes, which overflows for some tensors without elements, and means nothing there. */
static inline int64_t cudago_product(int64_t a, int64_t b) { return (int64_t)((uint64_t)a * (uint64_t)b); }

/* Row-major strides in elements. */
void cudago_c_strides(int ndim, const int64_t *shape, int64_t *strides);

/* Is the tensor row-major and without gaps? Dimensions of size 1 do not count; an empty tensor is. */
int cudago_is_compact(int ndim, const int64_t *shape, const int64_t *strides);

/* What a tensor touches, as cudago_tensor_check found it. */
typedef struct {
    int64_t itemsize; /* 0 for packed sub-byte types */
    int64_t size;     /* elements */
    int64_t low;      /* bytes from the first element down to the lowest byte touched: 0 or negative */
    int64_t high;     /* bytes from the first element to the end of the highest */
    int compact;      /* row-major and without gaps, as cudago_is_compact says */
} cudago_extent;

/* Checks a tensor that somebody else described: dimensions, element type, device, pointers, strides, and that nothing
 * overflows. Reads the struct and its arrays, never the data. NULL if it is sound; else what is wrong, as static text
 * for a BufferError. flags are those of the managed struct (0 for the legacy one). */
const char *cudago_tensor_check(const DLTensor *t, uint64_t flags, cudago_extent *extent);

/* --- export ------------------------------------------------------------------------------------------------------ */

/* Makes a managed tensor for t, which describes memory of cell: one malloc, one count of cell. Strides are explicit,
 * those of dimensions of size 0 or 1 are made canonical, byte_offset is 0, and data is NULL if the tensor is empty,
 * because consumers differ (iree-org/iree#21153, pytorch/pytorch#117273). way, TABLE or CAPSULE, is what the export is
 * counted as. NULL: no memory. */
DLManagedTensorVersioned *cudago_export(const DLTensor *t, cudago_cell *cell, uint64_t flags, enum cudago_exchange_way way);
DLManagedTensor *cudago_export_legacy(const DLTensor *t, cudago_cell *cell);

/* Those that take over the caller's count of cell, unless they return NULL. */
DLManagedTensorVersioned *cudago_export_held(const DLTensor *t, cudago_cell *cell, uint64_t flags, enum cudago_exchange_way way);
DLManagedTensor *cudago_export_legacy_held(const DLTensor *t, cudago_cell *cell);

/* --- import ------------------------------------------------------------------------------------------------------ */

/* An import is taken and released with the GIL held. */

/* An empty cell for an import, kind FOREIGN, one count; NULL: no memory. It is made before the producer's tensor is
 * taken, so that taking it cannot fail. */
cudago_cell *cudago_foreign_new(void);

/* Puts the producer's tensor into the cell, which from now on runs its deleter. t is m's, e what cudago_tensor_check
 * said; of counts it, and its end. Cannot fail. */
void cudago_foreign_take(cudago_cell *c, DLManagedTensorVersioned *m, const cudago_extent *e, cudago_imports *of);
void cudago_foreign_take_legacy(cudago_cell *c, DLManagedTensor *m, const cudago_extent *e, cudago_imports *of);

/* The same for a tensor that lasts as long as an object, which is the caller's to have counted: release(object) is called
 * once, with the GIL and without the guard of cudago_exchange_set_guard. */
void cudago_foreign_take_object(cudago_cell *c, const DLTensor *t, const cudago_extent *e, cudago_imports *of, void *object,
                                void (*release)(void *));

/* Has the cell keep what the tensor's memory is in as well: release(memory) is called once, as for an object. */
void cudago_foreign_keep(cudago_cell *c, void *memory, void (*release)(void *));
void *cudago_foreign_memory(const cudago_cell *c); /* what it keeps so; NULL: nothing */

/* Runs a managed tensor's deleter, if it has one: what a consumer owes a tensor that it does not keep. */
void cudago_dl_delete(DLManagedTensorVersioned *m);
void cudago_dl_delete_legacy(DLManagedTensor *m);

/* Has guard called around every deleter: it must call run(m) once. For what Python needs and this package does not know:
 * a deleter may run Python code, which must not meet an exception that is on its way. NULL: none. */
void cudago_exchange_set_guard(void (*guard)(void (*run)(void *), void *m));

/* --- statistics and faults --------------------------------------------------------------------------------------- */

typedef struct {
    struct {
        int64_t made, released; /* managed tensors given away, and their deleters run */
    } exports[CUDAGO_WAYS];
    int64_t imports_taken, imports_released; /* the array interface's aside: of all peers, which have them one by one */
} cudago_exchange_stats;
cudago_exchange_stats cudago_exchange_read_stats(void); /* GIL held */

/* The array interface was read: an export of which nobody says when it ends. GIL held. */
void cudago_exchange_count_interface(void);

/* Exports of a class of cells whose deleters have not run. Any thread. */
int64_t cudago_exports_open(uint32_t class);

/* For tests: the n-th allocation of this file from now on fails; 0 turns it off. GIL held. */
void cudago_exchange_fail_at(int n);

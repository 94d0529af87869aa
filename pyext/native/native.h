/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* native.h: what the C files of the border share beside border.h and stream.h. Every function here needs the GIL, unless it
 * says otherwise. */
#pragma once
#include "border.h"
#include "stream.h"

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;
    uintptr_t h;
    int32_t device;
    int32_t captured; /* last recorded in a capture: it stands for a place in a graph, and never completes */
    uint32_t generation;
} EventObject;
static inline QUIET int cudago_event_closed(const EventObject *e) { return !e->h || cudago_lost(e->device, e->generation); }
QUIET int cudago_event_now(const EventObject *e); /* -1 with ClosedError */

typedef struct BufferObject {
    PyObject_HEAD
    PyObject *weak;
    cudago_cell *cell; /* NULL once closed */
    uint64_t ptr, size;
    int32_t device;
    int32_t exports;   /* open buffer exports */
    int32_t grows;     /* the whole of an allocation of virtual memory: see buffer_grow */
    struct BufferObject *next, *prev;
} BufferObject;

typedef struct {
    PyObject_HEAD
    PyObject *buffer;  /* BufferObject */
    int64_t offset;    /* bytes from the buffer's start; 0 <= offset <= size */
} PointerObject;

/* A kernel's parameter, as the packer wants it. */
typedef struct {
    uint8_t type; /* enum cudago_param */
    uint8_t width;
    uint16_t reserved;
    uint32_t offset, size;
} cudago_param;
enum cudago_param { PARAM_INT = 1,
                    PARAM_UINT,
                    PARAM_FLOAT,
                    PARAM_BYTES,
                    PARAM_BITS };

/* A kernel on one device. C memory owned by Go. */
typedef struct cudago_kernel {
    uintptr_t f;      /* CUfunction */
    uintptr_t ctx;
    int32_t device;
    int32_t n;        /* parameters */
    uint32_t size;    /* bytes of all parameters */
    uint32_t max_threads;
    uint64_t id;         /* Go's handle */
    uint32_t limits[6];  /* grid x y z, block x y z */
    uint32_t max_shared; /* bytes of dynamic shared memory */
    int32_t pageable;    /* the device reads pageable host memory */
    uint32_t generation;
    struct cudago_kernel *before; /* of the generation before, which a launch may still be reading */
    cudago_param params[];
} cudago_kernel;
#define CUDAGO_MAX_PARAMS 1024

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t code; /* Go's handle of the object code */
    PyObject *name;
    PyObject *owner; /* the ObjectCode */
    cudago_kernel *on[CUDAGO_MAX_DEVICES];
} KernelObject;

typedef struct {
    PyObject_HEAD
    uint32_t grid[3], block[3], cluster[3];
    uint32_t shared_memory;
    int32_t cooperative, has_priority, priority;
} ConfigObject;

/* One thing that a graph or a launch in flight keeps: the object handed in, and what pins its bytes down. */
typedef struct {
    PyObject_HEAD
    PyObject *weak;
    PyObject *object;    /* what the user passed */
    cudago_cell *cell;   /* of a Buffer, Tensor or foreign tensor */
    PyObject *export;    /* a memoryview of ours that holds the buffer export of a host object, or NULL */
    uint64_t address, nbytes;
    int32_t host;        /* pageable or pinned host memory */
    int32_t pageable;    /* the driver does not know the memory */
    int32_t device;      /* -1: any */
    int32_t readonly;
    int32_t allowed;     /* AllowHost was called */
    int32_t index;       /* of a kernel's argument */
    int32_t interface;   /* made of a __cuda_array_interface__ */
    uintptr_t stream;    /* of that: its work is queued there; 0: none is */
    void *call;          /* callback.c: the record of a Python callable */
} OperandObject;

/* operand.c: the one way from a Python object to an address and what keeps it. */
enum { OPERAND_WRITABLE = 1,
       OPERAND_KERNEL = 2 };
void cudago_operand_allow(OperandObject *o); /* for kernels: AllowHost, once */
void cudago_call_free(void *call);
OperandObject *cudago_operand(PyObject *object, int flags, const char *what);
/* Is the memory still there, which a reset of its device takes away however it is held? -1 with ClosedError. */
QUIET int cudago_operand_now(const OperandObject *o);
QUIET int cudago_operand_lost(const OperandObject *o);
/* A memoryview of ours that holds the object's buffer export, and what it is over; NULL with BufferError. */
PyObject *cudago_export_of(PyObject *object, int flags, const char *what, uint64_t *address, uint64_t *nbytes, int32_t *readonly);
QUIET int cudago_writable(const cudago_cell *cell, const char *what); /* -1 with BufferError if it is read-only */

/* pack.c: the arguments of a launch or a kernel node. First what can run Python, then the addresses of our own objects. */
typedef struct {
    KernelObject *kernel;
    cudago_kernel *k;
    PyObject *const *args;
    uint8_t *values;       /* k->size bytes, where parameters are written */
    void *params[CUDAGO_MAX_PARAMS];
    PyObject *keep;        /* list of Operands of what other libraries and the host own, or NULL */
    OperandObject **own;   /* Operands of our own objects, for a graph: one for each of native; NULL if not made */
    uint16_t native[CUDAGO_MAX_PARAMS]; /* arguments that are our own objects: their addresses come last */
    int natives, index;    /* index: of the argument that is looked at */
    cudago_cell *used[CUDAGO_MAX_PARAMS]; /* cells of native */
    uintptr_t theirs[CUDAGO_MAX_PARAMS];  /* streams of other libraries, whose work on their objects is waited for */
    int n_theirs;
} cudago_packing;
/* Evaluates and checks args; runs Python. values has room for k->size bytes. -1 with an exception, and nothing to free. */
int cudago_pack(cudago_packing *p, KernelObject *kernel, cudago_kernel *k, PyObject *const *args, Py_ssize_t n, uint8_t *values);
int cudago_pack_own(cudago_packing *p);         /* makes own; runs Python. -1 with an exception */
QUIET int cudago_pack_now(cudago_packing *p);   /* the addresses of our own objects, which must be open */
void cudago_pack_free(cudago_packing *p);
int cudago_launch_error(KernelObject *kernel, cudago_kernel *k, ConfigObject *c, int32_t code);
int cudago_result_is_sticky(int32_t code);
int cudago_host_known(uint64_t address); /* the driver knows the host memory: pinned, managed or registered */

/* capture.c: operations on a stream that captures; what they were given is kept by the captured graph. */
QUIET int cudago_capture_memcpy(cudago_stream *s, OperandObject *dst, OperandObject *src, uint64_t size);
QUIET int cudago_capture_memset(cudago_stream *s, OperandObject *dst, uint32_t value, uint32_t width, uint64_t count);
QUIET int cudago_capture_launch(cudago_stream *s, const void *config, ConfigObject *c, cudago_packing *p);
cudago_kernel *cudago_kernel_on(KernelObject *kernel, int32_t device);
int cudago_check_config(ConfigObject *c, cudago_kernel *k);

/* check.c: where the program makes a call, for the reports of checks, from before the call to after it; and that the
 * host is about to use memory. They cost a look at a number while no check is on. */
extern int cudago_checking;
void cudago_checks_opened(void);
void cudago_note_site_now(void);
void cudago_forget_site_now(void);
void cudago_host_access_now(uint64_t address, uint64_t size);
static inline void cudago_note_site(void) {
    if (cudago_checking) cudago_note_site_now();
}
static inline void cudago_forget_site(void) {
    if (cudago_checking) cudago_forget_site_now();
}
static inline void cudago_host_access(uint64_t address, uint64_t size) {
    if (cudago_checking && size) cudago_host_access_now(address, size);
}

/* What module.c hangs into the module; each is documented where it is defined. */
PyObject *cudago_set_checks(PyObject *module, PyObject *names);
PyObject *cudago_set_package(PyObject *module, PyObject *directory);
PyObject *cudago_take_reports(PyObject *module, PyObject *unused);
PyObject *cudago_cancel_kernels(PyObject *module, PyObject *unused);
PyObject *cudago_fail_at_random(PyObject *module, PyObject *rate);
PyObject *cudago_fail_next(PyObject *module, PyObject *args);
PyObject *cudago_faults(PyObject *module, PyObject *unused);
PyObject *cudago_device_new(PyObject *module, PyObject *ordinal);
PyObject *cudago_stream_new(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_stream_wrap(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_event_new(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_resource_default_pool(PyObject *module, PyObject *args);
PyObject *cudago_resource_pool(PyObject *module, PyObject *args);
PyObject *cudago_resource_pinned(PyObject *module, PyObject *cls);
PyObject *cudago_resource_managed(PyObject *module, PyObject *args);
PyObject *cudago_resource_virtual(PyObject *module, PyObject *args);
PyObject *cudago_pin(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_compile(PyObject *module, PyObject *args);
PyObject *cudago_code_from(PyObject *module, PyObject *args);
PyObject *cudago_code_data(PyObject *module, PyObject *args);
PyObject *cudago_kernel_new(PyObject *module, PyObject *args);
PyObject *cudago_config_new(PyObject *module, PyObject *args);
PyObject *cudago_launch(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_new(PyObject *module, PyObject *device);
PyObject *cudago_capture_begin(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_capture_new(PyObject *module, PyObject *const *args, Py_ssize_t n);
int cudago_capture_type_init(void);
PyObject *cudago_capture_end(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_collect_prove(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_set_closed_error(PyObject *module, PyObject *cls);
PyObject *cudago_shutdown(PyObject *module, PyObject *unused);
PyObject *cudago_after_fork(PyObject *module, PyObject *unused);
PyObject *cudago_watch_forks(PyObject *module, PyObject *unused);
/* For Go, which cannot define C functions beside the ones that it exports. */
void cudago_call_host(uintptr_t fn, uintptr_t user_data); /* calls a CUhostFn */
int64_t cudago_live_cells(void);
void *cudago_go_entered_address(void);
uint32_t *cudago_drop_hint_address(void);
void cudago_incref(uintptr_t object); /* GIL */
int cudago_finalizer_exit(uintptr_t finalizer); /* GIL */
void cudago_finalizer_due(uintptr_t finalizer, uint64_t id); /* GIL */
int cudago_request_drain(void);
int cudago_watch_exit(void); /* -1 with an exception */
void cudago_drop_references(uintptr_t *refs, size_t n);
void cudago_keep_exception(void (*run)(void *), void *with); /* calls run(with), which may be code of others */
void cudago_drop_capsule(PyObject *capsule);                 /* whose destructor is another library's; or NULL */

/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* native.h: what the C files of the border share. Every function here needs the GIL, unless it says otherwise.
 *
 * Lock order: the GIL is the outermost lock. No lock of ours is held across a call into Python. */
#pragma once
#include "abi3.h"
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "../../dlpack/exchange.h"
#include "zdocs.h"

/* --- errors ------------------------------------------------------------------------------------------------- */

/* What a call into Go reports. Filled by guard() in guard.go, turned into an exception by cudago_raise. */
typedef struct {
    int32_t kind;  /* enum cudago_kind */
    int32_t code;  /* CUresult, where there is one */
    char *message; /* malloc'ed, or NULL */
    char *detail;  /* malloc'ed JSON object with the exception's attributes, or NULL */
} cudago_status;

/* errors.py:_make has the same numbers. */
enum cudago_kind {
    CUDAGO_OK = 0,
    CUDAGO_CUDA,
    CUDAGO_NO_DRIVER,
    CUDAGO_COMPILE,
    CUDAGO_PTX,
    CUDAGO_CLOSED,
    CUDAGO_TYPE,
    CUDAGO_VALUE,
    CUDAGO_OVERFLOW,
    CUDAGO_KEY,
    CUDAGO_BUFFER,
    CUDAGO_INTERNAL,
};

int cudago_raise(cudago_status *st);                         /* raises, frees what st holds; returns -1 */
int cudago_raise_closed(const char *what);                   /* ClosedError; returns -1 */
int cudago_raise_result(const char *operation, int32_t code); /* CUDAError of a driver call made in C; returns -1 */

/* --- entry of every call -------------------------------------------------------------------------------------- */

extern int cudago_closed;               /* the interpreter ends: nothing is given back any more */
extern unsigned long cudago_main_thread;   /* the one that imported the module */
extern int cudago_unusable;             /* forked, or being shut down */
extern int cudago_forked;               /* set in a forked child; the Go runtime does not survive fork */
extern _Atomic int cudago_drop_hint;    /* references wait to be dropped */
int cudago_raise_unusable(void);        /* returns -1 */
void cudago_buffers_give_up(void);      /* at exit: every open Buffer */
/* Waits with the GIL released, in slices between which Ctrl-C is answered. -1 with an exception. */
enum cudago_wait_kind { WAIT_STREAM, WAIT_EVENT, WAIT_DEVICE };
int cudago_wait(enum cudago_wait_kind kind, uint64_t id);
void cudago_free_put_off(void);         /* frees what waited for a capture to end */
void cudago_drain(void);                /* drops what waits; keeps a pending exception */
int cudago_open(void);                  /* opens the driver if nobody did; -1 with an exception */

/* Every call of the API begins with this: a pending call alone does not drain while the main thread is busy or
 * parked in C (python/cpython#95820). */
#define CUDAGO_ENTER(bad)                                                                      \
    do {                                                                                       \
        if (cudago_unusable) {                                                                 \
            cudago_raise_unusable();                                                           \
            return bad;                                                                        \
        }                                                                                      \
        if (atomic_load_explicit(&cudago_drop_hint, memory_order_relaxed) || cudago_cells_pending()) \
            cudago_drain();                                                                    \
    } while (0)

/* --- the driver's calls that C makes by itself ----------------------------------------------------------------- */

/* Entry points with the C ABI of cuda.h: libcuda's own, or the exported Go functions of trampoline.go where the
 * driver has none (simulated, fault, trace). Filled once by cudago_open. */
typedef struct {
    int32_t (*cuGraphLaunch)(uintptr_t exec, uintptr_t stream);
    int32_t (*cuLaunchKernelEx)(const void *config, uintptr_t f, void **params, void **extra);
    int32_t (*cuEventRecord)(uintptr_t event, uintptr_t stream);
    int32_t (*cuEventQuery)(uintptr_t event);
    int32_t (*cuStreamWaitEvent)(uintptr_t stream, uintptr_t event, uint32_t flags);
    int32_t (*cuStreamIsCapturing)(uintptr_t stream, int32_t *status);
    int32_t (*cuThreadExchangeStreamCaptureMode)(int32_t *mode);
    int32_t (*cuMemAllocFromPoolAsync)(uint64_t *ptr, size_t size, uintptr_t pool, uintptr_t stream);
    int32_t (*cuMemFreeAsync)(uint64_t ptr, uintptr_t stream);
    int32_t (*cuMemcpyAsync)(uint64_t dst, uint64_t src, size_t size, uintptr_t stream);
    int32_t (*cuCtxGetCurrent)(uintptr_t *ctx);
    int32_t (*cuCtxPushCurrent)(uintptr_t ctx);
    int32_t (*cuCtxPopCurrent)(uintptr_t *ctx);
} cudago_calls;
extern cudago_calls cu;
void cudago_trampolines(cudago_calls *calls); /* trampoline.c: fills in the exported Go functions */

/* Makes ctx current around a call if it is not; one comparison where it is. */
static inline int32_t cudago_ctx_enter(uintptr_t ctx, int *pushed) {
    uintptr_t now = 0;
    *pushed = 0;
    if (cu.cuCtxGetCurrent(&now) == 0 && now == ctx) return 0;
    int32_t r = cu.cuCtxPushCurrent(ctx);
    *pushed = r == 0;
    return r;
}
static inline void cudago_ctx_leave(int pushed) {
    uintptr_t was;
    if (pushed) cu.cuCtxPopCurrent(&was);
}

/* --- blocks: the part of an object that C reads; Go owns the object and the block -------------------------------- */

/* A stream. Lives until the last of refs is gone: the Python object, allocations made on it, executables launched on
 * it. Guarded by the GIL but for state and refs. */
typedef struct cudago_stream {
    uint64_t id;       /* Go's handle */
    uintptr_t h;       /* CUstream */
    uintptr_t ctx;     /* CUcontext */
    uintptr_t mark;    /* CUevent made with the stream, for the launch budget; 0 on foreign streams */
    uint64_t launched; /* launches so far */
    uint64_t proven;   /* launches known to have ended */
    uint64_t marked;   /* launches before the last record of mark */
    int32_t device;
    int32_t foreign;   /* not ours: other launches may be queued, so the GIL is never kept on it */
    int32_t closing;   /* closed by its owner, and kept in the list until its launches have ended */
    _Atomic int32_t closed;
    _Atomic int64_t refs;
    struct cudago_stream *next, *prev; /* all open streams, for the launch budget */
} cudago_stream;
void cudago_stream_retain(cudago_stream *s);
void cudago_stream_release(cudago_stream *s); /* any thread, no GIL needed */

void cudago_budget_add(cudago_stream *s);
void cudago_budget_close(cudago_stream *s);
void cudago_budget_settle(void); /* learns which launches have ended */
cudago_stream *cudago_budget_find(uint64_t id); /* an open stream of ours, or NULL */
void cudago_budget_proven(cudago_stream *s, uint64_t launched);
int cudago_print_flush(void); /* device printf to sys.stdout */
void cudago_callbacks_close(void);
/* 1: keep the GIL for this launch (launch budget, budget.c). Counts the launch. */
int cudago_budget(cudago_stream *s);
extern long cudago_callbacks_alive; /* Python callbacks that some graph may run: never keep the GIL then */
extern int cudago_foreign_launches; /* an executable was ever launched on a stream of another library */
extern _Atomic int cudago_captures_open;
/* Is a capture open on s? 17 ns on NVIDIA's driver; not asked where nobody captures. */
static inline int cudago_capturing(cudago_stream *s) {
    int32_t status = 0;
    if (!s->foreign && !atomic_load_explicit(&cudago_captures_open, memory_order_relaxed)) return 0;
    int pushed; /* the default streams are those of the current context */
    int32_t r = cudago_ctx_enter(s->ctx, &pushed);
    if (!r) r = cu.cuStreamIsCapturing(s->h, &status);
    cudago_ctx_leave(pushed);
    return !r && status; /* what else is wrong the call itself will say */
}

/* --- types ------------------------------------------------------------------------------------------------------ */

enum cudago_class {
    CLS_DEVICE,
    CLS_STREAM,
    CLS_EVENT,
    CLS_RESOURCE,
    CLS_BUFFER,
    CLS_POINTER,
    CLS_CODE,
    CLS_KERNEL,
    CLS_CONFIG,
    CLS_OPERAND,
    CLS_GRAPH,
    CLS_EXEC,
    CLS_FINALIZER,
    CLS_COUNT
};
extern PyTypeObject *cudago_base[CLS_COUNT]; /* the native types */
extern PyTypeObject *cudago_cls[CLS_COUNT];  /* the public classes: the native type, or its Python subclass */

static inline int cudago_is(PyObject *o, enum cudago_class k) {
    return Py_TYPE(o) == cudago_cls[k] || PyType_IsSubtype(Py_TYPE(o), cudago_base[k]);
}
void *cudago_alloc(enum cudago_class k);       /* a new, zeroed instance of the public class */
void cudago_free(PyObject *self);              /* the end of every tp_dealloc */
int cudago_add_type(PyObject *module, enum cudago_class k, PyType_Spec *spec);
PyObject *cudago_context_enter(PyObject *self, PyObject *unused); /* __enter__ */
/* TypeError "NAME must be a X, not Y" */
int cudago_expect(PyObject *o, enum cudago_class k, const char *name);

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    int32_t ordinal;
    uintptr_t ctx;
    PyObject *resource; /* the default memory resource */
    int32_t pageable;   /* kernels read pageable host memory */
} DeviceObject;

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    cudago_stream *s;  /* NULL once closed */
    PyObject *owner;   /* what keeps a foreign stream alive, or NULL */
} StreamObject;

typedef struct {
    PyObject_HEAD
    PyObject *weak;
    uint64_t id;
    uintptr_t h;
    uintptr_t ctx;
    int32_t device;
} EventObject;

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
enum cudago_param { PARAM_INT = 1, PARAM_UINT, PARAM_FLOAT, PARAM_BYTES, PARAM_BITS };

/* A kernel on one device. C memory owned by Go. */
typedef struct {
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
    cudago_param params[];
} cudago_kernel;
#define CUDAGO_MAX_DEVICES 16
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
    void *call;          /* callback.c: the record of a Python callable */
} OperandObject;

/* operand.c: the one way from a Python object to an address and what keeps it. */
enum { OPERAND_WRITABLE = 1, OPERAND_KERNEL = 2 };
void cudago_operand_allow(OperandObject *o); /* for kernels: AllowHost, once */
void cudago_call_free(void *call);
OperandObject *cudago_operand(PyObject *object, int flags, const char *what);
/* A memoryview of ours that holds the object's buffer export, and what it is over; NULL with BufferError. */
PyObject *cudago_export_of(PyObject *object, int flags, const char *what, uint64_t *address, uint64_t *nbytes, int32_t *readonly);
int cudago_writable(const cudago_cell *cell, const char *what); /* -1 with BufferError if it is read-only */

/* An executable. C memory owned by Go. */
#define CUDAGO_EXEC_STREAMS 16
typedef struct {
    _Atomic uint32_t open;
    uint32_t n;
    uintptr_t h;
    uintptr_t ctx;
    uint64_t launches;
    _Atomic uint32_t busy; /* launches that gave the GIL away */
    int32_t device;
    int32_t calls_python;
    int32_t foreign;       /* launches on streams of other libraries may be under way: cudagoExecSettle */
    uint64_t stream[CUDAGO_EXEC_STREAMS]; /* ids, which are never used twice: a closed stream is never met again */
    uint64_t last[CUDAGO_EXEC_STREAMS];   /* stream->launched at its last launch there */
} cudago_exec;

/* launch.c: packs args for k into values, one pointer each into params. keep collects Operands of host objects, and,
 * if all is true, of every object with memory. -1 with an exception; on success *keep may be NULL. */
int cudago_pack(KernelObject *kernel, cudago_kernel *k, cudago_stream *stream, PyObject *const *args, Py_ssize_t n, int all,
                uint8_t *values, void **params, PyObject **keep);
int cudago_keep_until_done(cudago_stream *s, PyObject *kept);
int cudago_launch_error(KernelObject *kernel, cudago_kernel *k, ConfigObject *c, int32_t code);
int cudago_result_is_sticky(int32_t code);
int cudago_host_known(uint64_t address); /* the driver knows the host memory: pinned, managed or registered */

/* capture.c: operations on a stream that captures; what they were given is kept by the captured graph. kept: list of
 * Operands, or NULL. */
int cudago_capture_memcpy(cudago_stream *s, OperandObject *dst, OperandObject *src, uint64_t size);
int cudago_capture_memset(cudago_stream *s, OperandObject *dst, uint32_t value, uint32_t width, uint64_t count);
int cudago_capture_launch(cudago_stream *s, const void *config, ConfigObject *c, cudago_kernel *k, void **params,
                          PyObject *kernel, PyObject *kept);
cudago_kernel *cudago_kernel_on(KernelObject *kernel, int32_t device);
int cudago_check_config(ConfigObject *c, cudago_kernel *k);
cudago_stream *cudago_stream_arg(PyObject *o, PyObject **keep); /* Stream, or anything with __cuda_stream__ */

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
PyObject *cudago_take_reports(PyObject *module, PyObject *unused);
PyObject *cudago_cancel_kernels(PyObject *module, PyObject *unused);
PyObject *cudago_device_new(PyObject *module, PyObject *ordinal);
PyObject *cudago_stream_new(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_stream_wrap(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_event_new(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_resource_new(PyObject *module, PyObject *args);
PyObject *cudago_pin(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_compile(PyObject *module, PyObject *args);
PyObject *cudago_code_from(PyObject *module, PyObject *args);
PyObject *cudago_code_data(PyObject *module, PyObject *args);
PyObject *cudago_kernel_new(PyObject *module, PyObject *args);
PyObject *cudago_config_new(PyObject *module, PyObject *args);
PyObject *cudago_launch(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_graph_new(PyObject *module, PyObject *device);
PyObject *cudago_capture_begin(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_capture_end(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_finalizer_new(PyObject *module, PyObject *args);
PyObject *cudago_collect_prove(PyObject *module, PyObject *const *args, Py_ssize_t n);
PyObject *cudago_shutdown(PyObject *module, PyObject *unused);
PyObject *cudago_after_fork(PyObject *module, PyObject *unused);
/* For Go, which cannot define C functions beside the ones that it exports. */
void cudago_call_host(uintptr_t fn, uintptr_t user_data); /* calls a CUhostFn */
int64_t cudago_live_cells(void);
uint32_t *cudago_drop_hint_address(void);
void cudago_incref(uintptr_t object); /* GIL */
void cudago_finalizer_exit(uintptr_t finalizer);
int cudago_request_drain(void);
void cudago_drop_references(uintptr_t *refs, size_t n);

#define NEW_REF(o) (Py_IncRef((PyObject *)(o)), (PyObject *)(o))
#define METHOD(f) ((PyCFunction)(void (*)(void))(f))
#define CUDAGO_WEAK_MEMBER(T) {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(T, weak), Py_READONLY, 0}
#ifndef Py_T_PYSSIZET
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#endif

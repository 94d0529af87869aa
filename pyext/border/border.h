/* SPDX-FileCopyrightText: The cudago authors
 * SPDX-License-Identifier: Apache-2.0 */
/* border.h: what every room of the border shares and what knows no noun: errors, the entry of a call, waiting, the
 * driver's calls, the object model. Every function here needs the GIL unless it says otherwise.
 *
 * Every entry has the same shape. First it evaluates all its arguments, which can run Python. Then, in a QUIET
 * function, it checks that what the call uses is open, calls the driver, and notes what the call uses. So nothing can
 * be closed, collected or captured between the check and the use. A call that releases the GIL holds what it uses (a
 * count of the cell, the stream's block, the executable) and touches no wrapper until it has the GIL back.
 * tests_py/layout/test_border.py checks the sources for this.
 *
 * Lock order: the GIL is the outermost lock. No lock of ours is held across a call into Python. */
#pragma once
#include "abi3.h"
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#include "../../dlpack/exported.h"
#include "zcalls.h"
#include "zdocs.h"

/* A function that runs no Python and keeps the GIL, except in a return statement: raising an error is the last thing it
 * does. What it has checked stays true until it returns. */
#define QUIET

/* --- errors ------------------------------------------------------------------------------------------------- */

/* What a call into Go reports. Filled by guard() in status.go, turned into an exception by cudago_raise. */
typedef struct {
    int32_t kind;  /* enum cudago_kind */
    int32_t code;  /* CUresult, where there is one */
    char *message; /* malloc'ed, or NULL */
    char *detail;  /* malloc'ed JSON object with the exception's attributes, or NULL */
} cudago_status;

/* `make gen` writes the same numbers to errors.py. */
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

PyObject *cudago_text_of(const char *message); /* None for NULL; bytes that are no UTF-8, as where a name was cut, are replaced */
int cudago_raise(cudago_status *st);                         /* raises, frees what st holds; returns -1 */
int cudago_raise_closed(const char *what);                   /* ClosedError "WHAT is closed"; returns -1 */
int cudago_raise_closed_as(const char *format, ...);         /* ClosedError, with a text as of PyUnicode_FromFormat; returns -1 */
int cudago_is_closed_error(void);                            /* the exception that is set is one */
int cudago_raise_closed_named(const char *what); /* of the exception that is set: a ClosedError says of which argument it is. -1 */
int cudago_raise_result(const char *operation, int32_t code); /* CUDAError of a driver call made in C; returns -1 */
void cudago_warn_result(const char *operation, int32_t code); /* CUDAWarning, for where no exception can be raised */
void cudago_warn(const char *text);                           /* likewise */

QUIET int cudago_result_persists(int32_t code);               /* repeating the call would fail with it again */

/* --- answers -------------------------------------------------------------------------------------------------- */

/* A table that Go returns. All rows have equally many numbers and equally many texts. answer.go fills it in. */
typedef struct {
    uint64_t rows;
    int32_t n_numbers, n_texts; /* of each row */
    int32_t held;               /* the first number of each row is an object that the answer holds a reference to */
    uint64_t *numbers;          /* malloc'ed; ends and texts are in the same piece */
    uint64_t *ends;             /* where each text ends and the next begins */
    char *texts;                /* UTF-8 */
} cudago_answer;
/* The first numbers are addresses of objects that Go wrote down in this same hold of the GIL. From now on the answer
 * holds a reference to each object. */
QUIET void cudago_answer_hold(cudago_answer *a);
/* Each of these frees the answer. */
PyObject *cudago_answer_rows(cudago_answer *a); /* a tuple of tuples: the numbers or the object, then the texts */
PyObject *cudago_answer_row(cudago_answer *a);  /* the first row, or None */
PyObject *cudago_answer_text(cudago_answer *a); /* the text of an answer that is one text */

/* --- entry of every call -------------------------------------------------------------------------------------- */

extern int cudago_closed;               /* the interpreter is ending: from here on nothing is released */
extern int cudago_unusable;             /* forked, or being shut down */
extern int cudago_forked;               /* set in a forked child; the Go runtime does not survive fork */
extern _Atomic int cudago_drop_hint;    /* references are waiting to be dropped */
int cudago_raise_unusable(void);        /* returns -1 */
/* Waits with the GIL released, in slices; between slices it responds to Ctrl-C. -1 with an exception. */
enum cudago_wait_kind { WAIT_STREAM,
                        WAIT_EVENT,
                        WAIT_DEVICE };
int cudago_wait(enum cudago_wait_kind kind, uint64_t id);
int cudago_wait_for(enum cudago_wait_kind kind, uint64_t id, int blocks); /* blocks: the driver waits, also for what is over */
int cudago_task(uint64_t task, uint64_t made[2]); /* waits for a task of Go's, see task.go: -1 with an exception */
/* Without the GIL, by the thread that waits, which keeps the stream and its context: is everything in it over, now or soon? 0:
 * it is not, or there is an error, or only cudago_wait can tell. */
int cudago_poll_stream(uintptr_t ctx, uintptr_t stream);
/* With the GIL: is the event reached, or without one, is everything in the stream over? 1, 0, or only Go can tell, and has the
 * error if there is one. */
enum { CUDAGO_ASK_GO = -1 };
QUIET int cudago_ask(uintptr_t ctx, uintptr_t stream, uintptr_t event);
void cudago_poll_opened(void); /* the driver is open: its calls are known */
enum { CUDAGO_SLICE_MS = 20 };
int cudago_interrupted(void);                      /* between two slices: -1 with an exception if the wait must end */
int cudago_refuse_wait(enum cudago_wait_kind kind); /* on the callback thread: raises, returns -1 */
int cudago_callbacks_running(int32_t device); /* how many host functions of its graphs are running; needs no GIL */
QUIET int cudago_on_callback_thread(void);    /* the thread that runs the host callbacks of graphs */
void cudago_drain(void);                /* drops what is waiting; preserves a pending exception */
static inline void cudago_drain_waiting(void) {
    if (atomic_load_explicit(&cudago_drop_hint, memory_order_relaxed) || cudago_cells_pending()) cudago_drain();
}
extern void (*cudago_drain_rest)(void); /* the later rooms' part of a drain: set in module.c */
int cudago_open(void);                  /* opens the driver if it is not open yet; -1 with an exception */

/* A stall: a thread is inside cuGraphInstantiate or a reset. On NVIDIA's driver such a call can wait for the device
 * while other calls wait for it (seen on driver 580: cuEventRecord behind cuGraphInstantiate; we assume the same of a
 * reset), and the device may be waiting for a Python callback that needs the GIL. A thread that then called the driver
 * with the GIL held would never return. So until the stall is over calls wait without the GIL, at their start and again
 * after an argument has run foreign code. Launches, copies and fills release the GIL anyway while there are callbacks.
 * Guarded by the GIL. */
extern long cudago_exclusive;
extern long cudago_callbacks_alive; /* Python callbacks that graphs may still run */
/* Go around a call that waits while a thread is stuck in a launch, which the driver makes wait for a Python callback if
 * its queue is full behind one: many calls do if that was the launch of a graph or into the same stream, and so do locks
 * held across them. They release the GIL only while there are callbacks, because otherwise nothing there needs it. */
static inline PyThreadState *cudago_step_aside(void) { return cudago_callbacks_alive ? PyEval_SaveThread() : NULL; }
static inline void cudago_step_back(PyThreadState *t) {
    if (t) PyEval_RestoreThread(t);
}
enum { CUDAGO_NAP_US = 50 }; /* between two looks at what another thread does in the driver */
void cudago_nap(long us);    /* releases the GIL for so long */
QUIET int cudago_stall(void);       /* never on the callback thread: the instantiation may be waiting for it */
int cudago_stall_wait(void);        /* -1 with an exception of a signal */

/* Every call of the API begins with this: a pending call alone does not drain while the main thread is busy or blocked
 * in C (python/cpython#95820). */
#define CUDAGO_ENTER(bad) \
    do { \
        if (cudago_unusable) { \
            cudago_raise_unusable(); \
            return bad; \
        } \
        cudago_drain_waiting(); \
        if (cudago_exclusive && cudago_stall_wait()) return bad; \
    } while (0)

/* At exit Go has closed everything: an object that is left then says so, and closing it, as finalizers and the ends of with
 * blocks do, is no mistake. Not so in a forked child. */
static inline QUIET int cudago_is_over(void) { return cudago_unusable && !cudago_forked; }
#define CUDAGO_ENTER_CLOSE() \
    do { \
        if (cudago_is_over()) Py_RETURN_NONE; \
        CUDAGO_ENTER(NULL); \
    } while (0)

/* thread.c */
QUIET int32_t cudago_thread(void); /* the one that calls */
QUIET int cudago_thread_is_over(int32_t thread);

/* --- driver calls that C makes directly --------------------------------------------------------------------------- */

extern cudago_calls cu;
void cudago_trampolines(cudago_calls *calls); /* trampoline.c: fills in the exported Go functions */

/* Makes ctx current around a call. Costs one comparison if it is current already. */
static inline QUIET int32_t cudago_ctx_enter(uintptr_t ctx, uintptr_t *pushed) {
    uintptr_t now = 0;
    *pushed = 0;
    if (cu.cuCtxGetCurrent(&now) == 0 && now == ctx) return 0;
    int32_t r = cu.cuCtxPushCurrent(ctx);
    if (!r) *pushed = ctx;
    return r;
}
QUIET void cudago_ctx_pop_again(uintptr_t ctx);
static inline QUIET void cudago_ctx_leave(uintptr_t pushed) {
    uintptr_t was;
    if (pushed && cu.cuCtxPopCurrent(&was)) cudago_ctx_pop_again(pushed);
}

/* Calls between these two do not invalidate captures of other threads. */
static inline QUIET int32_t cudago_relax(CUstreamCaptureMode *mode) {
    *mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    return cu.cuThreadExchangeStreamCaptureMode(mode);
}
/* Not restored if that failed: the mode it gave would be the relaxed one. */
static inline QUIET void cudago_relax_end(int32_t failed, CUstreamCaptureMode *mode) {
    if (!failed) cu.cuThreadExchangeStreamCaptureMode(mode);
}

/* --- resets: generation.c -------------------------------------------------------------------------------------------- */

#define CUDAGO_MAX_DEVICES 16

/* The current generation of each device. Every object remembers the generation it was made in and is lost in any other.
 * The number is odd during a reset, when nothing is made: everything is lost then, and comes back if the reset does not
 * happen. Guarded by the GIL. */
extern uint32_t cudago_generation[CUDAGO_MAX_DEVICES];
static inline QUIET int cudago_lost(int32_t device, uint32_t generation) { return cudago_generation[device] != generation; }
static inline QUIET int cudago_resetting(int32_t device) { return cudago_generation[device] & 1; }
int cudago_raise_lost(const char *what, int32_t device); /* ClosedError; returns -1 */
extern uint64_t cudago_resets; /* how often a generation has begun or ended, of any device */
QUIET void cudago_generation_move(int32_t device, int by);

/* These two go around code that makes an object on a device with the GIL released. cudago_making comes before it and
 * sets the object's generation; -1 with an exception if the device is being reset. cudago_made comes after it: -1 with
 * ClosedError if the device was reset meanwhile; the new object may then be lost and must be released. */
int cudago_making(int32_t device, uint32_t *generation);
QUIET int cudago_made(const char *what, int32_t device, uint32_t generation);

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
    CLS_NODE,
    CLS_EXEC_NODE,
    CLS_FINALIZER,
    CLS_GREEN,
    CLS_DESCRIPTOR,
    CLS_SEMAPHORE,
    CLS_EXTERNAL,
    CLS_ARRAY,
    CLS_MIPMAPPED,
    CLS_COUNT
};
extern PyTypeObject *cudago_base[CLS_COUNT]; /* the native types */
extern PyTypeObject *cudago_cls[CLS_COUNT];  /* the public classes: the native type, or its Python subclass */

static inline QUIET int cudago_is(PyObject *o, enum cudago_class k) {
    return Py_TYPE(o) == cudago_cls[k] || PyType_IsSubtype(Py_TYPE(o), cudago_base[k]);
}
void *cudago_alloc(enum cudago_class k);       /* a new, zeroed instance of the public class */
/* A new instance of a type without subclasses in which the collector takes no part; only its head is set. */
void *cudago_alloc_native(PyTypeObject *type, size_t size);
void cudago_free(PyObject *self);              /* the end of every tp_dealloc */
void cudago_free_native(PyObject *self);       /* that of what cudago_alloc_native made */
int cudago_add_type(PyObject *module, enum cudago_class k, PyType_Spec *spec);
/* Adds methods and attributes of a later room to a type of an earlier one. -1 with an exception. */
int cudago_add_methods(enum cudago_class k, PyMethodDef *methods);
int cudago_add_attributes(enum cudago_class k, PyGetSetDef *attributes);
PyObject *cudago_context_enter(PyObject *self, PyObject *unused); /* __enter__ */
/* block.c: a row is a tuple of a function and its arguments. */
int cudago_row_call(PyObject *row, PyObject **result); /* -1 with an exception; result may be NULL */
void cudago_undo(PyObject *row);                       /* calls it, and keeps the exception that is set, or has a first one */
PyObject *cudago_call_locked(PyObject *module, PyObject *args); /* _locked */
int cudago_block_type_init(PyObject *module);
/* Calls a method of the Python face with the same arguments: what a native method leaves to it. */
PyObject *cudago_call_python(PyObject *self, const char *method, PyObject *const *args, Py_ssize_t n, PyObject *names);
/* TypeError "NAME must be a X, not Y" */
int cudago_raise_expected(PyObject *o, enum cudago_class k, const char *name); /* returns -1 */
static inline QUIET int cudago_expect(PyObject *o, enum cudago_class k, const char *name) {
    return cudago_is(o, k) ? 0 : cudago_raise_expected(o, k, name);
}
/* Clears a pending exception that another is about to replace. -1, clearing nothing, if it ends the program, as
 * KeyboardInterrupt does, or says nothing of what was asked, as MemoryError. */
int cudago_forgive(void);
int cudago_has(PyObject *o, const char *name); /* 1 if o has it, 0 if not, -1 with any other exception */
/* The name of a keyword argument. Callers' names are interned, so most are recognised by address: comparing the text
 * costs as much as all the checks of a hot call. */
typedef struct {
    const char *text;
    PyObject *interned; /* NULL until the first comparison of the text */
} cudago_keyword;
int cudago_which(cudago_keyword *known, int n, PyObject *name); /* its index, or n if it is none of them */
int cudago_names_stream(PyObject *names); /* is "stream" the only keyword argument? */
/* The names that came with a call. They are a constant of the code that calls, so most are recognised as a whole. Only
 * interned names are remembered: nothing of the caller's is kept alive but the tuple. */
enum { CUDAGO_MOST_NAMES = 4,
       CUDAGO_CALLERS = 4 };
typedef struct {
    PyObject *names; /* held; NULL: none yet */
    int8_t n, which[CUDAGO_MOST_NAMES];
} cudago_names;
/* Puts the values where the names that are known belong, of which there are at most CUDAGO_MOST_NAMES. NULL, or the name
 * that is none of them. seen is the call's own: cudago_names[CUDAGO_CALLERS]. */
PyObject *cudago_read_names(cudago_names *seen, cudago_keyword *known, int n_known, PyObject *names, PyObject *const *values,
                            PyObject **const *slots);
/* A number for a message, a new reference. Python writes no integers of thousands of digits, which are then called so. */
PyObject *cudago_number_text(PyObject *number);
/* Raises "WANTED, got NUMBER" in the place of any other exception; returns -1. */
int cudago_raise_number(PyObject *type, PyObject *number, const char *format, ...);
int cudago_flag(PyObject *o, const char *name); /* of a bool, or NumPy's; -1 with TypeError with the name */
PyObject *cudago_index(PyObject *o, const char *name); /* an int, a new reference; otherwise TypeError with the name */
/* A number of 64 bits without a sign; otherwise TypeError, or OverflowError that says what was wanted. */
int cudago_uint64(PyObject *o, const char *name, const char *wanted, uint64_t *out);
/* A 32-bit int that is at least `least`; otherwise TypeError, or ValueError with the range. */
int cudago_int32(PyObject *o, const char *name, int32_t least, int32_t *out);

int cudago_print_flush(void); /* device printf to sys.stdout */

/* --- callbacks: callback.c ---------------------------------------------------------------------------------------- */

/* A Python callable that CUDA's threads call, on one device: the host function is cudago_host_function, its argument
 * the record. The record borrows the callable until it is freed. NULL with an exception. */
void *cudago_call_new(PyObject *callable, int32_t device);
void cudago_call_free(void *call);
QUIET uintptr_t cudago_host_function(void);
void cudago_callbacks_close(void);

/* --- checks: check.c ----------------------------------------------------------------------------------------------- */

/* Tells the checks, for their reports, which line of the program is making a call: the thread's next driver call that is
 * reported takes the note. Where none may follow that the line is to be blamed for, it is to be forgotten. And tells them that
 * the host is about to access memory. While no check is on, each costs one test of a number. */
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

/* --- lines of the program: site.c --------------------------------------------------------------------------------- */

/* The line of the program that makes something, as a number; 0 if it is not known, or a file says what is made. It keeps
 * neither frame nor code, and needs the GIL. */
QUIET uint32_t cudago_site_find(void);
uint32_t cudago_site_of_call(void); /* the line that is calling, whatever for */
extern int cudago_sites_on; /* is the line noted of what is made? */
static inline QUIET uint32_t cudago_site(void) { return cudago_sites_on ? cudago_site_find() : 0; }
PyObject *cudago_site_text(uint32_t line); /* "file:line", a new reference; None for 0 */
/* The same, kept for good; nothing where UTF-8 cannot say it. */
QUIET const char *cudago_site_utf8(uint32_t line, Py_ssize_t *size);
PyObject *cudago_record_sites(PyObject *module, PyObject *on);

/* --- what room.c adds to the module, and what Go calls ------------------------------------------------------------ */

PyObject *cudago_set_checks(PyObject *module, PyObject *names);
PyObject *cudago_set_package(PyObject *module, PyObject *names);
PyObject *cudago_calling_site(PyObject *module, PyObject *unused);
PyObject *cudago_objects_of(PyObject *module, PyObject *args);
PyObject *cudago_call_aside(PyObject *module, PyObject *args);
PyObject *cudago_take_reports(PyObject *module, PyObject *unused);
PyObject *cudago_cancel_kernels(PyObject *module, PyObject *unused);
PyObject *cudago_fail_at_random(PyObject *module, PyObject *rate);
PyObject *cudago_fail_next(PyObject *module, PyObject *args);
PyObject *cudago_as_another(PyObject *module, PyObject *args);
PyObject *cudago_faults(PyObject *module, PyObject *unused);
PyObject *cudago_set_closed_error(PyObject *module, PyObject *cls);
int cudago_watch_fork(void);              /* -1 with an exception */
void cudago_faults_init(uintptr_t go_begin, uintptr_t go_end); /* where Go's code lies */
void cudago_faults_begin(void);            /* Go's handler of memory faults is asked first until cudago_faults_end; without the GIL */
void cudago_faults_end(void);
int cudago_can_start(int n);               /* how many threads can be started, up to n; without the GIL */
void cudago_show_variables(void);          /* of the environment, after Go has started */
void cudago_note_descriptor(int32_t fd, int32_t is_open); /* one that a forked child must not keep; on any thread */
int cudago_guard_gopy(PyObject *gobind); /* -1 with an exception */
PyObject *cudago_watch_forks(PyObject *module, PyObject *unused);
PyObject *cudago_set_class(PyObject *module, PyObject *args);
PyObject *cudago_open_driver(PyObject *module, PyObject *unused);
PyObject *cudago_is_open(PyObject *module, PyObject *unused);
PyObject *cudago_panic(PyObject *module, PyObject *text);
PyObject *cudago_reaper_flush(PyObject *module, PyObject *ms);
int cudago_border_room(PyObject *module); /* -1 with an exception */
/* For Go: a file with exported functions cannot define C functions. */
void cudago_call_host(uintptr_t fn, uintptr_t user_data); /* calls a CUhostFn */
void *cudago_go_entered_address(void);
uint32_t *cudago_drop_hint_address(void);
int32_t *cudago_waits_held_address(void);
int32_t *cudago_printed_address(void);
void cudago_incref(uintptr_t object); /* GIL */
int cudago_request_drain(void);
/* A reference in the drop queue is a PyObject, or a count of a cell with this bit set. */
#define CUDAGO_REF_CELL ((uintptr_t)1)
void cudago_drop_references(uintptr_t *refs, size_t n);
void cudago_keep_exception(void (*run)(void *), void *with); /* calls run(with), which may be foreign code */
void cudago_drop_capsule(PyObject *capsule);                 /* one with a foreign destructor, or NULL */

/* Go functions for later rooms. */
uintptr_t cudagoDeviceContext(int64_t ordinal, int32_t *pageable, cudago_status *st);
void cudagoDetailError(char *op, int32_t code, int32_t device, char *text, cudago_status *st);
int cudagoReaperFlush(long ms);

/* --- shorthand ---------------------------------------------------------------------------------------------------- */

#define NEW_REF(o) (Py_IncRef((PyObject *)(o)), (PyObject *)(o))
#define METHOD(f) ((PyCFunction)(void (*)(void))(f))
#define CUDAGO_WEAK_MEMBER(T) {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(T, weak), Py_READONLY, 0}
#ifndef Py_T_PYSSIZET
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY READONLY
#endif
